"""Several ranks train one model: what they share, and what that costs."""

from core.lessons.scale import sampler_page
from core.lessons.scale.cost_page import CostLab
from core.lessons.scale.data_parallel_page import DataParallelLab
from core.lessons.scale.gradients_page import GradientsLab
from core.ui import frame, lab

LABS = (DataParallelLab, GradientsLab, CostLab)

frame.begin("Scale")
labs = lab.sections(LABS, frame.machine())
frame.sections({**labs, "A new order": sampler_page.draw}, more=("A new order",))
frame.end("Scale")
