"""``--output`` of each command that has it: the rows of its ``--json``, in each format, and the tables of Python."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars
import pyarrow.parquet
import pytest
from conftest import Cli
from docs_pages import DOCS, blocks, section, table
from duplicates_requests import pairs_request
from server_tools import JSON, family, make_index, new_name, one_line, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.moved.report import moved_table
from es_neardupe.server.client import Client, path

TEXT, KEYWORD = {"type": "text"}, {"type": "keyword"}
PROPERTIES = {"title": TEXT, "text": TEXT, "url": KEYWORD, "date": {"type": "date"}}
TITLES = ["=1+1", 'says "yes"; no,\r\n-1', "ferry ü\u2028", "-2", ""]
FORMATS = ("parquet", "arrow", "csv", "jsonl")


@pytest.fixture(scope="module")
def crawled(client: Client) -> Iterator[str]:
    """A grouped index with two groups, odd titles and ids, and exact copies."""
    index = new_name()
    texts = [*family("bridge", 4), family("bridge", 4)[0], *family("ferry", 2), " ".join(words("alone", 50))]
    sources = {
        f"{number} ä/b": {
            "title": TITLES[number % len(TITLES)],
            "text": text,
            "url": f"https://news.example/{number}",
            "date": f"2024-01-{number + 1:02}",
        }
        for number, text in enumerate(texts)
    }
    make_index(client, index, PROPERTIES)
    put(client, index, sources)
    news = NearDupe(index, client)
    news.init(Settings(("text",)))
    news.enrich()
    news.group()
    yield index
    news.clean()
    client.request("DELETE", path(index))


@pytest.fixture
def files(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / "request.json").write_text(json.dumps(pairs_request()), "utf-8")
    (tmp_path / "gone.txt").write_text("https://news.example/0\nhttps://news.example/7\n=never\n", "utf-8")
    return {"REQUEST": str(tmp_path / "request.json"), "GONE": str(tmp_path / "gone.txt")}


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The values of an object by their paths, joined by ``_``."""
    if not isinstance(value, dict):
        return {name: value}
    return {key: one for part, inner in value.items() for key, one in flat(inner, f"{name}_{part}".strip("_")).items()}


def measured(line: JSON) -> JSON:
    """A pair or a hit with its measure and similarity, whichever it is."""
    rest = {name: value for name, value in line.items() if name != "resemblance"}
    return {"measure": "resemblance", "similarity": line.get("resemblance"), **rest}


def members(lines: list[JSON]) -> list[JSON]:
    return [
        flat(one)
        | flat(member)
        | {"is_principal": {name: member[name] for name in ("index", "id")} == one["principal"], "members": None}
        for one in lines
        for member in one["members"]
    ]


def redundant(lines: list[JSON]) -> list[JSON]:
    return [flat({**one, "redundant": other}) for one in lines for other in one["redundant"]]


def titled(lines: list[JSON]) -> list[JSON]:
    """Pairs of a request, whose JSON has no fields."""
    rows = []
    for one in lines[0]["stages"]["similarPairs"]["pairs"]:
        a, b = one["pair"]
        fields = {side: {"title": TITLES[int(end["id"][0]) % len(TITLES)]} for side, end in (("a", a), ("b", b))}
        rows.append(flat({**one, "a": a, "b": b, "fields": fields}))
    return rows


def places(lines: list[JSON]) -> list[JSON]:
    rows = []
    for line in lines:
        best: JSON = next((one for one in line["places"] if one["replaced"] is None), {})
        rows.append(line | {f"best_{name}": value for name, value in best.items()})
    return rows


def shares(lines: list[JSON]) -> list[JSON]:
    (report,) = lines
    parts = [("recall", None, report["recall"]), ("within", None, report["within"])]
    parts += [(part, one["name"], one["recall"]) for part in ("lengths", "scripts") for one in report[part]]
    parts += [("lost", one["reason"], {"pairs": one["pairs"], "found": 0}) for one in report["lost"]]
    return [report | {"recall": None} | share | {"part": part, "name": name} for part, name, share in parts]


def bins(lines: list[JSON]) -> list[JSON]:
    (report,) = lines
    limits = [(0, 0), *pairwise(report["edges"]), (1, 1)]
    return [
        report | one | {"low": low, "high": high, "sample": sample, "candidates": candidates}
        for one in report["distributions"]
        for (low, high), sample, candidates in zip(
            limits,
            *([one[part]["zero"], *one[part]["counts"], one[part]["one"]] for part in ("sample", "candidates")),
            strict=True,
        )
    ]


Rows = Callable[[list[JSON]], list[JSON]]
COMMANDS: dict[str, tuple[list[str], Rows]] = {
    "groups": (["groups"], members),
    "one group": (["groups", "--top", "1", "--field", "url", "--field", "text"], members),
    "keep": (["groups", "--suggest-keep"], redundant),
    "pairs": (["pairs"], lambda lines: [flat(measured(one)) for one in lines]),
    "few pairs": (
        ["pairs", "--measure", "jaccard", "--top", "3", "--field", "url"],
        lambda lines: list(map(flat, lines)),
    ),
    "similar": (["similar", "--id", "0 ä/b"], lambda lines: [flat(measured(one)) for one in lines[0]["hits"]]),
    "documents": (["documents", "--by", "url"], lambda lines: [flat(one) for one in lines[0]["pairs"]]),
    "duplicates": (["duplicates", "--request", "REQUEST"], titled),
    "moved": (["moved", "https://news.example/0"], places),
    "list": (["moved", "--gone", "GONE"], places),
    "audit": (["audit"], shares),
    "distribution": (["distribution", "--measure", "resemblance", "--measure", "jaccard"], bins),
}


def call(name: str, index: str, files: Mapping[str, str]) -> list[str]:
    (command, *arguments), _ = COMMANDS[name]
    return [command, index, *(files.get(word, word) for word in arguments)]


@pytest.mark.parametrize("name", COMMANDS)
def test_rows_are_those_of_the_json(
    name: str, crawled: str, server_cli: Cli, files: Mapping[str, str], tmp_path: Path
) -> None:
    """In each format; with the fields of the documents, odd as they are."""
    file, line = tmp_path / "table.parquet", call(name, crawled, files)
    done = server_cli(*line, "--output", str(file), "--json")
    assert (done.code, f"Wrote {file}" in done.err) == (0, True)
    written = pyarrow.parquet.read_table(file)
    columns = written.column_names
    rows = written.to_pylist()
    assert rows == [{column: row.get(column) for column in columns} for row in COMMANDS[name][1](done.lines)]
    assert len(rows) > 1 or name == "moved"
    assert all(any(row[column] is not None for row in rows) for column in columns if column not in MAY_BE_EMPTY)
    for ending in FORMATS:
        other = file.with_suffix(f".{ending}")
        again = server_cli(*line, "--output", str(other))
        assert (again.code, again.out) == (0, "")
        assert read(other) == (rows if ending != "csv" else [*map(cells, rows)])


MAY_BE_EMPTY = {
    "redundant_routing",
    "diameter",
    "weakest",
    "reviewer",
    "reason",
    "explanation",
    "matching",
    "best_known_at",
}


def read(file: Path) -> Any:
    if file.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(file.read_bytes().decode("utf-8-sig"), newline="")))
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in file.read_bytes().splitlines()]
    frame = polars.read_parquet(file) if file.suffix == ".parquet" else polars.read_ipc(file)
    return frame.rows(named=True)


def cells(row: JSON) -> dict[str, str]:
    return {name: cell(value) for name, value in row.items()}


def cell(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "-")) else str(value)


def test_tables_of_python(client: Client, crawled: str) -> None:
    """Each result is a table; nothing found is a table with the same columns."""
    news = NearDupe(crawled, client)
    results: tuple[tuple[Any, Any], ...] = (
        (news.groups(), news.groups(min_size=100)),
        (news.suggest_keep(), news.suggest_keep(min_size=100)),
        (news.pairs(), news.pairs(min=0.5, max=0.5)),
        (news.similar(id="0 ä/b"), news.similar(text="other words than these documents have")),
        (news.duplicates(json.dumps(pairs_request())).stages["similarPairs"],) * 2,
        (news.moved("https://news.example/0"), news.moved("/never")),
        (news.audit(),) * 2,  # these two always have rows
        (news.distribution(),) * 2,
    )
    for found, nothing in results:
        arrow = found.to_arrow()
        assert arrow.num_rows > 0
        assert arrow.schema == nothing.to_arrow().schema
        assert found.to_polars().equals(polars.from_arrow(arrow))
        assert list(found.to_pandas()) == arrow.column_names
    addresses = ["https://news.example/0", "/never"]
    assert moved_table(news.moved_all(addresses)).to_arrow()["address"].to_pylist() == addresses
    pairs = news.pairs()
    assert pairs.table(2).to_arrow().num_rows == 2
    assert sum(batch.num_rows for batch in pairs.table().batches()) == len(pairs)
    assert "fields_a_title" not in news.pairs(fields=None).to_arrow().column_names


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("keep", "few pairs", "one group", "list")])
def test_errors_come_before_the_run(
    name: str, crawled: str, server_cli: Cli, files: Mapping[str, str], tmp_path: Path
) -> None:
    line = call(name, "no-such-index", files)
    done = server_cli(*line, "--output", str(tmp_path / "table.xlsx"))
    assert (done.code, done.out) == (2, "")
    assert "unknown ending. Name it .parquet, .arrow, .csv or .jsonl" in one_line(done.err)
    done = server_cli(*line, "--output", str(tmp_path / "none" / "table.csv"))
    assert (done.code, "its folder does not exist" in one_line(done.err)) == (1, True)


def test_options_that_exclude_each_other(crawled: str, server_cli: Cli, tmp_path: Path) -> None:
    done = server_cli("groups", crawled, "--history", "x", "--output", str(tmp_path / "x.csv"))
    assert (done.code, "leave out" in done.err) == (2, True)


def test_an_existing_file_is_replaced(crawled: str, server_cli: Cli, tmp_path: Path) -> None:
    """Only by a complete one."""
    file = tmp_path / "table.jsonl"
    file.write_text("before")
    assert server_cli("similar", crawled, "--id", "never", "--output", str(file)).code == 1
    assert file.read_text() == "before"
    assert server_cli("similar", crawled, "--id", "0 ä/b", "--output", str(file)).code == 0
    assert len(read(file)) == 4


def test_the_page(client: Client, index_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of `docs/tables.md` run, and a comment that begins with a value says what the line gives."""
    monkeypatch.chdir(tmp_path)
    pages = new_name()
    with indexed(client, index_name, "articles.jsonl") as news, indexed(client, pages, "pages.jsonl") as other:
        names: dict[str, Any] = {"news": news, "pages": other}
        compared = 0
        for block in blocks(DOCS / "tables.md", "python"):
            exec(block, names)
            for line in block.splitlines():
                code, _, comment = line.partition("  # ")
                if comment and comment[0] in "[0123456789":
                    assert eval(code, names) == ast.literal_eval(comment), line
                    compared += 1
    assert compared == 4
    assert {file.name: len(read(file)) for file in tmp_path.iterdir()} == {"pairs.parquet": 3, "moved.csv": 2}


@contextmanager
def indexed(client: Client, name: str, file: str) -> Iterator[NearDupe]:
    """An index with the texts of the examples."""
    example = NearDupe(name, client)
    example.init(Settings(("body",)), create=True)
    example.load([str(DOCS / file)])
    example.group()
    yield example
    example.clean()
    client.request("DELETE", path(name))


def test_columns_of_the_page(crawled: str, server_cli: Cli, files: Mapping[str, str], tmp_path: Path) -> None:
    """In their order, of each command; there are no others."""
    documented = {
        re.sub(r"\[`(\w+)`\]\([\w.]+\)|`([^`]+)`", r"\1\2", row[0]): re.findall(r"`(\w+)`", row[2])
        for row in table(section("tables.md", "Columns"))
    }
    assert len(documented) == 9
    for name, columns in documented.items():
        file = tmp_path / "table.jsonl"
        key = {"groups --suggest-keep": "keep"}.get(name, name)
        assert server_cli(*call(key, crawled, files), "--output", str(file)).code == 0
        found = [one for one in read(file)[0] if not one.startswith("fields_")]
        assert found == [one for one in columns if one != "similarity_2"], name
