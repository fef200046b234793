"""`serve` on a real index: each page shows it and escapes what is in it, and each answer of the HTTP interface is that
of the command."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import pytest
from conftest import Cli
from page_reader import NASTY, Reader
from server_tools import JSON, change, delete_all, family, make_index, put, words
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient
from tls_tools import authority

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.compare import compare
from es_neardupe.errors import SettingsError
from es_neardupe.groups import collate
from es_neardupe.groups.heaviest import KINDS, HeaviestDifferences
from es_neardupe.groups.listing import GroupFilter, GroupOrder, ReviewedIds, group_overview, list_groups
from es_neardupe.groups.read import Member, read_members
from es_neardupe.index.index import opened
from es_neardupe.serve import document_pages, large_work
from es_neardupe.serve.application import asgi
from es_neardupe.server.client import Client
from es_neardupe.similarity import collation
from es_neardupe.verification import texts_to_compare
from es_neardupe.verification.current_texts import current_source
from es_neardupe.views import group_pages

pytestmark = pytest.mark.either("storage")

TOKEN = "a-token-of-the-tests-0123456789"
PROPERTIES: JSON = {"title": {"type": "text"}, "body": {"type": "text"}}
LARGE, SMALL = family("large", 5), family("small", 2)
SOURCES = {
    **{f"l{n}": {"title": f"Harbour {n}", "body": text} for n, text in enumerate([*LARGE, LARGE[0]])},
    **{f"s/{n} ü": {"title": f"{n} {NASTY}", "body": f"{NASTY} {text}"} for n, text in enumerate(SMALL)},
    **{f"x{n}": {"title": f"Alone {n}", "body": " ".join(words(n, 50))} for n in range(3)},
}
STORAGES = pytest.mark.parametrize("storage", ["inline", "sidecar"])

Get = Callable[..., str]


def grouped(client: Client, name: str, storage: str = "inline", sources: JSON = SOURCES) -> NearDupe:
    make_index(client, name, PROPERTIES)
    put(client, name, sources)
    news = NearDupe(name, client)
    news.init(Settings(("body",), sample_mod=4), sidecar=storage == "sidecar")
    news.enrich()
    news.group()
    return news


@pytest.fixture(scope="module")
def shared(client: Client, shared_index: str) -> NearDupe:
    """The index of all tests that change nothing and need no other documents."""
    return grouped(client, shared_index)


def browser(news: NearDupe, **options: Any) -> TestClient:
    app = asgi(news, token=TOKEN, **options)
    return TestClient(app, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {TOKEN}"})


def shown(page: TestClient, path: str, status: int = 200, **params: Any) -> str:
    """A page, after a check that nothing from documents became an element, and that it has no script of theirs."""
    answer = page.get(path, params={name: str(value) for name, value in params.items()} or None)
    assert answer.status_code == status, answer.text
    found = Reader(answer.text)
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    assert "alert(1)" not in found.script
    assert answer.text.count("<script>") == ("script-src 'none'" not in answer.headers["content-security-policy"])
    return str(answer.text)


def test_where_members_are_from(client: Client, index_name: str) -> None:
    """A collation shows source, date and URL by default: those that differ as columns. Other pages show the title."""
    origin: JSON = {"published": {"type": "date"}, "url": {"type": "keyword"}, "source": {"type": "text"}}
    make_index(client, index_name, {**PROPERTIES, **origin, "publisher": {"type": "keyword"}})
    documents = {
        f"d{n}": {"title": "Harbour", "body": text, "source": f"Paper {n}", "published": "2026-11-24", "publisher": "x"}
        for n, text in enumerate(family("origin", 3))
    }
    put(client, index_name, {**documents, "d1": {**documents["d1"], "url": "https://news.example/<1>"}})
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    news.enrich()
    news.group()
    (group,) = news.groups(fields=None)
    for fields, columns in ((), ["source", "url"]), (("publisher",), []), (("url",), ["url"]):
        site = browser(news, fields=fields)
        page = shown(site, "/group", id=group.group)
        heads = re.findall(r'<th scope="col">(\w+)</th>', page)
        assert [one for one in heads if one in {*origin, *PROPERTIES, "publisher"}] == columns
        assert site.get(f"/api/groups/{group.group}/collation").json()["differing"] == columns
        if not fields:
            assert "https://news.example/&lt;1&gt;" in page
            assert '<b>published</b> <span dir="auto">2026-11-24</span>' in page
            assert "Paper 2" in page
            assert "Paper" not in shown(site, "/groups")


def test_where_copies_are_from(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document has its own origin, also exact copies and texts that are not compared, in an index without a title;
    long addresses differ where they are shown."""
    address = "https://news.example/" + "a-long-part-of-an-address-" * 8 + "/story?page="
    one, other, third = (f"{text} {text}" for text in family("copies", 3))
    texts = {"d0": one, "d1": one, "d2": one, "e0": other, "e1": other, "long": third}
    documents = {id: {"body": text, "source": f"Paper of {id}", "url": f"{address}{id}"} for id, text in texts.items()}
    make_index(client, index_name, {"body": {"type": "text"}, "source": {"type": "keyword"}, "url": {"type": "text"}})
    put(client, index_name, documents)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    news.enrich()
    news.group()
    (group,) = news.groups(fields=None)
    for module in (collation, collate):
        monkeypatch.setattr(module, "MAX_WORDS", 2 * len(one.split()))
    site = browser(news)
    found = site.get(f"/api/groups/{group.group}/collation").json()
    assert [row["state"] for row in found["rows"]] == ["collated", "collated", "left out"]
    members = {member["id"]: member["fields"] for row in found["rows"] for member in row["members"]}
    for id, fields in members.items():
        assert {name: fields[name] for name in ("source", "url")} == {
            name: documents[id][name] for name in ("source", "url")
        }
    assert [name for name in found["differing"] if name != "body"] == ["source", "url"]
    assert found["equal"] == {}, "bodies of which only the beginning is the same are not equal"
    page = shown(site, "/group", id=group.group)
    for id in members:
        assert f"Paper of {id}<" in page
        assert page.count(f"/story?page={id}<") == 1
    assert one.startswith(found["title"].removesuffix("..."))


def test_origins_are_fields_with_readable_values_in_each_index(client: Client, index_name: str) -> None:
    """Other fields of such names do not hide them, and a document without a title is not named by its source."""
    text: JSON = {"type": "text"}
    first = {**PROPERTIES, "source": {"properties": {"name": text}}, "publisher": {"type": "keyword"}}
    first |= {
        "date": {"type": "date_range"},
        "created": {"type": "date"},
        "url": {"type": "alias", "path": "publisher"},
    }
    second = {"body": text, "headline": text, "author": {"type": "keyword"}, "link": {"type": "keyword"}}
    values: list[JSON] = [
        {
            "title": "T",
            "source": {"name": "x"},
            "publisher": "P",
            "created": "2026-11-24",
            "date": {"gte": "2026-11-24"},
        },
        {"headline": "H", "author": "A", "link": "https://news.example/"},
    ]
    texts = family("origins", 4)
    for number, properties in enumerate((first, second)):
        make_index(client, f"{index_name}-{number}", properties, aliases={index_name: {}})
        documents = {f"{number}{n}": {**values[number], "body": texts[2 * number + n]} for n in range(2)}
        put(client, f"{index_name}-{number}", documents)
    client.request("POST", f"/{index_name}-1/_update/10", params={"refresh": True}, body={"doc": {"headline": ""}})
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    news.enrich()
    news.group()
    (group,) = news.groups(fields=None)
    site = browser(news)
    for reference in ("00", "10"):
        found = site.get(f"/api/groups/{group.group}/collation", params={"reference": reference}).json()
        assert found["differing"] == ["title", "headline", "publisher", "author", "created", "link"]
        assert found["title"] == ("" if reference == "10" else "T")
    assert {one.fields["title"] + one.fields["headline"] for one in news.groups()[0].members} == {"T", "H", ""}
    assert f">{group.group}</h1>" in shown(site, "/group", id=group.group, reference="10")
    with pytest.raises(SettingsError, match="no field 'url' to show"):
        news.groups(fields=["url"])
    chosen = [one.fields["date"] for one in news.groups(fields=["date"])[0].members]
    assert set(chosen) == {'{"gte": "2026-11-24"}', ""}
    delete_all(client, index_name)


@STORAGES
def test_pages(client: Client, index_name: str, storage: str) -> None:
    news = grouped(client, index_name, storage)
    site = browser(news)
    by_size = {one.size: one for one in news.groups(fields=None)}
    large, small = by_size[6], by_size[2]

    overview = shown(site, "/")
    assert "<b>2</b> groups" in overview
    assert "<b>8</b> documents in them" in overview
    assert "<b>11</b> documents in the index" in overview
    bars = re.findall(r'<a href="(/groups\?[^"]*)" aria-label="[^"]*: (\d) groups?"', overview)
    assert sum(int(number) for _, number in bars) == 4
    for link, number in bars:
        assert f'<b id="total">{number}</b>' in shown(site, link.replace("&amp;", "&"))

    groups = shown(site, "/groups")
    assert groups.index("Harbour ") < groups.index("&lt;script&gt;")
    assert '<td class="value">6</td><td class="value">5</td>' in groups
    index = opened(news, groups=True)
    heaviest = HeaviestDifferences().of(index, list_groups(index).groups)
    assert {one.kind for one in heaviest.values()} <= set(KINDS)
    first = heaviest[large.group].readings[0]
    assert (first[1] or first[2]).split()[0] in groups
    for kind in KINDS:
        wanted = sum(one.kind == kind for one in heaviest.values())
        assert f'<b id="total">{wanted}</b>' in shown(site, "/groups", difference=kind)
    assert "is not possible here" in shown(site, "/groups", 400, difference="taste")
    assert "Harbour" not in shown(site, "/groups", max_size=5)
    assert "No group matches." in shown(site, "/groups", min_size=3, q="title:alert")
    assert '<b id="total">1</b>' in shown(site, "/groups", q="harbour")
    assert '<b id="total">0</b>' in shown(site, "/groups", q="alone")

    group = shown(site, "/group", id=large.group)
    for member in large.members:
        assert member.id in group
        assert f"Harbour {member.id[1:]}" in group
    assert "6 documents, 5 texts · least similarity" in group
    link = re.findall(r'href="(/compare\?[^"]*)"', shown(site, "/group", id=small.group))
    compared = shown(site, link[0].replace("&amp;", "&"))
    assert NASTY.split()[0] not in compared.replace("<script>", "", 1)
    assert "Measures" in compared
    assert "Sign out" in compared

    results = shown(site, "/search", q="harbour")
    assert "5 near-copies" in results
    assert f"/group?id={large.group}" in results
    assert "No document matches." in shown(site, "/search", q="nowhere")


@STORAGES
def test_groups_by_values_and_relations(
    client: Client, index_name: str, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same groups as by looking at each document and each pair of the evidence."""
    towns = ["Ghent", "Liège: centre", "Ghent"]
    sources = {
        id: {**one, "town": towns[n % 3], "open": n % 2 == 0, "url": f"/{n}"}
        for n, (id, one) in enumerate(SOURCES.items())
    }
    contained = " ".join(words("contained", 60))
    sources["c0"] = {"title": "Whole", "body": f"{contained} {' '.join(words('rest', 40))}", "town": "Mons"}
    sources["c1"] = {"title": "Part", "body": contained, "town": "Ghent", "open": True}
    keyword = {"type": "keyword"}
    more = {"town": {"type": "text", "fields": {"raw": keyword}}, "open": {"type": "boolean"}, "url": keyword}
    make_index(client, index_name, PROPERTIES | more | {"notes": {"type": "nested", "properties": {"by": keyword}}})
    put(client, index_name, sources)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",), sample_mod=4), sidecar=storage == "sidecar")
    news.enrich()
    news.group(min=0.5, evidence=True)
    site = browser(news)
    members = {one.group: {two.id for two in one.members} for one in news.groups(fields=None)}
    assert len(members) == 3

    def listed(**given: object) -> set[str]:
        answer = site.get("/api/groups", params=given)
        assert answer.status_code == 200, answer.text
        assert answer.json()["all_found"]
        assert f'<b id="total">{answer.json()["total"]}</b>' in site.get("/groups", params=given).text
        return {one["group"] for one in answer.json()["groups"]}

    def having(**values: object) -> set[str]:
        found = {id for id, one in sources.items() if all(one.get(name) == value for name, value in values.items())}
        return {group for group, some in members.items() if found & some}

    assert listed(value="town.raw:Ghent") == having(town="Ghent")
    assert listed(value="town.raw:Liège: centre") == having(town="Liège: centre") != having(town="Ghent")
    assert listed(value=["town.raw:Ghent", "open:true"]) == having(town="Ghent", open=True)
    assert listed(value=["town.raw:Mons", "open:true"]) == set()  # no document has both
    assert listed(value="town.raw:Ghent", q="title:part") == having(title="Part")
    relations = {relation: set[str]() for relation in ("exact", "revision", "contained", "near")}
    evidence = client.request("POST", f"/{index_name}-neardupe-pairs/_search", body={"size": 100})
    for pair in (hit["_source"] for hit in evidence["hits"]["hits"]):
        if pair["decision"] == "accepted":
            both = {pair["a"]["id"], pair["b"]["id"]}
            relations[pair["relation"]] |= {group for group, some in members.items() if both <= some}
    assert relations["contained"] == having(title="Part")
    assert relations["exact"]
    for relation, groups in relations.items():
        assert listed(relation=relation) == groups, relation

    page = shown(site, "/groups")
    assert re.findall(r"<label>([\w.]+) <select name=\"value\">", page) == ["open", "town.raw"]  # each url occurs once
    assert "Ghent (8)" in page
    assert "has no keyword field" in shown(site, "/groups", 400, value="notes.by:x")
    assert "FIELD:VALUE" in shown(site, "/groups", 400, value="town")
    shown(site, "/groups", 400, relation="other")
    monkeypatch.setattr(group_pages, "MAX_FOUND", 1)
    assert site.get("/api/groups", params={"value": "town.raw:Ghent"}).json()["all_found"] is False
    assert "More groups match" in shown(site, "/groups", relation="exact", value="town.raw:Ghent")


def test_relations_need_evidence(shared: NearDupe) -> None:
    site = browser(shared)
    assert "Relation to the principal" not in shown(site, "/groups")
    assert f"es-neardupe group {shared.name} --evidence" in shown(site, "/groups", 400, relation="near")


def test_large_texts_are_compared_one_after_the_other(shared: NearDupe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many get a clear answer; small texts and other pages do not wait."""
    monkeypatch.setattr(large_work, "LARGE", 2 * len(LARGE[0]) - 100)
    monkeypatch.setattr(large_work, "_places", Semaphore(1))
    began, goes_on = Event(), Event()

    def slowly(*documents: Any, **options: Any) -> Any:
        began.set()
        assert goes_on.wait(60)
        return compare(*documents, **options)

    site = browser(shared)
    monkeypatch.setattr(document_pages, "compare", slowly)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(site.get, "/compare", params={"a": "l0", "b": "l1"})
        assert began.wait(60)
        for address in ("/compare", "/api/compare"):
            refused = site.get(address, params={"a": "l2", "b": "l3"})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, str(large_work.PATIENCE))
            assert "are compared one after the other" in refused.text
        assert refused.headers["content-type"] == "application/problem+json"
        assert site.get("/api/compare", params={"a": "x0", "b": "x1"}).status_code == 200
        shown(site, "/groups")
        goes_on.set()
        assert first.result().status_code == 200
    read: list[str] = []

    def once(index: Any, document: str, *rest: Any) -> Any:
        read.append(document)
        return current_source(index, document, *rest)

    monkeypatch.setattr(texts_to_compare, "current_source", once)
    assert site.get("/api/compare", params={"a": "l2", "b": "l3"}).status_code == 200
    assert read == ["l2", "l3"]


def test_large_work_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    order = list[str]()

    def work(name: str) -> None:
        with large_work.large_work(large_work.LARGE + 1):
            order.append(name)

    with ThreadPoolExecutor() as threads:
        with large_work.large_work(large_work.LARGE + 1):
            others = [threads.submit(work, "other") for _ in range(large_work.WAITING)]
            order.append("first")
        wait(others)
    assert order == ["first", *["other"] * large_work.WAITING]
    monkeypatch.setattr(large_work, "PATIENCE", 0)
    with (
        large_work.large_work(large_work.LARGE + 1),
        pytest.raises(HTTPException),
        large_work.large_work(large_work.LARGE + 1),
    ):
        pass


def test_errors_are_pages_and_problems(client: Client, shared: NearDupe) -> None:
    site = browser(shared)
    assert "Unknown group" in shown(site, "/group", 404, id="<script>alert(1)</script>")
    assert "This page cannot be shown" in shown(site, "/compare", 404, a="l0", b="<script>")
    refused = shown(site, "/search", 400, q="title:(")
    listed = shown(site, "/groups", 400, q="title:(", below="2")
    for page in (refused, listed):
        assert 'value="title:("' in page  # next to the form, which keeps what was asked
        assert 'role="alert"' in page
    assert 'name="below" min="0" max="1" step="any" value="2"' in listed
    for name, wrong in (
        ("min_size", ("many", "1", "99999999999", "٣", "2.5")),
        ("max_size", ("0", "-3", "2147483648")),
        ("below", ("2", "-0.1", "nan", "1e400", "1_0")),
    ):
        for one in wrong:
            assert "must be a" in shown(site, "/groups", 400, **{name: one})
            assert site.get("/api/groups", params={name: one}).status_code == 400
    for name, right in (("min_size", "2147483647"), ("max_size", "2"), ("below", "1"), ("min_similarity", "5e-1")):
        shown(site, "/groups", 200, **{name: right})
        assert site.get("/api/groups", params={name: right}).status_code == 200
    shown(site, "/groups", 400, after="[1, {}]")
    shown(site, "/nowhere", 404)
    shown(site, "/group", 404)
    shown(site, "/group", 404, id="none")
    for path, status, kind in (
        ("/api/groups/none", 404, "NotFound"),
        ("/api/compare?a=l0&b=none", 404, "NotFound"),
        ("/api/compare?a=l0", 400, "SettingsError"),
        ("/api/groups?after=x", 400, "SettingsError"),
        ("/api/groups?q=title:(", 400, "RequestError"),
        ("/api/nowhere", 404, "about:blank"),
        ("/api/groups/%0A", 404, "about:blank"),
        ("/api/groups/none/collation", 404, "NotFound"),
    ):
        answer = site.get(path)
        assert (answer.status_code, answer.json()["type"]) == (status, kind)
        assert answer.headers["content-type"] == "application/problem+json"
        assert "Traceback" not in answer.text
    assert site.get("/health").json() == {"status": "ok"}
    missing = browser(NearDupe(f"{shared.name}-none", client))
    assert missing.get("/health").status_code == 503
    shown(missing, "/", 404)


@STORAGES
def test_interface_answers_as_the_commands(
    client: Client, index_name: str, storage: str, server_cli: Cli, tmp_path: Path
) -> None:
    news = grouped(client, index_name, storage)
    api = browser(news)

    def answer(path: str, **params: object) -> Any:
        found = api.get(f"/api{path}", params={name: str(value) for name, value in params.items()})
        assert found.status_code == 200, found.text
        return found.json()

    def posted(path: str, **body: object) -> Any:
        found = api.post(f"/api{path}", json=body)
        assert found.status_code == 200, found.text
        return found.json()

    lines = server_cli("groups", index_name, "--json").lines
    listed = api.get("/api/groups").json()
    assert (listed["total"], listed["after"]) == (2, None)
    for line, one in zip(lines, listed["groups"], strict=True):
        assert {name: one[name] for name in ("group", "principal", "size", "min_similarity")} == {
            name: line[name] for name in ("group", "principal", "size", "min_similarity")
        }
        assert one["fields"] == line["members"][0]["fields"]
        assert answer(f"/groups/{line['group']}") == line
    assert answer("/stats") == server_cli("stats", index_name, "--json").json
    assert answer("/compare", a="l0", b="l1") == server_cli("compare", index_name, "l0", "l1", "--json").json
    assert (
        answer("/similar", id="l0", min=0.5)
        == server_cli("similar", index_name, "--id", "l0", "--min", "0.5", "--json").json
    )
    document = answer("/document", id="l0", start=4, characters=9)
    assert (document["text"], document["characters"]) == (LARGE[0][4:13], len(LARGE[0]))
    assert (document["fields"], document["group"], document["changed"]) == (
        {"title": "Harbour 0"},
        lines[0]["group"],
        False,
    )
    assert answer("/document", id="l0", index=index_name)["text"] == LARGE[0]
    assert api.get("/api/document?id=none").status_code == 404
    client.request("PUT", f"/{index_name}/_mapping", body={"properties": {"part": {"type": "keyword"}}})
    for id in ("l0", "l1"):
        change(client, index_name, id, {"part": id})
    assert answer("/documents", by="part") == server_cli("documents", index_name, "--by", "part", "--json").json
    assert (
        answer("/similar", id="l0", across="part")
        == server_cli("similar", index_name, "--id", "l0", "--across", "part", "--json").json
    )
    assert answer("/contained", id="l0") == server_cli("contained", index_name, "--id", "l0", "--json").json
    text = tmp_path / "text"
    text.write_text(LARGE[1], "utf-8")
    by_facts = server_cli("similar", index_name, "--id", "l0", "--facts", "figures,words", "--json").json
    assert by_facts["other_facts"] > 0
    assert answer("/similar", id="l0", facts="figures,words") == by_facts
    assert posted("/similar", text=LARGE[0], facts=["figures", "words"])["other_facts"] == by_facts["other_facts"]
    refused = api.get("/api/similar", params={"id": "l0", "facts": "colours"})
    assert (refused.status_code, "'colours'" in refused.json()["detail"]) == (400, True)
    assert posted("/similar", text=LARGE[1]) == server_cli("similar", index_name, "--file", str(text), "--json").json
    assert (
        posted("/contained", text=LARGE[1]) == server_cli("contained", index_name, "--file", str(text), "--json").json
    )
    common = {"ignore_common": "auto"}
    for found in (answer("/contained", id="l0", **common), posted("/contained", text=LARGE[1], **common)):
        assert found["common"]["share"] == "auto"
    assert "at least 100 are needed" in api.get("/api/contained?id=l0&ignore_common=0.2").json()["detail"]


def test_many_groups_are_paged_through_the_registry(client: Client, index_name: str) -> None:
    sources = {
        f"{n}-{copy}": {"title": f"T{n}", "body": text}
        for n in range(60)
        for copy, text in enumerate(family(n, 2 + n % 3, length=100))
    }
    news = grouped(client, index_name, sources=sources)
    index, expected = opened(news), [(one.group, one.size) for one in news.groups(fields=None)]
    assert len(expected) == 60
    found, after = [], None
    while True:
        page = list_groups(index, after=after, size=7)
        assert page.total == 60
        found += [(one.group, one.size) for one in page.groups]
        after = page.after
        if after is None:
            break
    assert found == expected
    least = list_groups(index, order=GroupOrder.LEAST_SIMILAR, size=1000).groups
    assert [one.min_similarity for one in least] == sorted(one.min_similarity for one in least)
    texts = list_groups(index, order=GroupOrder.MOST_TEXTS, size=1000).groups
    assert [one.texts for one in texts] == sorted((one.texts for one in texts), reverse=True)
    led = list_groups(index, order=GroupOrder.PRINCIPAL, size=1000).groups
    assert [one.principal.id for one in led] == sorted(one.principal.id for one in led)
    groups = sorted(group for group, _ in expected)
    disputed, reviewed = [groups[20], groups[50]], groups[:1]
    ids, listed, after = ReviewedIds(disputed, reviewed), list[str](), None
    while len(listed) < 60:
        page = list_groups(index, order=GroupOrder.REVIEW, after=after, size=40, reviewed=ids)
        listed, after = listed + [one.group for one in page.groups], page.after
    assert listed == [*disputed, *(one for one in groups if one not in disputed + reviewed), *reviewed]
    overview = group_overview(index)
    assert (overview.groups, overview.documents) == (60, sum(size for _, size in expected))
    assert sum(one.groups for one in overview.sizes) == sum(one.groups for one in overview.similarities) == 60
    for one in overview.similarities:
        only = GroupFilter(min_similarity=one.first, below=one.end)
        assert list_groups(index, only).total == one.groups
    with pytest.raises(SettingsError, match="between 1 and 1,000"):
        list_groups(index, size=1001)

    site = browser(news)
    first = shown(site, "/groups")
    following = re.findall(r'rel="next" href="([^"]*)"', first)
    assert first.count('href="/group?id=') == 50
    by_texts = shown(site, "/groups", order="most-texts")
    assert 'aria-sort="descending"><a href="/groups?order=most-texts">texts</a>' in by_texts
    second = shown(site, following[0].replace("&amp;", "&"))
    assert second.count('href="/group?id=') == 10
    assert "First page" in second


TOWNS = ("Akron", "Boston", "New Haven", "Salem", "Mount Gilead")


def letters(number: int) -> JSON:
    """Form letters of a senator: towns and amounts differ; one has another season, one an additional sentence."""
    first, second = (" ".join(words(part, 150)) for part in ("first", "second"))
    found = {}
    for n in range(number):
        season = "autumn" if n == 17 else "spring"
        more = " Yours <script>alert(1)</script>" if n == 23 else ""
        begin, end = f"Dear citizens of {TOWNS[n % 5]}: {first} we grant", f"until the {season} of the year.{more}"
        body = f"{begin} ${n + 1},{n:03} {second} {end}"
        found[f"n{n}"] = {"title": f"Letter {n}", "body": body, "source": "senate", "date": f"2026-01-{n % 28 + 1:02}"}
    return found


LETTERS: JSON = {**PROPERTIES, "source": {"type": "keyword"}, "date": {"type": "keyword"}}


def grouped_letters(
    client: Client, name: str, sources: JSON, *, storage: str = "inline", evidence: bool = False
) -> tuple[NearDupe, str]:
    """The letters, and the id of their only group."""
    make_index(client, name, LETTERS)
    put(client, name, sources)
    news = NearDupe(name, client)
    news.init(Settings(("body",)), sidecar=storage == "sidecar")
    news.enrich()
    news.group(evidence=evidence)
    (group,) = news.groups(fields=None)
    assert group.size == len(sources)
    return news, group.group


def plain(part: str) -> str:
    """Its text."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", part)).split())


def listed(page: str) -> list[str]:
    """The documents of the page, with their fields."""
    (body,) = re.findall(r'aria-label="Documents and their fields">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    return [plain(row) for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)]


def test_form_letters_are_one_letter_and_a_table(client: Client, index_name: str) -> None:
    sources = letters(197) | {f"copy{n}": letters(1)["n0"] | {"date": "2026-02-01"} for n in range(3)}
    news, group = grouped_letters(client, index_name, sources)
    site = browser(news, fields=["title", "source", "date"])
    page = shown(site, "/group", id=group, reference="n0")
    marks = re.findall(r'<mark class="(\w+)(?: now)?" data-place="(\d)">(.*?)</mark>', page)
    assert [(kind, number, plain(text).partition(" ")[2]) for kind, number, text in marks] == [
        ("fact", "1", "Akron"),
        ("fact", "2", "$1,000"),
        ("word", "3", "spring"),
        ("word", "4", "‸"),
    ]
    rows = re.findall(r'<tr data-place="(\d)" data-also="" data-kind="(\w+)"', page)
    assert rows == [("2", "amount"), ("1", "name"), ("4", "words"), ("3", "words")]  # a figure stands in the fourth
    assert page.count(" ".join(words("first", 150))) == 1
    assert "200 documents, 197 texts" in page
    assert '<b>source</b> <span dir="auto">senate</span>' in page
    documents = listed(page)
    assert len(documents) == 200
    assert documents[0] == "A n0 Letter 0 2026-01-01"
    copies = sorted(one for one in documents if "exact copy" in one)  # in the order in which they were written
    assert copies == [f"A copy{n} exact copy Letter 0 2026-02-01" for n in range(3)]
    (data,) = re.findall(r'id="places">(.*?)</script>', page)
    places = json.loads(data)
    amounts = {text: one["text"] for one in places["2"]["values"] for text in one["texts"]}
    assert sorted(amounts.values()) == sorted(f"${n + 1},{n:03}" for n in range(197))
    assert len(places["1"]["values"]) == 5
    assert places["3"]["values"][1]["text"] == "autumn"
    assert places["4"]["values"][1]["text"].startswith("Yours <script>alert(1)")
    other = shown(site, "/group", id=group, reference="n17")
    assert re.search(r"</sup>autumn</mark>", other)
    links = re.findall(r'<a class="letter" href="([^"]*)"', other)
    assert len(links) == 196
    assert "reference" in shown(site, links[0].replace("&amp;", "&"))

    amounts_of_table = [f"${n + 1},{n:03}" for n in range(1, 197)]
    answer = site.get(f"/api/groups/{group}/collation", params={"reference": "n0", "sort": "2"}).json()
    assert [one["text"] for one in answer["places"]] == ["Akron", "$1,000", "spring", ""]
    assert [one["values"] for one in answer["places"]] == [5, 197, 2, 2]
    assert sum(len(row["members"]) for row in answer["rows"]) == answer["members"] == 200
    assert [row["cells"][1]["text"] for row in answer["rows"][1:]] == amounts_of_table
    for params, status in (
        ({"id": group, "reference": "<script>"}, 404),
        ({"id": group, "start": "x"}, 400),
        ({"id": group, "reference_index": index_name}, 400),
    ):
        shown(site, "/group", status, **params)
    assert site.get("/api/groups/none/collation").status_code == 404
    wrong_orders = [f"sort={one}" for one in ("9", "field.body", "-", "02", "1" * 5000)]
    for wrong in ("places=0", "reference_index=x", *wrong_orders):
        assert site.get(f"/api/groups/{group}/collation?{wrong}").status_code == 400, wrong


@STORAGES
def test_members_are_read_page_by_page(client: Client, index_name: str, storage: str) -> None:
    news, group = grouped_letters(client, index_name, letters(25), storage=storage, evidence=True)
    index = opened(news)
    (expected,) = news.groups(fields=None)
    start = 0
    found: list[Member] = []
    while start < expected.size:
        page = read_members(index, group, start=start, size=7)
        assert page is not None
        assert (page.size, page.reachable, page.start, page.min_similarity) == (25, 25, start, expected.min_similarity)
        assert len(page.members) == min(7, expected.size - start)
        found += page.members
        start += len(page.members)
    assert found[0] == expected.members[0]
    assert [one.similarity for one in found] == [one.similarity for one in expected.members]
    assert {one.address for one in found} == {one.address for one in expected.members}
    last = read_members(index, group, start=1000, size=7)
    assert last is not None
    assert (last.start, list(last.members)) == (21, found[21:])
    assert read_members(index, "AAAAAAAAAAAAAAAA") is None

    site = browser(news)
    part = site.get(f"/api/groups/{group}/collation?start=14&size=7").json()
    listed = [member["id"] for row in part["rows"] for member in row["members"]]
    assert (part["start"], part["members"]) == (14, 7)
    assert set(listed) == {one.id for one in [found[0], *found[14:21]]}  # the reference is on another page
    assert site.get(f"/api/groups/{group}/collation?size=201").status_code == 400
    assert shown(site, "/group", id=group).count("revision, accepted: ") == 24
    changed = {"doc": {"body": "Quite another text."}}
    client.request("POST", f"/{index_name}/_update/n3", params={"refresh": "true"}, body=changed)
    assert shown(site, "/group", id=group).count("changed since <code>enrich</code>") == 1
    client.request("DELETE", f"/{index_name}/_doc/n4")
    answer = site.get(f"/api/groups/{group}/collation").json()
    assert (sum(len(row["members"]) for row in answer["rows"]), answer["deleted"]) in {(25, 1), (24, 0)}


def test_long_texts_are_left_out_and_counted(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    news, group = grouped_letters(client, index_name, letters(12))
    for module in (collation, collate):
        monkeypatch.setattr(module, "MAX_WORDS", 1000)  # three letters
    page = shown(browser(news), "/group", id=group)
    assert "9 documents of this page are not compared" in page
    assert page.count("<small>not compared</small>") == 9
    assert len(listed(page)) == 12


def test_copies_are_folded_and_paged(client: Client, index_name: str) -> None:
    text = " ".join(words("copies", 40))
    news = grouped(client, index_name, sources={f"c{n:03}": {"title": f"T{n}", "body": text} for n in range(250)})
    (group,) = news.groups(fields=None)
    site = browser(news)
    first = shown(site, "/group", id=group.group)
    assert "The 200 documents have the same words" in first
    (following,) = re.findall(r'rel="next" href="([^"]*)"', first)
    second = shown(site, following.replace("&amp;", "&"))
    assert "201 to 250 of 250 documents" in second
    assert (len(listed(first)), len(listed(second))) == (200, 51)  # with the reference


def test_an_index_that_was_not_grouped(client: Client, index_name: str) -> None:
    make_index(client, index_name, PROPERTIES)
    put(client, index_name, {"a": {"title": "One", "body": "one two three four five six"}})
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    site = browser(news)
    assert "1 document waits for" in shown(site, "/")
    news.enrich()
    assert "waits for <code>es-neardupe group" in shown(site, "/")
    assert "No group matches." in shown(site, "/groups")
    assert "There are no groups" in shown(site, "/")


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_program_serves_until_it_is_stopped(shared: NearDupe, server_url: str, stop: signal.Signals) -> None:
    command = [sys.executable, "-m", "es_neardupe", "serve", shared.name, "--url", server_url, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            address = program.stdout.readline().strip()
            token = address.partition("?token=")[2]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", address)
            jar = urllib.request.HTTPCookieProcessor(CookieJar())
            opener = urllib.request.build_opener(jar)
            with opener.open(address, timeout=60) as answer:
                assert "token" not in answer.url
                assert "Near-duplicates in" in answer.read().decode()
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(address.partition("?")[0], timeout=60)
            socket = http.client.HTTPConnection(
                "127.0.0.1", int(address.rpartition(":")[2].partition("/")[0]), timeout=60
            )
            socket.request("GET", "/", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
            assert socket.getresponse().status == 401, "a request to open a web socket is an ordinary one"
            socket.close()
        finally:
            program.send_signal(stop)
            out, err = program.communicate(timeout=60)
    assert program.returncode == 0
    assert out == ""
    assert "Traceback" not in err
    assert token not in err
    assert err.splitlines()[-1] == "Stopped."


def test_tls(shared: NearDupe, server_url: str, tmp_path: Path) -> None:
    made = authority("localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made.server.cert_chain_pems[0].write_to_path(str(cert))
    made.server.private_key_pem.write_to_path(str(key))
    command = [sys.executable, "-m", "es_neardupe", "serve", shared.name, "--url", server_url, "--port", "0"]
    command += ["--host", "0.0.0.0", "--tls-cert", str(cert), "--tls-key", str(key)]
    trusting = ssl.create_default_context(cadata=made.ca.cert_pem.bytes().decode())
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            ((port, token),) = re.findall(r"https://0.0.0.0:(\d+)/\?token=(.*)", program.stdout.readline())
            headers = {"Authorization": f"Bearer {token}"}
            asked = urllib.request.Request(f"https://localhost:{port}/health", headers=headers)
            with urllib.request.urlopen(asked, timeout=60, context=trusting) as answer:
                assert json.load(answer) == {"status": "ok"}
        finally:
            program.send_signal(signal.SIGINT)
            program.communicate(timeout=60)
    assert program.returncode == 0


def test_wrong_options_are_named(shared: NearDupe, server_cli: Cli, tmp_path: Path) -> None:
    assert "has no field 'nope' to show" in server_cli("serve", shared.name, "--field", "nope").err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = server_cli("serve", shared.name, "--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert "Nothing can be served at" in ran.err
    file = tmp_path / "no.pem"
    file.write_text("no certificate")
    ran = server_cli("serve", shared.name, "--port", "0", "--tls-cert", str(file), "--tls-key", str(file))
    assert ran.code == 2
    assert "cannot be used" in ran.err
