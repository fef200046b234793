"""Examples of plain requests and of commands that read: they are sent and run as printed, output is compared."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from docs_pages import blocks
from server_tools import JSON, change, new_name

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import RequestError
from es_neardupe.server.client import Client, path
from es_neardupe.server.search import knows

DOCS = Path(__file__).parents[2] / "docs"
RECIPES = {
    title: block
    for page in ("search.md", "plain-requests.md")
    for title, text in re.findall(r"^##+ (.*?)\n(.*?)(?=^##|\Z)", (DOCS / page).read_text("utf-8"), re.M | re.S)
    for block in re.findall(r"```http\n(.*?)```", text, re.DOTALL)
}
TAG = "Tag the near-duplicates of a document"
TAG_WITHOUT_SCRIPTS = "Tag without scripts"
SEARCHES = [title for title in RECIPES if title not in (TAG, TAG_WITHOUT_SCRIPTS)]
BRIDGE = {"1001", "1002", "1003", "1004"}


def make_news(client: Client, name: str) -> None:
    """The index of the examples."""
    NearDupe(name, client).init(Settings(("body",)), create=True)
    NearDupe(name, client).load([str(DOCS / "articles.jsonl")])
    NearDupe(name, client).group()


@pytest.fixture(scope="module")
def news(client: Client) -> Iterator[str]:
    """The index of the examples, which no test changes."""
    name = new_name()
    make_news(client, name)
    yield name
    NearDupe(name, client).clean()
    client.request("DELETE", path(name))


def ids(answer: JSON) -> list[str]:
    return [hit["_id"] for hit in answer["hits"]["hits"]]


def buckets(answer: JSON, name: str) -> list[JSON]:
    found: list[JSON] = answer["aggregations"][name]["buckets"]
    return found


def request(answer: JSON) -> None:
    assert [
        (hit["_id"], hit["inner_hits"]["copies"]["hits"]["total"]["value"] - 1) for hit in answer["hits"]["hits"]
    ] == [
        ("1004", 3),
        ("1008", 0),
    ]
    assert {name: next(iter(one.values())) for name, one in answer["aggregations"].items()} == {
        "groups": 2,
        "without_group": 0,
        "without_similarity": 0,
    }


def collapse(answer: JSON) -> None:
    first, second = ids(answer)
    assert (first in BRIDGE, second) == (True, "1008")
    assert answer["hits"]["total"]["value"] == 5
    assert answer["aggregations"]["stories"]["value"] == 2
    inner = answer["hits"]["hits"][0]["inner_hits"]["others"]["hits"]
    assert (inner["total"]["value"], len(inner["hits"])) == (4, 2)
    assert not {"bands", "signature"} & set(answer["hits"]["hits"][0]["_source"]["neardupe"])


def copies(answer: JSON) -> None:
    (bucket,) = buckets(answer, "texts")
    assert {hit["_id"] for hit in bucket["ids"]["hits"]["hits"]} == {"1001", "1004"}


def largest(answer: JSON) -> None:
    assert [one["doc_count"] for one in buckets(answer, "largest")] == [3, 1]
    assert buckets(answer, "largest")[0]["least"]["value"] == pytest.approx(0.8172042965888977, abs=1e-12)


def facets(answer: JSON) -> None:
    months = [(one["key_as_string"], one["doc_count"], one["stories"]["value"]) for one in buckets(answer, "months")]
    assert months == [("2024-05", 4, 1), ("2024-08", 2, 1), ("2024-09", 3, 3)]


def stories(answer: JSON) -> None:
    assert (answer["hits"]["total"]["value"], answer["aggregations"]["stories"]["value"]) == (4, 1)


def in_order(*expected: str) -> Callable[[JSON], None]:
    def check(answer: JSON) -> None:
        assert ids(answer) == list(expected)

    return check


def any_order(*expected: str) -> Callable[[JSON], None]:
    def check(answer: JSON) -> None:
        assert sorted(ids(answer)) == sorted(expected)

    return check


SAID: dict[str, Callable[[JSON], None]] = {
    "Show the request": request,
    "Collapse": collapse,
    "Principals only": in_order("1003", "1008"),
    "Near-duplicates of a document by its group": any_order("1003", "1001", "1004"),
    "Candidates of a document by its keys": any_order("1003", "1001", "1004"),
    "Exact copies": copies,
    "Largest groups": largest,
    "Count stories instead of documents": stories,
    "Facets without double counting": facets,
}


def test_every_recipe_is_tested() -> None:
    assert set(SAID) == set(SEARCHES)
    assert set(RECIPES) == {*SEARCHES, TAG, TAG_WITHOUT_SCRIPTS}


@pytest.mark.parametrize("title", SEARCHES)
@pytest.mark.product("each")
def test_recipe(title: str, client: Client, news: str) -> None:
    head, _, body = RECIPES[title].partition("\n")
    assert head == "POST /news/_search"
    asked: dict[str, Any] = json.loads(body.replace('"index": "news"', f'"index": "{news}"'))
    SAID[title](client.request("POST", path(news, "_search"), body=asked))


@pytest.mark.parametrize("title", [pytest.param(TAG, marks=pytest.mark.product("opensearch")), TAG_WITHOUT_SCRIPTS])
def test_tag_the_near_duplicates(title: str, client: Client, index_name: str) -> None:
    """The group gets the tag and nothing else changes; keys and groups stay valid."""
    if title == TAG and not knows(
        client, "POST", path("_scripts", "painless", "_execute"), {"script": {"source": "1"}}
    ):
        pytest.skip("Elasticsearch as installed by pip has neither scripts nor update by query")

    def sources() -> dict[str, JSON]:
        client.request("POST", path(index_name, "_refresh"))
        found = client.request("POST", path(index_name, "_search"), body={"size": 100})
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}

    make_news(client, index_name)
    before = sources()
    query = json.loads(RECIPES[TAG].partition("\n")[2].replace('"index": "news"', f'"index": "{index_name}"'))["query"]
    found = {"query": query, "seq_no_primary_term": True, "size": 10_000}
    hits = client.request("POST", path(index_name, "_search"), body=found)["hits"]["hits"]
    assert {hit["_id"] for hit in hits} == BRIDGE
    (tag_by_script if title == TAG else tag_by_updates)(client, index_name, query, hits)
    after = sources()
    assert {id for id, one in after.items() if one.get("review") == "not relevant"} == BRIDGE
    added = {"review": "", "views": None}
    assert [one | added for one in after.values()] == [before[id] | added for id in after]
    enriched, grouped = NearDupe(index_name, client).enrich(check=True), NearDupe(index_name, client).group()
    assert (enriched.writes.written, grouped.writes.written) == (0, 0)


def tag_by_script(client: Client, index: str, query: JSON, hits: list[JSON]) -> None:
    """The first request of the page, twice: the second one changes nothing."""
    head, _, body = RECIPES[TAG].partition("\n")
    assert head == "POST /news/_update_by_query?conflicts=proceed"
    for updated, noops in ((4, 0), (0, 4)):
        request = {"body": {**json.loads(body), "query": query}, "params": {"conflicts": "proceed"}}
        answer = client.request("POST", path(index, "_update_by_query"), **request)
        assert (answer["updated"], answer["noops"]) == (updated, noops)
        assert (answer["version_conflicts"], answer["failures"]) == (0, [])
        client.request("POST", path(index, "_refresh"))


def tag_by_updates(client: Client, index: str, query: JSON, hits: list[JSON]) -> None:
    """The second one, for each hit; one of them changes in between."""
    head, _, body = RECIPES[TAG_WITHOUT_SCRIPTS].partition("\n")
    assert head == "POST /news/_update/1001?if_seq_no=0&if_primary_term=1"

    def tag(hit: JSON) -> None:
        version = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        client.request("POST", path(index, "_update", hit["_id"]), params=version, body=json.loads(body))

    *others, last = hits
    change(client, index, last["_id"], {"views": 1})
    with pytest.raises(RequestError) as error:
        tag(last)
    assert error.value.status == 409
    for hit in (*others, client.request("GET", path(index, "_doc", last["_id"]))):
        tag(hit)


def test_the_request_of_the_page_is_the_one_that_is_sent(client: Client, news: str) -> None:
    body = json.loads(RECIPES["Show the request"].partition("\n")[2])
    assert NearDupe(news, client).search_request("bridge harbour", fields=["title"]) == body


# docs/moved.md


@pytest.fixture(scope="module")
def pages(client: Client) -> Iterator[str]:
    """The index of the examples on the page about moved."""
    name = new_name()
    NearDupe(name, client).init(Settings(("body",)), create=True)
    NearDupe(name, client).load([str(DOCS / "pages.jsonl")])
    NearDupe(name, client).group()
    yield name
    NearDupe(name, client).clean()
    client.request("DELETE", path(name))


def bare(text: str) -> list[list[str]]:
    """The words of each line, without rules and empty lines: the width of a column depends on the name of the index."""
    return [line.split() for line in text.splitlines() if line.strip("─ ")]


def test_what_moved_prints(pages: str, server_cli: Cli, tmp_path: Path) -> None:
    one, many = re.findall(r"```console\n(.*?)```", (DOCS / "moved.md").read_text("utf-8"), re.DOTALL)
    shown = server_cli("moved", pages, "https://news.example/bridge")
    assert bare(one)[1:] == bare((shown.out + shown.err).replace(pages, "pages"))
    rows = [line.split(",")[0] for line in many.splitlines() if line.startswith("https://")]
    file = tmp_path / "dead-links.txt"
    file.write_text("\n".join(rows), "utf-8")
    listed = server_cli("moved", pages, "--gone", str(file))
    assert many.splitlines()[1:] == (listed.out + listed.err).replace(pages, "pages").splitlines()


def test_what_search_prints(news: str, server_cli: Cli) -> None:
    page = (DOCS / "search.md").read_text("utf-8")
    blocks = [one for one in re.findall(r"```console\n(.*?)```", page, re.DOTALL) if "es-neardupe search news" in one]
    assert len(blocks) == 2
    for block in blocks:
        more = ("--expand",) if "--expand" in block else ()
        done = server_cli("search", news, "bridge harbour", "--field", "title", *more)
        numbers = re.compile(r"^\d\.\d{4}$")  # scores differ between servers
        expected, found = (
            [[word for word in line if not numbers.match(word) or line[0] != word] for line in bare(text)]
            for text in (block.partition("\n")[2], done.out + done.err)
        )
        assert expected == found


# Commands that read the index news, on any page

READING = {"compare", "contained", "groups", "pairs", "shingles", "similar", "stats", "what-if"}
OTHER_STATE = {"moved", "roles"}
"""Pages whose examples have another user, or an index in another state."""


def examples() -> Iterator[Any]:
    """(command, output) of each example that needs nothing but the index news."""
    for page in sorted(set(DOCS.glob("*.md")) - {DOCS / f"{name}.md" for name in OTHER_STATE}):
        for block in blocks(page, "console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, output = part.partition("\n")
                program, *words = shlex.split(line)
                reads = program == "es-neardupe" and words[0] in READING and words[1:2] == ["news"]
                if reads and not {"--output", "--html"} & set(words):
                    yield pytest.param(words, output, id=f"{page.stem}-{' '.join(words)}")


@pytest.mark.parametrize(("words", "output"), [*examples()])
def test_what_commands_print_about_news(
    words: list[str], output: str, news: str, client: Client, server_cli: Cli
) -> None:
    """Each line that a page shows is printed; names of groups depend on that of the index."""
    ids = dict(zip(("UarK_Gkvv2CK8BnQ", "OlxsqwcMteOwZTK_"), NearDupe(news, client).groups(), strict=True))
    run = server_cli(words[0], news, *(ids[word].group if word in ids else word for word in words[2:]))
    found = (run.out + run.err).replace(news, "news")
    for shown, group in ids.items():
        found = found.replace(group.group, shown)
    date = re.compile(r"20\d\d-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)")
    printed = bare(date.sub("DATE", found))
    missing = [line for line in bare(date.sub("DATE", output)) if line not in printed and line != ["..."]]
    assert missing == []
