"""All runs of this visitor: which was best, what it cost, what made the difference."""

import streamlit as st

from core.ui import frame, your_data
from core.ui.my_runs import actions, compare, empty, known, table

frame.begin("Runs", wide=True)

if notice := st.session_state.pop("runs_notice", ""):
    st.warning(notice, icon=":material/info:")
if runs := known.mine():
    if notice := table.restore(runs):
        st.warning(notice, icon=":material/info:")
    if shown := table.filters(runs):
        chosen = table.draw(shown, table.looks(runs))
        table.remember()
        actions.row(chosen, runs)
        compare.draw(chosen, shown)
    else:
        table.nothing()
else:
    empty.draw(known.newest())
your_data.draw()
