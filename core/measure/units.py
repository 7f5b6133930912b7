"""Measured values as people say them."""


def rounded(value: float, digits: int = 2) -> str:
    """A number with so many digits that count: 4.7, 28,400; never 2.8e+04."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def times(ratio: float) -> str:
    """How many times: 0.95, 1.04, 2.3, 11, 130.

    Two digits, as more would seldom come out the same again; and the second decimal
    where the first does not yet tell who is faster.
    """
    if 0.095 <= ratio < 1.995:
        return f"{ratio:.2f}"
    return f"{ratio:.1f}" if 1.995 <= ratio < 9.95 else rounded(ratio)


def precise(seconds: float) -> str:
    """A measured time in three digits: 85.2 µs, 3.41 ms, 1.2 s."""
    for unit in ("s", "ms", "µs"):
        if seconds >= 0.9995:
            return f"{seconds:.3g} {unit}"
        seconds *= 1000
    return f"{seconds:.3g} ns"
