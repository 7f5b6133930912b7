"""HTML templates for pages to download or print, and for parts of a page."""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup, escape


@cache
def template(file: Path) -> Template:
    """A Jinja template that escapes texts; the filter `marked` allows some Markdown."""
    environment = Environment(
        loader=FileSystemLoader(file.parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = _marked
    return environment.get_template(file.name)


def _marked(text: str) -> Markup:
    """Turn a text into HTML. Of Markdown, only code spans and bold text count."""
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", code))
