"""Request bodies, literally."""

from __future__ import annotations

from typing import Any

import pytest

from es_neardupe.index import queries
from es_neardupe.index.mapping import Fields
from es_neardupe.records import Address

F = Fields("nd")
SCOPE = {"term": {"language": "en"}}
FINGERPRINTED = {"bool": {"filter": [{"term": {"nd.scheme": "v1-1"}}, {"exists": {"field": "nd.group"}}]}}


@pytest.mark.parametrize(
    ("made", "body"),
    [
        (queries.matching(None), {"match_all": {}}),
        (queries.matching({}), {"match_all": {}}),
        (queries.matching(SCOPE), SCOPE),
        (queries.all_of(), {"bool": {"filter": []}}),
        (queries.all_of(None, SCOPE, {}), {"bool": {"filter": [SCOPE]}}),
        (queries.processed(F), {"exists": {"field": "nd.scheme"}}),
        (queries.fingerprinted(F, "v1-1"), FINGERPRINTED),
        (
            queries.grouped(F, "v1-1"),
            {"bool": {"filter": [FINGERPRINTED, {"exists": {"field": "nd.similarity"}}]}},
        ),
        (
            queries.stale(F, "v1-1"),
            {"bool": {"filter": [{"match_all": {}}], "must_not": [FINGERPRINTED]}},
        ),
        (queries.stale(F, "v1-1", SCOPE), {"bool": {"filter": [SCOPE], "must_not": [FINGERPRINTED]}}),
        (
            queries.ungrouped(F, "v1-1"),
            {"bool": {"filter": [FINGERPRINTED], "must_not": [{"exists": {"field": "nd.similarity"}}]}},
        ),
        (
            queries.principals_by_group(F, 5),
            {
                "size": 0,
                "track_total_hits": False,
                "query": {"bool": {"filter": [{"term": {"nd.principal": True}}]}},
                "aggs": {
                    "groups": {"composite": {"size": 5, "sources": [{"group": {"terms": {"field": "nd.group"}}}]}}
                },
            },
        ),
        (
            queries.impossible_groupings(F),
            {
                "bool": {
                    "filter": [{"exists": {"field": "nd.similarity"}}],
                    "must_not": [
                        {"term": {"nd.principal": False}},
                        {"bool": {"filter": [{"term": {"nd.principal": True}}, {"term": {"nd.similarity": 1.0}}]}},
                    ],
                }
            },
        ),
        (
            queries.member_counts(F, 5, {"group": "a"}),
            {
                "size": 0,
                "track_total_hits": False,
                "query": {
                    "bool": {
                        "filter": [
                            {"bool": {"filter": [{"term": {"nd.principal": False}}]}},
                            {"range": {"nd.similarity": {"gte": 0, "lte": 1}}},
                        ]
                    }
                },
                "aggs": {
                    "groups": {
                        "composite": {
                            "size": 5,
                            "sources": [{"group": {"terms": {"field": "nd.group"}}}],
                            "after": {"group": "a"},
                        }
                    }
                },
            },
        ),
        (
            queries.members_of(F, ["a", "b"]),
            {
                "bool": {
                    "filter": [
                        {"bool": {"filter": [{"term": {"nd.principal": False}}]}},
                        {"terms": {"nd.group": ["a", "b"]}},
                    ]
                }
            },
        ),
        (
            queries.principal_counts(F, ["a", "b"]),
            {
                "size": 0,
                "track_total_hits": False,
                "query": {"bool": {"filter": [{"terms": {"nd.group": ["a", "b"]}}, {"term": {"nd.principal": True}}]}},
                "aggs": {
                    "groups": {
                        "terms": {"field": "nd.group", "include": ["a", "b"], "size": 2, "execution_hint": "map"}
                    }
                },
            },
        ),
        (
            queries.sharing_counts(F, "v1-1", [["k1", "k2"], ["k2", "k3"]]),
            {
                "size": 0,
                "track_total_hits": False,
                "query": {"bool": {"filter": [FINGERPRINTED, {"terms": {"nd.bands": ["k1", "k2", "k3"]}}]}},
                "aggs": {
                    "buckets": {
                        "filters": {
                            "filters": [
                                {"bool": {"filter": [{"term": {"nd.bands": "k1"}}, {"term": {"nd.bands": "k2"}}]}},
                                {"bool": {"filter": [{"term": {"nd.bands": "k2"}}, {"term": {"nd.bands": "k3"}}]}},
                            ]
                        }
                    }
                },
            },
        ),
        (queries.without_similarity(F), {"bool": {"must_not": [{"exists": {"field": "nd.similarity"}}]}}),
        (queries.since("updated", "now-1d"), {"range": {"updated": {"gte": "now-1d"}}}),
        (
            queries.group_counts(F, "v1-1", ["g", "h"]),
            {
                "size": 0,
                "track_total_hits": False,
                "query": {"bool": {"filter": [FINGERPRINTED, {"terms": {"nd.group": ["g", "h"]}}]}},
                "aggs": {
                    "groups": {
                        "terms": {"field": "nd.group", "include": ["g", "h"], "size": 2, "execution_hint": "map"},
                        "aggs": {
                            "principals": {"filter": queries.principals_and_members(F, "v1-1")["principals"]},
                            "ungrouped": {"filter": queries.ungrouped(F, "v1-1")},
                        },
                    }
                },
            },
        ),
        (queries.grouped_members(F), {"bool": {"filter": [{"term": {"nd.principal": False}}]}}),
        (
            queries.grouped_members(F, "g"),
            {"bool": {"filter": [{"term": {"nd.principal": False}}, {"term": {"nd.group": "g"}}]}},
        ),
        (
            queries.groups_by_id(F, ("g", "h")),
            {"bool": {"filter": [{"terms": {"nd.group": ["g", "h"]}}, {"term": {"nd.principal": True}}]}},
        ),
        (
            queries.candidates(F, ("Akey", "Bkey"), size=20),
            {
                "size": 20,
                "query": {
                    "bool": {
                        "should": [
                            {"constant_score": {"filter": {"term": {"nd.bands": "Akey"}}}},
                            {"constant_score": {"filter": {"term": {"nd.bands": "Bkey"}}}},
                        ],
                        "minimum_should_match": 1,
                    }
                },
                "_source": ["nd.group", "nd.tokens", "nd.content"],
                "track_total_hits": True,
            },
        ),
        (
            queries.few_candidates(F, ("Akey", "Bkey"), size=16, scope={"term": {"a": 1}}),
            {
                "size": 16,
                "query": {"bool": {"filter": [{"terms": {"nd.bands": ["Akey", "Bkey"]}}, {"term": {"a": 1}}]}},
                "_source": True,
                "track_total_hits": True,
            },
        ),
        (
            queries.sequence_numbers(F, ("Akey", "Bkey")),
            {
                "size": 0,
                "query": {"terms": {"nd.bands": ["Akey", "Bkey"]}},
                "track_total_hits": True,
                "aggs": {"sum": {"sum": {"field": "_seq_no"}}, "max": {"max": {"field": "_seq_no"}}},
            },
        ),
        (
            queries.with_stored_keys(F, Address("news", "1"), size=16, scope={"term": {"a": 1}}, source=["t"]),
            {
                "size": 16,
                "query": {
                    "bool": {
                        "should": [
                            {
                                "bool": {
                                    "filter": [{"ids": {"values": ["1"]}}],
                                    "should": [
                                        {
                                            "terms": {
                                                "nd.content": {"index": "news", "id": "1", "path": "nd.content"},
                                                "_name": "unchanged",
                                            }
                                        }
                                    ],
                                }
                            },
                            {
                                "bool": {
                                    "filter": [
                                        {"terms": {"nd.bands": {"index": "news", "id": "1", "path": "nd.bands"}}},
                                        {"term": {"a": 1}},
                                    ]
                                }
                            },
                        ],
                        "minimum_should_match": 1,
                    }
                },
                "_source": ["t"],
                "track_total_hits": True,
            },
        ),
        (
            queries.median_lengths(F),
            {
                "size": 0,
                "query": {"range": {"nd.tokens": {"gte": 1}}},
                "aggs": {
                    "tokens": {"percentiles": {"field": "nd.tokens", "percents": [50]}},
                    "features": {"percentiles": {"field": "nd.features", "percents": [50]}},
                },
            },
        ),
        (
            queries.sample({"term": {"a": 1}}, 20, 3),
            {
                "size": 20,
                "query": {
                    "function_score": {
                        "query": {"term": {"a": 1}},
                        "random_score": {"seed": 3, "field": "_seq_no"},
                        "boost_mode": "replace",
                    }
                },
            },
        ),
    ],
)
def test_bodies(made: dict[str, Any], body: dict[str, Any]) -> None:
    assert made == body


def test_candidates_within_a_scope() -> None:
    """The scope filters and does not score, and the given object is not modified."""
    scope = {"term": {"language": "en"}}
    body = queries.candidates(F, ("Akey",), size=5, scope=scope)
    assert body["query"] == {
        "bool": {
            "should": [{"constant_score": {"filter": {"term": {"nd.bands": "Akey"}}}}],
            "minimum_should_match": 1,
            "filter": [{"term": {"language": "en"}}],
        }
    }
    assert scope == {"term": {"language": "en"}}


def test_candidates_with_one_of_equal_texts() -> None:
    body, plain = (queries.candidates(F, ("Akey",), size=5, fold=fold) for fold in (True, False))
    order = ["_score", {"nd.principal": {"order": "desc", "missing": "_last"}}]
    assert body == plain | {"collapse": {"field": "nd.content"}, "sort": order, "track_scores": True}
    assert queries.copies(F, SCOPE, ("c", "d")) == {
        "size": 0,
        "query": {"bool": {"filter": [SCOPE, {"terms": {"nd.content": ["c", "d"]}}]}},
        "aggs": {"copies": {"terms": {"field": "nd.content", "size": 2}}},
    }


def test_candidates_and_a_group() -> None:
    """Members of the group need no key, however many others must share, and score 0."""
    keys = [{"constant_score": {"filter": {"term": {"nd.bands": key}}}} for key in ("Akey", "Bkey")]
    members = {"constant_score": {"filter": {"term": {"nd.group": "g"}}, "boost": 0}}
    body = queries.candidates(F, ("Akey", "Bkey"), size=5, agree=2, group="g")
    shared = {"bool": {"should": keys, "minimum_should_match": 2}}
    assert body["query"] == {"bool": {"should": [shared, members], "minimum_should_match": 1}}


def test_a_group_without_keys() -> None:
    """A bool query without clauses would match everything."""
    body = queries.candidates(F, (), size=5, group="g")
    members = {"constant_score": {"filter": {"term": {"nd.group": "g"}}, "boost": 0}}
    assert body["query"] == {"bool": {"should": [members], "minimum_should_match": 1}}


def test_collapsed() -> None:
    assert queries.collapsed(F, SCOPE, size=10, start=20, members=2, source=["title"], sort=["date"]) == {
        "query": SCOPE,
        "post_filter": {"exists": {"field": "nd.group"}},
        "collapse": {
            "field": "nd.group",
            "inner_hits": {"name": "copies", "size": 3, "_source": ["title"], "sort": ["date"]},
        },
        "sort": ["date"],
        "from": 20,
        "size": 10,
        "track_total_hits": True,
        "_source": ["title"],
        "aggs": {
            "groups": {"cardinality": {"field": "nd.group"}},
            "without_group": {"missing": {"field": "nd.group"}},
            "without_similarity": {"filter": {"bool": {"must_not": [{"exists": {"field": "nd.similarity"}}]}}},
        },
    }
    plain = queries.collapsed(F, SCOPE, size=10)
    assert plain["collapse"]["inner_hits"] == {"name": "copies", "size": 0, "_source": []}
    assert "sort" not in plain
    assert queries.without_group(F, SCOPE) == {
        "bool": {"must": [SCOPE], "must_not": [{"exists": {"field": "nd.group"}}]}
    }


def test_documents_that_share_sampled_keys() -> None:
    """Counted, found and scored in a scope without the probe itself; long lists of keys make several clauses."""
    scope = queries.others({"term": {"language": "en"}}, Address("i", "d1"))
    itself = {"bool": {"filter": [{"term": {"_index": "i"}}, {"ids": {"values": ["d1"]}}]}}
    assert scope == {"bool": {"filter": [{"term": {"language": "en"}}], "must_not": [itself]}}
    assert queries.others(None, None) == queries.others(None) == {"match_all": {}}
    some = {"bool": {"should": [{"terms": {"nd.samples": ["k1", "k2"]}}], "minimum_should_match": 1}}
    assert queries.sampled(F, ["k1", "k2"]) == some
    many = queries.sampled(F, [f"k{n}" for n in range(2 * queries.MAX_TERMS + 1)])["bool"]["should"]
    assert [len(clause["terms"]["nd.samples"]) for clause in many] == [queries.MAX_TERMS, queries.MAX_TERMS, 1]
    assert queries.sampled_frequencies(F, ["k1", "k2"], scope) == {
        "size": 0,
        "query": {"bool": {"filter": [some, scope]}},
        "aggs": {
            "keys": {"filters": {"filters": [{"term": {"nd.samples": "k1"}}, {"term": {"nd.samples": "k2"}}]}},
        },
    }
    assert queries.sampled_matches(F, ["k1"], size=3, scope=scope) == {
        "size": 3,
        "query": {
            "bool": {
                "should": [{"constant_score": {"filter": {"term": {"nd.samples": "k1"}}}}],
                "minimum_should_match": 1,
                "filter": [scope],
            }
        },
        "_source": ["nd.features"],
        "track_total_hits": False,
    }


def test_states_are_disjoint() -> None:
    """Each filter excludes the documents of those before it."""
    body = queries.states(F, "v1-x")
    parts = body["aggs"]["parts"]["filters"]["filters"]
    states = ["signed", "short", "empty", "too_large", "failed"]
    assert list(parts) == ["unprocessed", "other_schemes", *states]
    own = [one["bool"]["filter"] for one in parts.values()]
    assert own[:2] == [
        [{"bool": {"must_not": [{"exists": {"field": "nd.scheme"}}]}}],
        [{"bool": {"must_not": [{"term": {"nd.scheme": "v1-x"}}]}}],
    ]
    assert own[2:] == [[{"term": {"nd.state": state}}] for state in states]
    assert [one["bool"]["must_not"] for one in parts.values()] == [
        [query for (query,) in own[:place]] for place in range(len(own))
    ]
    assert body["aggs"]["parts"]["filters"]["other_bucket_key"] == "unknown"
    assert (body["size"], body["track_total_hits"], body["query"]) == (0, True, {"match_all": {}})


def test_versions() -> None:
    """One clause for all new documents, one for each that replaces another."""
    assert queries.versions("i", ["a", "b"], {"c": "hash"}, "nd.content") == {
        "bool": {
            "filter": [
                {"term": {"_index": "i"}},
                {
                    "bool": {
                        "should": [
                            {"ids": {"values": ["a", "b"]}},
                            {"bool": {"filter": [{"ids": {"values": ["c"]}}, {"term": {"nd.content": "hash"}}]}},
                        ],
                        "minimum_should_match": 1,
                    }
                },
            ]
        }
    }


def test_documents_without_some_values() -> None:
    scope = {"term": {"_index": "i"}}
    assert queries.without_values(scope, "doc_id", set()) is scope
    assert queries.without_values(scope, "doc_id", {"b", "a"}) == {
        "bool": {"filter": [scope], "must_not": [{"terms": {"doc_id": ["a", "b"]}}]}
    }


def test_every_query_is_tested() -> None:
    tested = {
        "all_of",
        "candidates",
        "collapsed",
        "copies",
        "fingerprinted",
        "grouped",
        "grouped_members",
        "group_counts",
        "groups_by_id",
        "matching",
        "median_lengths",
        "processed",
    }
    tested |= {"member_counts", "members_of", "of_relations", "principal_counts", "sharing_counts", "without_relations"}
    tested |= {
        "others",
        "sampled",
        "sampled_frequencies",
        "sampled_matches",
        "without_values",
        "MAX_CLAUSES",
        "MAX_TERMS",
    }
    day = {"field": "day", "format": "strict_date"}
    assert queries.with_value({"field": "city"}, "Rome") == {"term": {"city": "Rome"}}
    assert queries.with_value(day, "2026-01-02") == {
        "range": {"day": {"gte": "2026-01-02", "lte": "2026-01-02", "format": "strict_date"}}
    }
    assert queries.with_values({"field": "city"}, []) == {"bool": {"must_not": [{"exists": {"field": "city"}}]}}
    assert queries.with_values({"field": "city"}, ["Oslo", "Rome"]) == {
        "bool": {
            "filter": [{"term": {"city": "Oslo"}}, {"term": {"city": "Rome"}}],
            "must_not": [
                {"range": {"city": one}} for one in ({"lt": "Oslo"}, {"gt": "Oslo", "lt": "Rome"}, {"gt": "Rome"})
            ],
        }
    }
    tested |= {"with_value", "with_values"}
    tested |= {"with_stored_keys", "UNCHANGED", "principals_by_group", "impossible_groupings", "versions"}
    tested |= {"sequence_numbers"}
    none: list[object] = []
    assert queries.without({"a": 1}, None) == {"bool": {"filter": [{"a": 1}], "must_not": none}}
    assert queries.without({"a": 1}, {"b": 2}) == {"bool": {"filter": [{"a": 1}], "must_not": [{"b": 2}]}}
    tested |= {"without"}
    assert tested | {
        "principals_and_members",
        "since",
        "stale",
        "states",
        "ungrouped",
        "sample",
        "without_similarity",
        "without_group",
        "JSON",
        "few_candidates",
        "TooManyDocuments",
    } >= {
        name
        for name, value in vars(queries).items()
        if getattr(value, "__module__", "") == queries.__name__ and name[0] != "_"
    }
