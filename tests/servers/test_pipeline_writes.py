"""Which writes run the ingest pipeline of keys, and what it stores: the tables of docs/pipeline.md."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import opensearchpy
import opensearchpy.helpers
import pytest
from rollover_tools import rolled
from server_tools import (
    JSON,
    delete_all,
    family,
    hits,
    make_index,
    new_name,
    ours_of,
    plain_request,
    runs_painless,
    theirs,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.stored_fields import encode, own_group
from es_neardupe.server.client import Client, to_json

pytestmark = pytest.mark.product("opensearch")

PAGE = Path(__file__).parents[2] / "docs" / "pipeline.md"
SETTINGS = Settings(("title", "text"))
BEFORE = {"title": "Bridge closed", "text": "The old bridge over the river is closed for repairs.", "number": 2**62}
AFTER = {"title": "Bridge open", "text": "The new bridge was opened on Monday by the mayor of the town.", "number": 1}
TEXTS = {name: AFTER[name] for name in SETTINGS.fields}


def ask(client: Client, method: str, target: str, body: JSON | None = None) -> Any:
    """A request as an application sends it."""
    status, answer = plain_request(client, method, target, body)
    assert status in (200, 201), answer
    return answer


def bulk(client: Client, *lines: Mapping[str, Any]) -> None:
    """Lines of a bulk request, as an application sends them."""
    request = urllib.request.Request(
        f"{client.url}/_bulk?refresh=true", b"".join(to_json(one) + b"\n" for one in lines)
    )
    request.add_header("Content-Type", "application/x-ndjson")
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = json.load(response)
    assert not answer["errors"], answer


def without_pipeline(client: Client, index: str) -> None:
    ask(client, "PUT", f"/{index}/_doc/d?refresh=true&pipeline=_none", AFTER)


def reindex(client: Client, index: str) -> None:
    ask(client, "PUT", f"/{index}-source/_doc/d?refresh=true", AFTER)
    ask(client, "POST", "/_reindex?refresh=true", {"source": {"index": f"{index}-source"}, "dest": {"index": index}})


def update_by_query(client: Client, index: str, parameter: str) -> None:
    without_pipeline(client, index)
    ask(client, "POST", f"/{index}/_update_by_query?refresh=true{parameter}", {"query": {"match_all": {}}})


def update_by_query_with(client: Client, index: str) -> None:
    update_by_query(client, index, f"&pipeline={NearDupe(index, client).pipeline().pipeline}")


def script(source: Mapping[str, Any]) -> JSON:
    return {"script": {"source": "ctx._source.putAll(params)", "params": source}}


def enriched(client: Client, index: str) -> None:
    """Commands of this program: they write keys and groups by bulk updates."""
    news = NearDupe(index, client)
    news.enrich(all=True)
    news.group()


Write = Callable[[Client, str], object]
WRITES: dict[str, tuple[str, Write]] = {
    "index": ("of the text", lambda c, i: ask(c, "PUT", f"/{i}/_doc/d?refresh=true", AFTER)),
    "index without an id": ("of the text", lambda c, i: ask(c, "POST", f"/{i}/_doc?refresh=true", AFTER)),
    "create": ("of the text", lambda c, i: ask(c, "PUT", f"/{i}/_create/new?refresh=true", AFTER)),
    "bulk index": ("of the text", lambda c, i: bulk(c, {"index": {"_index": i, "_id": "d"}}, AFTER)),
    "bulk create": ("of the text", lambda c, i: bulk(c, {"create": {"_index": i}}, AFTER)),
    "reindex": ("of the text", reindex),
    "update by query, with pipeline": ("of the text", update_by_query_with),
    "update by query": ("of the text", lambda c, i: update_by_query(c, i, "")),
    "update, doc": ("of the text", lambda c, i: ask(c, "POST", f"/{i}/_update/d?refresh=true", {"doc": AFTER})),
    "update, script": ("of the text", lambda c, i: ask(c, "POST", f"/{i}/_update/d?refresh=true", script(AFTER))),
    "bulk update, doc": ("former", lambda c, i: bulk(c, {"update": {"_index": i, "_id": "d"}}, {"doc": AFTER})),
    "bulk update, script": ("former", lambda c, i: bulk(c, {"update": {"_index": i, "_id": "d"}}, script(AFTER))),
    "bulk doc_as_upsert": (
        "of the text",
        lambda c, i: bulk(c, {"update": {"_index": i, "_id": "d"}}, {"doc": AFTER, "doc_as_upsert": True}),
    ),
    "bulk doc_as_upsert, new": (
        "of the text",
        lambda c, i: bulk(c, {"update": {"_index": i, "_id": "new"}}, {"doc": AFTER, "doc_as_upsert": True}),
    ),
    "bulk doc_as_upsert, a part": (
        "null",
        lambda c, i: bulk(c, {"update": {"_index": i, "_id": "d"}}, {"doc": {"number": 7}, "doc_as_upsert": True}),
    ),
    "index, pipeline=_none": ("none", without_pipeline),
    "commands of this program": ("former", enriched),
}
"""Write -> the keys afterwards."""


def keys_of(source: Mapping[str, Any]) -> JSON:
    """The keys that Python makes."""
    (fingerprint,) = fingerprint_sources([source], SETTINGS, 10_000_000)
    return {name: value for name, value in encode(fingerprint, "").items() if name != "at"}


def stored_keys(source: Mapping[str, Any]) -> JSON | None:
    """The stored keys, without the fields of the group; None if there is no object."""
    others = ("at", "checked", "group", "principal", "similarity")
    stored = source.get("neardupe")
    return None if stored is None else {name: value for name, value in stored.items() if name not in others}


def written(client: Client, index: str) -> JSON:
    """The source of the document that was written last."""
    last: JSON = max(hits(client, index), key=lambda hit: hit["_seq_no"])["_source"]
    return last


@pytest.fixture(scope="module")
def piped(client: Client) -> Iterator[NearDupe]:
    """An index whose default pipeline makes keys; without scripts, the test is skipped."""
    if not runs_painless(client):
        pytest.skip("this server runs no Painless scripts")
    name = new_name()
    make_index(client, name, {"title": {"type": "text"}, "text": {"type": "text"}})
    news = NearDupe(name, client)
    news.init(SETTINGS)
    news.pipeline("install", default=True)
    yield news
    news.clean()
    delete_all(client, name)


def check_write(news: NearDupe, client: Client, name: str) -> None:
    """A write, the keys that it leaves, and what `enrich` then finds to do."""
    (expected, write), index = WRITES[name], news.name
    ask(client, "POST", f"/{index}/_delete_by_query?refresh=true", {"query": {"match_all": {}}})
    ask(client, "PUT", f"/{index}/_doc/d?refresh=true", BEFORE)
    assert stored_keys(written(client, index)) == keys_of(BEFORE)
    assert news.enrich().writes.written == 0
    write(client, index)
    source, before = written(client, index), keys_of(BEFORE)
    expectations = {"of the text": keys_of(source), "former": before, "null": {**before, "scheme": None}, "none": None}
    assert stored_keys(source) == expectations[expected]
    if expected == "of the text":
        assert len(source["neardupe"]["group"]) == 16
    ours = name == "commands of this program"
    others = {field: value for field, value in source.items() if field != "neardupe"}
    assert others == (BEFORE if ours else {**BEFORE, "number": 7} if expected == "null" else AFTER)
    assert news.enrich().writes.written == (0 if ours or expected == "of the text" else 1)
    assert stored_keys(written(client, index)) == keys_of(written(client, index))


@pytest.mark.parametrize("name", WRITES)
def test_a_write(piped: NearDupe, client: Client, name: str) -> None:
    check_write(piped, client, name)


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["bulk index", "update, doc"])
def test_a_write_on_older_servers(piped: NearDupe, client: Client, name: str) -> None:
    check_write(piped, client, name)


DOCUMENTS: dict[str, tuple[str, JSON]] = {
    "arrays": ("keys", {"title": ["one", ["two", None], True, 7], "text": [[["three"]]]}),
    "an empty text": ("keys", {"title": "one", "text": ""}),
    "numbers": ("keys", {"title": 12345678901234567, "text": -7}),
    "null": ("keys", {"title": None, "text": "only the second field has a text"}),
    "no text at all": ("keys", {"title": None, "text": [None, " , "]}),
    "our fields": ("keys", {"title": "one", "text": "two", "neardupe": {"bands": ["forged"], "group": "x"}}),
    "a missing field": ("null", {"text": "perhaps a part of a document"}),
    "a fraction": ("null", {"title": 1.10, "text": "words"}),
    "a long text": ("null", {"title": "long", "text": "word " * 200_001}),
    "a long integer": ("none", {"title": "one", "text": "two", "other": 2**70}),
}
"""Document -> what the pipeline stores of it: keys as `enrich` makes them, a scheme that is null, or nothing."""


def check_documents(client: Client, index: str) -> None:
    make_index(client, index, {name: {"type": "text"} for name in SETTINGS.fields}, dynamic=False)
    news = NearDupe(index, client)
    news.init(SETTINGS)
    news.pipeline("install", default=True)
    for id, (_, source) in DOCUMENTS.items():
        ask(client, "PUT", f"/{index}/_doc/{id.replace(' ', '%20')}", source)
    before = theirs(client, index)
    for hit in hits(client, index):
        expected, _ = DOCUMENTS[hit["_id"]]
        keys = {"keys": keys_of(hit["_source"]), "null": {"scheme": None}, "none": None}[expected]
        assert stored_keys(hit["_source"]) == keys, hit["_id"]
        if expected == "keys":
            grouping = {name: hit["_source"]["neardupe"][name] for name in ("group", "principal", "similarity")}
            assert grouping == {"group": own_group(index, hit["_id"]), "principal": None, "similarity": None}
    incomplete = sum(expected != "keys" for expected, _ in DOCUMENTS.values())
    assert news.enrich().writes.written == incomplete
    assert {hit["_id"]: stored_keys(hit["_source"]) for hit in hits(client, index)} == {
        hit["_id"]: keys_of(hit["_source"]) for hit in hits(client, index)
    }
    assert theirs(client, index) == before
    news.clean()


def test_documents_that_are_not_two_texts(painless: Client, index_name: str) -> None:
    check_documents(painless, index_name)


@pytest.mark.smoke
def test_documents_that_are_not_two_texts_on_older_servers(painless: Client, index_name: str) -> None:
    check_documents(painless, index_name)


def test_a_created_document_is_whole(painless: Client, index_name: str) -> None:
    """Its missing fields have no text, and without an id, it has a random group id."""
    make_index(painless, index_name, {"title": {"type": "text"}, "text": {"type": "text"}})
    news = NearDupe(index_name, painless)
    news.init(SETTINGS)
    news.pipeline("install", default=True)
    for source in ({"text": "one"}, {"text": "one"}, {"other": 1}):
        ask(painless, "POST", f"/{index_name}/_doc?refresh=true", source)
    bulk(painless, {"create": {"_index": index_name, "_id": "c"}}, {"title": "only a title"})
    found = [hit["_source"] for hit in hits(painless, index_name)]
    assert [stored_keys(one) for one in found] == [keys_of(one) for one in found]
    groups = {one["neardupe"]["group"] for one in found}
    assert len(groups) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{16}", group) for group in groups)
    assert news.enrich().writes.written == 0
    assert news.group().groups.count == 1


def test_a_document_keeps_its_group_as_long_as_its_text_is_the_same(painless: Client, index_name: str) -> None:
    make_index(painless, index_name)
    news = NearDupe(index_name, painless)
    news.init(Settings(("text",), group_field="story"))
    news.pipeline("install", default=True)
    for number, text in enumerate(family("kept", 3)):
        ask(painless, "PUT", f"/{index_name}/_doc/d{number}?refresh=true", {"text": text})
    news.group()
    grouped = {hit["_id"]: hit["_source"] for hit in hits(painless, index_name)}
    assert len({one["story"] for one in grouped.values()}) == 1
    for id in grouped:
        ask(painless, "POST", f"/{index_name}/_update/{id}?refresh=true", {"doc": {"clicks": 7}})
    for hit in hits(painless, index_name):
        before, now = grouped[hit["_id"]], hit["_source"]
        assert now["clicks"] == 7
        assert now["story"] == before["story"] == now["neardupe"]["group"]
        same = ("group", "principal", "similarity", "content", "bands", "signature")
        assert {name: now["neardupe"][name] for name in same} == {name: before["neardupe"][name] for name in same}
    assert news.group().writes.written == 0
    ask(painless, "POST", f"/{index_name}/_update/d1?refresh=true", {"doc": {"text": "another text"}})
    (changed,) = (hit["_source"] for hit in hits(painless, index_name) if hit["_id"] == "d1")
    assert changed["story"] == changed["neardupe"]["group"] == own_group(index_name, "d1")
    assert news.enrich().writes.written == 0
    news.group()
    assert {one.size for one in news.groups()} == {2}


def test_group_fields_of_this_program_stay(painless: Client, index_name: str) -> None:
    """A document that Python has fingerprinted passes through the pipeline."""
    make_index(painless, index_name)
    news = NearDupe(index_name, painless)
    news.init(Settings(("text",)))
    news.pipeline("install", default=True)
    actions: list[JSON] = [{"_index": index_name, "_id": "d", "text": "one two three"}, {"text": "four five"}]
    made = list(news.fingerprinted(actions))
    with opensearchpy.OpenSearch(painless.url) as driver:
        opensearchpy.helpers.bulk(driver, made, index=index_name, refresh=True)
    stored = {hit["_source"]["text"]: hit["_source"]["neardupe"] for hit in hits(painless, index_name)}
    for one in made:
        assert ours_of({"neardupe": stored[one["text"]]}) == ours_of(one)
    assert {one["principal"] for one in stored.values()} == {True}


@pytest.mark.parametrize("writer", ["plain HTTP", "opensearch-py"])
def test_documents_of_other_programs_are_grouped_as_those_of_enrich(
    painless: Client, index_name: str, writer: str
) -> None:
    """The same documents in two indices: with the pipeline, and with `enrich`."""
    texts = {f"f{n}-{k}": text for n in range(12) for k, text in enumerate(family(n, 4, length=120, edits=1 + n % 3))}
    texts |= {f"alone{n}": " ".join(words(n, 30)) for n in range(20)}
    by = {"pipeline": f"{index_name}-one", "enrich": f"{index_name}-two"}
    for way, name in by.items():
        make_index(painless, name, settings={"number_of_shards": 2})
        news = NearDupe(name, painless)
        news.init(Settings(("text",)))
        if way == "pipeline":
            news.pipeline("install", default=True)
        if writer == "opensearch-py":
            with opensearchpy.OpenSearch(painless.url) as driver:
                actions = ({"_index": name, "_id": id, "text": text} for id, text in texts.items())
                opensearchpy.helpers.bulk(driver, actions, refresh=True)
        else:
            lines: list[dict[str, Any]] = []
            for id, text in texts.items():
                lines += [{"index": {"_index": name, "_id": id}}, {"text": text}]
            bulk(painless, *lines)
    one, two = (NearDupe(name, painless) for name in by.values())
    assert (one.enrich().writes.written, two.enrich().writes.written) == (0, len(texts))
    stored = [{hit["_id"]: stored_keys(hit["_source"]) for hit in hits(painless, name)} for name in by.values()]
    assert stored[0] == stored[1]
    one.group()
    two.group()
    partitions = [{frozenset(member.id for member in group.members) for group in news.groups()} for news in (one, two)]
    assert partitions[0] == partitions[1]
    assert len(partitions[0]) == 8
    assert one.enrich(check=True).writes.written == 0


@pytest.mark.parametrize("kind", ["alias", "stream"])
def test_a_rollover(painless: Client, kind: str) -> None:
    """The new index gets the pipeline by another `install`. Documents with the same id in both have the group id of the
    alias and this id, until `group` separates them."""
    with rolled(painless, kind) as rolling:
        news, name = NearDupe(rolling.name, painless), rolling.name
        news.init(Settings(("text",)))

        def create(text: str) -> None:
            ask(painless, "PUT", f"/{name}/_create/d?refresh=true", {"@timestamp": "2026-01-01", "text": text})

        assert news.pipeline("install", default=True).state == "default"
        create(" ".join(words(1, 30)))
        new = rolling.roll()
        news.enrich()  # prepares the new index
        assert news.pipeline().state == "partly"
        assert news.pipeline("install", default=True).changed == (new,)
        create(" ".join(words(2, 30)))
        stored = [hit["_source"]["neardupe"]["group"] for hit in hits(painless, name)]
        assert stored == [own_group(name, "d")] * 2
        news.group()
        assert len({hit["_source"]["neardupe"]["group"] for hit in hits(painless, name)}) == 2
        assert news.groups() == []
        news.clean()


def test_the_page_lists_every_kind_of_write() -> None:
    """A row of the table for each kind of keys, and the number of texts of the check."""
    page = PAGE.read_text("utf-8")
    section = page.partition("## Which writes")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 11
    assert sum("| **no** |" in row or "| no |" in row for row in rows) == 2
