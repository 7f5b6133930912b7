"""The class: join it, see who trains, and who reaches the target first."""

import streamlit as st

from core.ui import frame
from core.ui.classroom import board, joining, projector

if st.query_params.get("projector") == "1":
    projector.draw()
else:
    frame.begin("Class", wide=True)
    if joining.draw():
        board.draw()
