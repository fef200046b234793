"""`--log-format ecs`: the lines of runs fit the field types of Elastic Common Schema, and are found by their run."""

from __future__ import annotations

import json
from typing import Any

from conftest import Cli
from server_tools import family, make_index, put, send

from es_neardupe.server.client import Client, path

_KEYWORD = {"type": "keyword", "ignore_above": 1024}
_LONG = {"type": "long"}


def objects(**fields: Any) -> dict[str, Any]:
    return {"dynamic": "strict", "properties": fields}


# The types of https://www.elastic.co/docs/reference/ecs/ecs-field-reference; no other field of these sets is accepted.
ECS = {
    "dynamic": "strict",
    "properties": {
        "@timestamp": {"type": "date"},
        "message": {"type": "text"},
        "ecs": objects(version=_KEYWORD),
        "log": objects(level=_KEYWORD, logger=_KEYWORD),
        "event": objects(action=_KEYWORD, duration=_LONG),
        "trace": objects(id=_KEYWORD),
        "service": objects(name=_KEYWORD, version=_KEYWORD),
        "process": objects(pid=_LONG, exit_code=_LONG),
        "error": objects(type=_KEYWORD),
        "url": objects(path={"type": "keyword"}),
        "http": objects(request=objects(id=_KEYWORD, method=_KEYWORD), response=objects(status_code=_LONG)),
        "es_neardupe": {"dynamic": "true", "type": "object"},
    },
}


def test_lines_are_indexed_by_the_types_of_ecs(client: Client, index_name: str, server_cli: Cli) -> None:
    logs = f"{index_name}-logs"
    make_index(client, index_name)
    put(client, index_name, {f"d{n}": {"text": text} for n, text in enumerate(family("ecs", 4))})
    client.request("PUT", path(logs), body={"mappings": ECS})
    try:
        server_cli("init", index_name, "--field", "text")
        how = ["--log-format", "ecs", "--log-level", "debug"]
        runs = [
            server_cli("enrich", index_name, *how),
            server_cli("group", index_name, "--linkage", "complete", *how),
            server_cli("similar", index_name, "--id", "d0", "--min", "1", "--json", *how),
            server_cli("similar", index_name, "--id", "gone", "--min", "0.5", *how),
        ]
        assert [run.code for run in runs] == [0, 0, 0, 1]
        for run in runs:
            lines = [json.loads(line) for line in run.err.splitlines()]
            send(client, [({"create": {"_index": logs}}, line) for line in lines])
            (name,) = {line["trace"]["id"] for line in lines}
            body = {"query": {"term": {"trace.id": name}}, "sort": ["@timestamp"], "size": 1000}
            found = client.request("POST", path(logs, "_search"), body=body)["hits"]["hits"]
            assert sorted(map(str, (one["_source"] for one in found))) == sorted(map(str, lines))
            assert (lines[0]["event"]["action"], lines[-1]["event"]["action"]) == ("started", "finished")
            assert lines[-1]["process"]["exit_code"] == run.code
            assert f"exit_code={run.code} " in lines[-1]["message"]
            head, _, given = lines[0]["message"].partition(" arguments=")
            assert head.startswith("started version=")
            assert json.loads(given)["index"] == index_name
        slow = {"bool": {"filter": [{"term": {"event.action": "request"}}, {"range": {"event.duration": {"gt": 0}}}]}}
        errors = {"bool": {"filter": [{"term": {"log.level": "error"}}, {"exists": {"field": "error.type"}}]}}
        for query in (slow, errors):
            assert client.request("POST", path(logs, "_count"), body={"query": query})["count"] > 0
    finally:
        client.request("DELETE", path(logs))
