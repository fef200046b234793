"""Requests of ``duplicates`` for the tests: pairs by common runs of five words, with at least 80 % of their words in
common."""

from __future__ import annotations

from server_tools import JSON

_FIELDS = {"type": "fields:simple", "fields": ["text"]}
_WORDS = {"type": "featureSource:words", "fields": _FIELDS}
_USED = {"type": "documentPairs:reference", "use": "similarPairs"}


def pairs_request(query: str | None = None, *, max_group: int = 200) -> JSON:
    """One stage, ``similarPairs``, of all documents or those of a query."""
    stage = {
        "type": "documentPairs:duplicates",
        **({} if query is None else {"query": {"type": "query:string", "query": query}}),
        "hashGrouping": {
            "pairing": {"maxHashGroupSize": max_group},
            "features": {"type": "featureSource:ngrams", "window": 5, "source": _WORDS},
        },
        "validation": {
            "pairwiseSimilarity": {
                "type": "pairwiseSimilarity:featureIntersectionToUnionRatio",
                "features": {"type": "featureSource:flatten", "source": _WORDS},
            },
            "min": 0.8,
            "max": 1,
        },
    }
    return {"stages": {"similarPairs": stage}}


def request_of_all_stages(query: str, *, max_group: int = 200, max_value: int = 50) -> JSON:
    """The pairs with explanations; the beginnings of the documents in them, and the passages that they share."""
    stages = pairs_request(query, max_group=max_group)["stages"]
    stages["similarPairs"]["output"] = {"explanations": True}
    stages["content"] = {
        "type": "documentContent",
        "documents": {"type": "documents:fromDocumentPairs", "documentPairs": _USED},
        "fields": {"type": "contentFields:simple", "fields": {"title": {}, "text": {"maxValueLength": max_value}}},
    }
    stages["overlaps"] = {"type": "documentPairs:overlaps", "documentPairs": _USED, "fields": _FIELDS}
    return {"stages": stages}
