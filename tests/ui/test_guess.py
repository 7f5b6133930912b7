import pytest
from streamlit.testing.v1 import AppTest

from core.ui import guess
from tests.pages.walk import texts


def page(ran: bool = True) -> None:
    from core.ui import guess
    from core.ui.lab import Finding

    guessed = guess.ask("loaf", "which loaf is heavier?", ["Rye", "Wheat"], ran=ran)
    if ran and not guess.missing(guessed):
        finding = Finding("Rye is heavier.", "Rye", among=["Rye", "Wheat"])
        finding.judge(guessed)


def test_a_result_is_hidden_until_there_is_a_guess():
    at = AppTest.from_function(page, default_timeout=60).run()
    assert "hidden until you guess" in texts(at.info)
    at.radio[0].set_value("Wheat").run()
    assert texts(at.info) == "Rye is heavier. You guessed: wheat."
    at.radio[0].set_value("Rye").run()
    assert texts(at.success) == "Rye is heavier. You guessed right."


def test_nobody_has_to_guess():
    at = AppTest.from_function(page, default_timeout=60).run()
    at.button(key="show_loaf").click().run()
    assert not at.radio
    assert not at.button
    assert texts(at.info) == "Rye is heavier."


def test_before_it_is_measured_there_is_only_a_guess():
    at = AppTest.from_function(page, args=(False,)).run()
    assert not at.button
    at.radio[0].set_value("Rye").run()
    assert not at.exception
    assert AppTest.from_function(page, args=(True,)).run().button


@pytest.mark.parametrize(
    ("right", "sentence"),
    [
        (("Rye",), "You guessed right."),
        (("Rye", "Wheat"), "Your guess fits the measurements."),
        (("Wheat",), "You guessed: rye."),
    ],
)
def test_a_guess_that_the_readings_leave_open_has_its_credit(right, sentence):
    assert guess.worth("Rye", right) == sentence


def test_units_and_names_in_an_answer_stay_as_they_are():
    assert guess.within("More than 20 GB/s") == "more than 20 GB/s"
    assert guess.within("5 to 20 GB/s") == "5 to 20 GB/s"
