"""The page of a comparison: one file that needs no network, with everything from the documents escaped."""

from __future__ import annotations

from pathlib import Path

from es_neardupe.alignment import Matching
from es_neardupe.comparison import Comparison
from es_neardupe.report.files import replacing
from es_neardupe.report.panes import MAX_SHOWN, facts, panes
from es_neardupe.report.rendering import rendered
from es_neardupe.report.segments import visible_changes
from es_neardupe.scoring import MEANINGS

__all__ = ["MAX_SHOWN", "page", "write_page"]

_MOST_FACTS = 200


def page(comparison: Comparison, matching: Matching = Matching.LITERAL) -> str:
    """The page as HTML; ``matching`` is shown first.

    Of texts longer than `MAX_SHOWN`, the beginning is shown, and the page says so.
    """
    changes = {one: visible_changes(comparison, one) for one in Matching}
    return rendered(
        "page.html.j2",
        styles=["page.css"],
        scripts=["panes.js", "page.js"],
        comparison=comparison,
        matching=matching,
        matchings=list(Matching),
        meanings=MEANINGS,
        panes={one: panes(comparison, one, changes[one]) for one in Matching},
        numbers={one: sorted(found) for one, found in changes.items()},
        facts=facts(comparison, changes[Matching.LITERAL], _MOST_FACTS),
        more_facts=max(len(comparison.facts) - _MOST_FACTS, 0),
    )


def write_page(file: Path, content: str) -> None:
    """Write the file, or leave what was there as it was. Raises `InputError` where it cannot be written."""
    with replacing(file) as stream:
        stream.write(content)
