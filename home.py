"""Home: train now and see it learn; the course map; what this machine has earned."""

import streamlit as st

from core.ui import frame
from core.ui.course import HOME
from core.ui.home import earned, lessons, now
from core.ui.server import engine

frame.begin(HOME.title, wide=True)
machine = engine().machine()
found = earned.by_runs(machine) if machine else earned.Earned()

now.draw()

st.subheader("The course")
lessons.draw(earned.by_lesson(found))

earned.draw(found)
