"""HTML templates for pages to download or print, and for parts of a page."""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup, escape


@cache
def template(file: Path) -> Template:
    """A template that shows texts literally; `marked` reads some Markdown."""
    environment = Environment(
        loader=FileSystemLoader(file.parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = _marked
    return environment.get_template(file.name)


def _marked(text: str) -> Markup:
    """Only Markdown's code spans and bold text."""
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", code))
