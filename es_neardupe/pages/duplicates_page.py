"""The page of a duplicates request: what was asked, its pairs with their texts side by side, and how they were found.

How it is made (`page_texts` is that of `es_neardupe.commands.duplicates.results`):

    texts = page_texts(client, plan, islice(result.pairs, MAX_OPENED), MAX_TEXT + 1)
    content = duplicates_page(report, plan.name, texts, explained=explain(request, index), title=f"Pairs in {index}")
    write_page(file, content)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.commands.duplicates.results import DocumentPair, DuplicatesReport, PairsResult
from es_neardupe.display_text import beginning
from es_neardupe.errors import SettingsError
from es_neardupe.keys.text import spans
from es_neardupe.options import Matching
from es_neardupe.pages.page import rendered
from es_neardupe.pages.panes import Pane, facts, panes
from es_neardupe.pages.segments import visible_changes
from es_neardupe.records import Address
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS
from es_neardupe.similarity.comparison import Matched, compare_texts
from es_neardupe.similarity.histogram import EDGES, Histogram, counted

__all__ = ["MAX_LISTED", "MAX_OPENED", "MAX_TEXT", "Bar", "Bars", "bars", "duplicates_page"]


_WIDTH, _HEIGHT = 720, 160
_GAP = 0.15
"""Of the place of a bar, what is left free on each side."""
_TENTH = 5
"""Bins of the histogram in a tenth."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bin: where it is drawn, and what it says."""

    x: float
    y: float
    width: float
    height: float
    label: str
    """The similarities it stands for."""
    pairs: int


@dataclass(frozen=True, slots=True)
class Bars:
    """All of them, with the marks at both axes. Heights are logarithmic, so that one pair is seen beside a million."""

    width: int
    height: int
    bars: tuple[Bar, ...]
    below: tuple[tuple[float, str], ...]
    """Place from the left and text of each mark below."""
    beside: tuple[tuple[float, str], ...]
    """Place from above and text of each line across."""


def bars(similarities: NDArray[np.float64]) -> Bars:
    """From the tenth in which the least similar pair lies up to 1; pairs of exactly 0 and of exactly 1 stand aside.

    ``similarities``: float64[pairs] in [0, 1], one or more.
    """
    histogram = Histogram.of(counted(similarities))
    slots = list(_slots(histogram))
    step, maximum = _WIDTH / len(slots), max(pairs for _, _, pairs in slots)
    drawn = tuple(_bar(number * step, step, label, pairs, maximum) for number, (label, _, pairs) in enumerate(slots))
    below = tuple(
        (round((number + (0.5 if "=" in mark else 0)) * step, 1), mark)
        for number, (_, mark, _) in enumerate(slots)
        if mark
    )
    levels = {10**power for power in range(int(log10(maximum)) + 1)} | {maximum}
    beside = tuple(
        (_top(level, maximum), f"{level:,}") for level in sorted(levels) if level in (1, maximum) or 2 * level < maximum
    )
    return Bars(_WIDTH, _HEIGHT, drawn, below, beside)


def _slots(histogram: Histogram) -> Iterator[tuple[str, str, int]]:
    """What each bar stands for, the mark at its left edge (or below it), and its pairs."""
    filled = [number for number, pairs in enumerate(histogram.counts) if pairs]
    first = 0 if histogram.zero else (filled[0] if filled else len(histogram.counts)) // _TENTH * _TENTH
    if histogram.zero:
        yield "exactly 0", "= 0", histogram.zero
    for number in range(first, len(histogram.counts)):
        low, high = EDGES[number], EDGES[number + 1]
        mark = f"{low:.1f}" if number % _TENTH == 0 else ""
        yield f"{low:.2f} to below {high:.2f}", mark, histogram.counts[number]
    yield "exactly 1", "= 1", histogram.one


def _bar(x: float, step: float, label: str, pairs: int, maximum: int) -> Bar:
    top = _top(pairs, maximum)
    return Bar(
        round(x + _GAP * step, 1), top, round(min(step * (1 - 2 * _GAP), 60), 1), round(_HEIGHT - top, 1), label, pairs
    )


def _top(pairs: int, maximum: int) -> float:
    return round(_HEIGHT * (1 - log10(1 + pairs) / log10(1 + maximum)), 1)


MAX_OPENED = 200
"""Pairs whose texts a page holds, unless told."""
MAX_LISTED = 5_000
"""Pairs that a page lists."""
MAX_TEXT = 100_000
"""Characters of each text that are compared and shown. What is given beyond them only tells that there is more."""

_SKIPPED = "Skipped large hash collision groups"
_MAX_SIZE = 10_000_000
"""Characters of all texts with their marks, about: what a browser opens at once."""
_MARK_SIZE = 150
"""Characters of a mark around a piece of text, about."""
_MAX_FACTS = 20
_BEGINNING = 120
"""Characters of a text that stand beside a pair that is closed."""
_FEW_WORDS = 30
"""Of texts shorter than this, as titles are, each common word counts as a passage."""


@dataclass(frozen=True, slots=True)
class _Content:
    """Texts and fields of documents."""

    texts: Mapping[Address, str]
    fields: Mapping[Address, Mapping[str, str]]

    def heading(self, pair: DocumentPair) -> str:
        """The shown fields of both documents, if they have any, else the beginning of text a, in one line."""
        values = (value for one in (pair.a, pair.b) for value in self.fields.get(one, {}).values() if value)
        heads = list(dict.fromkeys(beginning(value, _BEGINNING) for value in values))
        return " | ".join(heads) if heads else _beginning(self.texts.get(pair.a, ""))


@dataclass(frozen=True, slots=True)
class _View:
    """The two texts of a pair."""

    panes: tuple[Pane, Pane]
    minimum: int
    """Words of the shortest passage that is marked."""
    found: Matched
    differences: int
    facts: list[dict[str, Any]]
    more_facts: int
    cut: bool
    """Whether only the beginnings of the texts are compared and shown."""

    @property
    def size(self) -> int:
        """Characters it takes in the page, about."""
        pieces = [piece for pane in self.panes for piece in pane.pieces]
        return sum(len(piece.text) + _MARK_SIZE for piece in pieces)


@dataclass(frozen=True, slots=True)
class _Row:
    """A pair in the list."""

    number: int
    similarity: float
    names: tuple[str, str]
    explanation: str | None
    beginning: str
    """Fields of the documents, or the beginning of text a, in one line; "" if unknown."""
    view: _View | None
    missing: tuple[str, ...]
    """Documents that a view should show, but have no text any more."""


def duplicates_page(
    report: DuplicatesReport,
    stage: str,
    texts: Mapping[Address, str],
    *,
    explained: Sequence[str],
    title: str,
    fields: Mapping[Address, Mapping[str, str]] | None = None,
    opened: int = MAX_OPENED,
) -> str:
    """The pairs of one stage as a page of HTML: one file, nothing from the network, everything of documents escaped.

    ``texts`` holds the texts of the first ``opened`` pairs (see `page_texts`); if one is missing, the page says that
    the document was deleted. ``explained`` is the request in words; ``fields`` are shown of each document. Pairs beyond
    `MAX_LISTED`, and texts beyond ``opened`` or beyond what a browser opens at once, are left out, and the page gives
    their number. Raises `SettingsError` for a stage of another type.
    """
    result = report.stages[stage]
    if not isinstance(result, PairsResult):
        raise SettingsError(f"Stage {stage!r} finds no pairs: a page shows those of a documentPairs:duplicates stage.")
    rows = list(_rows(report, result.pairs, _Content(texts, fields or {}), opened))
    skipped = _skipped(result)
    return rendered(
        "duplicates.html.j2",
        styles=["page.css", "duplicates.css"],
        scripts=["panes.js", "duplicates.js"],
        title=title,
        explained=explained,
        result=result,
        documents=len(np.union1d(result.pairs.left, result.pairs.right)),
        skipped=skipped,
        bars=bars(result.pairs.similarity) if rows else None,
        rows=rows,
        closed=sum(row.view is None and not row.missing for row in rows),
        unlisted=len(result.pairs) - len(rows),
        groups=result.skipped_groups,
        more_groups=skipped - len(result.skipped_groups),
        name=lambda address: _name(address, len(report.indices) > 1),
    )


def _skipped(result: PairsResult) -> int:
    """All skipped groups: the result lists the largest only, and its diagnostics count them."""
    counts = [int(counters.get(_SKIPPED, 0)) for counters in result.diagnostics.values()]
    return max([len(result.skipped_groups), *counts])


def _rows(report: DuplicatesReport, pairs: Sequence[DocumentPair], content: _Content, opened: int) -> Iterator[_Row]:
    """Texts are shown until the page is full; from there on, pairs are listed only."""
    several, room = len(report.indices) > 1, _MAX_SIZE
    for number, pair in enumerate(islice(pairs, MAX_LISTED), 1):
        names = _name(pair.a, several), _name(pair.b, several)
        wanted = number <= opened and room > 0
        view = _view(pair, names, content) if wanted else None
        room -= view.size if view else 0
        missing = [name for name, one in zip(names, (pair.a, pair.b), strict=True) if one not in content.texts]
        yield _Row(
            number,
            pair.similarity,
            names,
            pair.explanation,
            content.heading(pair),
            view,
            tuple(missing) if wanted else (),
        )


def _name(address: Address, several: bool) -> str:
    return f"{address[0]}/{address[1]}" if several else address[1]


def _beginning(text: str) -> str:
    return " ".join(text[:_BEGINNING].split()) + ("…" if len(text) > _BEGINNING else "")


def _view(pair: DocumentPair, names: tuple[str, str], content: _Content) -> _View | None:
    texts = content.texts
    if pair.a not in texts or pair.b not in texts:
        return None
    a, b = texts[pair.a][:MAX_TEXT], texts[pair.b][:MAX_TEXT]
    minimum = 1 if min(len(spans(a)), len(spans(b))) < _FEW_WORDS else DEFAULT_MIN_WORDS
    found = compare_texts(a, b, names=names, shingle=minimum)
    side_a, side_b = (
        replace(side, fields=content.fields.get(address, {}))
        for side, address in zip(found.sides, (pair.a, pair.b), strict=True)
    )
    found = replace(found, a=side_a, b=side_b)
    changes = visible_changes(found, Matching.LITERAL)
    return _View(
        panes(found, Matching.LITERAL, changes),
        minimum,
        found.matchings[Matching.LITERAL.value],
        len(changes),
        facts(found, changes, _MAX_FACTS),
        max(len(found.facts) - _MAX_FACTS, 0),
        max(len(texts[pair.a]), len(texts[pair.b])) > MAX_TEXT,
    )
