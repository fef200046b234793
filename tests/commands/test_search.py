"""An ordinary search with one hit for each group: what is told of the groups is what a plain search finds."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Cli
from server_tools import JSON, change, family, make_index, new_name, one_line, put, send, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import SettingsError
from es_neardupe.server.client import Client, path

FIELDS = {"title": {"type": "text"}, "text": {"type": "text"}, "kind": {"type": "keyword"}, "n": {"type": "integer"}}


def sources() -> dict[str, JSON]:
    """Three stories of five, two and one texts, each with the word of its story; ids as people have them."""
    found = {}
    for story, size in (("harbour", 5), ("wheat", 2), ("clocks", 1)):
        for n, text in enumerate(family(story, size)):
            title = f"{story.title()} {n}" + (" bridge" if n % 2 == 0 else "")
            found[f"{story} {n}/é"] = {"title": title, "text": f"{story} {text}", "kind": f"k{n % 2}", "n": n}
    return found


SOURCES = sources()


def fill(client: Client, index: str) -> str:
    make_index(client, index, FIELDS)
    put(client, index, SOURCES)
    NearDupe(index, client).init(Settings(("text",)))
    NearDupe(index, client).enrich()
    NearDupe(index, client).group()
    return index


@pytest.fixture(scope="module")
def filled(client: Client) -> Iterator[str]:
    """An index that no test changes."""
    name = new_name()
    yield fill(client, name)
    NearDupe(name, client).clean()
    client.request("DELETE", path(name))


def plain(client: Client, index: str, query: JSON) -> list[JSON]:
    """All hits of a plain search."""
    found: list[JSON] = client.request("POST", path(index, "_search"), body={"size": 100, "query": query})["hits"][
        "hits"
    ]
    return found


def story(id: str) -> str:
    return id.split(" ", maxsplit=1)[0]


@pytest.mark.parametrize("text", ["harbour", "bridge", "bridge harbour wheat clocks", "title:bridge AND kind:k0", "*"])
@pytest.mark.product("each")
def test_one_hit_for_each_group_and_exact_counts(text: str, client: Client, filled: str) -> None:
    """The best hit of each group in the order of the plain search; near-copies are the other hits of its group."""
    texts = {"query_string": {"query": text, "fields": ["text", "title"]}}
    every = plain(client, filled, texts)
    sizes = Counter(story(hit["_id"]) for hit in every)
    found = NearDupe(filled, client).search(text)
    assert {story(hit.id): hit.near_copies + 1 for hit in found.hits} == sizes
    best = {name: max(hit["_score"] for hit in every if story(hit["_id"]) == name) for name in sizes}
    assert [hit.score for hit in found.hits] == pytest.approx(sorted(best.values(), reverse=True))
    assert (found.documents, found.groups) == (len(every), len(sizes))
    assert (found.without_group, found.without_similarity, found.apart) == (0, 0, ())


def test_filter_and_pages(client: Client, filled: str) -> None:
    scope = {"term": {"kind": "k1"}}
    found = NearDupe(filled, client).search("harbour wheat clocks", query=scope)
    assert {story(hit.id): hit.near_copies for hit in found.hits} == {"harbour": 1, "wheat": 0}
    whole = NearDupe(filled, client).search("harbour wheat clocks")
    pages = [NearDupe(filled, client).search("harbour wheat clocks", size=1, start=n).hits for n in range(4)]
    assert [hit.id for page in pages for hit in page] == [hit.id for hit in whole.hits]
    assert len(whole.hits) == 3


def test_words_that_our_fields_hold_find_nothing(client: Client, filled: str, server_cli: Cli) -> None:
    """Every document has the state "signed"."""
    assert NearDupe(filled, client).search("signed").documents == 0
    done = server_cli("search", filled, "signed")
    assert (done.code, done.out.strip(), done.err) == (0, "No document matches.", "")


def test_the_table(filled: str, server_cli: Cli) -> None:
    done = server_cli("search", filled, "bridge AND harbour", "--field", "title")
    assert done.code == 0
    assert "and 2 near-copies" in done.out
    assert "3 documents in about 1 group" in done.err
    opened = server_cli("search", filled, "bridge AND harbour", "--field", "title", "--expand")
    assert all(f"harbour {n}/é" in opened.out for n in (0, 2, 4))
    assert "to the principal" in opened.out


def test_expand(client: Client, filled: str) -> None:
    (hit,) = NearDupe(filled, client).search("harbour", expand=True).hits
    every = {id for id in SOURCES if story(id) == "harbour"}
    assert {one.id for one in hit.members} == every - {hit.id}
    (group,) = [one for one in NearDupe(filled, client).groups() if one.size == 5]
    found = {member.id: member.similarity for member in group.members}
    assert {one.id: one.similarity for one in hit.members} == {id: found[id] for id in every - {hit.id}}
    assert [one.id for one in hit.members if one.principal] == [group.members[0].id] * (group.members[0].id != hit.id)
    assert all(one.fields["title"] == SOURCES[one.id]["title"] for one in hit.members)
    assert NearDupe(filled, client).search("harbour").hits[0].members == ()


@pytest.mark.parametrize(
    "more", [(), ("--expand", "--size", "2", "--from", "1", "--query", '{"term": {"kind": "k0"}}')]
)
def test_the_request_as_it_is_printed(more: tuple[str, ...], client: Client, filled: str, server_cli: Cli) -> None:
    asked = ("search", filled, "harbour wheat clocks", *more)
    shown = server_cli(*asked, "--show-request")
    assert (shown.code, shown.err.strip()) == (0, f"POST /{filled}/_search")
    assert server_cli(*asked, "--show-request", "--json").json == shown.json
    answer = client.request("POST", path(filled, "_search"), body=shown.json)
    hits = [(hit["_id"], hit["_score"], hit["inner_hits"]["copies"]["hits"]) for hit in answer["hits"]["hits"]]
    found = server_cli(*asked, "--json").json
    assert [(hit["id"], hit["score"], hit["near_copies"]) for hit in found["hits"]] == [
        (id, score, copies["total"]["value"] - 1) for id, score, copies in hits
    ]
    assert [{one["id"] for one in hit["members"]} for hit in found["hits"]] == [
        {one["_id"] for one in copies["hits"]} - {id} for id, _, copies in hits
    ]


@pytest.mark.product("each")
def test_documents_without_a_group_stand_apart_and_pages_end(client: Client, index_name: str, server_cli: Cli) -> None:
    """`collapse` would make one hit of them."""
    filled = fill(client, index_name)
    put(client, filled, {f"new{n}": {"title": "Harbour", "text": f"harbour news {n}", "kind": "k0"} for n in range(3)})
    found = server_cli("search", filled, "harbour", "--size", "2", "--json").json
    assert [story(hit["id"]) for hit in found["hits"]] == ["harbour"]
    assert (found["documents"], found["without_group"], found["without_similarity"]) == (5, 3, 3)
    rest = NearDupe(filled, client).search("harbour", size=2, start=2)
    assert {hit["id"] for hit in found["apart"]} | {hit.id for hit in rest.apart} == {"new0", "new1", "new2"}
    shown = server_cli("search", filled, "harbour", "--size", "2")
    assert "3 documents have no group id and are listed separately, 2 of them on this page" in shown.err
    assert f"es-neardupe enrich {filled}" in shown.err
    NearDupe(filled, client).enrich()
    assert (
        NearDupe(filled, client).search("harbour").without_group,
        NearDupe(filled, client).stats().scope.ungrouped,
    ) == (0, 3)
    for n in range(3):
        change(client, filled, f"new{n}", {"text": f"harbour news once more {n}"})
    NearDupe(filled, client).enrich()
    assert "3 documents wait for" in server_cli("search", filled, "harbour", "--expand").err
    client.request("PUT", path(filled, "_settings"), body={"index.max_result_window": 4})
    assert len(NearDupe(filled, client).search("*", size=3, start=1).hits) == 3
    with pytest.raises(SettingsError, match="`start` 2 and `size` 3 reach beyond the result window of 4"):
        NearDupe(filled, client).search("*", size=3, start=2)


@pytest.mark.product("each")
def test_a_group_larger_than_what_servers_count(client: Client, index_name: str, server_cli: Cli) -> None:
    """They stop counting inner hits at 10,000, and tell 100 of them."""
    NearDupe(index_name, client).init(Settings(("text",)), create=True)
    ours = {"group": "g" * 16, "principal": False, "similarity": 0.9}
    body = {"text": "bridge", "neardupe": ours}
    send(client, [({"index": {"_index": index_name, "_id": f"d{n}"}}, body) for n in range(10_010)])
    (hit,) = NearDupe(index_name, client).search("bridge", expand=True).hits
    assert (hit.near_copies, len(hit.members)) == (10_009, 99)
    shown = server_cli("search", index_name, "bridge", "--expand")
    assert "and 10,009 near-copies" in shown.out
    assert "... and 9,910 more" in shown.out


def test_a_query_of_the_dsl(client: Client, filled: str, server_cli: Cli, tmp_path: Path, monkeypatch: Any) -> None:
    query = {"match": {"text": "harbour"}}
    file = tmp_path / "query.json"
    file.write_text(json.dumps({"query": query, "sort": [{"n": "desc"}]}), "utf-8")
    for given in (("--dsl", str(file)), (f"@{file}",)):
        (hit,) = server_cli("search", filled, *given, "--expand", "--json").json["hits"]
        assert (hit["id"], hit["score"], hit["near_copies"]) == ("harbour 4/é", None, 4)
        assert [one["id"] for one in hit["members"]] == [f"harbour {n}/é" for n in (3, 2, 1, 0)]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(query).encode())))
    (hit,) = server_cli("search", filled, "--dsl", "-", "--json").json["hits"]
    assert (story(hit["id"]), hit["near_copies"]) == ("harbour", 4)
    assert [one.id for one in NearDupe(filled, client).search(query).hits] == [hit["id"]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "The query is empty"),
        ({"query": {"match_all": {}}, "collapse": {"field": "kind"}, "size": 3}, "not collapse, size"),
        ({"query": []}, "must be an object"),
        ({"query": {}}, "must be an object"),
    ],
)
def test_queries_that_are_refused(given: Any, said: str, client: Client, filled: str) -> None:
    with pytest.raises(SettingsError, match=said):
        NearDupe(filled, client).search(given)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("bridge ((",), 1, "Failed to parse query [bridge ((]: Cannot parse 'bridge (('"),
        (("bridge", "--query", '{"matsch": {"a": 1}}'), 1, "unknown query [matsch] did you mean [match]?"),
        (("bridge", "--query", '{"term": 5}'), 1, "400"),
        (("@/no/such/file",), 1, "No such file"),
        (("bridge", "--field", "absent"), 2, "has no field 'absent' to show. Fields: kind, n, text, title."),
        (("bridge", "--from", "9995"), 2, "the result window of 10,000"),
        (("bridge", "--size", "0"), 2, "--size"),
        ((), 2, "QUERY or --dsl"),
        (("bridge", "--dsl", "x"), 2, "QUERY or --dsl"),
    ],
)
@pytest.mark.product("each")
def test_bad_input(arguments: tuple[str, ...], code: int, said: str, filled: str, server_cli: Cli) -> None:
    """What the server rejects is told in its own words."""
    done = server_cli("search", filled, *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in (one_line(done.err) if code == 1 else done.err)


@pytest.mark.parametrize("text", ["[", "5", "[]", "\udcff"])
def test_files_that_hold_no_query(text: str, filled: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "query.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = server_cli("search", filled, "--dsl", str(file))
    assert (done.code, done.out) == ((1, "") if text == "\udcff" else (2, ""))
    assert str(file) in one_line(done.err)


def test_an_index_without_our_fields(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name)
    done = server_cli("search", index_name, "bridge")
    assert done.code == 1
    assert f"es-neardupe init {index_name} --field FIELD" in one_line(done.err)


def test_two_indices_behind_an_alias(client: Client, index_name: str, server_cli: Cli) -> None:
    """The same ids in both, and groups across."""
    alias = f"{index_name}-all"
    for n, part in enumerate(("a", "b")):
        make_index(client, f"{index_name}-{part}", FIELDS, aliases={alias: {}})
        text = " ".join(words("alias", 100))
        put(client, f"{index_name}-{part}", {"one": {"title": "bridge", "text": f"{text} bridge", "n": n}})
    NearDupe(alias, client).init(Settings(("text",)))
    NearDupe(alias, client).enrich()
    NearDupe(alias, client).group()
    with NearDupe(alias, client=None, url=client.url) as both:
        (hit,) = both.search("bridge", expand=True).hits
        assert both.search_request("bridge")["collapse"]["field"] == "neardupe.group"
    (other,) = hit.members
    assert hit.near_copies == 1
    assert {(hit.index, hit.id), (other.index, other.id)} == {(f"{index_name}-{part}", "one") for part in "ab"}
    shown = server_cli("search", alias, "bridge", "--expand", "--field", "n")
    assert all(f"{index_name}-{part}/one" in shown.out for part in "ab")
    collapsed = server_cli("search", alias, "bridge", "--field", "n")
    assert f"{hit.index}/one" in collapsed.out  # though all documents shown are of one index
