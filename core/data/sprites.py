"""The pixel wardrobe: ten kinds of clothes, drawn by a program.

It replaces Fashion-MNIST where the real data can't be downloaded: the same ten
classes in the same order, 28x28 gray pixels, bright on black. This file only
draws. Reading real data, scaling, batches, and the move to an accelerator are
elsewhere. Exported scripts import this file; exported notebooks contain it.

Chains define a shape: it covers the pixels where a < b < c holds for each
chain (a, b, c). x points right, y down, in pixels, and 0 is the middle. A
number per image is a tensor (n, 1, 1), a number per pixel (n, 28, 28), so all
n images are drawn at once.

To see how it works, read Canvas, top, and shirt; the rest is similar.
"""

from functools import reduce
from itertools import pairwise

import torch
from torch import Tensor

# Images drawn at once. They fit in the CPU's cache. Their tensors have less
# than 32,768 numbers, so PyTorch starts no threads, which would mostly wait.
STACK = 40
Number = Tensor | float


class Canvas:
    """n images of one class, black at first, with random axes and cloth."""

    def __init__(self, n: int, dice: torch.Generator, stripes: float) -> None:
        self.n, self.dice, self.pixels = n, dice, torch.zeros(n, 28, 28)
        # All that is drawn moves, turns, and scales with the axes.
        axis = torch.arange(28) - 13.5
        x, y = axis - self.roll(-1, 1), axis[:, None] - self.roll(-1, 1)
        angle, scale = self.roll(-0.08, 0.08), self.roll(0.88, 1.03)
        cos, sin = angle.cos() / scale, angle.sin() / scale
        self.x, self.y = x, y = x * cos + y * sin, y * cos - x * sin
        # The cloth has a brightness of its own, perhaps stripes, and folds.
        cloth = self.roll(0.35, 1) + x * self.roll(-0.01, 0.01)
        cloth = cloth - y * self.roll(0, 0.01)
        for t in (x, y):
            stripe = 4 * wave(t / self.roll(3, 8) + self.roll(0, 1)) - 1
            depth = self.roll(0.1, 0.25) * (self.roll(0, 1) < stripes)
            cloth = cloth * (1 - depth * stripe.clamp(0, 2))
        folds = wave((x + y * self.roll(-1, 1)) / 9 + self.roll(0, 1))
        self.cloth = cloth * (1.08 - 0.16 * folds)

    def roll(self, low: float, high: float, side: int = 1) -> Tensor:
        """Uniform random numbers (n, side, side)."""
        share = torch.rand(self.n, side, side, generator=self.dice)
        return low + (high - low) * share

    def maybe(self, chance: float) -> tuple:
        """A chain that holds in a share of about `chance` of the images."""
        return 99.0 * (self.roll(0, 1) > chance), 50

    def paint(self, *shape: tuple, shade: Number = 1) -> None:
        """Fill a shape with cloth; its soft edges and dark rims look round."""
        depth = inside(*shape)
        light = self.cloth * shade * (0.65 + 0.35 * (depth / 2).clamp(0, 1))
        cover = (0.5 + depth).clamp(0, 1)
        self.pixels = self.pixels + cover * (light - self.pixels)

    def mark(self, *shape: tuple, factor: Number | None = None) -> None:
        """Darken (factor < 1) or brighten a shape, as a seam or a print."""
        if factor is None:
            factor = self.roll(0.3, 0.7) + (self.roll(0, 1) < 0.5)
        cover = (0.5 + inside(*shape)).clamp(0, 1)
        self.pixels = self.pixels * (1 + cover * (factor - 1))


def inside(*chains: tuple) -> Tensor:
    """How many pixels deep each pixel is in the shape; outside, below 0."""
    slack = [b - a for chain in chains for a, b in pairwise(chain)]
    return reduce(torch.minimum, slack)


def wave(t: Tensor) -> Tensor:
    """Triangle wave with period 1: 1 at whole numbers, 0 halfway."""
    return (2 * (t % 1) - 1).abs()


def line(t: Tensor, *knots: tuple[Number, Number]) -> Number:
    """Height at t of the line through knots (t, height), flat beyond them."""
    height = knots[0][1]
    for (t0, h0), (t1, h1) in pairwise(knots):
        height = height + (h1 - h0) * ((t - t0) / (t1 - t0)).clamp(0, 1)
    return height


def oval(x: Tensor, y: Tensor, a: Number, b: Number) -> Tensor:
    """Rough distance to an ellipse with half axes a and b; inside, below 0."""
    return ((x / a) ** 2 + (y / b) ** 2 - 1) * 1.5


def top(c: Canvas, *ranges: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """Paint body and sleeves; return side (|x|) and down (y from the neck)."""
    length, waist, flare, sleeve, spread = ranges
    end = c.roll(*length)
    side, down = c.x.abs(), c.y + end / 2
    shoulder, hip = c.roll(5.6, 6.8), c.roll(*waist)
    # A sleeve is a tapering bar, at an angle (radians) to the body.
    angle, x, y = c.roll(*spread), side - shoulder + 2, down - 3
    along = x * angle.sin() + y * angle.cos()
    across = x * angle.cos() - y * angle.sin()
    arm = across.abs() - c.roll(2.2, 2.8) + along * 0.05
    c.paint((arm, 0), (-1.5, along, c.roll(*sleeve)), shade=0.9)
    knots = (0, 2.5), (2.2, shoulder), (9, shoulder - 0.5), (end * 0.55, hip)
    width = line(down, *knots, (end, hip + c.roll(*flare)))
    body = (side, width), (0, down, end)
    c.paint(*body)
    c.mark(*body, (end - 2, down), factor=c.roll(0.7, 1))
    return side, down


def t_shirt(c: Canvas) -> None:
    """Short sleeves, a round neck, sometimes a print on the chest."""
    side, down = top(c, (20, 25), (5, 7), (0, 1), (4, 8.5), (0.4, 1.1))
    c.paint((oval(side, down, c.roll(2.5, 4), c.roll(1.5, 4)), 0), shade=0)
    badge = oval(side, down - 9, c.roll(2, 4), c.roll(2, 4))
    c.mark((badge, 0), c.maybe(0.4))


def trouser(c: Canvas) -> None:
    """Two legs, wide or narrow, with a waistband."""
    side, down, hip = c.x.abs(), c.y + 12.5, c.roll(4, 6.5)
    crotch, foot, gap = c.roll(6, 10), c.roll(2, 5), c.roll(0, 2)
    end = c.roll(22, 26)
    outer = line(down, (0, hip - 0.8), (crotch, hip), (end, gap + foot))
    inner = line(down, (crotch - 1, -1), (crotch, 0), (end, gap))
    c.paint((inner, side, outer), (0, down, end))
    c.mark((down, 2), factor=c.roll(0.5, 0.9))
    c.mark((side, 0.3), (down, crotch), factor=c.roll(0.5, 0.9))


def pullover(c: Canvas) -> None:
    """Long sleeves and a knitted collar."""
    side, down = top(c, (19, 25), (5, 7), (-0.5, 1.5), (12, 17), (0.15, 0.45))
    neck = oval(side, down, c.roll(2.5, 3.5), c.roll(1, 3.5))
    c.mark((neck, 1.2))
    c.paint((neck, 0), (0, down), shade=0.3)


def dress(c: Canvas) -> None:
    """Long, narrow at the waist, flared below; straps or short sleeves."""
    side, down = top(c, (24, 27), (3.3, 5.7), (0.5, 5), (-1, 7), (0.3, 1))
    c.paint((oval(side, down, c.roll(2, 4.5), c.roll(2, 6)), 0), shade=0)
    c.mark((12, down, 13.5), c.maybe(0.5))


def coat(c: Canvas) -> None:
    """Long, with long sleeves, lapels and an open front."""
    side, down = top(c, (20, 26), (5, 7), (0, 1.5), (12, 17), (0.15, 0.45))
    depth = c.roll(4, 10)
    lapel = side - (1 - down / depth) * c.roll(2.5, 3.5)
    c.mark((lapel, 1.5), (down - depth, 1.5))
    c.paint((lapel, 0), (0, down, depth), shade=0.3)
    c.mark((side, c.roll(0.6, 1.3)), (depth, down))
    c.mark((2, side, 5), (15, down, 15.6), c.maybe(0.4), factor=0.6)


def sandal(c: Canvas) -> None:
    """A flat or high sole, a few straps, nothing else."""
    x, y, c.cloth = c.x, c.y, c.cloth * 1.2
    heel, thick, ground = c.roll(0, 9), c.roll(1.5, 2.5), c.roll(4, 7)
    ground = ground + heel / 3
    sole = ground - line(x, (-5, 0), (8, heel))
    upper = sole - line(x, (-12, 2.5), (-8, 5), (-3, 6.5), (3, 7), (10, 7.5))
    foot = (-11.5, x, 12), (upper, y, sole)
    ankle, middle, back = c.maybe(0.6), c.maybe(0.6), c.maybe(0.4)
    for start, *there in ((-10,), (-4, middle), (2, ankle, back)):
        strap = x + (y - sole) * c.roll(-0.3, 0.3) - c.roll(start, start + 2)
        c.paint(*foot, (0, strap, c.roll(3, 5)), *there)
    loop = torch.minimum(y - upper - 1.6, 10.3 - x)
    c.paint(*foot, (loop, 0), (-5, x), ankle)
    c.paint((-12.5, x, 12.5), (sole, y, sole + thick))
    c.paint((c.roll(-5, 10.5), x, 12.5), (sole, y, ground + thick))


def shirt(c: Canvas) -> None:
    """Sleeves of any length, a collar and a row of buttons."""
    side, down = top(c, (20, 26), (5, 7), (0, 1), (5, 17), (0.15, 0.7))
    c.mark((side, 4), (-1, down - side * 0.6, c.roll(1.5, 3)))
    c.paint((side + down, c.roll(1, 3.5)), (0, down), shade=0.3)
    c.mark((side, 1.3), (3, down))
    c.mark((side, 0.5), (0.5, 2 * wave(down / c.roll(3, 4))), (4, down))


def sneaker(c: Canvas) -> None:
    """A low shoe with laces and a thick sole."""
    x, y, sole, toe = c.x, c.y, c.roll(3, 9), c.roll(4, 5.5)
    high, back = c.roll(8, 13), c.roll(8, 16)
    front = (-13, 1), (-11.5, toe - 1), (-8, toe), (-0.5, high)
    tongue = (1.5, high + 0.5), (4, high - 2), (7, (high + back) / 2 - 2)
    upper = sole - line(x, *front, *tongue, (10, back), (12.5, back - 1))
    c.paint((-12.5, x, 12.5), (upper, y, sole))
    c.mark((-7, x, 0), (y - upper, 2.5), (1.5, 3 * wave(x / 2.4)))
    stripe = 3, x + y * c.roll(-1, 1), c.roll(4.5, 7)
    c.mark(stripe, (upper + 4, y), c.maybe(0.5))
    thick, c.cloth = c.roll(1.5, 3), c.roll(0.4, 1)  # the sole is of rubber
    c.paint((-13, x, 13), (sole - 0.5, y, sole + thick))


def bag(c: Canvas) -> None:
    """A box with a handle, a flap and a clasp."""
    rim, wide, deep = c.roll(-6, 2), c.roll(7, 12), c.roll(8, 14)
    side, down = c.x.abs(), c.y - rim
    a, b = wide * c.roll(0.4, 0.9), c.roll(3, 9)
    hole = oval(side, down, a - 1.7, b - 1.7)
    c.paint((oval(side, down, a, b), 0), (0, hole), (down, 0), shade=0.9)
    base = wide + c.roll(-1, 1.5)
    knots = (0, wide - 1), (1.5, wide), (deep - 1.5, base), (deep, base - 1.5)
    c.paint((side, line(down, *knots)), (0, down, deep))
    flap = down - line(side, (0, c.roll(3, 7)), (wide, c.roll(1, 6)))
    c.mark((-0.3, flap, 0.5), c.maybe(0.6), factor=0.5)
    c.mark((oval(side, down - 5, 1.3, 1.3), 0), c.maybe(0.5))


def ankle_boot(c: Canvas) -> None:
    """A high shaft, a round toe and a heel."""
    x, y, sole, high = c.x, c.y, c.roll(5, 10), c.roll(9, 18)
    shaft, back = c.roll(-2, 2), high + c.roll(-1, 1)
    toe = (-13, 1), (-11, 4), (-8, 5.5), (-3, 8)
    upper = sole - line(x, *toe, (shaft - 0.5, 9), (shaft, high), (11, back))
    c.paint((-12.5, x, 11), (upper, y, sole))
    c.mark((4, x - y * 0.2, 7), (y - sole, -6), c.maybe(0.5))
    heel = sole + line(x, (-13, 1.5), (4, 1), (5, c.roll(1.2, 5)))
    c.paint((-12.5, x, 11), (sole, y, heel), shade=c.roll(0.4, 1.1))


# In the order of the labels 0 to 9: the function that draws the garment, and
# how often its cloth has stripes.
WARDROBE = {
    "T-shirt/top": (t_shirt, 0.2),
    "Trouser": (trouser, 0.15),
    "Pullover": (pullover, 0.2),
    "Dress": (dress, 0.2),
    "Coat": (coat, 0.2),
    "Sandal": (sandal, 0.1),
    "Shirt": (shirt, 0.2),
    "Sneaker": (sneaker, 0.1),
    "Bag": (bag, 0.2),
    "Ankle boot": (ankle_boot, 0.1),
}


def draw(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """n images, uint8 (n, 1, 28, 28), of all classes; labels int64 (n,)."""
    dice = torch.Generator().manual_seed(seed)
    labels = (torch.arange(n) % len(WARDROBE)).sort().values
    stacks = []
    for label, (garment, stripes) in enumerate(WARDROBE.values()):
        for stack in labels[labels == label].split(STACK):
            c = Canvas(len(stack), dice, stripes)
            garment(c)
            noise = 1 + c.roll(-1, 1, 28) * c.roll(0, 0.1)
            image = 255 * (c.pixels * noise).clamp(0, 1)
            stacks.append(image.byte()[:, None])
    order = torch.randperm(n, generator=dice)
    return torch.cat(stacks)[order], labels[order]
