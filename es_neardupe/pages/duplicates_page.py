"""HTML page of a `duplicates` request: the request, the pairs with their texts side by side, and the diagnostics.

Example (`page_texts` is in `es_neardupe.commands.duplicates.results`):

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
from es_neardupe.pages.panes import Pane, facts, panes, visible_changes
from es_neardupe.records import Address
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS
from es_neardupe.similarity.comparison import Matched, compare_texts
from es_neardupe.similarity.histogram import EDGES, Histogram, counted

__all__ = ["MAX_LISTED", "MAX_OPENED", "MAX_TEXT", "Bar", "Bars", "bars", "duplicates_page"]


_WIDTH, _HEIGHT = 720, 160
_GAP = 0.15
"""Space on each side of a bar, as a share of its step."""
_MAX_BARS, _MAX_MARKS = 50, 10
"""Bars and marks of a chart of integers."""
_TENTH = 5
"""Number of bins of the histogram from one tenth to the next."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the chart: position, size and label."""

    x: float
    y: float
    width: float
    height: float
    label: str
    """The similarities that it counts."""
    pairs: int


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart with the labels of both axes. Heights are logarithmic, so that a single pair is visible."""

    width: int
    height: int
    bars: tuple[Bar, ...]
    x_labels: tuple[tuple[float, str], ...]
    """Position from the left and text of each label."""
    y_labels: tuple[tuple[float, str], ...]
    """Position from the top and text of each line."""


def bars(similarities: NDArray[Any]) -> Bars:
    """The chart of similarities, from the tenth that contains the lowest one up to 1. Exactly 0 and exactly 1 have bars
    of their own. Numbers of shared features have a bar each, or for each range of equally many numbers.

    ``similarities``: float64[pairs] in [0, 1], or int64[pairs]; one or more.
    """
    if np.issubdtype(similarities.dtype, np.integer):
        slots = list(_slots_of_numbers(similarities))
    else:
        slots = list(_slots(Histogram.of(counted(similarities))))
    step, maximum = _WIDTH / len(slots), max(pairs for _, _, pairs in slots)
    drawn = tuple(_bar(number * step, step, label, pairs, maximum) for number, (label, _, pairs) in enumerate(slots))
    x_labels = tuple(
        (round((number + (0.5 if "=" in mark else 0)) * step, 1), mark)
        for number, (_, mark, _) in enumerate(slots)
        if mark
    )
    levels = {10**power for power in range(int(log10(maximum)) + 1)} | {maximum}
    y_labels = tuple(
        (_top(level, maximum), f"{level:,}") for level in sorted(levels) if level in (1, maximum) or 2 * level < maximum
    )
    return Bars(_WIDTH, _HEIGHT, drawn, x_labels, y_labels)


def _slots(histogram: Histogram) -> Iterator[tuple[str, str, int]]:
    """The label of each bar, the mark at its left edge (or below it), and its pairs."""
    filled = [number for number, pairs in enumerate(histogram.counts) if pairs]
    first = 0 if histogram.zero else (filled[0] if filled else len(histogram.counts)) // _TENTH * _TENTH
    if histogram.zero:
        yield "exactly 0", "= 0", histogram.zero
    for number in range(first, len(histogram.counts)):
        low, high = EDGES[number], EDGES[number + 1]
        mark = f"{low:.1f}" if number % _TENTH == 0 else ""
        yield f"{low:.2f} to below {high:.2f}", mark, histogram.counts[number]
    yield "exactly 1", "= 1", histogram.one


def _slots_of_numbers(values: NDArray[Any]) -> Iterator[tuple[str, str, int]]:
    """As `_slots`, for integers: at most `_MAX_BARS` bars."""
    low, high = int(values.min()), int(values.max())
    width = -(-(high - low + 1) // _MAX_BARS)
    pairs = np.bincount((values - low) // width)
    marked = -(-len(pairs) // _MAX_MARKS)
    for number, count in enumerate(pairs.tolist()):
        first, last = low + number * width, low + (number + 1) * width - 1
        label = f"{first:,}" if width == 1 else f"{first:,} to {last:,}"
        yield label, f"{first:,}" if number % marked == 0 else "", count


def _bar(x: float, step: float, label: str, pairs: int, maximum: int) -> Bar:
    top = _top(pairs, maximum)
    return Bar(
        round(x + _GAP * step, 1), top, round(min(step * (1 - 2 * _GAP), 60), 1), round(_HEIGHT - top, 1), label, pairs
    )


def _top(pairs: int, maximum: int) -> float:
    return round(_HEIGHT * (1 - log10(1 + pairs) / log10(1 + maximum)), 1)


MAX_OPENED = 200
"""Default maximum number of pairs that are shown with their texts."""
MAX_LISTED = 5_000
"""Maximum number of pairs on a page."""
MAX_TEXT = 100_000
"""Characters of each text that are compared and shown. A longer text is marked as cut."""

_SKIPPED = "Skipped large hash collision groups"
_MAX_SIZE = 10_000_000
"""Approximate number of characters of all texts with their marks that a browser opens quickly."""
_MARK_SIZE = 150
"""Approximate number of characters of a mark around a piece of text."""
_MAX_FACTS = 20
_BEGINNING = 120
"""Characters of the first text that are shown in the list of pairs."""
_FEW_WORDS = 30
"""Number of words below which a single common word is a passage, for example in titles."""


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
    """Minimum number of words of a marked passage."""
    found: Matched
    differences: int
    facts: list[dict[str, Any]]
    more_facts: int
    cut: bool
    """Whether only the beginnings of the texts are compared and shown."""

    @property
    def size(self) -> int:
        """Approximate number of characters in the page."""
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
    """Fields of the documents, or the beginning of text a, in one line; "" if it is not available."""
    view: _View | None
    missing: tuple[str, ...]
    """Documents that should be shown, but have no text any more."""


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
    """The pairs of one stage as an HTML page: one file that loads nothing from the network, with all values escaped.

    ``texts`` has the texts of the first ``opened`` pairs (see `page_texts`); a document whose text is missing is shown
    as deleted. ``explained`` is the request in words; ``fields`` are shown of each document. Pairs beyond `MAX_LISTED`,
    and texts beyond ``opened`` or beyond the size that a browser opens quickly, are left out; the page says how many.
    Raises `SettingsError` for a stage of another type.
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
    """The number of all skipped groups: the result lists only the largest, the diagnostics count them."""
    counts = [int(counters.get(_SKIPPED, 0)) for counters in result.diagnostics.values()]
    return max([len(result.skipped_groups), *counts])


def _rows(report: DuplicatesReport, pairs: Sequence[DocumentPair], content: _Content, opened: int) -> Iterator[_Row]:
    """The rows of the list. When the page is full, further pairs are listed without texts."""
    several, room = len(report.indices) > 1, _MAX_SIZE
    for number, pair in enumerate(islice(pairs, MAX_LISTED), 1):
        names = _name(pair.a, several), _name(pair.b, several)
        with_texts = number <= opened and room > 0
        view = _view(pair, names, content) if with_texts else None
        room -= view.size if view else 0
        missing = [name for name, one in zip(names, (pair.a, pair.b), strict=True) if one not in content.texts]
        yield _Row(
            number,
            pair.similarity,
            names,
            pair.explanation,
            content.heading(pair),
            view,
            tuple(missing) if with_texts else (),
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
    comparison = compare_texts(a, b, names=names, shingle=minimum)
    side_a, side_b = (
        replace(side, fields=content.fields.get(address, {}))
        for side, address in zip(comparison.sides, (pair.a, pair.b), strict=True)
    )
    comparison = replace(comparison, a=side_a, b=side_b)
    changes = visible_changes(comparison, Matching.LITERAL)
    return _View(
        panes(comparison, Matching.LITERAL, changes),
        minimum,
        comparison.matchings[Matching.LITERAL.value],
        len(changes),
        facts(comparison, changes, _MAX_FACTS),
        max(len(comparison.facts) - _MAX_FACTS, 0),
        max(len(texts[pair.a]), len(texts[pair.b])) > MAX_TEXT,
    )
