"""The page of a duplicates request with the texts of a real server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conftest import Cli
from page_reader import NASTY, Reader
from server_tools import make_index, one_line, put
from unit_tools import words

from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.commands.duplicates.request_plan import DuplicatesPlan, SchemeKeys, Validation
from es_neardupe.commands.duplicates.results import DocumentPair, page_contents, page_texts
from es_neardupe.options import Matching
from es_neardupe.records import Address
from es_neardupe.server.client import Client
from es_neardupe.similarity.features import Flatten, Ngrams, Values, Words

FIELDS = {name: {"type": "text"} for name in ("title", "abstract", "body")}
TITLES = Values(("title",))
PLAN = DuplicatesPlan(
    "pairs",
    None,
    Ngrams(3, Words(("body.text",))),
    200,
    (Validation("featureIntersectionToUnionRatio", Flatten(Words(("title",))), (), Matching.LITERAL, 1, 5, 0.5, 1.0),),
    explanations=True,
)


def texts_of(
    client: Client, plan: DuplicatesPlan, *pairs: tuple[Address, Address], maximum: int = 99
) -> dict[Address, str]:
    return page_texts(client, plan, [DocumentPair(a, b, 1.0) for a, b in pairs], maximum)


def test_page_of_the_command(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """Markup in titles is shown as text."""
    make_index(client, index_name, FIELDS)
    titles = {id: f"{NASTY} {words(0, 60)} {colour}" for id, colour in (("a/1", "red"), ("ü 2 \u202e", "blue"))}
    put(client, index_name, {id: {"title": title} for id, title in titles.items()} | {"3": {"abstract": "no title"}})
    request, file = tmp_path / "request.json", tmp_path / "page.html"
    request.write_text(example("near-identical-titles"), "utf-8")
    done = server_cli("duplicates", index_name, "--request", str(request), "--html", str(file))
    assert done.code == 0
    assert done.err.splitlines() == ["similarPairs: documents without features, in no pair: 1.", f"Wrote {file}"]
    content = file.read_text("utf-8")
    found = Reader(content)
    assert found.panes == dict(zip(("pair-1-texts-a", "pair-1-texts-b"), titles.values(), strict=True))
    assert len(found.with_class("pair")) == 1
    for said in ("find pairs of similar documents", "Hash collision groups", "Pairs passing", "Documents share"):
        assert said in content
    again = server_cli("duplicates", index_name, "--request", str(request), "--html", str(tmp_path))
    assert (again.code, "is a folder" in one_line(again.err)) == (1, True)


def test_the_fields_of_the_page() -> None:
    """The fields of the validation come first, then those of the grouping, each once."""
    assert PLAN.fields == ("title", "body.text")
    assert replace(PLAN, grouping=Words(("body.text", "title"))).fields == ("title", "body.text")
    assert replace(PLAN, grouping=SchemeKeys()).fields == ("title",)
    measure = replace(PLAN.validations[0], measure="jaccard", features=None, fields=("b", "a"))
    assert replace(PLAN, validations=(measure,), grouping=TITLES).fields == ("b", "a", "title")


def test_texts_are_found_in_all_indices(client: Client, index_name: str) -> None:
    """With any id and routing; deleted documents are left out."""
    ids = ["a/b c", "ü?*,\"'", "<b>"]
    for name in (f"{index_name}-1", f"{index_name}-2"):
        make_index(client, name, settings={"number_of_shards": 3})
        put(client, name, {id: {"title": f"{id} in {name}", "body": {"text": ["one", "two"]}} for id in ids})
    put(client, f"{index_name}-1", {"routed": {"title": 7}}, routing="elsewhere")
    put(client, f"{index_name}-1", {"other": {"name": "no title"}})
    one, two = ([Address(f"{index_name}-{k}", id) for id in ids] for k in (1, 2))
    routed, other, gone = (Address(f"{index_name}-1", id) for id in ("routed", "other", "gone"))
    found = texts_of(client, PLAN, *zip(one, two, strict=True), (routed, gone), (one[0], other))
    assert found == {
        **{(index, id): f"{id} in {index}\none\ntwo" for index, id in [*one, *two]},
        routed: "7",
        other: "",
    }
    assert texts_of(client, PLAN, (one[0], two[0]), maximum=5)[one[0]] == "a/b c"
    assert texts_of(client, PLAN) == {}


def test_more_documents_than_are_read_at_once(client: Client, index_name: str) -> None:
    make_index(client, index_name)
    put(client, index_name, {f"d{k}": {"title": f"title {k}"} for k in range(60)})
    addresses = [Address(index_name, f"d{k}") for k in range(60)]
    found = texts_of(client, PLAN, *((addresses[0], one) for one in addresses[1:]))
    assert found == {(index_name, f"d{k}"): f"title {k}" for k in range(60)}


def test_content_hashes(client: Client, index_name: str) -> None:
    """Of the whole text, by its words: more documents than are hashed at once, without deleted ones."""
    make_index(client, index_name)
    put(client, index_name, {f"d{k}": {"title": f"{'Title,' if k % 2 else 'title'} {k // 2}"} for k in range(600)})
    addresses = [Address(index_name, f"d{k}") for k in range(600)]
    gone = Address(index_name, "gone")
    found = page_contents(client, PLAN, [DocumentPair(one, gone, 1.0) for one in addresses])
    assert set(found) == set(addresses)
    assert all(found[addresses[k]] == found[addresses[k + 1]] for k in range(0, 600, 2))
    assert len(set(found.values())) == 300


def test_copies_are_folded_on_the_page(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    make_index(client, index_name, FIELDS)
    red, blue = (f"{words(0, 60)} {colour}" for colour in ("red", "blue"))
    put(client, index_name, {"r1": {"title": red}, "r2": {"title": red}, "b1": {"title": blue}, "b2": {"title": blue}})
    request, file = tmp_path / "request.json", tmp_path / "page.html"
    request.write_text(example("near-identical-titles"), "utf-8")
    assert server_cli("duplicates", index_name, "--request", str(request), "--html", str(file)).code == 0
    content = file.read_text("utf-8")
    assert "<b>4</b> pairs" in content, "identical titles are excluded by the request"
    assert "1 row for 4 pairs" in content
    assert len(Reader(content).with_class("pair")) == 1
    assert "3 more pairs of exact copies of these texts" in content
