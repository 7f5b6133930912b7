"""The class: join it, see who trains, and who reaches the target first."""

from core.ui import frame
from core.ui.classroom import board, joining

frame.begin("Class", wide=True)
if joining.draw():
    board.draw()
