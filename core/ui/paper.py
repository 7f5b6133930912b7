"""HTML pages to take along: they need no other file and no network, and print well."""

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape


def page(template: Path, **fields: Any) -> str:
    loader = FileSystemLoader(template.parent)
    environment = Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["marked"] = _marked
    return environment.get_template(template.name).render(**fields)


def _marked(text: str) -> Markup:
    """Markdown's code spans and bold, and no more of it."""
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", code))
