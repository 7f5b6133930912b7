"""All runs of this visitor: which was best, what it cost, what made the difference."""

import streamlit as st

from core.runs import comparison_page as comparison
from core.runs import listing_page as listing
from core.runs import my_data_page as my_data
from core.ui import frame
from core.ui.server import tell_notice

frame.begin("Runs")

tell_notice()
if runs := listing.mine():
    if notice := listing.restore(runs):
        st.warning(notice, icon=":material/info:")
    if listed := listing.filters(runs):
        selection = listing.draw(listed)
        listing.remember()
        listing.draw_actions(selection, runs)
        comparison.draw(selection, listed)
    else:
        listing.draw_no_match()
else:
    listing.draw_empty()
my_data.draw()
