"""Race two devices, see where timing goes wrong, and where the time goes."""

from functools import partial

from core.ui import frame
from core.ui.lab import labs

frame.begin("Compare")
machine = frame.machine()
frame.sections({lab.title: partial(lab.draw, machine) for lab in labs("compare")})
frame.end("Compare")
