"""core.ui.links: links lead where Streamlit's own would."""

import pytest

from core.ui import links
from core.ui.course import PAGES
from tests.pages.walk import open_page


@pytest.mark.usefixtures("engine")
def test_a_link_is_what_streamlit_would_make_of_the_file(monkeypatch):
    """On a page with many: address, title and icon; and there is such a page."""
    drawn = [each.proto for each in open_page("pages/3_Train.py").get("page_link")]
    monkeypatch.setattr(links, "_page", str)
    by_file = [each.proto for each in open_page("pages/3_Train.py").get("page_link")]
    assert drawn == by_file
    titles = {each.title for each in PAGES}
    assert {each.page for each in drawn} <= titles | {""}
    assert len({each.page_script_hash for each in drawn}) > 10
