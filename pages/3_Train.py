"""Train a model, live, and compare it with the runs before."""

import streamlit as st

from core.config import IMAGE_TASKS
from core.ui import dataset, format, frame, runs
from core.ui.charts import train as charts
from core.ui.checkpoints import export
from core.ui.course import lesson
from core.ui.server import engine, visitor
from core.ui.source import lines_with, source
from core.ui.train import controls, fits, live

HERE = lesson("Train")

frame.begin(HERE)
state = st.session_state
machine = engine().machine()
has_data = dataset.is_here(machine)

# What the address asks for: a run to show, or settings to begin with.
query = dict(st.query_params)
if run_id := query.pop("run", None):
    state.run_id = run_id
for name in query:
    del st.query_params[name]
notices = state.pop("notices", []) + controls.preset(query, has_data)
for notice in notices:
    st.warning(notice, icon=":material/info:")
if machine and not has_data:
    dataset.offer(machine)

own = runs.runs(visitor())
going_on = [each.id for each in own if not each.job.ended]
if not run_id and (going_on or "run_id" not in state) and own:
    # From another page, after a reload, in another tab: here it goes on.
    state.run_id = going_on[-1] if going_on else own[-1].id
current = runs.run(state.get("run_id"))
alive = current is not None and not current.job.ended
mine = current is not None and current.job.owner == visitor()


def start() -> None:
    """Queue the run that the controls describe."""
    if any(not each.job.ended for each in runs.runs(visitor())):
        state.notices = ["You have a run that goes on; it was not started twice."]
        return
    try:
        state.run_id = runs.start(controls.chosen())
        st.query_params["run"] = state.run_id
    except ValueError as error:
        state.notices = [f"{error} Nothing was started."]


with st.container(border=True):
    controls.draw([d.device for d in machine.devices] if machine else ["cpu"])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Start training",
            type="primary",
            icon=":material/play_arrow:",
            key="start_training",
            on_click=start,
            disabled=(alive and mine) or machine is None,
        )
        if current and alive and mine:
            st.button(
                "Cancel",
                icon=":material/stop:",
                key="cancel_run",
                on_click=engine().cancel,
                args=(current.id,),
            )
        controls.fast_setting()

if current is not None:
    st.query_params["run"] = current.id
    live.follow_run(current.id)
    with st.container(horizontal=True, vertical_alignment="center"):
        if current.result is not None and current.config.has_images:
            st.page_link(
                "pages/4_Evaluate.py",
                label="See what it got right and wrong",
                icon=":material/fact_check:",
                query_params={"run": current.id},
            )
        with st.popover("Share this run", icon=":material/link:", type="tertiary"):
            st.markdown("Whoever opens this address sees this run, live or finished.")
            address = (st.context.url or "").partition("?")[0]
            st.code(f"{address}?run={current.id}", language=None, wrap_lines=True)
    if current.result is not None:
        with st.expander("Take this run home", icon=":material/luggage:"):
            export.downloads(current)
else:
    if state.get("run_id"):
        st.warning(runs.UNKNOWN, icon=":material/search_off:")
        st.query_params.pop("run", None)
        del state.run_id
    going = [each for each in runs.runs() if not each.job.ended]
    if going:
        st.page_link(
            HERE.file,
            label=f"A run is going on here, {len(going) - 1} waiting: watch it",
            icon=":material/visibility:",
            query_params={"run": going[0].id},
        )
    st.markdown(
        ":material/show_chart: The loss of your run appears here, live, a moment after "
        "you press **Start training**. The settings above are a good first run."
        if machine
        else ":material/hourglass: The workers are loading torch; "
        "in a few seconds you can start."
    )
    if state.task not in IMAGE_TASKS:
        fits.draw(None, "CPU")
    # Empty axes now, so that the browser has what it needs for the first point.
    st.vega_lite_chart(
        runs.loss_frame([]),
        charts.losses((), "CPU", "step", 100),
        alt="An empty chart: step against loss",
    )

st.subheader("The code that ran" if current else "The code that will run")
shown = current.config if current else state
loop, model, loss, moves = st.tabs(
    ["The loop", "The model", "The criterion", "The moves"]
)
with loop:
    st.markdown(
        "The five steps that never change: `zero_grad`, forward, loss, `backward`, "
        "`step`. From `core/loops.py`."
    )
    st.code(source("core.loops:train_epoch"), line_numbers=True)
with model:
    st.markdown("The layers, from `core/models.py`.")
    name = format.CLASSES[shown.model]
    st.code(source(f"core.models:{name}"), line_numbers=True)
with loss:
    if shown.criterion == "gaussian":
        st.markdown(
            "A loss with a parameter of its own, from `core/criteria.py`. How noisy "
            "the data is, is learnt as the weights are: a large error costs less where "
            "`sigma` is large, but a large `sigma` costs by itself."
        )
        st.code(source("core.criteria:GaussianLoss"), line_numbers=True)
    else:
        st.markdown(
            f"`nn.{format.CLASSES[shown.criterion]}`, which has no parameters"
            + (
                "."
                if shown.task in IMAGE_TASKS
                else ". Choose the criterion Gaussian NLL for one that has."
            )
        )
with moves:
    st.markdown(
        "The model is moved **once**, before the loop; the batch is moved **in every "
        "step**, inside it. Forget one, and PyTorch says that it expected all tensors "
        "to be on the same device."
    )
    st.markdown(
        "The **third move** is the criterion's. This one has a parameter: forget the "
        "move, and the loss fails as the model would; forget the parameter in the "
        "optimizer, and it is never learnt."
        if shown.criterion == "gaussian"
        else "The criterion is moved too. This one has no parameters, so nothing "
        "happens; with a loss that has some, it is the third move."
    )
    st.code(
        "# once, in core/training.py\n"
        + lines_with("core.training:Training", ".to(device)")
        + "\n"
        + lines_with("core.training:Training", "make_optimizer")
        + "\n\n# in every step, in core/loops.py\n"
        + lines_with("core.loops:train_epoch", ".to(device)")
    )

frame.question(
    "batch_size",
    "You make the batch four times as large and train for as many epochs. "
    "What becomes of the steps?",
    {
        "As many steps as before": "An epoch is one pass over all images. With four "
        "times as many in a step, a quarter of the steps is enough. Try it above and "
        "compare the runs over steps.",
        "A quarter of the steps": "Yes. Each step costs a little more, but there are "
        "fewer of them, so an epoch is faster; and the weights are updated less often, "
        "so it may learn less in it. Compare your runs over seconds, then over epochs.",
        "Four times the steps": "The other way round: an epoch is one pass over all "
        "images, and a larger batch takes a larger bite. Try it above and compare.",
    },
    right="A quarter of the steps",
)
frame.end(HERE)
