"""Pages of groups with titles, as the web application, the HTTP interface and agents read them, in bounded requests."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from es_neardupe.display_text import beginning
from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.groups.decisions import Decisions
from es_neardupe.groups.heaviest import HeaviestDifferences
from es_neardupe.groups.listing import GroupFilter, GroupOrder, list_groups
from es_neardupe.groups.read import groups_of_texts, groups_with, known_records
from es_neardupe.groups.registry import Registry
from es_neardupe.groups.reviewed import ReviewedGroups, ReviewFilter, ReviewState, TitledPage, review_of_groups
from es_neardupe.index import mapping as schema
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import ShownFields, shown_fields, user_fields
from es_neardupe.index.target import Definitions
from es_neardupe.records import Address
from es_neardupe.server.search import find
from es_neardupe.similarity.pair_relation import Relation
from es_neardupe.wording import command

MAX_FOUND = 50_000
"""Groups, and pairs of the evidence, that a filter of documents can find."""

MAX_COMPARED = 1000
"""Groups whose texts are compared for a filter by what differs: the first ones in the order of the list."""

_PATIENCE = 0.5
"""Seconds that a filter by what differs waits for texts that are compared."""

MAX_WHOLE = 2**31 - 1
"""Largest whole number in a request: that of the server's integers."""

_MAX_FIELDS = 8
"""Fields whose most common values are offered."""

_MAX_VALUES = 50
"""Values of a field that are offered."""


@dataclass(frozen=True)
class DocumentFilter:
    """Which groups to list by their documents."""

    text: str = ""
    """A query string: groups with a document that matches it."""
    values: tuple[tuple[str, str], ...] = ()
    """(field, value): groups with a document that has all of these values, and matches the text."""
    relation: Relation | None = None
    """Groups with two documents that have this relation, by the evidence."""

    def applied(self, index: Index, only: GroupFilter) -> tuple[GroupFilter, bool]:
        """The filter of groups with these conditions, and whether all such groups were found."""
        complete = True
        if self.text or self.values:
            clauses = [{"term": {_checked_field(index, field): value}} for field, value in self.values]
            query = queries.all_of(_matching(index, self.text) if self.text else None, *clauses)
            found = list(islice(groups_with(index, query), MAX_FOUND + 1))
            complete = len(found) <= MAX_FOUND
            only = only.among(found[:MAX_FOUND])
        if self.relation is not None:
            related, all_of_them = _related(index, self.relation)
            complete = complete and all_of_them
            only = only.among(related)
        return only, complete


def _matching(index: Index, text: str) -> Mapping[str, Any] | None:
    """A query for the documents of an opened index that match a query string, as `search` finds them."""
    known = user_fields(Definitions(index.client, index.path).mappings().values(), index.prefix, index.settings.prefix)
    return index.target.within(known.query_of(text))


@dataclass(frozen=True)
class CommonValues:
    """The most common values of a field of the documents."""

    field: str
    values: tuple[tuple[str, int], ...]
    """(value, documents), most common first; the numbers are approximate with several shards."""
    others: int
    """Documents with other values."""


@dataclass(frozen=True)
class GroupSelection:
    """Which groups to list, and in which order: those that satisfy all three filters."""

    numbers: GroupFilter = field(default_factory=GroupFilter)
    documents: DocumentFilter = field(default_factory=DocumentFilter)
    review: ReviewFilter = field(default_factory=ReviewFilter)
    order: GroupOrder = GroupOrder.LARGEST
    difference: str | None = None
    """Kind of the heaviest difference; see `es_neardupe.groups.heaviest`."""


def page_of_groups(
    index: Index,
    selection: GroupSelection,
    *,
    after: str | None,
    size: int,
    fields: Sequence[str],
    reviewed: ReviewedGroups | None = None,
    patience: float | None = None,
    heaviest: HeaviestDifferences | None = None,
) -> TitledPage:
    """A page of groups. ``reviewed``: what was read for earlier pages; ``patience``: see its method ``read``.
    ``heaviest``: the heaviest differences, to show them and to filter by them. Raises
    `SettingsError` for a field that has no values to count, and for a relation if no evidence is stored, and
    `IncompleteAnswer` if patience ended before any review was read."""
    place = read_after(after, by_words=selection.order is GroupOrder.PRINCIPAL)
    index = opened(index, groups=True)
    shown = shown_fields(index, fields)
    only, complete = selection.documents.applied(index, selection.numbers)
    reading = ids = compared = None
    if selection.review or selection.order is GroupOrder.REVIEW:
        known = (reviewed or ReviewedGroups()).read(index, patience)
        only, ids, reading = selection.review.applied(known, only), known.ids(), known.reading
    if heaviest is not None and selection.difference is not None:
        first = list_groups(index, only, order=selection.order, size=MAX_COMPARED, reviewed=ids)
        kinds = heaviest.known_after(index, first.groups, _PATIENCE)
        compared = (len(kinds), len(first.groups)) if len(kinds) < len(first.groups) else None
        only = only.among([group for group, one in kinds.items() if one.kind == selection.difference])
        complete = complete and first.after is None
    page = list_groups(index, only, order=selection.order, after=place, size=size, reviewed=ids)
    titles = titles_of(index, shown, [one.principal for one in page.groups])
    following = None if page.after is None else json.dumps(page.after)
    reviews = review_of_groups(index, [one.group for one in page.groups])
    differences = {} if heaviest is None else heaviest.of(index, page.groups)
    return TitledPage(page, titles, complete, following, reviews, differences, compared, reading)


def load_for_filters(index: Index) -> None:
    """Find some groups by their documents: the server loads what such filters need, so that the first reader who asks
    does not wait for it. No more, because this reader may ask meanwhile."""
    index = opened(index, groups=True)
    list_groups(index, GroupFilter().among(list(islice(groups_with(index, {"match_all": {}}), 1))))


def has_evidence(index: Index) -> bool:
    """Whether evidence is stored for an opened index, and this user may read it."""
    try:
        return HiddenStore(index, HiddenIndex.PAIRS).exists()
    except Forbidden:
        return False


def _related(index: Index, relation: Relation) -> tuple[list[str], bool]:
    """The groups with two texts that have this relation, and whether all pairs were read."""
    evidence = HiddenStore(index, HiddenIndex.PAIRS, index.server)
    if not evidence.refreshed():
        raise SettingsError(
            f"Relations of documents are part of the evidence, and none is stored: run "
            f"`{command('group', index.name)} --evidence`."
        )
    wanted = {"relation": relation.value, "decision": "accepted", "scheme": index.scheme_id}
    query = queries.all_of(*({"term": {field: value}} for field, value in wanted.items()))
    both = evidence.buckets(query, {"a": "content_a", "b": "content_b"})
    pairs = [(one["a"], one["b"]) for one in islice(both, MAX_FOUND + 1)]
    groups_by_text: dict[str, set[str]] = {}
    for group, contents in groups_of_texts(index, {one for pair in pairs for one in pair}).items():
        for content in contents:
            groups_by_text.setdefault(content, set()).add(group)
    found = (groups_by_text.get(a, set()) & groups_by_text.get(b, set()) for a, b in pairs[:MAX_FOUND])
    return sorted(set[str]().union(*found)), len(pairs) <= MAX_FOUND


def common_values(index: Index, fields: Sequence[str] = ()) -> list[CommonValues]:
    """The most common values of some fields of an opened index whose values can be counted, with one search.

    ``fields``: only these, and their multi-fields. Fields of which no value occurs twice, and those with one value, are
    left out.
    """
    known = [one for one in _counted_fields(index) if not fields or one in fields or one.rpartition(".")[0] in fields]
    if not known:
        return []
    sizes = {name: {"terms": {"field": name, "size": _MAX_VALUES}} for name in sorted(known)[:_MAX_FIELDS]}
    body = {"size": 0, "track_total_hits": False, "query": queries.matching(index.target.within()), "aggs": sizes}
    found, answers = [], index.plain_documents.search(body)["aggregations"]
    for name in sizes:
        answer = answers[name]
        values = tuple((_value(one), int(one["doc_count"])) for one in answer["buckets"])
        if len(values) > 1 and values[0][1] > 1:
            found.append(CommonValues(name, values, int(answer["sum_other_doc_count"])))
    return found


def _value(bucket: dict[str, Any]) -> str:
    """The value of a bucket as a query accepts it."""
    return str(bucket.get("key_as_string", bucket["key"]))


def _counted_fields(index: Index) -> list[str]:
    """The fields of the user whose values can be counted in each index that has them."""
    mappings = [one.get("properties", {}) for one in index.target.mappings.values()]
    counted = [dict.fromkeys(schema.keyword_fields(one)) for one in mappings]
    own = tuple(f"{prefix}." for prefix in {index.prefix, index.settings.prefix})
    names = dict.fromkeys(name for some in counted for name in some if not name.startswith(own) and ":" not in name)
    names.pop(index.settings.group_field or "", None)
    everywhere = [dict(schema.field_types(one)) for one in mappings]
    return [
        name
        for name in names
        if all(name in some or name not in types for some, types in zip(counted, everywhere, strict=True))
    ]


def _checked_field(index: Index, name: str) -> str:
    known = _counted_fields(index)
    if name not in known:
        fields = f"Fields with such values: {', '.join(known)}." if known else "It has no field with such values."
        raise SettingsError(f"Index {index.name} has no keyword field {name!r} to filter by. {fields}")
    return name


def next_to_review(
    index: Index, reviewed: ReviewedGroups, after: str | None, reviewer: str, patience: float | None = None
) -> str | None:
    """The largest group that is not reviewed, of those that come after the group ``after`` if it is given; None if
    there is none. Groups that another reviewer works on are left out. ``patience``: see `page_of_groups`."""
    index = opened(index, groups=True)
    only = ReviewFilter(ReviewState.OPEN).applied(reviewed.read(index, patience), GroupFilter())
    start = None
    if after is not None and (record := Registry(index).records({after}).get(after)) is not None:
        start = [record.size, record.group]
    while True:
        page = list_groups(index, only, after=start, size=50)
        claims = Decisions(index).claims([one.group for one in page.groups])
        free = [one.group for one in page.groups if one.group not in claims or claims[one.group].author == reviewer]
        if free:
            return free[0]
        if page.after is None:
            return None if after is None else next_to_review(index, reviewed, None, reviewer, patience)
        start = list(page.after)


def read_after(text: str | None, *, by_words: bool = False) -> list[Any] | None:
    """The place to continue a list from: the value of its order, which may be text if ``by_words``, and an id. Raises
    `SettingsError` if no earlier page had it."""
    if not text:
        return None
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    found: list[Any] = given if isinstance(given, list) else []
    kinds = [_sorted_by(one) for one in found]
    if kinds != [float, str] and not (by_words and kinds == [str, str]):
        raise SettingsError(
            f"`after` must be the `after` of the previous page, in the same order, not {beginning(text, 60)!r}."
        )
    return found


def _sorted_by(value: Any) -> type | None:
    """The type of a value by which a server sorts; None for others, also for numbers that are too large."""
    if isinstance(value, str):
        return str
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float if is_number and abs(value) < 2**63 else None


def read_values(given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of a field and its value, each given as ``FIELD:VALUE``; empty ones are ignored. Raises `SettingsError`."""
    pairs = [one.partition(":") for one in given if one]
    if not all(field and colon for field, colon, _ in pairs):
        raise SettingsError("A value must be given as FIELD:VALUE.")
    return tuple((field, value) for field, _, value in pairs)


def titles_of_groups(index: Index, shown: ShownFields, groups: Sequence[str]) -> dict[str, dict[str, str]]:
    """Group id -> the fields to show of its principal; without groups of whose principal nothing is known."""
    principals = {id: record.principal for id, record in known_records(index, groups).items()}
    titles = titles_of(index, shown, list(principals.values()))
    return {id: titles[address] for id, address in principals.items() if address in titles}


def titles_of(index: Index, shown: ShownFields, addresses: Sequence[Address]) -> dict[Address, dict[str, str]]:
    """The fields to show of documents whose routing is not known."""
    if not shown.names:
        return {}
    ids = defaultdict[str, set[str]](set)
    for address in addresses:
        if address.index in index.target.indices:  # one of a decision may have been deleted
            ids[address.index].add(address.id)
    hits = (hit for concrete, some in ids.items() for hit in find(index.client, concrete, sorted(some), shown.names))
    return {Address(hit["_index"], hit["_id"]): shown.of(hit.get("_source", {})) for hit in hits}
