"""HTML page of a `duplicates` request: the request, the pairs with their texts side by side, and the diagnostics.

Example (`page_contents` and `page_texts` are in `es_neardupe.commands.duplicates.results`):

    pairs = listed_pairs(result.pairs)
    contents = page_contents(client, plan, pairs)
    texts = page_texts(client, plan, opened_pairs(pairs, contents), MAX_TEXT + 1)
    page = duplicates_page(report, plan.name, texts, contents=contents, explained=explain(request, index), title=title)
    write_page(file, page)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from es_neardupe.commands.duplicates.results import DocumentPair, DuplicatesReport, PairsStageReport
from es_neardupe.display_text import beginning, named, range_text
from es_neardupe.errors import SettingsError
from es_neardupe.keys.text import spans
from es_neardupe.options import Matching
from es_neardupe.pages.page import rendered
from es_neardupe.pages.panes import Pane, facts, panes, visible_changes
from es_neardupe.records import Address
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS
from es_neardupe.similarity.comparison import Matched, compare_texts
from es_neardupe.similarity.histogram import EDGES, Histogram, binned

_Item = TypeVar("_Item")

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
        slots = list(_slots(Histogram.of(binned(similarities))))
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
"""Default maximum number of rows that are shown with their texts: half of them the most similar, half the least."""
MAX_LISTED = 5_000
"""Maximum number of pairs on a page: half of them the most similar, half the least similar ones."""
_PAGE = 50
"""Rows that are shown at a time: a page of thousands of elements is slow in browsers and tools of accessibility."""
MAX_TEXT = 100_000
"""Characters of each text that are compared and shown. A longer text is marked as cut."""

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
        """The beginning of text a in one line; "" if a document has fields to show, or the text is not available."""
        has_fields = any(value for one in (pair.a, pair.b) for value in self.fields.get(one, {}).values())
        return "" if has_fields else beginning(self.texts.get(pair.a, "")[: 2 * _BEGINNING], _BEGINNING)


class _Folded(NamedTuple):
    """A pair, and further pairs of the same two texts with the same similarity."""

    number: int
    """Its place among all pairs, from 1."""
    pair: DocumentPair
    copies: list[DocumentPair]


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
    documents: tuple[tuple[str, Mapping[str, str]], ...]
    """The name of each document, and its fields to show."""
    explanation: str | None
    beginning: str
    """The beginning of text a, in one line, if the documents have no fields to show."""
    kind: str
    """``copies`` if both texts have the same words, else ``different``."""
    folded: list[tuple[str, str]]
    """The names of the documents of further pairs of the same two texts."""
    view: _View | None
    missing: tuple[str, ...]
    """Documents that should be shown, but have no text any more."""


def listed_pairs(pairs: Sequence[DocumentPair]) -> list[DocumentPair]:
    """The pairs of a page: all, or of more than `MAX_LISTED` the most and the least similar ones."""
    return _both_ends(pairs, MAX_LISTED)


def opened_pairs(listed: Sequence[DocumentPair], contents: Mapping[Address, str]) -> list[DocumentPair]:
    """Of the `listed_pairs`, those that a page shows with their texts."""
    return [one.pair for one in _both_ends(_folded(enumerate(listed), contents), MAX_OPENED)]


def _both_ends(items: Sequence[_Item], maximum: int) -> list[_Item]:
    """All items, or the first and the last ones."""
    if len(items) <= maximum:
        return list(items)
    last = maximum // 2
    return [*items[: maximum - last], *items[len(items) - last :]]


def _folded(numbered: Iterable[tuple[int, DocumentPair]], contents: Mapping[Address, str]) -> list[_Folded]:
    """Fold pairs of the same two texts, in their order. A document without a content hash is a text of its own."""
    found: dict[tuple[frozenset[str | Address], float], _Folded] = {}
    for number, pair in numbered:
        texts = frozenset(contents.get(one, one) for one in (pair.a, pair.b))
        first = found.setdefault((texts, pair.similarity), _Folded(number, pair, []))
        if first.pair is not pair:
            first.copies.append(pair)
    return list(found.values())


def duplicates_page(
    report: DuplicatesReport,
    stage: str,
    texts: Mapping[Address, str],
    *,
    explained: Sequence[str],
    title: str,
    contents: Mapping[Address, str] | None = None,
    fields: Mapping[Address, Mapping[str, str]] | None = None,
    opened: int = MAX_OPENED,
) -> str:
    """The pairs of one stage as an HTML page: one file that loads nothing from the network, with all values escaped.

    ``texts`` has the texts of `opened_pairs`; a document whose text is missing is shown as deleted. ``contents`` has
    the content hashes of all listed documents, by which pairs of the same two texts are folded. ``explained`` is the
    request in words; ``fields`` are shown of each document. Pairs beyond `MAX_LISTED`, and texts beyond ``opened`` or
    beyond the size that a browser opens quickly, are left out; the page says how many.
    Raises `SettingsError` for a stage of another type.
    """
    result = report.stages[stage]
    if not isinstance(result, PairsStageReport):
        raise SettingsError(f"Stage {stage!r} finds no pairs: a page shows those of a documentPairs:duplicates stage.")
    listed = listed_pairs(result.pairs)
    unlisted = len(result.pairs) - len(listed)
    first_after = len(listed) - len(listed) // 2 if unlisted else 0
    numbered = ((k + (unlisted if unlisted and k > first_after else 0), one) for k, one in enumerate(listed, 1))
    folded = _folded(numbered, contents or {})
    rows = _rows(folded, _Content(texts, fields or {}), contents or {}, opened, several=len(report.indices) > 1)
    skipped = result.diagnostics.grouping.skipped
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
        page_size=_PAGE,
        closed=sum(row.view is None and not row.missing for row in rows),
        folded=len(listed) - len(rows),
        kinds={
            "different": sum(row.kind == "different" for row in rows) if contents else 0,
            "copies": sum(row.kind == "copies" for row in rows),
            "facts": sum(bool(row.view and row.view.facts) for row in rows),
        },
        unlisted=unlisted,
        between=(
            result.pairs.similarity[first_after].item(),
            result.pairs.similarity[first_after + unlisted - 1].item(),
        )
        if unlisted
        else (),
        groups=result.skipped_groups,
        more_groups=skipped - len(result.skipped_groups),
        range_text=range_text,
        name=lambda address: named(address, len(report.indices) > 1),
    )


def _rows(
    folded: Sequence[_Folded], content: _Content, contents: Mapping[Address, str], opened: int, *, several: bool
) -> list[_Row]:
    """The rows of the list. When the page is full, further rows are listed without texts."""
    names = {one.number: (named(one.pair.a, several), named(one.pair.b, several)) for one in folded}
    views: dict[int, _View | None] = {}
    room = _MAX_SIZE
    for one in _from_both_ends(_both_ends(folded, opened)):
        if room <= 0:
            break
        views[one.number] = view = _view(one.pair, names[one.number], content)
        room -= view.size if view else 0
    return [_row(one, names[one.number], views, content, contents, several=several) for one in folded]


def _from_both_ends(items: Sequence[_Item]) -> Iterator[_Item]:
    """The first, the last, the second, the last but one, and so on."""
    for k in range(len(items)):
        yield items[k // 2] if k % 2 == 0 else items[-1 - k // 2]


def _row(
    one: _Folded,
    names: tuple[str, str],
    views: Mapping[int, _View | None],
    content: _Content,
    contents: Mapping[Address, str],
    *,
    several: bool,
) -> _Row:
    both, pair = (one.pair.a, one.pair.b), one.pair
    known = {contents.get(address) for address in both}
    missing = [name for name, address in zip(names, both, strict=True) if address not in content.texts]
    return _Row(
        one.number,
        pair.similarity,
        tuple((name, content.fields.get(address, {})) for name, address in zip(names, both, strict=True)),
        pair.explanation,
        content.heading(pair),
        "copies" if len(known) == 1 and None not in known else "different",
        [(named(copy.a, several), named(copy.b, several)) for copy in one.copies],
        views.get(one.number),
        tuple(missing) if one.number in views else (),
    )


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
