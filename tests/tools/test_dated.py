from datetime import date, timedelta

from tools.dated import dates, older_than


def test_dates_are_read_in_each_form_that_texts_have():
    lines = "On November 24, 2026, it", "since May 2025", "read = 2026-11-28", "2026-11"
    text = "\n".join(lines)
    assert list(dates(text)) == [
        (1, date(2026, 11, 24)),
        (2, date(2025, 5, 1)),
        (3, date(2026, 11, 28)),
    ]


def test_only_texts_older_than_the_limit_are_listed(tmp_path):
    today = date.today()
    old, new = today - timedelta(400), today - timedelta(300)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(f"read {new}\nread {old}\n")
    assert list(older_than(365, tmp_path)) == [f"docs/a.md:2: read {old}"]
