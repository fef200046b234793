"""The requests of commands on a small index, in their order: each takes a round trip, however little it asks."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from server_tools import family

from es_neardupe import NearDupe, Settings
from es_neardupe.index import hidden_indices
from es_neardupe.index.runs import lease
from es_neardupe.index.storage import same_indices
from es_neardupe.log_events import fields_of
from es_neardupe.records import Product
from es_neardupe.server.client import Client

LOAD = """
GET /t/_mapping
GET /t
GET /t/_stats
GET /groups/_mapping
POST /t/_refresh
GET /t/_mapping
GET /groups/_mapping
GET /t/_mapping
PUT /groups
GET /groups/_alias
PUT /groups/_doc/feed
POST /t/_search
GET /t
POST /_bulk
GET /t
GET /t/_settings/index.max_result_window
POST /t/_refresh
GET /t/_stats
GET /t/_mapping
GET /groups/_mapping
PUT /groups/_doc/feed
POST /t/_search
"""
BEGIN_GROUP = """
GET /t/_mapping
GET /t
GET /groups/_mapping
GET /groups/_doc/run
GET /privileges
GET /groups/_mapping
GET /groups/_doc/lease
PUT /groups/_doc/lease
GET /*groups/_mapping
GET /groups/_doc/run
GET /t/_stats
GET /groups/_doc/feed
POST /t/_refresh
GET /decisions/_mapping
POST /t/_search
"""
FIRST_GROUP = f"""{BEGIN_GROUP}POST /t/_search
POST /_mget
POST /groups/_refresh
POST /groups/_search
POST /groups/_search
POST /_mget
GET /groups/_doc/lease
PUT /groups/_doc/lease
PUT /groups/_doc/run
GET /t
POST /_bulk
GET /t
POST /groups/_refresh
GET /groups/_doc/lease
PUT /groups/_doc/lease
READ WHOLE DOCUMENTS
GET /t
POST /_bulk
GET /t
POST /t/_refresh
POST /t/_search
GET /t/_stats
GET /groups/_mapping
PUT /groups/_doc/run
GET /t/_mapping
GET /groups/_mapping
PUT /groups/_doc/feed
GET /groups/_doc/lease
PUT /groups/_doc/lease
POST /t/_search
GET /t/_stats
GET /groups/_doc/feed
POST /t/_refresh
POST /t/_search
POST /t/_search
POST /_mget
POST /_mget
POST /_mget
"""
GROUP = f"""{BEGIN_GROUP}POST /groups/_search
POST /t/_search
POST /groups/_search
GET /groups/_doc/lease
PUT /groups/_doc/lease
POST /t/_search
GET /t/_stats
GET /groups/_doc/feed
POST /t/_refresh
POST /t/_search
"""
"""If nothing has changed."""
ENRICH = """
GET /t/_mapping
GET /t
GET /privileges
GET /t/_stats
GET /groups/_mapping
GET /groups/_doc/feed
POST /t/_refresh
POST /t/_search
POST /t/_search
POST /t/_search
POST /t/_search
"""
"""Likewise."""
STATS = """
GET /t
POST /t/_refresh
POST /t/_search
GET /groups/_mapping
GET /groups/_doc/run
GET /t/_stats
GET /groups/_doc/feed
POST /t/_refresh
GET /decisions/_mapping
POST /t/_search
POST /t/_search
POST /t/_search
"""
NAMES = (
    ("/*-neardupe-groups,neardupe-groups-*", "/*groups"),
    ("t-neardupe-", ""),
    ("_plugins/_security/authinfo", "privileges"),  # OpenSearch
    ("_security/user/_privileges", "privileges"),  # Elasticsearch
)


@pytest.mark.product("each")
def test_requests(
    client: Client, index_name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All checks are sent that a slow machine sends, but no lease is renewed in between."""
    monkeypatch.setattr(hidden_indices, "_AT_ONCE", 0)
    monkeypatch.setattr(same_indices, "AT_ONCE", 0)
    monkeypatch.setattr(lease, "_RENEWALS", 1)
    news, file = NearDupe(index_name, client), tmp_path / "news.jsonl"
    texts = [text for number in range(15) for text in family(number, 2)]
    file.write_text("".join(f"{json.dumps({'id': f'd{k:02}', 'text': text})}\n" for k, text in enumerate(texts)))
    news.init(Settings(("text",)), create=True)

    def sent(command: Callable[[], object]) -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="es_neardupe"):
            command()
        events = (fields_of(record) for record in caplog.records if record.name == "es_neardupe")
        requests = (f"{fields['method']} {fields['path']}" for event, fields in events if event == "request")
        names = "\n".join(named(one.replace(index_name, "t")) for one in requests)
        names = names.replace("GET /_nodes/jvm\n", "")  # once for a connection
        return names.replace("/*groups/_mapping\nPOST /_mget", "/*groups/_mapping").split("\n")  # of other indices

    def named(request: str) -> str:
        for name, short in NAMES:
            request = request.replace(name, short)
        return request.partition(",")[0]

    reading = "POST /t/_search" if client.server.product is Product.ELASTICSEARCH else "POST /_mget"
    commands: list[tuple[Callable[[], object], str]] = [
        (lambda: news.load([str(file)], id_field="id"), LOAD),
        (news.group, FIRST_GROUP),
        (news.group, GROUP),
        (news.enrich, ENRICH),
        (news.stats, STATS),
    ]
    for command, requests in commands:
        assert sent(command) == requests.strip().replace("READ WHOLE DOCUMENTS", reading).split("\n")
