"""Several ranks train one model: what they share, and what that costs."""

from functools import partial

from core.ui import frame
from core.ui.scale import cost, gradients, sampler, training
from core.ui.sections import sections

frame.begin("Scale", wide=True)
machine = frame.machine()

labs = {each.LAB.title: partial(each.draw, machine) for each in (training, gradients)}
labs[cost.LAB.title] = partial(cost.draw, machine)
sections(labs | {"A new order": sampler.draw})
frame.end("Scale")
