"""Several ranks train one model: what they share, and what that costs."""

from functools import partial

from core.lessons.scale import sampler_page
from core.ui import frame
from core.ui.lab import labs

frame.begin("Scale")
machine = frame.machine()
drawn = {lab.title: partial(lab.draw, machine) for lab in labs("scale")}
frame.sections(drawn | {"A new order": sampler_page.draw})
frame.end("Scale")
