"""Request bodies as pure functions. Nothing here sends anything.

Every clause stands in filter context or in ``constant_score``: a score of a similarity search engine is not a
similarity, and BM25 over keys would only cost time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_neardupe.index.mapping import Fields
from es_neardupe.records import Address, State

__all__ = [
    "JSON",
    "MAX_CLAUSES",
    "MAX_TERMS",
    "all_of",
    "candidates",
    "collapsed",
    "fingerprinted",
    "grouped_members",
    "groups_by_id",
    "matching",
    "of_relations",
    "others",
    "processed",
    "sample",
    "sampled",
    "sampled_frequencies",
    "sampled_matches",
    "since",
    "stale",
    "states",
    "ungrouped",
    "without_group",
    "without_relations",
]

JSON = dict[str, Any]

MAX_CLAUSES = 1000
"""Scored clauses of one query: servers allow 1,024 by default."""

MAX_TERMS = 8192
"""Terms of one query: servers allow 65,536 by default, and some are set to fewer."""


def matching(scope: Mapping[str, Any] | None) -> JSON:
    """The user's scope as a query; everything without one."""
    return dict(scope) if scope else {"match_all": {}}


def without_relations(
    left_alone: Mapping[str, Sequence[str]], scope: Mapping[str, Any] | None = None
) -> Mapping[str, Any] | None:
    """The user's scope without the documents of some relations of join fields; None is everything."""
    if not left_alone:
        return scope
    return {"bool": {"filter": [matching(scope)], "must_not": [of_relations(left_alone)]}}


def of_relations(relations: Mapping[str, Sequence[str]]) -> JSON:
    """Documents of any of the relations of each join field."""
    if not relations:
        return {"match_none": {}}
    clauses = [{"terms": {name: list(some)}} for name, some in relations.items()]
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def all_of(*clauses: Mapping[str, Any] | None) -> JSON:
    """Documents that fulfil every given clause, unscored; None is no clause."""
    return {"bool": {"filter": [dict(clause) for clause in clauses if clause]}}


def processed(fields: Fields) -> JSON:
    """Documents with a fingerprint of any scheme."""
    return {"exists": {"field": fields.scheme}}


def fingerprinted(fields: Fields, scheme: str) -> JSON:
    """Documents with a fingerprint of this scheme and a group id (``collapse`` needs one)."""
    return all_of({"term": {fields.scheme: scheme}}, {"exists": {"field": fields.group}})


def stale(fields: Fields, scheme: str, scope: Mapping[str, Any] | None = None) -> JSON:
    """Documents of the scope without a complete fingerprint of this scheme."""
    return {"bool": {"filter": [matching(scope)], "must_not": [fingerprinted(fields, scheme)]}}


def ungrouped(fields: Fields, scheme: str) -> JSON:
    """Documents with a fingerprint of this scheme that wait for ``group``."""
    return {
        "bool": {
            "filter": [fingerprinted(fields, scheme)],
            "must_not": [{"exists": {"field": fields.similarity}}],
        }
    }


def since(field: str, date: str) -> JSON:
    """Documents whose date field is at or after ``date``."""
    return {"range": {field: {"gte": date}}}


def candidates(
    fields: Fields,
    keys: Sequence[str],
    *,
    size: int,
    agree: int = 1,
    scope: Mapping[str, Any] | None = None,
    group: str | None = None,
) -> JSON:
    """Search for the documents that share ``agree`` band keys or more with a probe, most shared keys first.

    Each key is a ``constant_score`` clause of weight 1, so that the score *is* the number of shared keys. ``group``:
    also the members of a group, those of them that share no key too.
    """
    query = _sharing(fields.bands, keys, agree)
    if group is not None:
        members = {"constant_score": {"filter": {"term": {fields.group: group}}, "boost": 0}}
        query = {"bool": {"should": [query, members] if keys else [members], "minimum_should_match": 1}}
    return {
        "size": size,
        "query": _within(query, scope),
        "_source": [fields.group, fields.tokens],
        "track_total_hits": True,
    }


def _sharing(field: str, keys: Sequence[str], minimum: int = 1) -> JSON:
    """Documents that have ``minimum`` of the keys or more, scored by their number."""
    clauses = [{"constant_score": {"filter": {"term": {field: key}}}} for key in keys]
    return {"bool": {"should": clauses, "minimum_should_match": minimum}}


def _within(query: JSON, scope: Mapping[str, Any] | None) -> JSON:
    """The same within a scope."""
    return {"bool": query["bool"] | {"filter": [dict(scope)]}} if scope else query


def others(scope: Mapping[str, Any] | None, address: Address | None) -> JSON:
    """The user's scope without one document."""
    if address is None:
        return matching(scope)
    itself = all_of({"term": {"_index": address[0]}}, {"ids": {"values": [address[1]]}})
    return {"bool": {"filter": [matching(scope)], "must_not": [itself]}}


def sampled(fields: Fields, keys: Sequence[str]) -> JSON:
    """Documents that have any of the sampled keys, unscored."""
    parts = [keys[start : start + MAX_TERMS] for start in range(0, len(keys), MAX_TERMS)]
    clauses = [{"terms": {fields.samples: list(part)}} for part in parts]
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def sampled_frequencies(fields: Fields, keys: Sequence[str], scope: Mapping[str, Any]) -> JSON:
    """Search that counts the documents of the scope which have each sampled key: ``buckets`` in the order of keys."""
    filters = [{"term": {fields.samples: key}} for key in keys]
    query = all_of(sampled(fields, keys), scope)
    return {"size": 0, "query": query, "aggs": {"keys": {"filters": {"filters": filters}}}}


def sampled_matches(fields: Fields, keys: Sequence[str], *, size: int, scope: Mapping[str, Any]) -> JSON:
    """Search for the documents of the scope that share sampled keys, most shared keys first; the score is their
    number, as of `candidates`."""
    return {
        "size": size,
        "query": _within(_sharing(fields.samples, keys), scope),
        "_source": [fields.features],
        "track_total_hits": False,
    }


def collapsed(
    fields: Fields,
    query: Mapping[str, Any],
    *,
    size: int,
    start: int = 0,
    members: int = 0,
    source: Sequence[str] = (),
    sort: Any = None,
) -> JSON:
    """Search with one hit for each group; ``members`` of the group's other hits are told with it, in the same order.

    ``collapse`` makes one hit of all documents without a group id, so these are left out of the hits and counted. So
    are those that wait for ``group``.
    """
    ordered = {} if sort is None else {"sort": sort}
    # One more: the hit itself is among them.
    copies = {"name": "copies", "size": members + 1 if members else 0, "_source": list(source), **ordered}
    return {
        "query": dict(query),
        "post_filter": {"exists": {"field": fields.group}},
        "collapse": {"field": fields.group, "inner_hits": copies},
        **ordered,
        "from": start,
        "size": size,
        "track_total_hits": True,
        "_source": list(source),
        "aggs": {
            "groups": {"cardinality": {"field": fields.group}},
            "without_group": {"missing": {"field": fields.group}},
            "waiting": {"filter": {"bool": {"must_not": [{"exists": {"field": fields.similarity}}]}}},
        },
    }


def without_group(fields: Fields, query: Mapping[str, Any]) -> JSON:
    """The documents that `collapsed` leaves out, with their scores."""
    return {"bool": {"must": [dict(query)], "must_not": [{"exists": {"field": fields.group}}]}}


def grouped_members(fields: Fields, group: str | None = None) -> JSON:
    """Documents that were joined to a principal, in one group or in all."""
    return all_of({"term": {fields.principal: False}}, {"term": {fields.group: group}} if group else None)


def groups_by_id(fields: Fields, groups: Sequence[str]) -> JSON:
    """The principals of the given groups."""
    return all_of({"terms": {fields.group: list(groups)}}, {"term": {fields.principal: True}})


def sample(scope: Mapping[str, Any], size: int, seed: int) -> JSON:
    """Search for random documents of the scope: the same for the same seed, as long as the index stays as it is."""
    random = {"random_score": {"seed": seed, "field": "_seq_no"}, "boost_mode": "replace"}
    return {"size": size, "query": {"function_score": {"query": dict(scope), **random}}}


def states(fields: Fields, scheme: str, scope: Mapping[str, Any] | None = None) -> JSON:
    """A search that counts every document of the scope once: ``unprocessed``, ``other_schemes``, one of the states, or
    ``unknown``.

    Whatever somebody has written into our fields, several values in one of them too, a document is counted for the
    first of these that it fits. Of each part ``numeric`` counts those that are marked as numbers.
    """
    of_scheme = {"term": {fields.scheme: scheme}}
    parts = {"unprocessed": _none_of(processed(fields)), "other_schemes": _none_of(of_scheme)}
    parts |= {state.value: {"term": {fields.state: state.value}} for state in State}
    earlier: list[JSON] = []
    filters = {}
    for name, query in parts.items():
        filters[name] = {"bool": {"filter": [query], "must_not": list(earlier)}}
        earlier.append(query)
    counted = {"numeric": {"filter": {"term": {fields.numeric: True}}}}
    waiting = {"bool": {"filter": [processed(fields)], "must_not": [{"exists": {"field": fields.similarity}}]}}
    return {
        "size": 0,
        "track_total_hits": True,
        "query": matching(scope),
        "aggs": {
            "parts": {"filters": {"filters": filters, "other_bucket_key": "unknown"}, "aggs": counted},
            "schemes": {"terms": {"field": fields.scheme, "size": 1000}},
            "ungrouped": {"filter": waiting},
        },
    }


def _none_of(query: JSON) -> JSON:
    return {"bool": {"must_not": [query]}}
