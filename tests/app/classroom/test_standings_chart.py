from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from core.classroom.standings_chart import costs, scaled, shares, sides
from core.ui.charts import MOST_TICKS

COSTS = st.lists(st.floats(0.5, 2e4), min_size=1, max_size=30)
SHARES = st.lists(st.floats(0.1, 1), min_size=1, max_size=30)


@given(COSTS)
def test_an_axis_of_costs_has_at_least_three_ticks_around_all(values):
    ticks = costs(values)
    assert ticks[0] < min(values) <= max(values) < ticks[-1]
    assert all(a < b for a, b in pairwise(ticks))
    assert 3 <= len(ticks) <= MOST_TICKS


@given(SHARES)
@example([1.0])
def test_an_axis_of_accuracies_has_round_ticks_around_all_and_none_twice(values):
    ticks = shares(values)
    assert ticks[0] <= min(values) + 1e-3
    assert max(values) - 1e-3 <= ticks[-1] <= 1
    assert 2 <= len({f"{100 * tick:g}" for tick in ticks}) == len(ticks) <= MOST_TICKS


def test_names_stand_near_their_points_where_they_cover_nothing():
    limits = 590.0, 0.86
    alone = [("Amber Otter", 590.0, 0.88, "CPU"), ("Tidy Newt", 4690.0, 0.86, "CPU")]
    assert sides(scaled(alone, limits)) == [("right", 0), ("left", 0)]
    close = [(name, 4690.0, 0.87 + n / 8000, "CPU") for n, name in enumerate("ABCD")]
    assert {lines for side, lines in sides(scaled(close, limits)) if side} > {0}
    # As in a class whose first runs all have the same settings: each name has room.
    column = [
        ("Honest Robin", 0.8754),
        ("Velvet Ocelot", 0.8748),
        ("Silver Lynx", 0.8741),
    ]
    column += [("Cozy Gecko", 0.8735), ("Cozy Puffin", 0.8596)]
    five = [(name, 4690.0, share, "CPU") for name, share in column]
    assert all(side for side, _ in sides(scaled(five, (None, 0.88))))
    crowd = [(f"Otter {n}", 1500.0, 0.87 + n / 1e5, "CPU") for n in range(9)]
    near = sides(scaled(crowd, limits))
    assert {side for side, _ in near} == {"left", "right", ""}
    assert near[0] == ("right", 0)
