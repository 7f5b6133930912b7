import pytest

from tests.toolkit.dryrun.dry_run import LAYER, check_culprit

pytestmark = pytest.mark.usefixtures("unhurried")

GENERATORS = [  # a model's forward, what follows, the line to change, and what is said
    (
        LAYER,
        "torch.rand(2, generator=torch.Generator(), device='cuda')",
        14,
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
    (
        LAYER,
        "from torch.utils.data import random_split\n"
        "random_split(x, [1, 1], torch.Generator('cuda'))",
        15,
        "Expected a 'cpu' device type for generator but found 'cuda'",
    ),
    (
        LAYER,
        "torch.set_default_device('cuda')\n"
        "loader = torch.utils.data.DataLoader(x, shuffle=True)\nnext(iter(loader))",
        15,
        "the generator is on another device",
    ),
    (
        LAYER,  # an object holds the generator
        "class Noise:\n    def __init__(self, generator): self.generator = generator\n"
        "    def __call__(self):\n"
        "        return torch.rand(2, device='cuda', generator=self.generator)\n"
        "noise = Noise(torch.Generator())\nnoise()",
        18,
        "the generator is on another device",
    ),
    (
        LAYER,  # a loader draws with a generator that isn't its own
        "class Loader(torch.utils.data.DataLoader):\n"
        "    def __iter__(self): return iter(torch.randperm(2, generator=g))\n"
        "g = torch.Generator('cuda')\nnext(iter(Loader(x)))",
        16,
        "the generator is on another device",
    ),
    (
        LAYER,  # the script gives the loader its generator
        "torch.set_default_device('cuda')\ng = torch.Generator('cpu')\n"
        "loader = torch.utils.data.DataLoader(x, shuffle=True, generator=g)\n"
        "next(iter(loader))",
        15,
        "the generator is on another device",
    ),
]


@pytest.mark.parametrize(("forward", "rest", "culprit", "message"), GENERATORS)
def test_the_line_that_made_the_generator_or_uses_it(
    forward: str, rest: str, culprit: int, message: str
) -> None:
    check_culprit(forward, rest, culprit, message)
