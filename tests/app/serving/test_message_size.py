import json
import time

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from core.serving.message_size import MOST_OBJECTS, SMALL_BYTES, is_simple, memory
from core.serving.tab_weights import PER_BYTE


def of_widget(**value: str) -> BackMsg:
    message = BackMsg()
    message.rerun_script.widget_states.widgets.add(id="a", **value)
    return message


def code(text: str) -> BackMsg:
    return of_widget(json_value=json.dumps({"value": text}, ensure_ascii=False))


def of_many(what: str) -> BackMsg:
    message = BackMsg()
    state = message.rerun_script
    widget = state.widget_states.widgets.add(id="a")
    many = 5 * MOST_OBJECTS
    match what:
        case "widgets":
            for i in range(many):
                state.widget_states.widgets.add(id=f"{i}")
        case "hashes":
            state.cached_message_hashes.extend(["abc"] * many)
        case "texts":
            widget.string_array_value.data.extend(["abc"] * many)
        case "numbers":
            widget.int_array_value.data.extend([5_000] * many)
        case "files":
            files = widget.file_uploader_state_value.uploaded_file_info
            for _ in range(many):
                files.add(name="abc")
        case "query":
            state.query_string = "a=bc&" * many
        case "objects":
            widget.json_value = json.dumps({"value": [{"": 0}] * many})
        case "lists":
            widget.json_trigger_value = json.dumps([[[]]] * many)
        case "nested":
            widget.json_value = "[" * SMALL_BYTES + "]" * SMALL_BYTES
    return message


MANY = ("widgets", "hashes", "texts", "numbers", "files", "query", "objects")


@pytest.mark.parametrize("what", [*MANY, "lists", "nested"])
def test_a_message_has_few_objects(what):
    assert not is_simple(of_many(what))


TEXTS = (
    'for i in range(9): print({i: [i, i]}, "{[,")\n' * 4_000,
    "{}[],:&" * 28_000,
    "\\" * 200_000,
    '"' * 200_000,
    "雪" * 200_000,
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_long_text_is_simple(text):
    assert is_simple(code(text))
    assert is_simple(of_widget(string_value=text))


def test_what_a_page_and_a_measurement_send_is_simple():
    message = code("x" * 200_000)
    for i in range(100):
        message.rerun_script.widget_states.widgets.add(id=f"{i}" * 50, int_value=i)
    numbers = [[i / 3 for i in range(20)]] * 25
    report = json.dumps({"report": {"result": numbers}})
    message.rerun_script.widget_states.widgets.add(id="b", json_value=report)
    assert is_simple(message)


@pytest.mark.parametrize("part", ['"', r"\"", '"\\', "[", "\\", '",', r"\",", r"\\,"])
def test_a_message_is_counted_fast(part):
    began = time.process_time()
    is_simple(of_widget(json_value=part * (900_000 // len(part))))
    assert time.process_time() - began < 0.1


def test_a_wide_character_makes_its_text_heavier():
    """Python takes four bytes for each character of a text with an emoji."""
    plain, size = "x" * 500_000, PER_BYTE * 500_000
    assert memory(code(plain)) == pytest.approx(size, rel=0.01)
    assert memory(code(plain + "\U0001f600")) > 1.9 * size
    escaped = of_widget(json_value=json.dumps({"value": plain + "\U0001f600"}))
    assert memory(escaped) > 1.9 * size
    assert memory(of_widget(string_value=plain + "\u96ea")) > 1.9 * size
