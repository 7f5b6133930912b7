"""Home: train a model and watch it learn; the course map; this machine's records."""

import streamlit as st

from core.home import course_page as course
from core.home import first_run_page as first_run
from core.home import keepsake_page as keepsake
from core.home import machine_page
from core.home.machine_page import Records
from core.lessons.mistakes import answer_page as answers
from core.lessons.mistakes import script_page
from core.ui import frame, runs
from core.ui.course import HOME
from core.ui.server import engine

frame.begin(HOME.title)
machine = engine().machine()
# Students guess what their first run will reach, so they see no records yet.
hides = runs.are_hidden()
records = machine_page.read(machine) if machine and not hides else Records()

first_run.draw()
with st.expander("Got an error? Paste it", icon=":material/search:"):
    answers.ask(here=False)
script = st.expander(
    "Got a script? See which line would break on a GPU",
    icon=":material/fact_check:",
    key="home_script",
    on_change="rerun",
)
if script.open:
    with script:
        script_page.draw()

st.header("The course")
course.draw_lessons(course.by_lesson(records))

machine_page.draw(records)
keepsake.draw()
