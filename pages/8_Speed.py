"""Speed up training step by step, from the textbook loop to the machine's limit."""

from functools import partial

from core.lessons.speed import ladder_page
from core.ui import frame, lab, simulated

frame.begin("Speed")
machine = frame.machine()
if not machine.simulates:
    simulated.tell(machine)
ladder = {"The ladder": partial(ladder_page.draw, machine)}
frame.sections(ladder | lab.sections("speed", machine))
frame.end("Speed")
