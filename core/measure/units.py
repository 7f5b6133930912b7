"""Measured values as people say them."""


def precise(seconds: float) -> str:
    """A measured time in three digits: 85.2 µs, 3.41 ms, 1.2 s."""
    for unit in ("s", "ms", "µs"):
        if seconds >= 0.9995:
            return f"{seconds:.3g} {unit}"
        seconds *= 1000
    return f"{seconds:.3g} ns"
