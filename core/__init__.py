"""Everything that is not a page; `core.ui` is the only part that imports streamlit."""
