"""Titles and other fields of documents in the results of `similar`, `pairs`, `groups` and `compare`, and on pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from page_reader import NASTY, Reader
from server_tools import JSON, Spy, delete_all, family, make_index, new_name, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.display_text import shown
from es_neardupe.errors import SettingsError
from es_neardupe.server.client import Client

pytestmark = pytest.mark.either("storage")

TEXTS = family("titles", 3, length=90)
PROPERTIES: JSON = {
    "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
    "body": {"type": "text"},
    "meta": {"properties": {"author": {"type": "keyword"}, "year": {"type": "integer"}}},
    "parts": {"type": "nested", "properties": {"head": {"type": "text"}}},
}


def source(n: int) -> JSON:
    return {
        "title": f"Title {n}",
        "body": TEXTS[n],
        "meta": {"author": [f"A{n}", f"B{n}"], "year": 2000 + n},
        "parts": [{"head": f"one {n}"}, {"head": f"two {n}"}],
    }


OF_BODIES = re.sub(
    '"(title|body)"', lambda one: {"title": '"body"', "body": '"title"'}[one[1]], example("near-identical-titles")
)
"""A request for pairs with similar bodies."""

SOURCES = {f"d{n}": source(n) for n in range(3)}


@pytest.fixture(scope="module", params=["inline", "sidecar"])
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def prepared(
    client: Client, name: str, storage: str, sources: Mapping[str, JSON], properties: JSON = PROPERTIES, **more: Any
) -> NearDupe:
    """An index with these documents, enriched and grouped."""
    make_index(client, name, properties)
    put(client, name, sources, **more)
    news = NearDupe(name, client)
    news.init(Settings(("body",)), sidecar=storage == "sidecar")
    news.enrich()
    news.group()
    return news


@pytest.fixture(scope="module")
def news(client: Client, storage: str) -> Iterator[NearDupe]:
    """An index for all tests that change nothing."""
    name = new_name()
    yield prepared(client, name, storage, SOURCES)
    delete_all(client, name)


def test_the_title_by_default(news: NearDupe) -> None:
    titles = {id: {"title": one["title"]} for id, one in SOURCES.items()}
    assert {hit.id: hit.fields for hit in news.similar(id="d0").hits} == {id: titles[id] for id in ("d1", "d2")}
    assert {hit.id: hit.fields for hit in news.similar(text=TEXTS[0]).hits} == titles
    (group,) = news.groups()
    assert {member.id: member.fields for member in group.members} == titles
    pairs = news.pairs()
    shown = list(pairs.with_fields())
    assert [(pair.a, pair.b, pair.similarity) for pair in shown] == [(one.a, one.b, one.similarity) for one in pairs]
    assert shown
    for pair in shown:
        assert pair.fields == {"a": titles[pair.a.id], "b": titles[pair.b.id]}
    assert list(pairs.with_fields(1)) == shown[:1]
    assert all(pair.fields == {} for pair in pairs)
    compared = news.compare("d0", "d1")
    assert [side.fields for side in compared.sides] == [titles["d0"], titles["d1"]]
    assert news.compare("d0", text="other").b.fields == {}


def test_chosen_fields(news: NearDupe) -> None:
    """Dotted names, arrays, numbers and nested objects, each once and in the given order."""
    fields = ["meta.author", "parts.head", "meta.year", "meta.author"]
    expected = {"meta.author": "A1\nB1", "parts.head": "one 1\ntwo 1", "meta.year": "2001"}
    (hit,) = [hit for hit in news.similar(id="d0", fields=fields).hits if hit.id == "d1"]
    assert hit.fields == expected
    assert list(hit.fields) == list(dict.fromkeys(fields))
    (member,) = [member for member in news.groups(fields=fields)[0].members if member.id == "d1"]
    assert member.fields == expected
    sides = [pair.fields for pair in news.pairs(fields=fields).with_fields() if pair.b.id == "d1"]
    assert [side["b"] for side in sides] == [expected] * len(sides) != []
    assert news.compare("d1", "d0", fields=fields).a.fields == expected


def test_no_fields(client: Client, news: NearDupe) -> None:
    """None reads nothing more."""
    spy: Any = Spy(client)
    spied = NearDupe(news.name, spy)
    assert spied.groups(fields=None)[0].members[1].fields == {}
    assert [hit.fields for hit in spied.similar(id="d0", fields=None).hits] == [{}, {}]
    assert [pair.fields for pair in spied.pairs(fields=None).with_fields(1)] == [{"a": {}, "b": {}}]
    assert "title" not in str(spy.asked)


@pytest.mark.parametrize("name", ["absent", "title.raw", "parts", "neardupe.group"])
def test_unknown_fields(news: NearDupe, name: str, server_cli: Cli) -> None:
    for method in (news.groups, news.pairs, lambda **more: news.similar(id="d0", **more)):
        with pytest.raises(
            SettingsError, match=f"has no field '{name}' to show. Fields: body, meta.author, meta.year, "
        ):
            method(fields=["title", name])
        with pytest.raises(SettingsError, match="must be a list, not one text"):
            method(fields=name)
    for command, *rest in (("groups",), ("pairs",), ("similar", "--id", "d0"), ("compare", "d0", "d1")):
        done = server_cli(command, news.name, *rest, "--field", name)
        assert (done.code, f"has no field '{name}' to show" in done.err) == (2, True)


def test_the_beginning_of_a_text_without_title(client: Client, index_name: str, storage: str) -> None:
    """By default only the beginning; a field that is named is shown whole, except in tables."""
    sources = {f"d{n}": {"body": text} for n, text in enumerate(TEXTS)}
    news = prepared(client, index_name, storage, sources, {"body": {"type": "text"}})
    for hit in news.similar(id="d0").hits:
        assert len(hit.fields["body"]) <= 203
        assert sources[hit.id]["body"].startswith(hit.fields["body"].removesuffix("..."))
    assert all(len(member.fields["body"]) <= 203 for member in news.groups()[0].members)
    assert news.similar(id="d0", fields=["body"], top=1).hits[0].fields["body"] in TEXTS
    assert news.compare("d0", "d1").a.fields == {}, "the text is shown anyway"


def test_other_names_of_titles(client: Client, index_name: str, storage: str) -> None:
    """The first of title, headline, subject and name; a document may lack it."""
    properties = {name: {"type": "keyword"} for name in ("name", "subject")} | {"body": {"type": "text"}}
    sources: dict[str, JSON] = {f"d{n}": {"body": text, "name": "no"} for n, text in enumerate(TEXTS)}
    sources["d1"]["subject"] = ["some", "words"]
    news = prepared(client, index_name, storage, sources, properties)
    members = {member.id: member.fields for member in news.groups()[0].members}
    assert members == {"d0": {"subject": ""}, "d1": {"subject": "some\nwords"}, "d2": {"subject": ""}}


def test_routed_documents(client: Client, index_name: str, storage: str) -> None:
    news = prepared(client, index_name, storage, SOURCES, routing="elsewhere")
    assert [member.fields["title"] for member in news.groups()[0].members] == [
        SOURCES[member.id]["title"] for member in news.groups()[0].members
    ]
    for pair in news.pairs().with_fields():
        assert pair.fields["a"] == {"title": SOURCES[pair.a.id]["title"]}


def test_deleted_documents(client: Client, index_name: str, storage: str) -> None:
    """They have no fields."""
    news = prepared(client, index_name, storage, SOURCES)
    pairs = news.pairs()
    client.request("DELETE", f"/{news.name}/_doc/d0", params={"refresh": True})
    assert {pair.a.id: pair.fields["a"] for pair in pairs.with_fields()}["d0"] == {}


def test_bounded_numbers_of_requests(client: Client, index_name: str, storage: str) -> None:
    """Titles are read for many documents at once, texts for fewer."""
    copies = {f"d{n:03}": {"title": f"Title {n}", "body": TEXTS[0]} for n in range(60)}
    news = prepared(client, index_name, storage, copies, {**PROPERTIES})
    for fields, number in (((), 1), (["body"], 3)):  # of 60 texts, as many at a time as a heap of 1 GB allows
        spy: Any = Spy(client)
        (group,) = NearDupe(index_name, spy).groups(fields=fields)
        assert len(group.members) == 60
        asked = [body for path, body in spy.asked if path == "/_mget" and _of_users(body, index_name)]
        read = [body for body in asked if str(body).count("title") + str(body).count("'body'")]
        assert len(read) == number
        spy.asked.clear()
    pairs = news.pairs()
    assert len(list(pairs.with_fields())) == len(pairs) == 60 * 59 // 2


def _of_users(body: Any, index: str) -> bool:
    return all(doc["_index"] == index for doc in body["docs"])


def test_tables_and_json(news: NearDupe, server_cli: Cli) -> None:
    name = news.name
    for command, *rest in (("similar", "--id", "d0"), ("pairs",), ("groups",), ("compare", "d0", "d1")):
        printed = server_cli(command, name, *rest)
        assert printed.code == 0
        assert "Title 0" in printed.out or "Title 1" in printed.out, command
    title = {"title": "Title 1"}
    assert title in [hit["fields"] for hit in server_cli("similar", name, "--id", "d0", "--json").json["hits"]]
    assert title in [line["fields"]["b"] for line in server_cli("pairs", name, "--json").lines]
    assert len(server_cli("pairs", name, "--top", "1", "--json").lines) == 1
    (group,) = server_cli("groups", name, "--json").lines
    assert title in [member["fields"] for member in group["members"]]
    assert server_cli("compare", name, "d1", "d0", "--json").json["a"]["fields"] == title
    whole = server_cli("groups", name, "--group", group["group"], "--field", "meta.author").out
    for member in group["members"]:
        n = member["id"][1:]
        assert f"{member['similarity']:.4f}   A{n} B{n}" in whole
    several = server_cli("similar", name, "--id", "d0", "--field", "meta.year", "--field", "title").out
    assert "meta.year   title" in several


def test_hostile_titles(client: Client, index_name: str, storage: str, server_cli: Cli, tmp_path: Path) -> None:
    """Nothing of them controls a terminal or becomes an element of a page; long ones are cut."""
    hostile = f"{NASTY}\x1b[31m\u202e \n{' '.join(words('long', 400))}"
    sources = {f"d{n}": {"title": f"{n} {hostile}", "body": text} for n, text in enumerate(TEXTS)}
    prepared(client, index_name, storage, sources)
    for command, *rest in (("similar", "--id", "d0"), ("pairs",), ("groups",)):
        printed = server_cli(command, index_name, *rest)
        assert printed.code == 0
        assert "\x1b" not in printed.out
        assert "\u202e" not in printed.out
        assert "d1" in printed.out
        assert len(printed.out) < 3000
    page, request = tmp_path / "page.html", tmp_path / "request.json"
    assert server_cli("compare", index_name, "d0", "d1", "--html", str(page)).code == 0
    assert "<img" not in page.read_text("utf-8")
    heads = Reader(page.read_text("utf-8")).with_class("title")
    assert len(heads) == 6, "of both texts, at the top and for each matching"
    assert all(one.get("dir") == "auto" for one in heads)
    request.write_text(OF_BODIES, "utf-8")
    done = server_cli("duplicates", index_name, "--request", str(request), "--html", str(page))
    assert done.code == 0
    content = page.read_text("utf-8")
    assert not {"img", "link"} & {tag for tag, _ in Reader(content).tags}
    assert shown("\x1b[31m") in content


def test_the_page_of_duplicates(news: NearDupe, server_cli: Cli, tmp_path: Path) -> None:
    page, request = tmp_path / "page.html", tmp_path / "request.json"
    request.write_text(OF_BODIES, "utf-8")
    arguments = ("duplicates", news.name, "--request", str(request))
    assert server_cli(*arguments, "--html", str(page)).code == 0
    assert re.findall(r'<span class="title" dir="auto">([^<]*)', page.read_text("utf-8"))[:2] == ["Title 0", "Title 1"]
    assert server_cli(*arguments, "--html", str(page), "--field", "meta.author").code == 0
    assert re.findall(r'<span class="title" dir="auto">([^<]*)', page.read_text("utf-8"))[:2] == ["A0 B0", "A1 B1"]
    assert server_cli(*arguments, "--field", "title").code == 2
    wrong = server_cli(*arguments, "--html", str(page), "--field", "absent")
    assert (wrong.code, "has no field 'absent' to show" in wrong.err) == (2, True)


def test_titles_that_cannot_be_read(client: Client, index_name: str) -> None:
    """Without `_source`, only the stored text fields can be read."""
    properties = {"title": {"type": "text"}, "body": {"type": "text", "store": True}}
    make_index(client, index_name, properties, _source={"enabled": False})
    put(client, index_name, SOURCES)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)), sidecar=True)
    news.enrich()
    news.group()
    for fields in (
        news.groups()[0].members[0].fields,
        news.similar(id="d0").hits[0].fields,
        next(news.pairs().with_fields()).fields["a"],
        news.search("*").hits[0].fields,
    ):
        assert list(fields) == ["body"]
        assert any(text.startswith(fields["body"].removesuffix("...")) for text in TEXTS)
    assert news.compare("d0", "d1").a.fields == {}
    with pytest.raises(SettingsError, match="does not keep title in _source"):
        news.groups(fields=["title"])


def test_long_texts_of_pairs_are_cut_and_counted(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path
) -> None:
    """A text is in many pairs: 880 MB of JSON for 60 texts of 4.9 MB."""
    text = "word " * 20 + " ".join(f"{number:06}" for number in range(2000))
    sources = {f"d{k}": {"title": f"Title {k}", "body": f"{text} {k}"} for k in range(4)}
    news = prepared(client, index_name, "inline", sources)
    line = ("pairs", index_name, "--field", "body", "--json")
    cut, whole = server_cli(*line), server_cli(*line, "--whole-fields")
    assert len(cut.lines) == len(whole.lines) == 6
    for short, full in zip(cut.lines, whole.lines, strict=True):
        assert full["cut"] == {}
        assert short["cut"] == {side: {"body": len(full["fields"][side]["body"])} for side in "ab"}
        for side in "ab":
            assert full["fields"][side]["body"] == sources[full[side]["id"]]["body"]
            assert short["fields"][side]["body"] == full["fields"][side]["body"][:10_000] + "..."
    assert "4 texts were cut after 10,000 characters: --whole-fields shows them whole." in " ".join(cut.err.split())
    assert "cut" not in whole.err
    file = tmp_path / "pairs.csv"
    done = server_cli("pairs", index_name, "--field", "body", "--output", str(file))
    assert ("4 texts were cut" in done.err, file.stat().st_size < 6 * 21_000) == (True, True)
    pairs = news.pairs(fields=["title"])
    assert [pair.cut for pair in pairs.with_fields()] == [{}] * 6
    assert pairs.texts_cut == 0
