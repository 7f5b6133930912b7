"""Speed up training step by step, from the textbook loop to the machine's limit."""

from functools import partial

from core.lessons.speed import ladder_page
from core.lessons.speed.copies_page import Copies
from core.lessons.speed.loader_page import Loader
from core.lessons.speed.memory_page import Memory
from core.lessons.speed.time_to_accuracy_page import SecondsToAccuracy
from core.lessons.speed.vectorize_page import Vectorize
from core.ui import frame, lab, simulated

LABS = (Loader, Memory, SecondsToAccuracy, Vectorize, Copies)

frame.begin("Speed")
machine = frame.machine()
if not machine.simulates:
    simulated.tell(machine)
ladder = {"The ladder": partial(ladder_page.draw, machine)}
frame.sections(
    ladder | lab.sections(LABS, machine),
    more=("Seconds to 92.5%", "Vectorize", "Small copies"),
)
frame.end("Speed")
