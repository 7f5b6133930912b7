"""What a browser's message takes in memory."""

from collections.abc import Iterator

from google.protobuf.message import Message

from core.serving.tab_weights import PER_BYTE

SMALL_BYTES = 10_000  # a message of so many bytes takes little, whatever is in it
# Widgets, items of lists, and the like in a message, beside its texts. A page has some
# 100 widgets, and a measurement of a browser's GPU has 400 numbers.
MOST_OBJECTS = 2_000


def is_simple(message: Message) -> bool:
    """Whether a message has few objects: each takes 35 times its bytes, or more."""
    return message.ByteSize() <= SMALL_BYTES or objects(message) <= MOST_OBJECTS


def objects(message: Message) -> int:
    """How many objects a message has; if too many, at least so many that it shows."""
    count = 0
    for field, value in message.ListFields():
        if isinstance(value, Message):
            count += objects(value)
        elif isinstance(value, str):
            count += objects_of(field.name, value)
        elif not isinstance(value, bytes | int | float):
            count += len(value)
            if field.message_type and count <= MOST_OBJECTS:
                count += sum(map(objects, value))
        if count > MOST_OBJECTS:
            break
    return count


def objects_of(name: str, text: str) -> int:
    """How many objects Streamlit makes of a text."""
    if name.startswith("json"):
        if (count := separators(text)) > MOST_OBJECTS:  # maybe only within quotes
            bare = text.replace("\\\\", "").replace('\\"', "")
            # JSON of few objects has few texts; after these, all counts.
            count = separators("".join(bare.split('"', 4 * MOST_OBJECTS)[::2]))
        return count
    return text.count("&") if name == "query_string" else 0


def separators(text: str) -> int:
    return sum(map(text.count, "[{,"))


def memory(message: Message) -> int:
    """Bytes that a simple message takes.

    Python takes as many bytes for each character of a text as the widest one needs. In
    JSON, any character may be written as `\\u` and four digits.
    """
    size = message.ByteSize()
    if size > SMALL_BYTES:
        size += sum(
            len(text)
            for name, text in texts(message)
            if not text.isascii() or (name.startswith("json") and "\\u" in text)
        )
    return PER_BYTE * size


def texts(message: Message) -> Iterator[tuple[str, str]]:
    """The texts in a message, each with its field's name."""
    for field, value in message.ListFields():
        is_one = isinstance(value, str | bytes | int | float | Message)
        for each in [value] if is_one else value:
            if isinstance(each, Message):
                yield from texts(each)
            elif isinstance(each, str):
                yield field.name, each
