"""A page as one file: its own style and script inline, everything else escaped, nothing from the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from es_neardupe.markup import shown

__all__ = ["rendered"]


def rendered(template: str, *, styles: Sequence[str], scripts: Sequence[str], **values: Any) -> str:
    """The page that a template makes of the values and of our files for style and script.

    All values are escaped; the function ``shown`` makes text from documents fit for a page. Style and script are named
    by their hashes, so that a browser runs nothing else and loads nothing.
    """
    style, script = _joined(styles), _joined(scripts)
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704
            style_hash=_hash(style),
            script_hash=_hash(script),
            **values,
        )
    )


@cache
def _environment() -> Environment:
    # Once: it keeps the templates that it has read.
    made = Environment(
        loader=PackageLoader("es_neardupe.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["shown"] = shown
    return made


def _joined(names: Sequence[str]) -> str:
    return "\n".join(files("es_neardupe.report").joinpath(name).read_text("utf-8") for name in names)


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
