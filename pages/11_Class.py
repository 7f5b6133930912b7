"""The class: join it, see who trains, and who reaches the target first."""

import streamlit as st

from core.classroom import board_page as board
from core.classroom import joining_page as joining
from core.classroom import projector_page as projector
from core.ui import frame

if st.query_params.get("projector") == "1":
    projector.draw()
else:
    frame.begin("Class")
    if joining.draw():
        board.draw()
