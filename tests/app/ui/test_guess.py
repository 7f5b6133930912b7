import pytest
from streamlit.testing.v1 import AppTest

from core.ui import guess


def page(ran: bool) -> None:
    from core.ui import guess

    guess.ask("loaf", "which loaf is heavier?", ["Rye", "Wheat"], ran=ran)


def test_before_it_is_measured_there_is_only_a_guess():
    at = AppTest.from_function(page, args=(False,)).run()
    assert not at.button
    at.radio[0].set_value("Rye").run()
    assert not at.exception
    assert AppTest.from_function(page, args=(True,)).run().button


@pytest.mark.parametrize(("guessed", "is_right"), [("Rye", True), ("Wheat", False)])
def test_a_class_sees_its_result_beside_an_own_measurement(
    guessed, is_right, monkeypatch
):
    monkeypatch.setattr(guess.spoilers, "shown", lambda _: (("Rye",), "9.9 kg"))
    at = AppTest.from_function(page, args=(True,)).run()
    assert not at.caption
    at.radio[0].set_value(guessed).run()
    (caption,) = [caption.value for caption in at.caption]
    assert "9.9 kg" in caption
    assert (guess.RIGHT in caption) is is_right


@pytest.mark.parametrize(
    ("right", "sentence"),
    [
        (("Rye",), guess.RIGHT),
        (("Rye", "Wheat"), guess.OPEN),
        (("Wheat",), guess.worth("Rye", ())),
        ((), guess.worth("Rye", ())),
    ],
)
def test_a_guess_is_right_or_wrong_or_left_open_by_the_readings(right, sentence):
    assert guess.worth("Rye", right) == sentence
    assert ("rye" in sentence) is ("Rye" not in right)

    def judge(right: tuple[str, ...]) -> None:
        from core.ui import guess

        guess.judge("Wheat wins.", "Rye", right)

    at = AppTest.from_function(judge, args=(right,)).run()
    assert bool(at.success) == (sentence == guess.RIGHT)
    assert bool(at.info) != bool(at.success)


def test_units_and_names_in_an_answer_stay_as_they_are():
    assert guess.within("More than 20 GB/s") == "more than 20 GB/s"
    assert guess.within("5 to 20 GB/s") == "5 to 20 GB/s"
