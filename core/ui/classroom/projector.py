"""The class on the wall of the room."""


def draw() -> None:
    """Large, without a sidebar."""
