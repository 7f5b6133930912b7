"""Race two devices, see where timing goes wrong, and where the time goes."""

from core.ui import frame, lab

frame.begin("Compare")
frame.sections(lab.sections("compare", frame.machine()))
frame.end("Compare")
