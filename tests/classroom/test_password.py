"""core.classroom.password: the password that a teacher signs in with."""

import pytest

from core.classroom.password import VARIABLE, Password
from core.errors import ExplainedError


def test_only_the_password_fits(monkeypatch):
    """To the letter; and none of it is kept."""
    monkeypatch.setenv(VARIABLE, "Käse und Brot")
    kept = Password.from_environment()
    assert kept.fits("Käse und Brot")
    for wrong in ("", "käse und brot", "Käse und Brot ", "x" * 10_000):
        assert not kept.fits(wrong)
    assert "Brot" not in repr(kept)
    assert kept != Password.from_environment()  # salted


def test_without_one_nobody_can_sign_in(monkeypatch):
    """Neither where it is empty."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert Password.from_environment() is None
    monkeypatch.setenv(VARIABLE, "")
    assert Password.from_environment() is None


def test_a_short_one_is_refused(monkeypatch):
    """In a sentence, without saying it."""
    monkeypatch.setenv(VARIABLE, "secret")
    with pytest.raises(ExplainedError, match="has 6 characters") as told:
        Password.from_environment()
    assert "secret" not in str(told.value)
