"""Stored fingerprints of an index, read into columns. Texts are not read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from sys import intern
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index import queries
from es_neardupe.index.field_writes import checked_version
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import Fields
from es_neardupe.index.stored_fields import decode, decode_grouping, group_of, stored_fields
from es_neardupe.keys.arrays import U64, Ints, Positions
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Address, FingerprintColumns, Grouping, Hit, Reference, State, TextClasses
from es_neardupe.server.search import count, refresh_if_allowed

__all__ = ["classes_of", "in_order", "read_corpus", "read_fingerprints", "requested", "source_of"]

_READ = (
    *("scheme", "state", "content", "bands", "tokens", "features"),
    *("group", "principal", "similarity", "checked"),
)
_PAGE = 2000


def read_fingerprints(
    index: Index,
    progress: Progress = silent,
    rules: GroupRules = DEFAULT_RULES,
    scope: Mapping[str, Any] | None = None,
    shards: Sequence[int | None] = (None,),
) -> FingerprintColumns:
    """Read the fingerprints of the index's scheme, and the values that the rules need.

    ``scope``: query that selects documents; default: all. ``shards``: the shards to read one after the other, so that
    the shard of each document is known; default: all together.
    """
    refresh_if_allowed(index.client, index.path)
    query = queries.fingerprinted(index.fields, index.scheme_id)
    query = query if scope is None else queries.all_of(scope, query)
    total = count(index.client, index.path, query)
    body = {"query": query, **requested(index.fields, rules)}
    pages: Iterable[list[Hit]] = chain.from_iterable(
        index.client.pages(index.path, body, page_size=_PAGE, shard=shard) for shard in shards
    )
    pages = tracked(pages, lambda stage, done, _: progress(stage, done * _PAGE, total), "reading keys", total, step=1)
    return read_corpus(pages, index.settings.prefix, index.settings.scheme.bands, rules, index.target.uuids)


def requested(fields: Fields, rules: GroupRules) -> dict[str, Any]:
    """The part of a search body that requests the fields and values that `read_corpus` needs."""
    columns = rules.columns
    return {"_source": source_of(fields)} | ({"docvalue_fields": columns} if columns else {})


def source_of(fields: Fields) -> list[str]:
    """The fields of a stored fingerprint."""
    return [f"{fields.prefix}.{name}" for name in _READ]


def read_corpus(
    pages: Iterable[Sequence[Hit]],
    prefix: str,
    bands: int,
    rules: GroupRules = DEFAULT_RULES,
    uuids: Mapping[str, str] = MappingProxyType({}),
) -> FingerprintColumns:
    """Convert pages of hits to columns. The hits must have the ``docvalue_fields`` of the rules. ``uuids``: those of
    the indices, to recognise checked documents."""
    references: list[Reference] = []
    versions: list[tuple[int, int]] = []
    shards: list[int] = []
    checked: list[int] = []
    content: list[str] = []
    tokens: list[int] = []
    keys: list[U64] = []
    group_ids: list[str | None] = []
    groupings: list[Grouping | None] = []
    states = dict.fromkeys((state.value for state in State), 0)
    corrupt: list[Address] = []
    described: list[Mapping[str, Any]] = []
    columns = rules.columns
    for page in pages:
        page_keys: list[str] = []
        for hit in page:
            stored = stored_fields(hit.source, prefix)
            try:
                fingerprint = decode(stored)
                page_keys.append(_joined(fingerprint.bands, bands, fingerprint.state))
            except CorruptFingerprint:
                corrupt.append(hit.address)
                continue
            references.append((intern(hit.index), hit.id, hit.routing))
            versions.append((hit.seq_no or 0, hit.primary_term or 0))
            shards.append(-1 if hit.shard is None else hit.shard)
            checked.append(checked_version(hit, uuids))
            content.append(fingerprint.content)
            tokens.append(fingerprint.tokens)
            group_ids.append(_group_id(stored))
            groupings.append(decode_grouping(stored))
            states[fingerprint.state.value] += 1
            if columns:
                described.append({name: value for name, value in hit.source.items() if name != prefix})
        keys.append(np.frombuffer("".join(page_keys).encode("latin-1"), np.uint64).reshape(-1, bands))
    return FingerprintColumns(
        references=references,
        versions=np.array(versions, np.int64).reshape(-1, 2),
        shards=np.array(shards, np.int64),
        checked=np.array(checked, np.int64),
        content=np.array(content, "S32"),
        tokens=np.array(tokens, np.int64),
        keys=np.concatenate(keys) if keys else np.zeros((0, bands), np.uint64),
        group_ids=group_ids,
        groupings=groupings,
        states=states,
        corrupt=corrupt,
        **_columns(described, rules, len(references)),
    )


def _columns(described: Sequence[Mapping[str, Any]], rules: GroupRules, size: int) -> dict[str, Any]:
    """The columns that the rules derive from the values of each document."""
    return {
        "places": np.array(rules.principal.places(described), np.int64)
        if rules.principal.column
        else np.zeros(size, np.int64),
        "scopes": _numbered([rules.scope(one) for one in described]) if rules.within else np.zeros(size, np.int64),
        "days": np.array([rules.window.day(one) for one in described]) if rules.window else np.zeros(size),
    }


def _numbered(values: Sequence[Hashable]) -> Ints:
    """Equal numbers for equal values."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([numbers[value] for value in values], np.int64)


def _joined(keys: Sequence[str], bands: int, state: State) -> str:
    """The keys of a document as one string of ``8 * bands`` characters, all NUL for a document without keys."""
    if state not in (State.SIGNED, State.SHORT):
        return "\0" * (8 * bands)
    if len(keys) != bands:
        raise CorruptFingerprint(f"{len(keys)} band keys, but the scheme has {bands}.")
    return "".join(keys)


def _group_id(stored: Mapping[str, Any]) -> str | None:
    group = group_of(stored)
    return None if group is None else intern(group)


def classes_of(corpus: FingerprintColumns, copies: bool = True) -> TextClasses:
    """Group the rows that have keys by content, scope and date. Without ``copies``, each row is a class of its own."""
    rows = np.flatnonzero(corpus.keys.any(axis=1))
    if not len(rows):
        return TextClasses([])
    ordered = in_order(corpus, rows)
    if not copies:
        return TextClasses(list(ordered.reshape(-1, 1)))
    same = _identities(corpus, ordered)
    _, first, inverse = np.unique(same, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    class_of = number[inverse.reshape(-1)]
    sorted_rows = ordered[np.argsort(class_of, kind="stable")]
    return TextClasses(np.split(sorted_rows, np.cumsum(np.bincount(class_of))[:-1]))


def in_order(corpus: FingerprintColumns, rows: Positions) -> Positions:
    """The rows in the order of principals: by the policy, then the longest, then the oldest id."""
    by_id = sorted(rows.tolist(), key=lambda row: (corpus.references[row][1], corpus.references[row][0]))
    ranks = np.array([corpus.places[by_id], -corpus.tokens[by_id]])
    return np.array(by_id, np.intp)[np.lexsort(ranks[::-1])]  # stable: ids decide between equals


def _identities(corpus: FingerprintColumns, rows: Positions) -> NDArray[Any]:
    """One value per row, equal for rows that every comparison treats alike. NaN dates are never equal."""
    content, scopes, days = corpus.content[rows], corpus.scopes[rows], corpus.days[rows]
    if not scopes.any() and not days.any():
        return content
    _, texts = np.unique(content, return_inverse=True)
    _, dates = np.unique(days, return_inverse=True, equal_nan=False)
    _, same = np.unique(np.stack([texts.reshape(-1), scopes, dates.reshape(-1)]), axis=1, return_inverse=True)
    return same.reshape(-1)
