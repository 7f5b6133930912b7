"""The pixel wardrobe: ten kinds of clothes, drawn by a program.

It stands in for Fashion-MNIST where that cannot be downloaded: the same ten classes in
the same order, 28x28 grey pixels, bright on black. This file only draws; reading real
data, scaling, batches and moving to an accelerator are done elsewhere.

A shape is a *signed distance*: how many pixels a point lies outside its edge (negative:
inside). x points right, y down, 0 is the middle. A number per image is a tensor
(n, 1, 1), a number per pixel (n, 28, 28), so all n images are drawn at once.

To see how it works, read draw at the end, Canvas, the shapes and one garment; the other
garments are made in the same way.
"""

from functools import reduce
from itertools import pairwise

import torch
from torch import Tensor

SIDE = 28  # pixels
# Images drawn at once: they fit in the cache, and PyTorch starts no threads for tensors
# below 32,768 numbers. On a busy processor, threads would wait more than they draw.
STACK = 40
Number = Tensor | float


class Canvas:
    """n black images of one class: their coordinates, dice, brush and pixels."""

    def __init__(self, n: int, dice: torch.Generator) -> None:
        self.n, self.dice = n, dice
        self.pixels = torch.zeros(n, SIDE, SIDE)
        # Turning, scaling, shifting the coordinates moves everything drawn in them.
        axis = torch.arange(SIDE) - (SIDE - 1) / 2
        x, y = axis - self.roll(-1, 1), axis[:, None] - self.roll(-1, 1)
        angle, scale = self.roll(-0.08, 0.08), self.roll(0.88, 1.03)
        cos, sin = angle.cos() / scale, angle.sin() / scale
        self.x, self.y = x * cos + y * sin, y * cos - x * sin

    def roll(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform random numbers: (n, 1, 1), or (n, *shape)."""
        share = torch.rand(self.n, *(shape or (1, 1)), generator=self.dice)
        return low + (high - low) * share

    def maybe(self, chance: float) -> Tensor:
        """0 with this chance, else 99: added to a distance, it hides the shape."""
        return 99.0 * (self.roll(0, 1) > chance)

    def contrast(self) -> Tensor:
        """Factors for mark: clearly darker (0.3-0.7) or brighter (1.3-1.7)."""
        return self.roll(0.3, 0.7) + (self.roll(0, 1) < 0.5)

    def weave(self, pattern: float) -> Tensor:
        """Brightness of the fabric, 0 to 1; pattern is the chance of stripes."""
        light = self.roll(0.35, 1) + self.x * self.roll(-0.01, 0.01)
        light = light - self.y * self.roll(0, 0.01)
        for t in (self.x, self.y):
            stripe = (4 * wave(t / self.roll(3, 8) + self.roll(0, 1)) - 1).clamp(0, 2)
            depth = self.roll(0.1, 0.25) * (self.roll(0, 1) < pattern)
            light = light * (1 - depth * stripe)
        folds = wave((self.x + self.y * self.roll(-1, 1)) / 9 + self.roll(0, 1))
        return light * (1.08 - 0.16 * folds)

    def paint(self, distance: Tensor, shade: Number) -> None:
        """Fill a shape: soft edges, one pixel wide, and darker rims: it looks round."""
        cover = (0.5 - distance).clamp(0, 1)
        rim = 0.65 + 0.35 * (-distance / 2).clamp(0, 1)
        self.pixels = self.pixels + cover * (shade * rim - self.pixels)

    def mark(self, distance: Tensor, factor: Number) -> None:
        """Darken (factor < 1) or brighten (> 1) what is there: seams, prints."""
        cover = (0.5 - distance).clamp(0, 1)
        self.pixels = self.pixels * (1 + cover * (factor - 1))

    def finish(self) -> Tensor:
        """The images as uint8 (n, 1, 28, 28), with some noise on the cloth."""
        noise = 1 + self.roll(-1, 1, SIDE, SIDE) * self.roll(0, 0.1)
        return (255 * (self.pixels * noise).clamp(0, 1)).byte()[:, None]


def wave(t: Tensor) -> Tensor:
    """Triangle wave with period 1: 1 at whole numbers, 0 halfway."""
    return (2 * (t % 1) - 1).abs()


def line(t: Tensor, *knots: tuple[Number, Number]) -> Number:
    """Height at t of the line through the knots (t, height), flat beyond the ends."""
    height = knots[0][1]
    for (t0, h0), (t1, h1) in pairwise(knots):
        height = height + (h1 - h0) * ((t - t0) / (t1 - t0)).clamp(0, 1)
    return height


def both(*shapes: Tensor) -> Tensor:
    """Distance to the part that all shapes share."""
    return reduce(torch.maximum, shapes)


def between(t: Tensor, low: Number, high: Number) -> Tensor:
    """Distance to the strip low < t < high."""
    return both(low - t, t - high)


def ellipse(x: Tensor, y: Tensor, a: Number, b: Number) -> Tensor:
    """Rough distance to the ellipse around 0 with half axes a and b."""
    return ((x / a) ** 2 + (y / b) ** 2 - 1) * 1.5


Range = tuple[float, float]


def top(
    c: Canvas, length: Range, waist: Range, flare: Range, sleeve: Range, spread: Range
) -> tuple[Tensor, Tensor, Tensor]:
    """Paint body and sleeves; return side (|x|), down (y from the neck), cloth."""
    cloth, end = c.weave(0.2), c.roll(*length)
    side, down = c.x.abs(), c.y + end / 2
    shoulder, hip = c.roll(5.6, 6.8), c.roll(*waist)
    # A sleeve is a tapering bar that leaves the shoulder at an angle (radians).
    angle, x, y = c.roll(*spread), side - shoulder + 2, down - 3
    along = x * angle.sin() + y * angle.cos()
    across = x * angle.cos() - y * angle.sin()
    arm = across.abs() - c.roll(2.2, 2.8) + along * 0.05
    c.paint(both(arm, between(along, -1.5, c.roll(*sleeve))), cloth * 0.9)
    knots = (0, 2.5), (2.2, shoulder), (9, shoulder - 0.5), (end * 0.55, hip)
    width = line(down, *knots, (end, hip + c.roll(*flare)))
    body = both(side - width, between(down, 0, end))
    c.paint(body, cloth)
    c.mark(both(body, end - 2 - down), c.roll(0.7, 1))
    return side, down, cloth


def t_shirt(c: Canvas) -> None:
    """Short sleeves, a round neck, sometimes a print on the chest."""
    side, down, _ = top(c, (20, 25), (5, 7), (0, 1), (4, 8.5), (0.4, 1.1))
    c.paint(ellipse(side, down, c.roll(2.5, 4), c.roll(1.5, 4)), 0.0)
    badge = ellipse(side, down - 9, c.roll(2, 4), c.roll(2, 4))
    c.mark(badge + c.maybe(0.4), c.contrast())


def pullover(c: Canvas) -> None:
    """Long sleeves and a knitted collar."""
    side, down, cloth = top(c, (19, 25), (5, 7), (-0.5, 1.5), (12, 17), (0.15, 0.45))
    neck = ellipse(side, down, c.roll(2.5, 3.5), c.roll(1, 3.5))
    c.mark(neck - 1.2, c.contrast())
    c.paint(both(neck, -down), cloth * 0.3)


def dress(c: Canvas) -> None:
    """Long, narrow at the waist, flared below; straps or short sleeves."""
    side, down, _ = top(c, (24, 27), (3.3, 5.7), (0.5, 5), (-1, 7), (0.3, 1))
    c.paint(ellipse(side, down, c.roll(2, 4.5), c.roll(2, 6)), 0.0)
    c.mark(between(down, 12, 13.5) + c.maybe(0.5), c.contrast())


def coat(c: Canvas) -> None:
    """Long, with long sleeves, lapels and an open front."""
    side, down, cloth = top(c, (20, 26), (5, 7), (0, 1.5), (12, 17), (0.15, 0.45))
    depth = c.roll(4, 10)
    lapel = both(side - (1 - down / depth) * c.roll(2.5, 3.5), down - depth)
    c.mark(lapel - 1.5, c.contrast())
    c.paint(both(lapel, -down), cloth * 0.3)
    c.mark(both(side - c.roll(0.6, 1.3), depth - down), c.contrast())
    pocket = both(between(side, 2, 5), between(down, 15, 15.6))
    c.mark(pocket + c.maybe(0.4), 0.6)


def shirt(c: Canvas) -> None:
    """Sleeves of any length, a collar and a row of buttons."""
    side, down, cloth = top(c, (20, 26), (5, 7), (0, 1), (5, 17), (0.15, 0.7))
    collar = both(side - 4, between(down - side * 0.6, -1, c.roll(1.5, 3)))
    c.mark(collar, c.contrast())
    c.paint(both(side + down - c.roll(1, 3.5), -down), cloth * 0.3)
    c.mark(both(side - 1.3, 3 - down), c.contrast())
    button = both(side - 0.5, 0.5 - 2 * wave(down / c.roll(3, 4)), 4 - down)
    c.mark(button, c.contrast())


def trouser(c: Canvas) -> None:
    """Two legs, wide or narrow, with a waistband."""
    cloth, side, down = c.weave(0.15), c.x.abs(), c.y + 12.5
    hip, crotch, foot, gap = c.roll(4, 6.5), c.roll(6, 10), c.roll(2, 5), c.roll(0, 2)
    length = c.roll(22, 26)
    outer = line(down, (0, hip - 0.8), (crotch, hip), (length, gap + foot))
    inner = line(down, (crotch - 1, -1), (crotch, 0), (length, gap))
    c.paint(both(side - outer, inner - side, between(down, 0, length)), cloth)
    c.mark(down - 2, c.roll(0.5, 0.9))
    c.mark(both(side - 0.3, down - crotch), c.roll(0.5, 0.9))


def sneaker(c: Canvas) -> None:
    """A low shoe with laces and a thick sole."""
    cloth, sole, toe = c.weave(0.1), c.roll(3, 9), c.roll(4, 5.5)
    high, back = c.roll(8, 13), c.roll(8, 16)
    tongue = (-8, toe), (-0.5, high), (1.5, high + 0.5), (4, high - 2)
    heel = (7, (high + back) / 2 - 2), (10, back), (12.5, back - 1)
    upper = sole - line(c.x, (-13, 1), (-11.5, toe - 1), *tongue, *heel)
    c.paint(both(between(c.x, -12.5, 12.5), between(c.y, upper, sole)), cloth)
    lace = both(between(c.x, -7, 0), c.y - upper - 2.5, 1.5 - 3 * wave(c.x / 2.4))
    c.mark(lace, c.contrast())
    stripe = between(c.x + c.y * c.roll(-1, 1), 3, c.roll(4.5, 7))
    c.mark(both(stripe, upper + 4 - c.y) + c.maybe(0.5), c.contrast())
    rubber = between(c.y, sole - 0.5, sole + c.roll(1.5, 3))
    c.paint(both(between(c.x, -13, 13), rubber), c.roll(0.4, 1))


def ankle_boot(c: Canvas) -> None:
    """A high shaft, a round toe and a heel."""
    cloth, sole, high = c.weave(0.1), c.roll(5, 10), c.roll(9, 18)
    shaft, back = c.roll(-2, 2), high + c.roll(-1, 1)
    toe = (-13, 1), (-11, 4), (-8, 5.5), (-3, 8)
    upper = sole - line(c.x, *toe, (shaft - 0.5, 9), (shaft, high), (11, back))
    width = between(c.x, -12.5, 11)
    c.paint(both(width, between(c.y, upper, sole)), cloth)
    elastic = both(between(c.x - c.y * 0.2, 4, 7), c.y - sole + 6)
    c.mark(elastic + c.maybe(0.5), c.contrast())
    heel = sole + line(c.x, (-13, 1.5), (4, 1), (5, c.roll(1.2, 5)))
    c.paint(both(width, between(c.y, sole, heel)), cloth * c.roll(0.4, 1.1))


def sandal(c: Canvas) -> None:
    """A flat or high sole, a few straps, nothing else."""
    cloth, heel, thick = c.weave(0.1) * 1.2, c.roll(0, 9), c.roll(1.5, 2.5)
    ground = c.roll(4, 7) + heel / 3
    sole = ground - line(c.x, (-5, 0), (8, heel))
    upper = sole - line(c.x, (-12, 2.5), (-8, 5), (-3, 6.5), (3, 7), (10, 7.5))
    foot = both(between(c.x, -11.5, 12), between(c.y, upper, sole))
    ankle = c.maybe(0.6)
    for start, hidden in ((-10, 0), (-4, c.maybe(0.6)), (2, ankle + c.maybe(0.4))):
        lean = c.x + (c.y - sole) * c.roll(-0.3, 0.3) - c.roll(start, start + 2)
        c.paint(both(foot, between(lean, 0, c.roll(3, 5))) + hidden, cloth)
    loop = torch.minimum(c.y - upper - 1.6, 10.3 - c.x)
    c.paint(both(foot, loop, -5 - c.x) + ankle, cloth)
    c.paint(both(between(c.x, -12.5, 12.5), between(c.y, sole, sole + thick)), cloth)
    block = between(c.x, c.roll(-5, 10.5), 12.5)
    c.paint(both(block, between(c.y, sole, ground + thick)), cloth)


def bag(c: Canvas) -> None:
    """A box with a handle, a flap and a clasp."""
    cloth, rim, wide, deep = c.weave(0.2), c.roll(-6, 2), c.roll(7, 12), c.roll(8, 14)
    side, down = c.x.abs(), c.y - rim
    a, b = wide * c.roll(0.4, 0.9), c.roll(3, 9)
    inner = ellipse(side, down, a - 1.7, b - 1.7)
    c.paint(both(ellipse(side, down, a, b), -inner, down), cloth * 0.9)
    base = wide + c.roll(-1, 1.5)
    corners = (0, wide - 1), (1.5, wide), (deep - 1.5, base), (deep, base - 1.5)
    c.paint(both(side - line(down, *corners), between(down, 0, deep)), cloth)
    flap = down - line(side, (0, c.roll(3, 7)), (wide, c.roll(1, 6)))
    c.mark(between(flap, -0.3, 0.5) + c.maybe(0.6), 0.5)
    c.mark(ellipse(side, down - 5, 1.3, 1.3) + c.maybe(0.5), c.contrast())


# In the order of the labels 0 to 9.
WARDROBE = {
    "T-shirt/top": t_shirt,
    "Trouser": trouser,
    "Pullover": pullover,
    "Dress": dress,
    "Coat": coat,
    "Sandal": sandal,
    "Shirt": shirt,
    "Sneaker": sneaker,
    "Bag": bag,
    "Ankle boot": ankle_boot,
}


def draw(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """n images: uint8 (n, 1, 28, 28), labels: int64 (n,), balanced and shuffled."""
    dice = torch.Generator().manual_seed(seed)
    labels = (torch.arange(n) % len(WARDROBE)).sort().values
    stacks = []
    for label, garment in enumerate(WARDROBE.values()):
        for stack in labels[labels == label].split(STACK):
            canvas = Canvas(len(stack), dice)
            garment(canvas)
            stacks.append(canvas.finish())
    order = torch.randperm(n, generator=dice)
    return torch.cat(stacks)[order], labels[order]
