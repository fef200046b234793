"""`fingerprinted`: keys are added to bulk requests, which are sent by the helpers of real drivers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import elasticsearch
import elasticsearch.helpers
import opensearchpy
import opensearchpy.helpers
import pytest
from server_tools import JSON, family, make_index, ours, put, require_driver_for, theirs, versions, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import NotInitialised
from es_neardupe.records import Product
from es_neardupe.server.client import Client

SETTINGS = Settings(("title", "text"))


class Application:
    """The user's program: its own driver, its own bulk helper."""

    def __init__(self, client: Client) -> None:
        require_driver_for(client)
        if client.server.product is Product.ELASTICSEARCH:
            self.driver: Any = elasticsearch.Elasticsearch(client.url)
            self._bulk: Any = elasticsearch.helpers.bulk
        else:
            self.driver = opensearchpy.OpenSearch(client.url)
            self._bulk = opensearchpy.helpers.bulk

    def bulk(self, actions: Any) -> int:
        """Send the actions and make them visible; returns how many succeeded."""
        done, errors = self._bulk(self.driver, actions, refresh=True)
        assert errors == []
        return int(done)


@pytest.fixture
def application(client: Client) -> Iterator[Application]:
    opened = Application(client)
    yield opened
    opened.driver.close()


@pytest.fixture
def near(client: Client, application: Application, index_name: str) -> NearDupe:
    make_index(client, index_name, {"title": {"type": "text"}, "text": {"type": "text"}, "n": {"type": "integer"}})
    found = NearDupe(index_name, application.driver)
    found.init(SETTINGS)
    return found


def documents() -> dict[str, JSON]:
    texts = [*family("ingest", 4), "two words", "", *family("other", 2)]
    return {f"d{n}": {"title": f"About {n // 4}", "text": text, "n": n} for n, text in enumerate(texts)}


@pytest.mark.product("each")
def test_bulk_actions_get_the_keys_that_enrich_gives(
    near: NearDupe, application: Application, client: Client, index_name: str
) -> None:
    given: list[JSON] = []
    for n, (id, source) in enumerate(documents().items()):
        shapes: list[JSON] = [
            {"_index": index_name, "_id": id, **source},
            {"_index": index_name, "_id": id, "_source": source},
            {"_op_type": "create", "_index": index_name, "_id": id, "_source": source},
            {"_op_type": "index", "_id": id, "_index": index_name, "routing": "r", "_source": source},
        ]
        given.append(shapes[n % 4])
    before = copy.deepcopy(given)
    assert application.bulk(near.fingerprinted(given)) == len(given)
    assert given == before
    ingested = ours(client, index_name)
    assert {fields["state"] for fields in ingested.values()} == {"signed", "short"}
    report = near.enrich()  # the first run does not know yet whether these are the keys of the current texts
    assert (report.scope.read, report.writes.written) == (len(given), 0)
    assert near.enrich().scope.read == 0
    assert near.group().groups.count == 2
    grouped = ours(client, index_name)

    near.clean()
    near.init(SETTINGS)
    assert near.enrich().writes.written == len(given)
    assert ours(client, index_name) == ingested
    near.group()
    assert ours(client, index_name) == grouped
    assert [source for _, source in sorted(theirs(client, index_name).items())]


def test_an_update_of_all_fields_renews_the_keys(
    near: NearDupe, application: Application, client: Client, index_name: str
) -> None:
    application.bulk(near.fingerprinted({"_index": index_name, "_id": id, **one} for id, one in documents().items()))
    near.group()
    old = ours(client, index_name)
    new = {"title": "New", "text": " ".join(words("new", 80))}
    application.bulk(near.fingerprinted([{"_op_type": "update", "_index": index_name, "_id": "d1", "doc": new}]))
    now = ours(client, index_name)
    assert now["d1"]["content"] != old["d1"]["content"]
    assert now["d1"]["group"] == old["d1"]["group"]
    assert "similarity" not in now["d1"]
    assert near.stats().scope.ungrouped == 1
    assert near.enrich(check=True).writes.written == 0  # the keys match the new text
    assert near.group().writes.written >= 1
    assert ours(client, index_name)["d1"]["group"] != old["d1"]["group"]


@pytest.mark.product("each")
def test_a_partial_update_marks_stale_and_enrich_renews(
    near: NearDupe, application: Application, client: Client, index_name: str
) -> None:
    application.bulk(near.fingerprinted({"_index": index_name, "_id": id, **one} for id, one in documents().items()))
    near.group()
    actions: list[JSON] = [
        {"_op_type": "update", "_index": index_name, "_id": "d0", "doc": {"title": "Another title"}},
        {"_op_type": "update", "_index": index_name, "_id": "d1", "doc": {"n": 100}},
        {"_op_type": "delete", "_index": index_name, "_id": "d5"},
    ]
    assert application.bulk(near.fingerprinted(actions)) == 3
    stored = ours(client, index_name)
    assert "scheme" not in stored["d0"]
    assert "group" in stored["d0"]  # collapse still needs one
    assert "similarity" in stored["d1"]  # its text is the same
    assert "d5" not in stored
    assert near.stats().scope.unprocessed == 1
    before = versions(client, index_name)
    report = near.enrich()
    assert (report.scope.read, report.writes.written) == (len(documents()) - 1, 1)
    after = versions(client, index_name)
    assert [id for id in after if after[id] != before[id]] == [(index_name, "d0")]
    assert near.enrich(check=True).writes.written == 0


def test_an_update_that_empties_the_text(
    near: NearDupe, application: Application, client: Client, index_name: str
) -> None:
    application.bulk(near.fingerprinted({"_index": index_name, "_id": id, **one} for id, one in documents().items()))
    update = {"_op_type": "update", "_index": index_name, "_id": "d0", "doc": {"title": "", "text": ""}}
    application.bulk(near.fingerprinted([update]))
    stored = ours(client, index_name)["d0"]
    assert (stored["state"], stored["bands"]) == ("empty", [])
    assert stored.keys().isdisjoint({"content", "signature", "principal", "similarity"})
    assert near.enrich(check=True).writes.written == 0


def test_documents_whose_id_the_server_chooses(
    near: NearDupe, application: Application, client: Client, index_name: str
) -> None:
    application.bulk(near.fingerprinted({"_index": index_name, **source} for source in documents().values()))
    groups = [fields["group"] for fields in ours(client, index_name).values()]
    assert len(set(groups)) == len(documents())  # each has a group of its own, by a random id
    assert near.enrich().writes.written == 0
    assert near.group().groups.count == 2


def test_an_upsert(near: NearDupe, application: Application, client: Client, index_name: str) -> None:
    source = {"title": "T", "text": " ".join(words("upsert", 30))}
    action = {"_op_type": "update", "_index": index_name, "_id": "u", "doc": source, "doc_as_upsert": True}
    assert application.bulk(near.fingerprinted([action])) == 1
    assert near.enrich().writes.written == 1
    assert near.group().groups.alone == 1


@pytest.mark.product("each")
def test_a_wrapped_driver_works_like_our_own(near: NearDupe, client: Client, index_name: str) -> None:
    put(client, index_name, documents())
    assert near.enrich().writes.written == len(documents())
    assert near.group().groups.count == 2
    assert near.similar(id="d0", min=0.8).hits[0].id in ("d1", "d2", "d3")
    near.close()  # not the user's client
    assert near.stats().groups.count == 2


def test_fingerprinted_needs_init(client: Client, application: Application, index_name: str) -> None:
    make_index(client, index_name)
    with pytest.raises(NotInitialised, match="init"):
        list(NearDupe(index_name, application.driver).fingerprinted([{"text": "a b c"}]))
