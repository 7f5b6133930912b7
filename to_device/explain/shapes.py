"""What the shapes say that a file has and that a model wants."""

import re

WIDTHS = re.compile(
    r"size mismatch for (\S{1,80}): copying a param with shape (?:torch\.Size\()?"
    r"\(?\[?([\d, ]{1,40}).{0,60}?the shape in current model is (?:torch\.Size\()?"
    r"\(?\[?([\d, ]{1,40})",
    re.DOTALL,
)
MOST_HEADS = 8  # of a network, such as one for each level of a detector


def other_width(text: str) -> bool:
    """Whether layers of the body have another width, and not the heads alone.

    Another number of classes changes how many outputs a head has, and never what it
    gets. A body's layers also get another number, or they have no inputs, as norms.
    """
    found = WIDTHS.findall(text)
    if len({name for name, *_ in found}) <= 2:
        return False
    heads: dict[str, bool] = {}  # whether a layer has weights for inputs
    for name, *shapes in found:
        saved, own = ([int(n) for n in re.findall(r"\d+", shape)] for shape in shapes)
        if saved[1:] != own[1:]:
            return True
        layer = name.rpartition(".")[0]
        heads[layer] = heads.get(layer, False) or len(saved) > 1
    return len(heads) > MOST_HEADS or not all(heads.values())
