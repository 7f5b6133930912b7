"""Several ranks train one model: what they share, and what that costs."""

from core.lessons.scale import sampler_page
from core.ui import frame, lab

frame.begin("Scale")
labs = lab.sections("scale", frame.machine())
frame.sections({**labs, "A new order": sampler_page.draw})
frame.end("Scale")
