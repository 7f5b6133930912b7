"""Home: train now and see it learn; the course map; this machine's records."""

import streamlit as st

from core.home import course_page as course
from core.home import first_run_page as first_run
from core.ui import frame
from core.ui.course import HOME, link, page
from core.ui.server import engine

frame.begin(HOME.title)
machine = engine().machine()
reached = course.records(machine) if machine else course.Records()

first_run.draw()
link(page("Mistakes"), "Got an error? Paste it", icon=":material/search:")

st.subheader("The course")
course.draw_lessons(course.by_lesson(reached))

course.draw_records(reached)
