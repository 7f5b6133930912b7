"""The figures in a text, so that tests look at them and not at the words around."""

import re

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def figures(text: str) -> list[str]:
    """The numbers in a text, in its order and as it writes them: "2,000" or "91.00"."""
    return NUMBER.findall(text)
