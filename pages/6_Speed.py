"""Climb from the textbook loop to the limit of the machine."""

from functools import partial

from core.lessons.speed import ladder_page
from core.ui import frame
from core.ui.lab import labs

frame.begin("Speed")
machine = frame.machine()
drawn = {lab.title: partial(lab.draw, machine) for lab in labs("speed")}
frame.sections({"The ladder": partial(ladder_page.draw, machine)} | drawn)
frame.end("Speed")
