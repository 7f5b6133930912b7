"""Race two devices, see where timing goes wrong, and where the time goes."""

from core.lessons.compare.crossover_page import CrossoverLab
from core.lessons.compare.device_queue_page import DeviceQueue
from core.lessons.compare.race_page import RaceLab
from core.lessons.compare.step_profile_page import StepProfileLab
from core.lessons.compare.timing_pitfalls_page import TimingPitfalls
from core.lessons.compare.your_gpu_page import YourGpu
from core.ui import frame, lab

LABS = (
    RaceLab,
    TimingPitfalls,
    CrossoverLab,
    DeviceQueue,
    StepProfileLab,
    YourGpu,
)

frame.begin("Compare")
frame.sections(
    lab.sections(LABS, frame.machine()),
    more=("The queue", "The profile", "Your GPU"),
)
frame.end("Compare")
