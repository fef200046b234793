"""Paths, JSON bodies and error texts, without any server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from es_neardupe.errors import Blocked, InputError, NotFound
from es_neardupe.server.client import path, to_json
from es_neardupe.server.responses import Answer, refusal


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("docs", "_search"), "/docs/_search"),
        (("a,b*", "_search"), "/a,b*/_search"),
        (("<logs-{now/d}>",), "/%3Clogs-%7Bnow%2Fd%7D%3E"),
        (("i", "_doc", "../../x"), "/i/_doc/..%2F..%2Fx"),
        (("i", "_doc", ".."), "/i/_doc/%2E%2E"),
        (("i", "_doc", "."), "/i/_doc/%2E"),
        (("i", "_doc", "a b?c#d%2F+"), "/i/_doc/a%20b%3Fc%23d%252F%2B"),
        (("i", "_doc", "ä\n😀"), "/i/_doc/%C3%A4%0A%F0%9F%98%80"),
    ],
)
def test_path(parts: tuple[str, ...], expected: str) -> None:
    assert path(*parts) == expected


@pytest.mark.parametrize("part", ["", "\ud800"])
def test_no_such_path(part: str) -> None:
    with pytest.raises(InputError):
        path("i", "_doc", part)


@pytest.mark.parametrize(
    "value",
    [
        "a",
        "ä😀",
        "lone \ud800 surrogate",
        2**63,
        -1,
        0.1,
        1e-300,
        5e-324,
        1.7976931348623157e308,
        [None, True],
    ],
)
def test_json_comes_back_as_it_was(value: Any) -> None:
    data = to_json({"v": value, "ö": 1})
    data.decode("utf-8")
    assert b"\n" not in data
    back = json.loads(data)["v"]
    assert (back, type(back)) == (value, type(value))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_has_no_such_number(value: float) -> None:
    with pytest.raises(InputError):
        to_json({"v": value})


@pytest.mark.parametrize(
    ("body", "type_", "reason"),
    [
        ({"error": {"type": "t", "reason": "r"}}, "t", "r"),
        ({"error": {"type": "t", "reason": None, "root_cause": [{"reason": "root"}]}}, "t", "root"),
        (
            {
                "error": {
                    "type": "search_phase_execution_exception",
                    "reason": "all shards failed",
                    "root_cause": [{"type": "x", "reason": "why"}],
                }
            },
            "search_phase_execution_exception",
            "why",
        ),
        (
            {
                "error": {
                    "type": "x_content_parse_exception",
                    "reason": "[bool] failed to parse field [filter]",
                    "root_cause": [{"type": "parsing_exception", "reason": "unknown query [matsch]"}],
                }
            },
            "x_content_parse_exception",
            "[bool] failed to parse field [filter]: unknown query [matsch]",
        ),
        (
            {
                "error": {
                    "type": "search_phase_execution_exception",
                    "reason": "all shards failed",
                    "root_cause": [{"type": "x", "reason": "no query"}],
                    "failed_shards": [
                        {"reason": {"reason": "no query", "caused_by": {"reason": "a bracket\nis open"}}}
                    ],
                }
            },
            "search_phase_execution_exception",
            "no query: a bracket is open",
        ),
        (
            {"error": {"reason": "Cannot parse '(': Encountered \"<EOF>\".\nWas expecting one of:\n    <NOT> ...\n"}},
            "",
            "Cannot parse '(': Encountered \"<EOF>\".",
        ),
        ({"error": {"reason": "why", "failed_shards": [{"reason": "odd"}]}}, "", "why"),
        ({"error": "words"}, "", "words"),
        ({"error": ["odd"]}, "", ""),
        ("<html>", "", ""),
        (None, "", ""),
        ([], "", ""),
    ],
)
def test_causes(body: Any, type_: str, reason: str) -> None:
    error = refusal(Answer(404, {}, body), "GET http://h/x")
    assert isinstance(error, NotFound)
    assert (error.status, error.type, error.reason) == (404, type_, reason)
    assert "GET http://h/x: 404" in str(error)


def test_long_reasons_are_cut() -> None:
    error = refusal(Answer(400, {}, {"error": {"type": "t", "reason": "x " * 5000}}), "GET /")
    assert len(str(error)) < 400


def test_a_block_below_another_error() -> None:
    block = {"type": "cluster_block_exception", "reason": "index [i] blocked"}
    body = {"error": {"type": "search_phase_execution_exception", "reason": "", "root_cause": [block]}}
    assert isinstance(refusal(Answer(503, {}, body), "POST /"), Blocked)


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        (
            "index [news] blocked by: [FORBIDDEN/7/index read (api)];",
            '[FORBIDDEN/7/index read (api)]. To remove the block: PUT /news/_settings {"index.blocks.read": null}',
        ),
        (
            "index [news] blocked by: [FORBIDDEN/4/index closed];",
            "Remove the block (read-only index, full disk, no elected master) first.",
        ),
    ],
)
def test_a_block_and_how_to_remove_it(reason: str, end: str) -> None:
    answer = Answer(403, {}, {"error": {"type": "cluster_block_exception", "reason": reason}})
    assert str(refusal(answer, "POST /news/_search")).endswith(end)


def test_a_long_reason_keeps_its_beginning_and_its_end() -> None:
    """The cause follows the query of the request, however long that is."""
    asked = "x " * 3000
    parse = {"type": "parse_exception", "reason": f"Cannot parse '{asked}': too many boolean clauses"}
    root = {"type": "query_shard_exception", "reason": f"Failed to parse query [{asked}]"}
    error = {
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
        "root_cause": [root],
        "failed_shards": [{"reason": {**root, "caused_by": parse}}],
    }
    found = str(refusal(Answer(400, {}, {"error": error}), "POST /news/_search"))
    assert "Failed to parse query [x x" in found
    assert "': too many boolean clauses" in found
    assert len(found) < 500
