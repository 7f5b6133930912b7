import pytest

from core.ui import guess


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
