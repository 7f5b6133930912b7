"""The noisy curve of the regression task.

The web server draws the same points, and must not import torch, so this file doesn't.
"""

import math
import random

TRAIN, TEST = 4000, 1000  # points
LOW, HIGH = -3.0, 3.0  # range of x
NOISE = 0.2  # standard deviation; a model that predicts f has about this RMSE
# The values of x at which a model's fit is drawn.
POSITIONS = tuple(LOW + (HIGH - LOW) * i / 120 for i in range(121))


def f(x: float) -> float:
    """The curve without its noise."""
    return math.sin(2.5 * x) + 0.3 * x


def draw(count: int, seed: int) -> list[tuple[float, float]]:
    """Points (x, y): x uniform from LOW to HIGH, y normal around f(x)."""
    dice = random.Random(seed)
    points = []
    for _ in range(count):
        x = dice.uniform(LOW, HIGH)
        points.append((x, f(x) + dice.gauss(0, NOISE)))
    return points
