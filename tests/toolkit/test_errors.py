import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from to_device import errors


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("The file `a[0]` and ``b`c`` are missing: add .to(device).", True),
        ("![i](http://a.example/b.png)", False),
        ("first\n# Heading", False),
        ("See https://a.example", False),
        ("See WWW.a.example", False),
        (r"\``a` ![i](b) `c", False),
        ("$`$ ![i](b) `$", False),
        ("`` a ` ![i](b) `", False),
    ],
)
def test_only_code_spans_are_markup_in_a_strangers_sentence(text, is_plain) -> None:
    message = errors.plain(text, 300)
    assert message == (text if is_plain else errors.quoted(text, 300))


@given(st.text(st.characters(categories=None) | st.sampled_from("`\n$:[]<>\u202e")))
def test_what_a_stranger_said_is_one_code_span(text: str) -> None:
    span = errors.quoted(text)
    fence = "`" * (len(span) - len(span.lstrip("`")))
    assert [run for run in re.findall("`+", span) if len(run) == len(fence)] == [
        fence
    ] * 2
    assert span.endswith(fence)
    inside = span[len(fence) : -len(fence)]
    assert inside.isprintable()
    assert 0 < len(inside) <= errors.MOST_QUOTED + 2
    if text.isprintable() and 0 < len(text) <= errors.MOST_QUOTED:
        assert inside == (f" {text} " if "`" in text else text)


def test_a_cut_opens_no_code_span() -> None:
    text = f"a `` ` `` ![x](http://a.example) {'b' * 300} `` ` ``"
    cut = text[:30]
    assert errors.plain(text, 30) in (errors.quoted(cut, 30), errors.quoted(text, 30))
