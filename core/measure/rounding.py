"""A measured value as text, with the digits that would be the same next time."""


def rounded(value: float, digits: int = 2) -> str:
    """The value with `digits` significant digits: 4.7 or 28,000, never 2.8e+04."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def times(ratio: float, least: float | None = None) -> str:
    """How many times as fast, in two digits: 0.95, 2.3, 11, 130.

    Further digits would seldom be the same in the next measurement. Ratios from 1 to 2
    have a third digit, since 1.04 rounded to 1.0 wouldn't show which is faster. Beside
    a lower ratio, `least`, a ratio has the same number of decimals: 1.45 to 2.30.
    """
    lowest = least or ratio
    decimals = 2 if 0.095 <= lowest < 1.995 else 1 if 1.995 <= lowest < 9.95 else 0
    return f"{ratio:.{decimals}f}" if decimals else rounded(ratio)


def precise(seconds: float) -> str:
    """A measured time in three digits: 85.2 µs, 3.41 ms, 1.2 s."""
    for unit in ("s", "ms", "µs"):
        if seconds >= 0.9995:
            return f"{seconds:.3g} {unit}"
        seconds *= 1000
    return f"{seconds:.3g} ns"
