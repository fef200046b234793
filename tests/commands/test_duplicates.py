"""The command duplicates on real servers: the example requests, every output, and user errors."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, Run
from server_tools import JSON, delete_all, make_index, new_name, one_line, put, send, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.duplicates.request_json import example, names
from es_neardupe.commands.duplicates.results import PairsStageReport
from es_neardupe.server.client import Client

FIELDS = {name: {"type": "text"} for name in ("title", "abstract", "body")} | {"year": {"type": "integer"}}
FIELDS |= {name: {"type": "keyword"} for name in ("volume", "pages")}

TITLE = words("title", 20)
ABSTRACT = words("abstract", 60)
DISCLAIMER = "The views in this message are those of its sender only."
SLASH, ODD, UNICODE = "a/b c", "?#%&+ =1", "ü 日本 \u202e"
"""Ids that need escaping."""


def changed(text: list[str], *places: int) -> str:
    return " ".join("changed" if place in places else word for place, word in enumerate(text))


def body(*own: str) -> str:
    return " ".join([*own, DISCLAIMER])


ONE: dict[str, JSON] = {
    SLASH: {"title": "Lucy had a gray cat.", "abstract": "", "body": body("All is well.", "It rains."), "year": 2024},
    ODD: {"title": "Lucy had a gray cat.", "abstract": changed(ABSTRACT), "body": "One. Two."},
    UNICODE: {
        "title": changed(TITLE),
        "abstract": changed(ABSTRACT, 7, 30),
        "body": body("Nothing new."),
        "year": 2024,
    },
    "4": {"title": changed(TITLE, 4), "body": "LUCY HAD A GRAY CAT"},
    "5": {"title": "Lucy had a blue cat.", "body": "ONE - TWO"},
    "6": {"title": ["several", "values"], "abstract": None, "body": "Five."},
}
OTHER: dict[str, JSON] = {
    SLASH: {"title": "other", "abstract": "x", "body": "one. two!"},
    "7": {"title": "another", "body": "Six."},
}


@pytest.fixture(scope="module")
def news(client: Client) -> Iterator[str]:
    """An alias of two indices without neardupe fields; they are ``NAME-one`` and ``NAME-other``."""
    name = new_name()
    for part, sources in (("one", ONE), ("other", OTHER)):
        make_index(client, f"{name}-{part}", FIELDS, aliases={name: {}})
        put(client, f"{name}-{part}", sources)
    yield name
    delete_all(client, name)


@pytest.fixture
def ask(server_cli: Cli, tmp_path: Path) -> Any:
    """Run ``duplicates INDEX`` with this request in a file."""

    def run(index: str, request: JSON | str, *options: str) -> Run:
        file = tmp_path / "request.json"
        file.write_text(request if isinstance(request, str) else json.dumps(request), "utf-8")
        return server_cli("duplicates", index, "--request", str(file), *options)

    return run


def ready(name: str, **change: Any) -> JSON:
    """An example request; ``change``: properties of the stage that finds the pairs."""
    made: JSON = json.loads(example(name))
    made["stages"]["similarPairs"] |= change
    return made


def found(done: Run, stage: str = "similarPairs") -> JSON:
    """The result of a stage in ``--json``."""
    made: JSON = done.json["stages"][stage]
    return made


def ids(answer: JSON) -> set[frozenset[str]]:
    """The pairs of a stage in ``--json``, by ids."""
    return {frozenset(one["id"] for one in pair["pair"]) for pair in answer["pairs"]}


FOUND = {
    "identical-titles": {frozenset([SLASH, ODD])},
    "near-identical-titles": {frozenset([UNICODE, "4"])},
    "near-identical-abstracts": {frozenset([ODD, UNICODE])},
    "boilerplate-sentences": {frozenset([SLASH, UNICODE])},
    "copies-between-fields": {frozenset(pair) for pair in ([SLASH, ODD], [SLASH, "4"], [ODD, "4"], [ODD, "5"])},
    "copies-across-indices": set(),
    "records": {frozenset([SLASH, ODD]), frozenset([UNICODE, "4"])},
}


@pytest.mark.parametrize("name", FOUND)
def test_example_requests(ask: Any, news: str, name: str) -> None:
    done = ask(f"{news}-one", example(name), "--json")
    assert done.code == 0
    assert ids(found(done)) == FOUND[name]
    assert done.json["indices"] == [f"{news}-one"]
    if FOUND[name]:
        assert found(done)["pairs"][0]["explanation"].startswith("Documents share ")


def test_every_example_request_is_tested() -> None:
    assert sorted(FOUND) == names()


def test_copies_across_the_indices_of_an_alias(ask: Any, news: str) -> None:
    """Copies within one index are counted as out of scope."""
    done = ask(news, example("copies-across-indices"), "--json")
    answer = found(done)
    assert done.json["indices"] == [f"{news}-one", f"{news}-other"]
    pairs = {tuple((one["index"][len(news) + 1 :], one["id"]) for one in pair["pair"]) for pair in answer["pairs"]}
    assert {frozenset(pair) for pair in pairs} == {
        frozenset([("one", ODD), ("other", SLASH)]),
        frozenset([("one", "5"), ("other", SLASH)]),
    }
    assert answer["diagnostics"]["Aggregating results"]["Out of scope pairs"] == 1


def test_one_index_has_no_copies_across_indices(ask: Any, news: str) -> None:
    done = ask(f"{news}-one", example("copies-across-indices"))
    assert f"The request finds only pairs across indices, but {news}-one is one index" in done.err
    request = ready("identical-titles")
    request["stages"]["across"] = ready("copies-across-indices")["stages"]["similarPairs"]
    request["components"] |= ready("copies-across-indices")["components"]
    assert "is one index" in ask(f"{news}-one", request).err


def test_similarities_of_the_toy_example(ask: Any, news: str) -> None:
    request = ready("near-identical-titles")
    request["stages"]["similarPairs"]["hashGrouping"]["features"]["window"] = 3
    request["stages"]["similarPairs"]["validation"] |= {"min": 0.5, "max": 0.9}
    pairs = found(ask(f"{news}-one", request, "--json"))["pairs"]
    assert {pair["similarity"] for pair in pairs if "5" in {one["id"] for one in pair["pair"]}} == {4 / 6}
    said = "Documents share 4 out of 6 distinct features (flattened composites of words from field: title)."
    assert said in {pair["explanation"] for pair in pairs}
    request["stages"]["similarPairs"]["hashGrouping"]["features"]["window"] = 4
    assert found(ask(f"{news}-one", request, "--json"))["pairs"] == []


def test_contents_and_overlaps(ask: Any, news: str) -> None:
    done = ask(f"{news}-one", example("near-identical-abstracts"), "--json")
    assert done.err.splitlines() == [
        "similarPairs: documents without features, in no pair: 4.",
        "documents: values cut at their maxValueLength: 2.",
    ]
    assert list(done.json) == ["index", "indices", "seconds", "stages", "groups", "warnings"]
    answer = found(done, "documents")
    contents = {one["id"]: one["fields"] for one in answer["documents"]}
    assert set(contents) == {ODD, UNICODE}
    assert contents[ODD]["title"] == ONE[ODD]["title"]
    assert contents[ODD]["abstract"] == ONE[ODD]["abstract"][:250]
    assert (answer["values_cut"], answer["documents_missing"], answer["documents_not_read"]) == (2, 0, 0)
    (overlap,) = found(done, "overlaps")["overlaps"]
    assert overlap["words"] == 58
    texts = [ONE[one["id"]]["abstract"] for one in overlap["pair"]]
    assert len(overlap["blocks"]) == 3
    for block in overlap["blocks"]:
        (start, end), (other_start, other_end) = block["a"], block["b"]
        assert texts[0][start:end] == texts[1][other_start:other_end]
    assert all(html.count("<mark ") == 3 for html in overlap["html"])


def test_several_stages_are_named(ask: Any, news: str) -> None:
    request = ready("identical-titles")
    request["stages"]["again"] = request["stages"]["similarPairs"]
    answer = ask(f"{news}-one", request, "--json").json
    assert set(answer["stages"]) == {"similarPairs", "again"}
    assert ids(answer["stages"]["again"]) == FOUND["identical-titles"]
    unclear = ask(f"{news}-one", request, "--pairs-only")
    assert (unclear.code, unclear.out) == (2, "")
    assert "choose one with --stage: similarPairs, again" in one_line(unclear.err)
    assert len(ask(f"{news}-one", request, "--pairs-only", "--stage", "again").lines) == 1
    assert "No stage 'x' finds pairs" in one_line(ask(f"{news}-one", request, "--stage", "x").err)


def test_table(ask: Any, news: str) -> None:
    done = ask(f"{news}-one", example("copies-between-fields"), "--top", "2")
    assert done.code == 0
    for expected in (
        "similarPairs: 4 pairs, 2 of them shown: raise --top",
        "Computing feature hashes",
        "words from fields: title, body",
        "Skipped large hash collision groups",
        "documents: 4 documents, 2 of them shown",
    ):
        assert expected in done.out
    assert "\u202e" not in done.out


def test_skipped_groups_are_reported(ask: Any, news: str) -> None:
    request = ready("copies-between-fields")
    request["stages"]["similarPairs"]["hashGrouping"]["pairing"]["maxHashGroupSize"] = 2
    done = ask(f"{news}-one", request)
    assert "similarPairs: 1 pair, 1 of them shown" in done.out
    assert "similarPairs: 1 group of more than 2 documents made no pairs; 3 comparisons skipped." in done.err
    assert "3 documents share 'lucy had a gray cat'" in done.err
    assert "Raise maxHashGroupSize, or group by rarer features." in done.err
    request["stages"]["similarPairs"]["hashGrouping"]["pairing"]["maxHashGroupSize"] = 10_000
    assert "made no pairs" not in ask(f"{news}-one", request).err
    request["stages"]["similarPairs"]["hashGrouping"]["pairing"]["maxHashGroupSize"] = 2
    for option in ("--json", "--pairs-only"):
        assert "3 documents share" in ask(f"{news}-one", request, option).err
    answer = found(ask(f"{news}-one", request, "--json"))
    (group,) = answer["skipped_groups"]
    assert group["size"] == 3
    assert {one["id"] for one in group["documents"]} == {SLASH, ODD, "4"}


def test_lines_table_and_page(ask: Any, news: str, tmp_path: Path) -> None:
    """Each output has the same pairs, even with unusual ids."""
    index, file, page = f"{news}-one", tmp_path / "pairs.csv", tmp_path / "pairs.html"
    done = ask(index, example("copies-between-fields"), "--pairs-only", "--output", str(file), "--html", str(page))
    assert done.code == 0
    assert f"Wrote {file}" in done.err
    assert ids({"pairs": done.lines}) == FOUND["copies-between-fields"]
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig"), newline="")))
    assert [
        ({"index": row["a_index"], "id": row["a_id"]}, {"index": row["b_index"], "id": row["b_id"]}) for row in rows
    ] == [tuple(pair["pair"]) for pair in done.lines]
    assert [float(row["similarity"]) for row in rows] == [pair["similarity"] for pair in done.lines]
    assert {row["explanation"] for row in rows} == {pair["explanation"] for pair in done.lines}
    html = page.read_text("utf-8")
    assert "LUCY HAD A GRAY CAT" in html
    assert "Grouping: by words from fields: title, body." in html


def test_outputs_that_cannot_be_written(ask: Any, news: str, tmp_path: Path) -> None:
    """The error comes before the run."""
    for option in ("--output", "--html"):
        for place, why in {tmp_path: "is a folder", tmp_path / "none" / "x.csv": "its folder does not exist"}.items():
            done = ask(news, example("identical-titles"), option, str(place))
            assert (done.code, done.out) == (1, "")
            assert why in one_line(done.err)


def test_explain_comes_before_the_run(ask: Any, news: str) -> None:
    done = ask(news, example("near-identical-titles"), "--explain", "--json")
    assert done.code == 0
    assert done.err.startswith(f"similarPairs: find pairs of similar documents in {news}.\n")
    assert "5-grams of words from field: title" in done.err
    assert done.json["index"] == news


@pytest.mark.product("each")
def test_queries_choose_the_scope(ask: Any, news: str) -> None:
    for query in ({"type": "query:string", "query": "year:2024"}, {"term": {"year": 2024}}):
        answer = found(ask(f"{news}-one", ready("boilerplate-sentences", query=query), "--json"))
        assert answer["diagnostics"]["Computing feature hashes"]["Documents"] == 2
        assert ids(answer) == FOUND["boilerplate-sentences"]


def test_a_query_that_matches_nothing(ask: Any, news: str) -> None:
    request = ready("near-identical-abstracts", query={"term": {"year": 1066}})
    done = ask(news, request, "--json")
    answer = found(done)
    empty = [found(done, name)[name] for name in ("documents", "overlaps")]
    assert (answer["pairs"], empty) == ([], [[], []])
    assert answer["diagnostics"]["Computing feature hashes"]["Documents"] == 0
    shown = ask(news, request)
    assert shown.code == 0
    assert "similarPairs: 0 pairs" in shown.out
    lines = ask(news, request, "--pairs-only")
    assert (lines.code, lines.out) == (0, "")
    assert lines.err == "similarPairs: no document is in scope: the query matches nothing, or the index is empty.\n"


def test_documents_without_features_are_reported(ask: Any, news: str) -> None:
    done = ask(news, example("near-identical-abstracts"), "--pairs-only")
    assert "similarPairs: documents without features, in no pair: 5." in done.err


@pytest.mark.parametrize(
    "query", [{"type": "query:string", "query": "year:["}, {"no_such_query": {}}, {"term": {"year": "many"}}]
)
@pytest.mark.product("each")
def test_a_query_that_the_server_rejects(ask: Any, news: str, query: JSON) -> None:
    """The message of the server, in one line."""
    done = ask(f"{news}-one", ready("identical-titles", query=query))
    assert (done.code, done.out) == (1, "")
    line = one_line(done.err)
    assert any(said in line for said in ("year:[", "no_such_query", "many"))


@pytest.mark.parametrize("place", ["components", "content"])
def test_an_unknown_field(ask: Any, news: str, place: str) -> None:
    request = ready("near-identical-titles")
    if place == "components":
        request["components"]["sourceFields"]["fields"] = ["titel"]
    else:
        request["stages"]["documents"]["fields"]["fields"] = {"titel": {}}
    done = ask(f"{news}-one", request)
    assert (done.code, done.out) == (2, "")
    line = one_line(done.err)
    assert "'titel'" in line
    assert "title" in line


def test_an_unknown_index(ask: Any, index_name: str) -> None:
    done = ask(index_name, example("identical-titles"))
    assert done.code == 1
    assert f"There is no index '{index_name}'" in one_line(done.err)


def test_stored_keys_of_an_index_without_keys(ask: Any, news: str) -> None:
    request = ready("near-identical-titles")
    request["stages"]["similarPairs"]["hashGrouping"]["features"] = "scheme"
    done = ask(f"{news}-one", request)
    assert done.code == 1
    assert "es-neardupe init" in one_line(done.err)


def test_keys_of_an_enriched_index(client: Client, index_name: str, ask: Any) -> None:
    """Exact copies share every key; an unrelated text shares none."""
    make_index(client, index_name, FIELDS)
    put(client, index_name, ONE | {"copy": ONE[ODD]})
    NearDupe(index_name, client).init(Settings(("abstract",)))
    NearDupe(index_name, client).enrich()
    request = ready("near-identical-abstracts")
    request["stages"]["similarPairs"]["hashGrouping"]["features"] = "scheme"
    request["stages"]["similarPairs"]["validation"]["pairwiseSimilarity"] = {
        "type": "pairwiseSimilarity:resemblance",
        "fields": {"type": "fields:reference", "use": "sourceFields"},
    }
    (pair, *others) = found(ask(index_name, request, "--json"))["pairs"]
    assert (ids({"pairs": [pair]}), pair["similarity"], others) == ({frozenset([ODD, "copy"])}, 1, [])


def test_the_request_of_a_bad_file(ask: Any, server_cli: Cli, news: str, tmp_path: Path) -> None:
    wrong = ready("identical-titles")
    wrong["stages"]["similarPairs"]["validation"]["min"] = 2
    done = ask(news, wrong)
    assert (done.code, done.out) == (2, "")
    assert "stages.similarPairs.validation.min is 2; allowed: a number from 0 to 1." in one_line(done.err)
    missing = server_cli("duplicates", news, "--request", str(tmp_path / "none.json"))
    assert "none.json cannot be read" in one_line(missing.err)


def test_routed_documents(client: Client, index_name: str, ask: Any) -> None:
    make_index(client, index_name, FIELDS, settings={"number_of_shards": 3})
    actions = [
        ({"index": {"_index": index_name, "_id": id, "routing": f"r{id}"}}, {"title": "Lucy", "body": "b"})
        for id in ("1", "2", "3")
    ]
    send(client, actions)
    answer = found(ask(index_name, example("identical-titles"), "--json"))
    assert ids(answer) == {frozenset(pair) for pair in ("12", "13", "23")}


def test_from_python(client: Client, news: str, server_url: str) -> None:
    with NearDupe(f"{news}-one", url=server_url) as index:
        report = index.duplicates(json.loads(example("identical-titles")))
        same = index.duplicates(example("identical-titles"))
    found, again = (one.stages["similarPairs"] for one in (report, same))
    assert isinstance(found, PairsStageReport)
    assert isinstance(again, PairsStageReport)
    (pair,) = found.pairs
    assert {pair.a[1], pair.b[1]} == {SLASH, ODD}
    assert list(again.pairs) == [pair]
