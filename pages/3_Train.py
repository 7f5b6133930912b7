"""Train a model, live, and compare the run with earlier runs."""

import streamlit as st

from core.lessons.train import code_page as code
from core.lessons.train import controls_page as controls
from core.lessons.train import dataset_page
from core.lessons.train import progress_page as progress
from core.lessons.train import steer_page as steer
from core.ui import clicks, dataset, frame, hosts, job_panel, runs
from core.ui.controls import on_phone
from core.ui.server import engine, visitor
from to_device.names import SIMULATED

frame.begin("Train")
state = st.session_state
machine = engine().machine()
has_data = dataset.is_here(machine)

# What the address asks for: a run to show, or settings to begin with.
query = dict(st.query_params)
if run_id := controls.asked(query.pop("run", None)):
    state.run_id = run_id
if query:  # in one call, because Streamlit sends the browser each change
    st.query_params.from_dict({"run": run_id} if run_id else {})
notices = state.pop("notices", []) + controls.preset(query, has_data)
for notice in notices:
    st.warning(notice, icon=":material/info:")

going_on = runs.going_on(visitor())
if not run_id and going_on:
    # Show the running run after a reload, in a new tab, or from another page.
    state.run_id = going_on[-1].id
elif not run_id and state.get("run_id") is None:
    state.run_id = runs.newest(visitor())
if state.run_id and runs.run(state.run_id) is None:
    st.warning(runs.why_none(state.run_id), icon=":material/search_off:")
    state.run_id = runs.newest(visitor())
current = progress.chosen(asks_settings=bool(query))
alive = current is not None and not current.job.ended
mine = current is not None and current.job.owner == visitor()
compared = progress.compared(current)

with st.container(key="workbench"):
    left, right = st.columns([3, 8], gap="medium")
with left:
    with st.container(border=True):
        where = hosts.machine(state.host)
        devices = [d.device for d in where.devices] if where else ["cpu"]
        devices += [SIMULATED] if where and where.simulates else []
        folded = current is not None and on_phone()
        if folded:
            with st.expander("Settings", icon=":material/tune:"):
                controls.draw(devices)
                controls.fast_setting(compared)
        else:
            controls.draw(devices)
        if current and alive and mine:
            job_panel.cancel_button(current.job, "cancel_run", width="stretch")
        else:
            possible = controls.startable()
            st.button(
                "Start training",
                type="primary",
                icon=":material/play_arrow:",
                key="start_training",
                on_click=clicks.once,
                args=(controls.start,),
                disabled=machine is None or not possible,
                width="stretch",
            )
            controls.duration()
        steer.setting()
        if not folded:
            controls.fast_setting(compared)
    if machine and not has_data:
        dataset_page.offer(machine)
with right:
    if current is not None:
        if current.job.status == "interrupted":
            title = "This run was interrupted"
            st.warning(current.job.message, title=title, icon=":material/bolt:")
            st.button(
                "Start this run again",
                icon=":material/replay:",
                key="start_again",
                on_click=controls.start,
                args=(current.config,),
            )
        progress.name_it(current)
        progress.follow_run(current.id)
        progress.onward(current)
    else:
        progress.nothing_yet(state.task, ready=machine is not None)

st.header("This run's code" if current else "The code that will run")
settings = current.config if current else state
code.tabs(settings.task, settings.model, settings.criterion)

frame.end("Train")
