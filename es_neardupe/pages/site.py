"""Pages of the application of ``es-neardupe serve``: overview, groups, one document, two documents, search, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from es_neardupe.commands.search.report import SearchReport
from es_neardupe.commands.similar.report import SimilarHit
from es_neardupe.commands.stats.report import StatsScope
from es_neardupe.display_text import beginning
from es_neardupe.groups.heaviest import COPIES, KINDS, UNKNOWN, HeaviestDifference
from es_neardupe.groups.listing import GroupCount, GroupOrder, GroupOverview
from es_neardupe.groups.reviewed import KnownReviews, ReviewState, TitledPage, state_of
from es_neardupe.options import Matching
from es_neardupe.pages.application import Site
from es_neardupe.pages.bar import DecisionBar, Said
from es_neardupe.pages.page import (
    COMPARISON_SCRIPTS,
    SITE_SCRIPTS,
    SITE_STYLES,
    compare_page,
    content_security_policy,
    rendered,
)
from es_neardupe.pages.panes import MAX_SHOWN
from es_neardupe.pages.readings import in_few_words
from es_neardupe.records import State
from es_neardupe.similarity.comparison import CompareReport
from es_neardupe.similarity.pair_relation import Relation
from es_neardupe.similarity.weighed_places import LAYOUT
from es_neardupe.views.document_pages import DocumentReview
from es_neardupe.views.group_pages import MAX_COMPARED, MAX_FOUND, CommonValues, GroupSelection

_WIDTH, _HEIGHT = 480, 120
"""Size of a bar chart."""

_STEP = 60
"""The most from one bar to the next."""

_NAMED = 36
"""The least from one bar to the next that leaves room for a name below each; otherwise each second bar has one."""


@dataclass(frozen=True)
class Hosted:
    """A page, and the Content-Security-Policy to send with it."""

    html: str
    policy: str


@dataclass(frozen=True)
class _Bar:
    label: str
    short: str
    """Below the bar."""
    groups: int
    link: str
    x: float
    y: float
    width: float
    height: float


def hosted(
    template: str,
    site: Site,
    *,
    styles: Sequence[str] = SITE_STYLES,
    scripts: Sequence[str] = SITE_SCRIPTS,
    **values: Any,
) -> Hosted:
    """A page of the application. Keys press its buttons and follow its links."""
    html = rendered(template, styles=styles, scripts=scripts, site=site, **values)
    return Hosted(html, _policy(styles, scripts))


def _policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    return f"{content_security_policy(styles, scripts, forms=True)}; frame-ancestors 'none'"


def overview_page(
    site: Site, documents: StatsScope, groups: GroupOverview, *, reviews: KnownReviews, waiting: int
) -> Hosted:
    """What there is to do, groups by least similarity and by size, documents. ``waiting``: decisions that wait for
    ``group``."""
    states = None if reviews.groups is None else Counter(state for _, state in reviews.groups.values())
    by_size = [
        (
            _sizes(one),
            _sizes(one).replace(" to ", "–").replace(" or more", "+"),
            one.groups,
            site.link("/groups", min_size=int(one.first), max_size=None if one.end is None else int(one.end) - 1),
        )
        for one in groups.sizes
    ]
    by_similarity = [
        (
            "1" if one.end is None else f"{one.first:.2f} to {one.end:.2f}",
            "1" if one.end is None else f"{one.first:.2f}",
            one.groups,
            site.link("/groups", min_similarity=one.first, below=one.end, order=GroupOrder.LEAST_SIMILAR.value),
        )
        for one in groups.similarities
    ]
    return hosted(
        "overview.html.j2",
        site,
        documents=documents,
        groups=groups,
        sizes=_bars(by_size),
        similarities=_bars(by_similarity),
        reviewed=None if states is None else states[ReviewState.REVIEWED],
        disputed=0 if states is None else states[ReviewState.DISPUTED],
        reading=reviews.reading,
        to_review=groups.different,
        waiting=waiting,
        kinds=[(label, number) for label, number in _kinds(documents, groups) if number],
        width=_WIDTH,
        height=_HEIGHT,
    )


def _kinds(documents: StatsScope, groups: GroupOverview) -> list[tuple[str, int]]:
    """Documents by what they are to a reader; each is of one kind."""
    states = documents.states
    compared = states.get(State.SIGNED, 0) + states.get(State.SHORT, 0)
    others = max(compared - groups.documents, 0)
    waiting = min(documents.ungrouped, others)
    return [
        ("in groups", min(groups.documents, compared)),
        ("without near-duplicates", others - waiting),
        ("without words", states.get(State.EMPTY, 0)),
        ("too long to compare", states.get(State.TOO_LARGE, 0)),
        ("unreadable", states.get(State.FAILED, 0) + documents.unknown),
        ("waiting for group", waiting),
        ("waiting for enrich", documents.unprocessed + documents.other_schemes),
    ]


def _sizes(one: GroupCount) -> str:
    first = int(one.first)
    if one.end is None:
        return f"{first:,} or more"
    last = int(one.end) - 1
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _bars(counts: Sequence[tuple[str, str, int, str]]) -> list[_Bar]:
    """A bar for each number, up to the last one; the highest one fills the height, the lowest of one group is still
    visible."""
    counts = counts[: max((place for place, one in enumerate(counts, 1) if one[2]), default=0)]
    highest = max((number for _, _, number, _ in counts), default=0) or 1
    step = min(_WIDTH / max(len(counts), 1), _STEP)
    bars = []
    for place, (label, short, number, link) in enumerate(counts):
        height = max(_HEIGHT * number / highest, 3) if number else 0
        named = short if step >= _NAMED or place % 2 == 0 else ""
        bars.append(_Bar(label, named, number, link, place * step, _HEIGHT - height, step * 0.86, height))
    return bars


@dataclass(frozen=True)
class Offered:
    """What the filters of the list of groups offer."""

    values: Sequence[CommonValues]
    relations: Sequence[Relation]
    reviewers: Sequence[str]


def groups_page(
    site: Site,
    found: TitledPage,
    selection: GroupSelection,
    offered: Offered,
    *,
    first: bool,
    all_decided: int = 0,
    said: Said | None = None,
) -> Hosted:
    """A page of the list of groups. ``all_decided``: so many groups have different texts, and none of them is open.
    ``said``: what was done just before."""
    numbers, documents, review, order = selection.numbers, selection.documents, selection.review, selection.order
    given = {
        "q": documents.text,
        "value": [f"{field}:{value}" for field, value in documents.values],
        "relation": "" if documents.relation is None else documents.relation.value,
        "min_size": numbers.min_size if numbers.min_size > 2 else None,
        "max_size": numbers.max_size,
        "min_similarity": numbers.min_similarity,
        "below": numbers.below,
        "order": order.value,
        "review": None if review.state is None else review.state.value,
        "reviewer": review.reviewer,
        "difference": selection.difference,
    }
    return hosted(
        "groups.html.j2",
        site,
        found=found,
        error="",
        given=given,
        **_filters(offered, documents.values),
        state_of=state_of,
        orders={one.value: site.link("/groups", **{**given, "order": one.value}) for one in GroupOrder},
        differences={one.group: _differences(found.heaviest.get(one.group)) for one in found.page.groups},
        order=order,
        start=None if first else site.link("/groups", **given),
        again=site.link("/groups", **given),
        next=None if found.after is None else site.link("/groups", **given, after=found.after),
        most=MAX_COMPARED if selection.difference else MAX_FOUND,
        all_decided=all_decided,
        said=said,
    )


def groups_error_page(site: Site, given: Mapping[str, Any], offered: Offered, error: str) -> Hosted:
    """The form of the list of groups, with the values that were ``given``, and why there is no list."""
    names = ("q", "value", "relation", "min_size", "max_size", "min_similarity", "below", "order", "review", "reviewer")
    pairs = [one.partition(":") for one in given["value"]]
    return hosted(
        "groups.html.j2",
        site,
        found=None,
        error=error,
        said=None,
        given={name: given.get(name, "") for name in (*names, "difference")},
        **_filters(offered, [(field, value) for field, colon, value in pairs if colon]),
    )


def _filters(offered: Offered, values: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The choices of the form; ``values``: those that are chosen."""
    return {
        "filters": _value_filters(offered.values, values),
        "relations": [one.value for one in offered.relations],
        "reviewers": offered.reviewers,
        "states": [one.value for one in ReviewState],
        "kinds": KINDS,
    }


def _differences(one: HeaviestDifference | None) -> list[tuple[str, ...]]:
    """What differs most in a group: both readings of each difference, or a word about all."""
    if one is None or one.kind == UNKNOWN:
        return []
    if one.kind == COPIES:
        return [("exact copies",)]
    if one.kind == LAYOUT:
        return [("layout only",)]
    sides = (
        (in_few_words(a, b, kind) or "nothing", in_few_words(b, a, kind) or "omitted") for kind, a, b in one.readings
    )
    return [(beginning(a, 40), beginning(b, 40)) for a, b in sides]


@dataclass(frozen=True)
class _Choice:
    label: str
    value: str | None
    """None: it cannot be chosen."""
    selected: bool


def _value_filters(values: Sequence[CommonValues], given: Sequence[tuple[str, str]]) -> dict[str, list[_Choice]]:
    """Field -> the values that can be chosen, also those that were chosen and are not among the most common ones."""
    filters: dict[str, list[_Choice]] = {}
    for one in values:
        filters[one.field] = [
            _Choice(f"{value} ({count:,})", value, (one.field, value) in given) for value, count in one.values
        ]
        if one.others:
            filters[one.field].append(_Choice(f"other values ({one.others:,})", None, False))
    for field, value in given:
        choices = filters.setdefault(field, [])
        if not any(one.selected for one in choices):
            choices.append(_Choice(value, value, True))
    return filters


def comparison_page(
    site: Site, comparison: CompareReport, matching: Matching, review: DocumentReview, bar: DecisionBar
) -> Hosted:
    """Two documents side by side, and the bar with the decisions about them."""
    page = compare_page(comparison, matching, site, review=review, bar=bar)
    return Hosted(page, _policy(SITE_STYLES, [*COMPARISON_SCRIPTS, *SITE_SCRIPTS]))


@dataclass(frozen=True)
class DocumentText:
    """A document to show."""

    text: str
    fields: Mapping[str, str]
    below: Sequence[SimilarHit]
    """The most similar ones of those that are less similar than the threshold."""
    groups: Collection[str]
    """Those of their groups that have other documents."""
    threshold: float
    top: int
    """The most that were looked for."""


def document_page(site: Site, document: DocumentText, review: DocumentReview, bar: DecisionBar) -> Hosted:
    """One document: its text, its group, what was decided about it, and similar ones below the threshold."""
    (one,) = review.documents
    return hosted(
        "document.html.j2",
        site,
        address=one.address,
        changed=one.changed,
        record=review.record,
        decisions=review.decisions,
        most=MAX_SHOWN,
        text=document.text,
        fields=document.fields,
        below=document.below,
        groups=document.groups,
        threshold=document.threshold,
        top=document.top,
        bar=bar,
    )


def search_page(site: Site, text: str, found: SearchReport | None, *, error: str = "") -> Hosted:
    """The hits of a search, one for each group. ``error``: why there are none."""
    previous = following = None
    if found is not None:
        if found.start:
            previous = site.link("/search", q=text, start=max(found.start - found.size, 0))
        if len(found.hits) == found.size or len(found.apart) == found.size:
            following = site.link("/search", q=text, start=found.start + found.size)
    return hosted("search.html.j2", site, text=text, found=found, previous=previous, next=following, error=error)


def error_page(
    site: Site, message: str, *, back: str | None = None, links: Mapping[str, str] = MappingProxyType({})
) -> Hosted:
    """An error, with the cause and how to fix it. ``back``: the address of the page from which something was to be
    done. ``links``: words -> the address of another page that helps."""
    return hosted("error.html.j2", site, message=message, back=back, links=links)
