"""The points at which both devices are equally fast, found in a measured map."""

from collections.abc import Sequence
from itertools import pairwise
from math import log2
from operator import itemgetter

from core.lessons.compare.crossover_result import Cell


def crossover_points(cells: Sequence[Cell]) -> list[tuple[float, float]]:
    """Where both candidates are equally fast: (batch size, width) as exponents of 2.

    A point lies between two neighboring cells of a row or a column. Between
    the cells, the speedup's logarithm is interpolated linearly in the
    exponent.
    """
    points = []
    by_place = {
        (log2(c.batch_size), log2(c.width)): log2(c.speedup.ratio) for c in cells
    }
    for along, across in ((0, 1), (1, 0)):
        by_line = sorted(by_place, key=itemgetter(across, along))
        for a, b in pairwise(by_line):
            low, high = by_place[a], by_place[b]
            if a[across] == b[across] and (low < 0) != (high < 0):
                at = a[along] + (b[along] - a[along]) * low / (low - high)
                points.append((at, a[across]) if along == 0 else (a[across], at))
    return points
