"""Class: join it, see everybody's best and one's own place; what goes wrong."""

from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

from core.classroom.room import Teacher
from core.classroom.rules import Rules
from core.store.classes import Class
from core.ui import server
from core.ui.classroom import gathered
from core.ui.home import now
from tests.pages.walk import open_page, texts
from tests.store.made_up import finished

PAGE = "pages/11_Class.py"
TEACHER = Teacher("ms bird's browser", "Ms Bird")


@pytest.fixture
def opened(engine) -> Iterator[Callable[..., Class]]:
    """Opens a class, which is deleted after the test."""
    room, made = server.room(), []

    def open_one(size: int = 30, **rules: object) -> Class:
        made.append(room.create(TEACHER, "Physics 9B", size, Rules(**rules)))
        room.start(TEACHER, made[-1].id)
        return made[-1]

    yield open_one
    there = {each.id for each in server.store().classes.all()}
    for each in made:
        if each.id in there:
            room.delete(TEACHER, each.id, engine.forget)
    gathered.clear()


def join(opened: Class) -> AppTest:
    """Somebody's page, who has come in by the link."""
    at = open_page(PAGE, code=opened.code)
    at.button(key="join_class").click().run()
    assert not at.exception
    return at


def me(at: AppTest) -> str:
    """Whose page it is: the tests' browsers have no cookie."""
    return at.session_state["visitor"]


def said(at: AppTest) -> str:
    return texts([*at.subheader, *at.markdown, *at.warning])


def labels(at: AppTest) -> list[str]:
    """Of the links to other pages."""
    return [each.proto.label for each in at.get("page_link")]


def test_without_a_class_nothing_tempts():
    """The page says what a class is; no link leads to it, and no link does harm."""
    at = open_page(PAGE)
    assert "None is open right now" in said(at)
    assert not any("Class" in label for label in labels(at))
    assert not at.button
    assert "No class has that code" in said(open_page(PAGE, code="lusab-babad"))


def test_a_student_presses_join_and_is_in(opened):
    """By the link, with a friendly name, which may be changed to one that is free."""
    made = opened()
    at = join(made)
    (member,) = server.room().members()
    assert f"You are **{member.name}** in **Physics 9B**." in said(at)
    assert "until you reload or close this tab" in texts(at.info)
    assert any(label == "Class" for label in labels(at))
    other = join(made)
    other.text_input(key="class_name").input(member.name)
    other.button(key="rename_member").click().run()
    assert "has that name already" in said(other)
    other.text_input(key="class_name").input("Zoë")
    other.button(key="rename_member").click().run()
    assert "You are **Zoë**" in said(other)


def test_a_code_can_be_typed(opened):
    """However it is; a wrong one is a sentence, and the field is still there."""
    made = opened(size=1)
    at = open_page(PAGE)
    at.text_input(key="class_code").input("nothing")
    at.button(key="join_class").click().run()
    assert "No class has that code" in said(at)
    at.text_input(key="class_code").input(made.code.upper())
    at.button(key="join_class").click().run()
    assert "You are **" in said(at)
    at = join(made)
    assert "is full" in said(at)


def test_a_class_ends_while_people_are_in_it(opened, engine):
    """Closed, then deleted: a sentence each, and the link says what became of it."""
    made = opened()
    at = join(made)
    server.room().close(TEACHER, made.id)
    at.run()
    assert "**Physics 9B** has ended." in said(at)
    assert "That class is closed" in said(open_page(PAGE, code=made.code))
    server.room().start(TEACHER, made.id)
    assert "You are **" in said(at.run())
    server.room().delete(TEACHER, made.id, engine.forget)
    assert "has ended" in said(at.run())
    assert "No class has that code" in said(open_page(PAGE, code=made.code))


def test_everybodys_best_is_on_the_chart_and_i_know_my_place(opened):
    """By the runs in this class; others are named, and who has none is told the quest.

    What the class guessed is shown to whoever has guessed.
    """
    made = opened(target=0.79, fixed={"task": "sprites"})
    first, second = join(made), join(made)
    assert "reach 79% on Sprites" in said(first)
    assert "haven't trained on Sprites yet" in said(first)
    assert "Guess on **Compare** or **Speed**" in said(first)
    store = server.store()
    for at, name in ((first, "slow"), (first, "slower"), (second, "other")):
        finished(store, f"{made.id} {name}", me(at))
        store.answers.keep(me(at), "race_guess", "A card")
    store.writer.flush()
    gathered.clear()
    for at in (first, second):
        at.session_state["answers"] = {"race_guess": "A card"}
        at.run()
        assert "**2 of 2 reached 79% on Sprites, the fastest in 10.5 s.**" in said(at)
        assert "Of 2 guesses, 2 are “A card”" in said(at)
        (table,) = at.dataframe
        assert sum("(you)" in name for name in table.value["Who"]) == 1
    places = [
        texts(at.markdown).count("You are **number 1**") for at in (first, second)
    ]
    assert sorted(places) == [0, 1]
    charts = [chart.proto for chart in first.get("vega_lite_chart")]
    assert len(charts) == 2


RULES = {
    "epochs": 1,
    "models": ("ann",),
    "devices": ("cpu",),
    "fixed": {"task": "sprites", "batch_size": "500"},
    "hidden": ("task", "learning_rate", "steps"),
}


def test_train_shows_what_the_class_leaves_to_choose(opened, engine):
    """What is fixed is gray, what is hidden is not there, and a run fits the rules."""
    opened(**RULES)
    at = open_page("pages/3_Train.py", epochs="9", batch_size="32")
    assert (
        "Your class: up to 1 epoch; ANN only; CPU only; the same batch size for all"
        in said(at)
    )
    assert at.number_input(key="batch_size").value == 500
    assert at.number_input(key="batch_size").disabled
    assert at.number_input(key="epochs").value == 1
    drawn = {each.key for each in (*at.number_input, *at.selectbox)}
    assert drawn.isdisjoint({"task", "learning_rate"})
    at.button(key="start_training").click().run()
    (job,) = engine.going_on(me(at)) or engine.jobs("core.training:run", me(at))
    config = job.arguments[0]
    assert (config.batch_size, config.task, config.device) == (500, "sprites", "cpu")
    engine.cancel(job.id)
    assert server.room().open.outside == 1


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [("epochs", 9, "a run has up to 1 epoch,"), ("batch_size", 64, "is 500 for all")],
)
def test_no_message_of_a_browser_gets_past_a_rule(opened, engine, setting, value, why):
    """What a page would not offer is refused, and nothing starts."""
    opened(**RULES)
    at = open_page("pages/3_Train.py")
    at.session_state[setting] = value
    at.button(key="start_training").click().run()
    assert why in said(at)
    assert engine.going_on(me(at)) == []


def test_compare_and_speed_leave_no_more_to_choose(opened):
    """Nor the quick run of Home."""
    opened(**RULES)
    at = open_page("pages/5_Compare.py")
    assert at.selectbox(key="race_model").options == ["ANN"]
    assert at.number_input(key="race_batch_ann").disabled
    assert "race_steps_ann" not in {each.key for each in at.number_input}
    at = open_page("pages/6_Speed.py")
    assert at.selectbox(key="ladder_model").options == ["ANN"]
    assert at.number_input(key="ladder_epochs_ann").value == 1
    quick = now.quick(server.engine().machine(), 3)
    chosen = (quick.epochs, quick.batch_size, quick.seed, quick.device)
    assert chosen == (1, 500, 3, "cpu")


def test_the_projector_is_for_those_who_are_in(opened):
    """The code, the chart and the queue, and no sidebar; a stranger sees no code."""
    made = opened()
    stranger = open_page(PAGE, projector="1")
    assert "to its teacher and to who is in it" in said(stranger)
    assert made.code not in texts(stranger.title)
    at = join(made)
    at.query_params["projector"] = "1"
    at.run()
    assert not at.exception
    assert [each.value for each in at.title] == ["Physics 9B", made.code]
    assert "1 of 30 have joined." in said(at)
    assert texts(at.header).endswith("Right now")
    assert not at.sidebar.markdown


def test_a_projector_can_show_no_names(opened):
    """Where the teacher says so: neither on the chart nor in the queue."""
    made = opened(anonymous=True, target=0.5, fixed={"task": "sprites"})
    at = join(made)
    finished(server.store(), f"{made.id} run", me(at))
    server.store().writer.flush()
    gathered.clear()
    name = server.room().member(me(at)).name
    at.query_params["projector"] = "1"
    at.run()
    assert "One of 1 reached 50%" in texts(at.header)
    assert name not in said(at)
    (chart, *_) = at.get("vega_lite_chart")
    assert b"Somebody" in chart.proto.SerializeToString()
    assert name.encode() not in chart.proto.SerializeToString()
