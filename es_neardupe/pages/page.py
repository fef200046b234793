"""HTML page of a comparison, and the rendering of pages: one file that loads nothing from the network, with all values
of documents escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from es_neardupe.display_text import beginning, both_ends, score_text, shown
from es_neardupe.folders import replacing
from es_neardupe.options import Matching
from es_neardupe.pages.application import Site
from es_neardupe.pages.panes import facts, panes, visible_changes
from es_neardupe.similarity.comparison import CompareReport
from es_neardupe.similarity.measure import MEANINGS
from es_neardupe.wording import counted


def rendered(
    template: str, *, styles: Sequence[str], scripts: Sequence[str], site: Site | None = None, **values: Any
) -> str:
    """The page of a template, with the values and the packaged files for style and script.

    All values are escaped; the template function ``shown`` makes text from documents safe to display. The page names
    the hashes of style and script, so that a browser runs nothing else, and loads nothing. ``site``: the page is one of
    the application.
    """
    style, script = _joined(styles), _joined(scripts)
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),  # noqa: S704 - files of this package
            script=Markup(script),  # noqa: S704
            policy=Markup(content_security_policy(styles, scripts, forms=site is not None)),  # noqa: S704
            site=site,
            **values,
        )
    )


def content_security_policy(styles: Sequence[str], scripts: Sequence[str], *, forms: bool = False) -> str:
    """The policy of a page with these packaged files: nothing else is run or loaded. ``forms`` may be sent to the
    server of the page."""
    style, script = (f"'{_hash(_joined(names))}'" if names else "'none'" for names in (styles, scripts))
    target = "'self'" if forms else "'none'"
    return f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action {target}"


@cache
def _environment() -> Environment:
    # Created once: it caches the templates.
    environment = Environment(
        loader=PackageLoader("es_neardupe.pages", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        counted=counted,
        shown=shown,
        beginning=beginning,
        both_ends=both_ends,
        score_text=score_text,
        title_of=_title_of,
        day=_day,
    )
    return environment


def _day(at: str) -> str:
    """The day of a time, such as 25 November 2026; the time itself if it cannot be read."""
    try:
        found = datetime.fromisoformat(at.replace("Z", "+00:00"))
    except ValueError:
        return shown(at)
    return f"{found.day} {found:%B %Y}"


_TITLE = 120
"""Characters of a title that are shown."""


def _title_of(fields: Mapping[str, str] | None) -> str:
    """The first field of a document that has a value; "" if none has."""
    return beginning(next(filter(None, (fields or {}).values()), ""), _TITLE)


def _joined(names: Sequence[str]) -> str:
    return "\n".join(files("es_neardupe.pages").joinpath(name).read_text("utf-8") for name in names)


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


_MAX_FACTS = 200

COMPARISON_SCRIPTS = ("panes.js", "page.js")
SITE_STYLES = ("page.css", "site.css")
SITE_SCRIPTS = ("history.js", "review.js")


def compare_page(
    comparison: CompareReport, matching: Matching = Matching.LITERAL, site: Site | None = None, **review: Any
) -> str:
    """The page of a comparison as HTML; ``matching`` is shown first. ``site``: see `rendered`; then ``review`` has what
    was decided about both documents, and the bar for that.

    Only the beginning of a text longer than `MAX_SHOWN` is shown, and the page says so.
    """
    changes = {one: visible_changes(comparison, one) for one in Matching}
    return rendered(
        "page.html.j2",
        styles=["page.css"] if site is None else [*SITE_STYLES],
        scripts=COMPARISON_SCRIPTS if site is None else [*COMPARISON_SCRIPTS, *SITE_SCRIPTS],
        site=site,
        **review,
        comparison=comparison,
        matching=matching,
        matchings=list(Matching),
        meanings=MEANINGS,
        panes={one: panes(comparison, one, changes[one]) for one in Matching},
        differences={one: len(visible) for one, visible in changes.items()},
        facts=facts(comparison, changes[Matching.LITERAL], _MAX_FACTS),
        more_facts=max(len(comparison.facts) - _MAX_FACTS, 0),
    )


def write_page(file: Path, content: str) -> None:
    """Write the file completely, or leave an existing file unchanged. Raises `InputError` if it cannot be written."""
    with replacing(file) as stream:
        stream.write(content)
