from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from core.classroom import standings_page
from core.classroom.rules import Rules
from core.home import first_run_page as first_run
from core.store.tables import Class
from core.ui import server
from core.ui.guess import CLOSE
from core.ui.practice import answer_keys
from tests.app.jobs.follow import finish
from tests.app.pages.walk import TEACHER, open_page, texts
from tests.app.store.made_up import finished

PAGE = "pages/11_Class.py"
RULES = {
    "epochs": 1,
    "models": ("ann",),
    "devices": ("cpu",),
    "fixed": {"task": "sprites", "batch_size": "500"},
    "hidden": ("task", "learning_rate", "steps"),
}


@pytest.fixture
def opened(room) -> Callable[..., Class]:
    """Opens a class, which is deleted after the test."""

    def open_one(size: int = 30, **rules: object) -> Class:
        room_class = room.create(TEACHER, "Physics 9B", size, Rules(**rules))
        room.start(TEACHER, room_class.id)
        return room_class

    return open_one


def join(opened: Class) -> AppTest:
    """The page of a new member, who came by the link."""
    at = open_page(PAGE, code=opened.code)
    at.button(key="join_class").click().run()
    assert not at.exception
    return at


def me(at: AppTest) -> str:
    """The page's visitor: the tests' browsers have no cookie."""
    return at.session_state["visitor"]


def page_text(at: AppTest) -> str:
    return texts([*at.subheader, *at.markdown, *at.warning])


def wall(at: AppTest) -> str:
    """What is written in large letters."""
    return "".join(element.proto.body for element in at.get("html"))


def links(at: AppTest) -> list[str]:
    return [link.proto.label for link in at.get("page_link")]


def train(*runs: tuple[str, AppTest]) -> None:
    """Runs by their ids, of the pages' visitors, that the standings have."""
    for run_id, at in runs:
        finished(server.store(), run_id, me(at))
        if "finished_before" in at.session_state:  # it hasn't ended in this session
            del at.session_state["finished_before"]
    server.store().writer.flush()
    standings_page.clear()


def test_an_open_class_comes_before_the_lessons(opened, room):
    """Its members come back to its page again and again."""
    monday = opened()
    at = open_page("pages/10_Runs.py")
    assert links(at)[:2] == ["Home", "Class"]
    assert links(at).count("Class") == 1
    room.close(TEACHER, monday.id)
    ended = links(open_page("pages/10_Runs.py"))
    assert ended.index("Class") > ended.index("Runs")


def test_without_a_class_nothing_leads_to_it_and_no_link_does_harm():
    at = open_page(PAGE)
    assert "Class" not in links(at)
    assert not at.button
    assert len(open_page(PAGE, code="lusab-babad").warning) == 1


def test_a_member_by_the_link_has_a_friendly_name_and_may_change_it(opened):
    room_class = opened()
    at = join(room_class)
    (member,) = server.room().members()
    assert f"**{member.name}**" in page_text(at)
    assert len(at.info) == 1  # without a cookie, a reload ends the membership
    assert "Class" in links(at)
    other = join(room_class)
    for name, is_taken in ((member.name, True), ("Zoë", False)):
        other.text_input(key="class_name").input(name)
        other.button(key="rename_member").click().run()
        assert bool(other.error) == is_taken
        assert (server.room().member(me(other)).name == name) == (not is_taken)
    assert "**Zoë**" in page_text(other)


def test_a_code_can_be_typed_and_a_wrong_one_typed_again(opened):
    room_class = opened(size=1)
    at = open_page(PAGE)
    for code, is_right in (("nothing", False), (room_class.code.upper(), True)):
        at.text_input(key="class_code").input(code)
        at.button(key="join_class").click().run()
        assert bool(at.error) == (not is_right)
        assert bool(server.room().member(me(at))) == is_right
    full = join(room_class)
    assert len(full.error) == 1
    assert server.room().member(me(full)) is None


def test_members_see_that_a_class_was_closed_or_deleted(opened, engine):
    room_class = opened()
    at = join(room_class)
    server.room().close(TEACHER, room_class.id)
    (member,) = server.room().members()
    assert member.name in page_text(at.run())
    assert "Your runs" in links(at)
    assert at.get("vega_lite_chart")  # the final board
    closed = texts(open_page(PAGE, code=room_class.code).warning)
    server.room().start(TEACHER, room_class.id)
    assert "rename_member" in {button.key for button in at.run().button}
    assert "Your runs" not in links(at)
    server.room().delete(TEACHER, room_class.id, engine.forget)
    assert not at.run().get("vega_lite_chart")
    assert "rename_member" not in {button.key for button in at.button}
    assert texts(open_page(PAGE, code=room_class.code).warning) not in ("", closed)


def test_members_see_everybodys_best_and_their_own_place(opened):
    room_class = opened(target=0.79, fixed={"task": "sprites"})
    first, second = join(room_class), join(room_class)
    assert not first.get("vega_lite_chart")  # nobody has a run to rank
    assert not first.dataframe
    assert first.button(key="first_step")
    for at in (first, second):
        server.store().answers.keep(me(at), "race_guess", CLOSE)
        at.session_state["answers"] = {"race_guess": CLOSE}
    runs = [("slow", first), ("slower", first), ("other", second)]
    train(*((f"{room_class.id} {name}", at) for name, at in runs))
    for at in (first.run(), second.run()):
        for figure in ("79%", "**number 1** of 2", "2 of 2 have guessed"):
            assert figure in page_text(at)
        (table,) = at.dataframe
        assert list(table.value["Place"]) == ["1", "1"]
        assert sum("(you)" in name for name in table.value["Who"]) == 1
    assert len(first.get("vega_lite_chart")) == 2


def test_a_member_sees_that_a_run_was_hidden_and_that_they_were_removed(opened):
    room_class = opened(target=0.79, fixed={"task": "sprites"})
    at = join(room_class)
    train((f"{room_class.id} best", at))
    (table,) = at.run().dataframe
    infos = len(at.info)
    assert list(table.value["Place"]) == ["1"]
    server.store().runs.withhold(f"{room_class.id} best", me(at))
    train()
    assert len(at.run().info) == infos + 1
    assert not at.dataframe
    server.room().remove(TEACHER, server.room().member(me(at)))
    assert "**Physics 9B**" in page_text(at.run())
    assert "rename_member" not in {button.key for button in at.button}


def test_train_offers_what_the_class_allows_and_a_run_fits_the_rules(opened, engine):
    opened(**RULES)
    at = open_page("pages/3_Train.py", epochs="9", batch_size="32")
    assert at.number_input(key="batch_size").value == 500
    assert at.number_input(key="batch_size").disabled
    assert at.number_input(key="epochs").value == 1
    drawn = {control.key for control in (*at.number_input, *at.selectbox)}
    assert drawn.isdisjoint({"task", "learning_rate"})
    at.button(key="start_training").click().run()
    (job,) = engine.going_on(me(at)) or engine.jobs("core.training:run", me(at))
    config = job.arguments[0]
    assert (config.batch_size, config.task, config.device) == (500, "sprites", "cpu")
    engine.cancel(job.id)
    finish(engine, job.id)  # the next file's class counts what runs
    assert server.room().open.outside == 1


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("epochs", 9, "1 epoch"),
        ("batch_size", 64, "500"),
    ],
)
def test_no_message_of_a_browser_gets_past_a_rule(opened, engine, setting, value, why):
    opened(**RULES)
    at = open_page("pages/3_Train.py")
    at.session_state[setting] = value
    at.button(key="start_training").click().run()
    assert len(at.warning) == 2  # why nothing was started, and what must be fixed
    assert all(why in warning.value for warning in at.warning)
    assert at.button(key="start_training").disabled
    assert engine.going_on(me(at)) == []


@pytest.mark.parametrize("fixed", [{"task": "regression"}, {"model": "ann"}])
def test_a_fixed_task_or_model_leaves_controls_that_fit_each_other(opened, fixed):
    opened(fixed=fixed)
    at = open_page("pages/3_Train.py")
    if "task" not in fixed:
        at.selectbox(key="task").set_value("regression")
    at.run()
    assert not at.exception
    assert at.session_state["model"] == "simple"
    assert at.button(key="start_training").disabled == ("model" in fixed)


def test_compare_speed_and_home_offer_no_more_than_the_class_allows(opened):
    opened(**RULES)
    at = open_page("pages/7_Compare.py")
    assert at.selectbox(key="race_model").options == ["ANN"]
    assert at.number_input(key="race_batch_ann").disabled
    assert "race_steps_ann" not in {field.key for field in at.number_input}
    at = open_page("pages/8_Speed.py")
    assert at.selectbox(key="ladder_model").options == ["ANN"]
    assert at.number_input(key="ladder_epochs_ann").value == 1
    quick = first_run.quick(server.engine().machine(), 3)
    chosen = (quick.epochs, quick.batch_size, quick.seed, quick.device)
    assert chosen == (1, 500, 3, "cpu")


def test_the_projector_shows_the_code_to_members_alone(opened):
    room_class = opened(fixed={"task": "sprites"})
    stranger = open_page(PAGE, projector="1")
    assert 'class="on-wall"' not in wall(stranger)
    assert room_class.code not in wall(stranger)
    at = join(room_class)
    at.query_params["projector"] = "1"
    at.run()
    assert not at.exception
    for text in ("Physics 9B", room_class.code):
        assert text in wall(at)
    assert 'class="chart"' not in wall(at)
    train((f"{room_class.id} first", at))
    assert 'class="chart"' in wall(at.run())
    assert 'class="place"' in wall(at)
    assert not at.sidebar.markdown
    server.room().reveal(TEACHER, "race_guess", "Compare", False)
    assert "0 of 1" in wall(at.run())
    for kind in ("place", "chart"):
        assert f'class="{kind}"' not in wall(at)


def test_a_projector_can_hide_names_also_on_its_chart(opened):
    room_class = opened(anonymous=True, target=0.5, fixed={"task": "sprites"})
    at = join(room_class)
    train((f"{room_class.id} run", at))
    name = server.room().member(me(at)).name
    at.query_params["projector"] = "1"
    at.run()
    assert 'class="leader"' in wall(at)
    assert 'class="dot' in wall(at)
    assert name not in wall(at) + page_text(at)


@pytest.mark.parametrize("anonymous", [False, True])
def test_the_projector_counts_those_who_have_passed_a_script(opened, anonymous):
    room_class = opened(anonymous=anonymous)
    at = join(room_class)
    at.query_params["projector"] = "1"
    name, keys = server.room().member(me(at)).name, answer_keys("Port it")
    train((f"{room_class.id} run", at))  # before it, the wall shows only how to join

    def rows() -> list[str]:
        standings_page.clear()
        return wall(at.run()).split('class="place script"')[1:]

    assert not rows()
    for solved in (False, True):
        server.store().answers.keep(me(at), keys.tries, 1)
        server.store().answers.keep(me(at), keys.verdict, {"solved": solved})
        first, *_ = rows()
        assert f"{int(solved)} of 1" in first
        assert (name in first) == (solved and not anonymous)
