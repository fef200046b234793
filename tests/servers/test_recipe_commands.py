"""The recipes of docs/recipes.md: their commands run as printed, on a small index each, with the described result."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from conftest import Cli, Run
from docs_pages import DOCS, FENCE, sections
from server_tools import JSON, hits, make_index, ours, put, runs_painless, words

from es_neardupe.server.client import Client

PAGE = DOCS / "recipes.md"
RECIPES = {title: text for title, text in sections(PAGE) if title != "Recipes"}
BLOCKS = {
    title: [block for language, block in FENCE.findall(text) if language == "sh"] for title, text in RECIPES.items()
}
KEYWORD, DATE = {"type": "keyword"}, {"type": "date"}
OTHER = " ".join(words("another story", 120))


def edited(text: str, place: int) -> str:
    """A text with another word in one place; it is no fact."""
    parts = text.split()
    return " ".join([*parts[:place], words(place, 1)[0], *parts[place + 1 :]])


STORY = " ".join(words("story", 120))
COPY, EDITED = edited(STORY, 40), edited(STORY, 80)


@dataclass
class World:
    """An index before a recipe, and what holds after it."""

    documents: Mapping[str, JSON]
    groups: list[set[str]]
    fields: Mapping[str, JSON] = field(default_factory=dict)
    more: Callable[[Outcome], None] = lambda outcome: None


@dataclass
class Outcome:
    """What the lines of a recipe did."""

    client: Client
    index: str
    runs: list[Run]
    folder: Path


def ids_of(outcome: Outcome) -> set[str]:
    return {hit["_id"] for hit in hits(outcome.client, outcome.index)}


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


# What the askers have


def pages() -> dict[str, JSON]:
    """Two pages of each story, with the template of their host."""
    found = {}
    for host, menu in (("a.example", "Home News Sport Weather"), ("b.example", "Start Archive Shop Contact Imprint")):
        for number, text in enumerate((STORY, OTHER)):
            html = f"<html><body><nav>{menu * 9}</nav><main><p>{text}</p></main><footer>{host}</footer></body></html>"
            found[f"{host}/{number}"] = {"html": html, "host": host}
    return found


def mails() -> dict[str, JSON]:
    quoted = "\n".join(f"> {line}" for line in (STORY[:300], STORY[300:600]))
    reply = "Could we put the meeting off until Thursday, please? The room is not free before that day."
    return {
        "m1": {"body": STORY},
        "m2": {"body": f"{reply}\n\nOn Monday, Ann wrote:\n{quoted}"},
        "m3": {"body": f"{' '.join(words('reply', 20))}\n\nOn Monday, Ann wrote:\n{quoted}"},
        "m4": {"body": f"-------- Forwarded message --------\nFrom: Ann <a@x.example>\nSubject: Meeting\n\n{STORY}"},
    }


def lines() -> dict[str, JSON]:
    served = "GET /api/items/{} answered with status 200 in {} ms for the user with the session {}"
    failed = "2026-11-2{} 10:00:0{} connection to 10.0.0.{} on port 5432 was refused after three attempts"
    return {
        **{f"s{n}": {"message": served.format(n * 7919, n + 3, f"{n:08x}")} for n in range(3)},
        **{f"f{n}": {"message": failed.format(n, n, n)} for n in range(3)},
    }


def products() -> dict[str, JSON]:
    text = "Cold pressed olive oil of early olives from the hills, fruity and mild, in a dark bottle of {} for salads{}"
    return {
        "p1": {"title": "Olive oil 500 ml", "description": text.format("500 ml", ""), "brand": "Oliva", "seller": "A"},
        "p2": {
            "title": "Olive oil 500 ml",
            "description": text.format("500 ml", " and fish"),
            "brand": "Oliva",
            "seller": "A",
        },
        "p3": {"title": "Olive oil 1 l", "description": text.format("1 l", ""), "brand": "Oliva", "seller": "A"},
        "p4": {
            "title": "Olive oil 500 ml",
            "description": text.format("500 ml", ""),
            "brand": "Another",
            "seller": "B",
        },
    }


def records() -> dict[str, JSON]:
    title = "Effects of early screening on survival in patients with lung cancer: a randomised controlled trial"
    return {
        "r1": {"title": title, "year": 2019, "source_rank": 2},
        "r2": {
            "title": title.replace("Effects", "Effect").replace("randomised", "randomized"),
            "year": 2019,
            "source_rank": 1,
        },
        "r3": {"title": title, "year": 2021, "source_rank": 1},
        "r4": {"title": "A survey of methods for the detection of copied passages", "year": 2019, "source_rank": 1},
    }


def scans() -> dict[str, JSON]:
    noisy = list(STORY)
    for place in range(0, len(noisy), 40):
        noisy[place] = "x"
    return {"a": {"text": STORY}, "b": {"text": "".join(noisy)}, "c": {"text": OTHER}}


def crawl() -> dict[str, JSON]:
    new = {
        "date": (date.today() + timedelta(days=1)).isoformat()
    }  # of the last day, even if a day ends during the tests
    around = [" ".join(words(f"around {part}", 200)) for part in range(2)]
    return {
        "copy": {"body": EDITED, "url": "https://copy.example/1", **new},
        "quote": {"body": f"{around[0]} {STORY} {around[1]}", "url": "https://quote.example/1", **new},
        "old": {"body": STORY, "url": "https://old.example/1", "date": "2020-01-01"},
        "other": {"body": OTHER, "url": "https://other.example/1", **new},
    }


def news(**dates: str) -> dict[str, JSON]:
    texts = {"a": STORY, "b": COPY, "c": f"{EDITED} bridge", "d": f"{OTHER} bridge"}
    return {id: {"body": text, "date": dates.get(id, "2024-05-01")} for id, text in texts.items()}


# What they get


def one_hit(outcome: Outcome) -> None:
    found = [hit["_id"] for hit in json.loads(outcome.runs[-1].out)["hits"]["hits"]]
    assert set(found) == {"c", "d"}


def newest_only(outcome: Outcome) -> None:
    answer = json.loads(outcome.runs[-2].out)
    assert (answer["errors"], len(answer["items"])) == (False, 2)
    assert ids_of(outcome) == {"b", "d"}


def documents_in_common(outcome: Outcome) -> None:
    (row,) = re.findall(r"^ (d\d).* (d\d) ", outcome.runs[-1].out, re.MULTILINE)
    assert set(row) == {"d1", "d2"}


def kept_records(outcome: Outcome) -> None:
    assert [(row["keep_id"], row["redundant_id"]) for row in rows(outcome.folder / "keep.csv")] == [("r2", "r1")]


def pairs_of_hosts(outcome: Outcome) -> None:
    (row,) = rows(outcome.folder / "hosts.csv")
    assert (row["a_document"], row["b_document"], row["a_share"]) == ("a.example", "b.example", "1.0")


def copies_of_my_article(outcome: Outcome) -> None:
    similar, contained = (run.out for run in outcome.runs[-2:])
    assert "https://copy.example/1" in similar
    assert not [name for name in ("quote", "old", "other") if f"{name}.example" in similar]
    assert re.findall(r"^ (copy|quote|old|other) ", contained, re.MULTILINE) == ["quote", "copy"]


def kept_of_the_dump(outcome: Outcome) -> None:
    (row,) = pyarrow.parquet.read_table(outcome.folder / "keep.parquet").to_pylist()
    assert {row["keep_id"], row["redundant_id"]} == {"a", "b"}


def tagged(outcome: Outcome) -> None:
    tags = {hit["_id"]: hit["_source"].get("tag") for hit in hits(outcome.client, outcome.index)}
    assert tags == {"m7": "not relevant", "m8": "not relevant", "m9": None}


def as_before(outcome: Outcome) -> None:
    sources = {hit["_id"]: hit["_source"] for hit in hits(outcome.client, outcome.index)}
    assert sources == news()
    listed = outcome.client.request("GET", f"/{outcome.index}*/_alias", params={"expand_wildcards": "all"})
    assert list(listed) == [outcome.index]


ALL_STORIES = [{"a", "b", "c"}]
CHUNKS = {
    "d1-0": {"doc_id": "d1", "text": STORY},
    "d1-1": {"doc_id": "d1", "text": COPY},
    "d2-0": {"doc_id": "d2", "text": EDITED},
    "d3-0": {"doc_id": "d3", "text": OTHER},
}
WORLDS: dict[str, World] = {
    "Hide copies in search results": World(news(), ALL_STORIES, more=one_hit),
    "Keep the newest and delete the rest": World(news(b="2024-06-01"), [], {"date": DATE}, newest_only),
    "Chunks of a RAG index": World(CHUNKS, [{"d1-0", "d1-1", "d2-0"}], {"doc_id": KEYWORD}, documents_in_common),
    "HTML pages": World(pages(), [{f"{host}.example/{n}" for host in "ab"} for n in range(2)]),
    "Mail": World(mails(), [{"m1", "m4"}]),
    "Log lines": World(lines(), [{"s0", "s1", "s2"}, {"f0", "f1", "f2"}]),
    "Product catalogue": World(products(), [{"p1", "p2"}], {"brand": KEYWORD}),
    "Bibliographic records": World(
        records(), [{"r1", "r2"}], {"year": {"type": "integer"}, "source_rank": {"type": "integer"}}, kept_records
    ),
    "OCR scans": World(scans(), [{"a", "b"}]),
    "Mirrors of sites": World(pages(), [], {"host": KEYWORD}, pairs_of_hosts),
    "Copies of my articles": World(crawl(), [], {"url": KEYWORD, "date": DATE}, copies_of_my_article),
    "A dump of a data lake before training": World({}, [{"a", "b"}], more=kept_of_the_dump),
    "Tags for reviewers": World(
        {"m7": {"body": STORY}, "m8": {"body": COPY}, "m9": {"body": OTHER}}, [{"m7", "m8"}], more=tagged
    ),
    "A nightly job": World(news(), ALL_STORIES),
    "Undo everything": World(news(), [], more=as_before),
}
PREPARED = {"Tags for reviewers": "body", "A nightly job": "body", "Undo everything": "body"}
"""Recipes that begin with an index that has keys, and the field of its texts."""


TAGS = "Tags for reviewers"
"""A recipe that needs scripts, which Elasticsearch as installed by pip does not have."""


def marked(title: str) -> Any:
    """With the products that a recipe runs on."""
    return pytest.param(title, marks=pytest.mark.product("opensearch" if title == TAGS else "each"))


def test_each_recipe_is_tested() -> None:
    assert list(RECIPES) == list(WORLDS)
    for title, found in BLOCKS.items():
        (block,) = found
        assert len(block.splitlines()) <= 6, title
        asked = re.compile(r"\n+<!-- search: .* -->\n\n\*[^*\n]+\*\n\n```sh\n")
        assert asked.match(RECIPES[title]), f"{title}: the question, then the commands"
        assert re.search(r"\]\([\w-]+\.md", RECIPES[title]), f"{title}: a link"


def run_lines(block: str, name: str, index: str, server_cli: Cli, url: str, folder: Path) -> Iterator[Run]:
    """The commands of a recipe about the index ``name``, one after the other, on the index ``index``."""
    for line in block.splitlines():
        if line.startswith("curl "):
            command = line.replace(f"/{name}/", f"/{index}/").replace(f'"index": "{name}"', f'"index": "{index}"')
            environ = {"ES_NEARDUPE_URL": url, "PATH": "/usr/bin:/bin"}
            done = subprocess.run(
                ["sh", "-c", command], cwd=folder, env=environ, capture_output=True, text=True, check=True
            )
            yield Run(0, done.stdout, done.stderr)
            continue
        for part in line.split(" && "):
            program, *arguments = shlex.split(part)
            assert program == "es-neardupe"
            if arguments[0] != "node":  # the server of the tests runs
                assert arguments[1] == name
                yield server_cli(arguments[0], index, *arguments[2:])


@pytest.mark.parametrize("title", [marked(title) for title in WORLDS])
def test_recipe(
    title: str,
    client: Client,
    index_name: str,
    server_cli: Cli,
    server_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, (block,) = WORLDS[title], BLOCKS[title]
    if title == TAGS and not runs_painless(client):
        pytest.skip("Elasticsearch as installed by pip has neither scripts nor update by query")
    if "curl " in block and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "article.txt").write_text(STORY, "utf-8")
    (tmp_path / "dump").mkdir()
    dump = [{"id": id, "text": text} for id, text in (("a", STORY), ("b", COPY), ("c", OTHER))]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(dump), tmp_path / "dump" / "part-0.parquet")
    (name, *_) = re.findall(r"es-neardupe (?:init|enrich|clean) (\w+)|/(\w+)/_update", block)
    if world.documents:
        texts = {one: {"type": "text"} for document in world.documents.values() for one in document}
        make_index(client, index_name, {**texts, **world.fields})
        put(client, index_name, world.documents)
    if title in PREPARED:
        for words_of_command in (("init", index_name, "--field", PREPARED[title]), ("enrich", index_name)):
            assert server_cli(*words_of_command).code == 0
        assert server_cli("group", index_name).code == 0
    runs = list(run_lines(block, "".join(name), index_name, server_cli, server_url, tmp_path))
    assert [run.err for run in runs if run.code] == []
    groups: dict[str, set[str]] = {}
    for id, stored in ours(client, index_name).items():
        groups.setdefault(str(stored.get("group")), set()).add(id)
    groups.pop("None", None)
    if world.groups:
        assert sorted((one for one in groups.values() if len(one) > 1), key=sorted) == sorted(world.groups, key=sorted)
    world.more(Outcome(client, index_name, runs, tmp_path))
