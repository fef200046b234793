"""Queries and search bodies, as pure functions: no requests are sent.

Every clause is in filter context or in ``constant_score``: a relevance score is not a similarity, and computing BM25
for keys takes time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.index.mapping import Fields
from es_neardupe.records import Address, State
from es_neardupe.server.client import JSON

MAX_CLAUSES = 1000
"""Maximum number of scored clauses in one query: servers allow 1,024 by default."""

MAX_TERMS = 8192
"""Maximum number of terms in one query: servers allow 65,536 by default, and some are configured for fewer."""


class TooManyDocuments(SettingsError):
    """With a sidecar index: both sides of a query, documents and entries, match too many for one request."""


def matching(scope: Mapping[str, Any] | None) -> JSON:
    """A scope as a query; all documents for None."""
    return dict(scope) if scope else {"match_all": {}}


def without_relations(
    skipped: Mapping[str, Sequence[str]], scope: Mapping[str, Any] | None = None
) -> Mapping[str, Any] | None:
    """A scope without the documents of ``skipped``: join field -> relations. None is all documents."""
    if not skipped:
        return scope
    return {"bool": {"filter": [matching(scope)], "must_not": [of_relations(skipped)]}}


def of_relations(relations: Mapping[str, Sequence[str]]) -> JSON:
    """Documents of the given relations: join field -> relations."""
    if not relations:
        return {"match_none": {}}
    clauses = [{"terms": {name: list(some)}} for name, some in relations.items()]
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def all_of(*clauses: Mapping[str, Any] | None) -> JSON:
    """Documents that match all clauses, unscored; None is ignored."""
    return {"bool": {"filter": [dict(clause) for clause in clauses if clause]}}


def without(query: Mapping[str, Any], excluded: Mapping[str, Any] | None) -> JSON:
    """Documents that match the query, except the excluded ones; None: all."""
    return {"bool": {"filter": [dict(query)], "must_not": [dict(excluded)] if excluded else []}}


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


def grouped(fields: Fields, scheme: str) -> JSON:
    """Documents with a fingerprint of this scheme that do not wait for ``group``."""
    return all_of(fingerprinted(fields, scheme), {"exists": {"field": fields.similarity}})


def principals_and_members(fields: Fields, scheme: str) -> dict[str, JSON]:
    """Documents with a fingerprint of this scheme that do not wait for ``group``: those that are the principal of a
    group or alone, and the others."""
    settled = grouped(fields, scheme)
    flags = {"principals": True, "members": False}
    return {name: all_of(settled, {"term": {fields.principal: flag}}) for name, flag in flags.items()}


def impossible_groupings(fields: Fields) -> JSON:
    """Documents with a similarity that are neither members nor principals with the similarity 1: no run writes that."""
    principals = all_of({"term": {fields.principal: True}}, {"term": {fields.similarity: 1.0}})
    possible = [{"term": {fields.principal: False}}, principals]
    return {"bool": {"filter": [{"exists": {"field": fields.similarity}}], "must_not": possible}}


def without_similarity(fields: Fields) -> JSON:
    """Documents whose group is not decided since they last changed. New documents have a similarity, unless they are
    in a sidecar."""
    return _none_of({"exists": {"field": fields.similarity}})


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
    fold: bool = False,
    more: Sequence[str] = (),
) -> JSON:
    """A search for documents that have at least ``agree`` of the band ``keys``, most shared keys first.

    Each key is a ``constant_score`` clause of weight 1, so that the score *is* the number of shared keys. ``group``:
    also finds all members of this group, even without a shared key. ``fold``: of the documents with the same content
    hash, only one, a principal if there is one; the total still counts all. ``more``: additional fields to read.
    """
    query = _sharing(fields.bands, keys, agree)
    if group is not None:
        members = {"constant_score": {"filter": {"term": {fields.group: group}}, "boost": 0}}
        query = {"bool": {"should": [query, members] if keys else [members], "minimum_should_match": 1}}
    order = ["_score", {fields.principal: {"order": "desc", "missing": "_last"}}]
    folded = {"collapse": {"field": fields.content}, "sort": order, "track_scores": True} if fold else {}
    return {
        "size": size,
        "query": _within(query, scope),
        "_source": [fields.group, fields.tokens, fields.content, *more],
        "track_total_hits": True,
        **folded,
    }


def few_candidates(
    fields: Fields, keys: Sequence[str], *, size: int, scope: Mapping[str, Any] | None = None, source: Any = True
) -> JSON:
    """A search for documents that have at least one of the band ``keys``, in any order: faster than `candidates`."""
    query = all_of({"terms": {fields.bands: list(keys)}}, scope)
    return {"size": size, "query": query, "_source": source, "track_total_hits": True}


def sequence_numbers(fields: Fields, keys: Sequence[str]) -> JSON:
    """A search that counts the documents that have at least one of the band ``keys``, with the sum and the maximum of
    their sequence numbers: ``sum`` and ``max``."""
    either = {name: {name: {"field": "_seq_no"}} for name in ("sum", "max")}
    return {"size": 0, "query": {"terms": {fields.bands: list(keys)}}, "track_total_hits": True, "aggs": either}


def versions(index: str, ids: Sequence[str], contents: Mapping[str, str], field: str) -> JSON:
    """The documents of a concrete index with these ids, and those with these ids and content hashes. ``field``: that of
    the content hash."""
    exact = [all_of({"ids": {"values": [id]}}, {"term": {field: content}}) for id, content in contents.items()]
    either = {"bool": {"should": [{"ids": {"values": list(ids)}}, *exact], "minimum_should_match": 1}}
    return all_of({"term": {"_index": index}}, either)


UNCHANGED = "unchanged"
"""Name of the query that the document of `with_stored_keys` matches if searches see its current text."""


def with_stored_keys(
    fields: Fields, address: Address, *, size: int, scope: Mapping[str, Any] | None = None, source: Any = True
) -> JSON:
    """A search for a document without routing, and for the documents of a scope that share one of its stored keys (the
    document itself may be one of them).

    The server reads the keys from the present document, even if searches still see an earlier one. If that has the same
    content hash, it has the name `UNCHANGED`, and so the same keys.
    """

    def stored(field: str) -> JSON:
        return {field: {"index": address.index, "id": address.id, "path": field}}

    same = {"terms": {**stored(fields.content), "_name": UNCHANGED}}
    itself = {"bool": {"filter": [{"ids": {"values": [address.id]}}], "should": [same]}}
    sharing = all_of({"terms": stored(fields.bands)}, scope)
    either = {"bool": {"should": [itself, sharing], "minimum_should_match": 1}}
    return {"size": size, "query": either, "_source": source, "track_total_hits": True}


def copies(fields: Fields, query: Mapping[str, Any], contents: Sequence[str]) -> JSON:
    """A search that counts the documents of a query with each of these content hashes: ``buckets``."""
    among = all_of(query, {"terms": {fields.content: list(contents)}})
    counted = {"terms": {"field": fields.content, "size": len(contents)}}
    return {"size": 0, "query": among, "aggs": {"copies": counted}}


def _sharing(field: str, keys: Sequence[str], minimum: int = 1) -> JSON:
    """Documents that have at least ``minimum`` of the keys, scored by their number."""
    clauses = [{"constant_score": {"filter": {"term": {field: key}}}} for key in keys]
    return {"bool": {"should": clauses, "minimum_should_match": minimum}}


def _within(query: JSON, scope: Mapping[str, Any] | None) -> JSON:
    """A ``bool`` query, restricted to a scope."""
    return {"bool": query["bool"] | {"filter": [dict(scope)]}} if scope else query


def others(scope: Mapping[str, Any] | None, *addresses: Address | None) -> JSON:
    """A scope without some documents; None is ignored."""
    by_index: dict[str, list[str]] = {}
    for index, id in filter(None, addresses):
        by_index.setdefault(index, []).append(id)
    documents = [all_of({"term": {"_index": index}}, {"ids": {"values": ids}}) for index, ids in by_index.items()]
    return {"bool": {"filter": [matching(scope)], "must_not": documents}} if documents else matching(scope)


def without_values(scope: Mapping[str, Any] | None, field: str, values: Collection[Any]) -> Mapping[str, Any] | None:
    """A scope without the documents that have one of the values in a field."""
    if not values:
        return scope
    return {"bool": {"filter": [matching(scope)], "must_not": [{"terms": {field: sorted(values)}}]}}


def with_value(field: Mapping[str, str], value: Any) -> JSON:
    """Documents that have a value in a field. ``field``: the entry of ``docvalue_fields`` that the value is from."""
    return _range(field, gte=value, lte=value) if "format" in field else {"term": {field["field"]: value}}


def with_values(field: Mapping[str, str], values: Sequence[Any]) -> JSON:
    """Documents that have exactly these values in a field, which are in its order, or none. See `with_value`."""
    if not values:
        return {"bool": {"must_not": [{"exists": {"field": field["field"]}}]}}
    between = [_range(field, gt=one, lt=other) for one, other in pairwise(values)]
    others = [_range(field, lt=values[0]), *between, _range(field, gt=values[-1])]
    return {"bool": {"filter": [with_value(field, one) for one in values], "must_not": others}}


def _range(field: Mapping[str, str], **bounds: Any) -> JSON:
    formatted = {"format": field["format"]} if "format" in field else {}
    return {"range": {field["field"]: {**bounds, **formatted}}}


def sampled(fields: Fields, keys: Sequence[str]) -> JSON:
    """Documents that have any of the sampled keys, unscored."""
    parts = [keys[start : start + MAX_TERMS] for start in range(0, len(keys), MAX_TERMS)]
    clauses = [{"terms": {fields.samples: list(part)}} for part in parts]
    return {"bool": {"should": clauses, "minimum_should_match": 1}}


def sampled_frequencies(fields: Fields, keys: Sequence[str], scope: Mapping[str, Any]) -> JSON:
    """A search that counts, for each sampled key, the documents of the scope that have it: ``buckets`` in the order of
    keys."""
    filters = [{"term": {fields.samples: key}} for key in keys]
    query = all_of(sampled(fields, keys), scope)
    return {"size": 0, "query": query, "aggs": {"keys": {"filters": {"filters": filters}}}}


def sampled_matches(fields: Fields, keys: Sequence[str], *, size: int, scope: Mapping[str, Any]) -> JSON:
    """A search for documents of the scope that share sampled keys, most shared keys first; as in `candidates`, the
    score is their number."""
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
    """A search with one hit per group, and up to ``members`` other hits of the group with it, in the same order.

    ``collapse`` would return one hit for all documents without a group id, so these are excluded from the hits and
    counted. Documents that wait for ``group`` are counted too.
    """
    ordered = {} if sort is None else {"sort": sort}
    # One more, since they include the hit itself.
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
            "without_similarity": {"filter": without_similarity(fields)},
        },
    }


def without_group(fields: Fields, query: Mapping[str, Any]) -> JSON:
    """The documents that `collapsed` excludes, with their scores."""
    return {"bool": {"must": [dict(query)], "must_not": [{"exists": {"field": fields.group}}]}}


def grouped_members(fields: Fields, group: str | None = None) -> JSON:
    """Documents that are in a group but not its principal, in one group or in all."""
    return all_of({"term": {fields.principal: False}}, {"term": {fields.group: group}} if group else None)


def members_of(fields: Fields, groups: Sequence[str]) -> JSON:
    """The documents of the given groups that are not their principals."""
    return all_of(grouped_members(fields), {"terms": {fields.group: list(groups)}})


def groups_by_id(fields: Fields, groups: Sequence[str]) -> JSON:
    """The principals of the given groups."""
    return all_of({"terms": {fields.group: list(groups)}}, {"term": {fields.principal: True}})


def member_counts(fields: Fields, size: int, after: Mapping[str, Any] | None = None) -> JSON:
    """A search that counts the members of each group, without the principal: ``size`` groups in the order of their
    ids, those ``after`` the ``after_key`` of the former answer."""
    similar = {"range": {fields.similarity: {"gte": 0, "lte": 1}}}
    return _counts_by_group(fields, all_of(grouped_members(fields), similar), size, after)


def principals_by_group(fields: Fields, size: int, after: Mapping[str, Any] | None = None) -> JSON:
    """A search that counts the principals of each group id, as `member_counts`."""
    return _counts_by_group(fields, all_of({"term": {fields.principal: True}}), size, after)


def _counts_by_group(fields: Fields, query: JSON, size: int, after: Mapping[str, Any] | None) -> JSON:
    ordered = {"sources": [{"group": {"terms": {"field": fields.group}}}], **({"after": after} if after else {})}
    return {
        "size": 0,
        "track_total_hits": False,
        "query": query,
        "aggs": {"groups": {"composite": {"size": size, **ordered}}},
    }


def group_counts(fields: Fields, scheme: str, groups: Sequence[str]) -> JSON:
    """A search that counts the documents with each of the given group ids: all with a fingerprint of the scheme, the
    ``principals`` and the ``ungrouped`` ones among them."""
    counted = {"field": fields.group, "include": list(groups), "size": len(groups), "execution_hint": "map"}
    parts = {
        "principals": {"filter": principals_and_members(fields, scheme)["principals"]},
        "ungrouped": {"filter": ungrouped(fields, scheme)},
    }
    return {
        "size": 0,
        "track_total_hits": False,
        "query": all_of(fingerprinted(fields, scheme), {"terms": {fields.group: list(groups)}}),
        "aggs": {"groups": {"terms": counted, "aggs": parts}},
    }


def principal_counts(fields: Fields, groups: Sequence[str]) -> JSON:
    """A search that counts the principals of each of the given groups: ``buckets`` of those that have one.

    The hint is for few documents: without it, the server numbers the group ids of the whole index.
    """
    counted = {"field": fields.group, "include": list(groups), "size": len(groups), "execution_hint": "map"}
    return {
        "size": 0,
        "track_total_hits": False,
        "query": groups_by_id(fields, groups),
        "aggs": {"groups": {"terms": counted}},
    }


def sharing_counts(fields: Fields, scheme: str, buckets: Sequence[Sequence[str]]) -> JSON:
    """A search that counts the documents with all band keys of each bucket: ``buckets`` in the same order."""
    keys = sorted({key for bucket in buckets for key in bucket})
    filters = [all_of(*({"term": {fields.bands: key}} for key in bucket)) for bucket in buckets]
    return {
        "size": 0,
        "track_total_hits": False,
        "query": all_of(fingerprinted(fields, scheme), {"terms": {fields.bands: keys}}),
        "aggs": {"buckets": {"filters": {"filters": filters}}},
    }


def sample(scope: Mapping[str, Any], size: int, seed: int) -> JSON:
    """A search for random documents of the scope: the same ones for the same seed, as long as the index does not
    change."""
    random = {"random_score": {"seed": seed, "field": "_seq_no"}, "boost_mode": "replace"}
    return {"size": size, "query": {"function_score": {"query": dict(scope), **random}}}


def median_lengths(fields: Fields) -> JSON:
    """A search for the median numbers of tokens and of features of the documents that have any."""
    medians = {
        name: {"percentiles": {"field": field, "percents": [50]}}
        for name, field in (("tokens", fields.tokens), ("features", fields.features))
    }
    return {"size": 0, "query": {"range": {fields.tokens: {"gte": 1}}}, "aggs": medians}


def states(fields: Fields, scheme: str, scope: Mapping[str, Any] | None = None) -> JSON:
    """A search that counts every document of the scope once: as ``unprocessed``, ``other_schemes``, one of the states,
    or ``unknown``.

    A document is counted for the first of these that applies, even if another client wrote several values into a field.
    ``numeric`` counts, for each, the documents that are marked as numbers.
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
