"""The part of core that imports streamlit: page frame, charts, live views."""
