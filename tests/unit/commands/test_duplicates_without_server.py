"""The command duplicates without a server: example requests, schema, usage errors, output formats."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli
from server_tools import one_line
from unit_tools import pair_list, pairs_diagnostics

from es_neardupe.cli.duplicates_output import duplicates_json
from es_neardupe.commands.duplicates.request_json import example, names, schema
from es_neardupe.commands.duplicates.results import (
    ContentStageReport,
    DocumentPair,
    DuplicatesReport,
    OverlappingPair,
    OverlapsStageReport,
    PairList,
    PairOverlaps,
    PairsStageReport,
    SkippedGroup,
)
from es_neardupe.records import Address
from es_neardupe.similarity.comparison import Block

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", names())
def test_example(cli: Cli, name: str) -> None:
    done = cli("duplicates", "--example", name)
    assert (done.code, done.out, done.err) == (0, example(name), "")


def test_unknown_example(cli: Cli) -> None:
    done = cli("duplicates", "--example", "titles")
    assert (done.code, done.out) == (2, "")
    assert all(name in one_line(done.err) for name in names())


def test_schema(cli: Cli) -> None:
    done = cli("duplicates", "--schema")
    assert (done.code, done.json, done.err) == (0, schema(), "")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("news",),
        ("--request", "x.json"),
        ("news", "--request", "x.json", "--schema"),
        ("news", "--example", "identical-titles", "--request", "x.json"),
        ("news", "--schema"),
        ("--example", "identical-titles", "--schema"),
        ("news", "--request", "x.json", "--json", "--pairs-only"),
        ("news", "--request", "x.json", "--top", "0"),
    ],
)
def test_wrong_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("duplicates", *arguments).code == 2


def test_the_page_lists_all_example_requests_and_shows_one() -> None:
    text = (DOCS / "duplicates.md").read_text("utf-8")
    listed = re.findall(r"^\| `([a-z][a-z-]+)` \| ", text.partition("## Example requests")[2], re.MULTILINE)
    assert sorted(listed) == sorted(names())
    blocks = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert [block for block in blocks if block.startswith('{\n  "components"')] == [example("near-identical-abstracts")]
    assert all(json.loads(block) for block in blocks)


A, B = Address("news", "1"), Address("news", "2")
PAIRS = PairsStageReport(
    pair_list([DocumentPair(A, B, 0.5, "said")]), pairs_diagnostics(), (SkippedGroup(812, (A,), "all rights reserved"),)
)
CONTENT = ContentStageReport(({"index": "news", "id": "1", "fields": {}},), 0, 0, 0, 0.1)
OVERLAPS = OverlapsStageReport(
    (OverlappingPair(A, B, 0.5, PairOverlaps((Block((0, 3), (0, 3), 1),), 1, "<mark>", "<mark>")),), 0, 0, 0, 0.1
)


PARTS = {"pairs": "pairs", "contents": "documents", "overlaps": "overlaps"}
"""Stage -> the list in its result."""


def test_shape_of_the_json() -> None:
    """As the page has it."""
    text = (DOCS / "json.md").read_text("utf-8").partition("## `duplicates`")[2]
    block = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert block is not None
    shown = json.loads(block[1])
    stages: dict[str, PairsStageReport | ContentStageReport | OverlapsStageReport]
    stages = {"pairs": PAIRS, "contents": CONTENT, "overlaps": OVERLAPS}
    made = duplicates_json(DuplicatesReport("news", ("news",), stages, 0.1))
    assert list(made) == list(shown)
    for (stage, part), there in zip(PARTS.items(), shown["stages"].values(), strict=True):
        one = made["stages"][stage]
        assert list(one) == list(there)
        assert list(next(iter(one[part]))) == list(there[part][0])
    (group,) = re.findall(r'`(\{"size".*?)`', text)
    assert list(made["stages"]["pairs"]["skipped_groups"][0]) == list(json.loads(group))


def test_several_stages_of_a_kind_are_named() -> None:
    made = duplicates_json(DuplicatesReport("news", ("news",), {"one": PAIRS, "other": PAIRS}, 0.1))
    assert list(made) == ["index", "indices", "seconds", "stages", "groups", "warnings"]
    assert [list(one) for one in made["stages"].values()] == [["pairs", "diagnostics", "skipped_groups"]] * 2


def test_table_of_pairs() -> None:
    """A row for each pair, with the similarity by each validation, and integers if it is a number of features."""
    found = PairsStageReport(pair_list([DocumentPair(A, B, 0.5, "said")]), pairs_diagnostics(), ())
    assert found.to_arrow().to_pylist() == [
        {"a_index": "news", "a_id": "1", "b_index": "news", "b_id": "2", "similarity": 0.5, "explanation": "said"}
    ]
    references = [("news", "1", None), ("news", "2", None)]
    left, right, common = np.array([[0], [1], [12]])
    pairs = PairList(references, left, right, common, None, (np.array([0.25]),))
    (row,) = PairsStageReport(pairs, pairs_diagnostics(), ()).to_polars().rows(named=True)
    assert (row["similarity"], row["similarity_2"], row["explanation"]) == (12, 0.25, None)
    empty = PairsStageReport(pair_list([]), pairs_diagnostics(), ()).to_pandas()
    assert list(empty) == ["a_index", "a_id", "b_index", "b_id", "similarity", "explanation"]


def test_table_and_page_need_different_files(cli: Cli, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(example("identical-titles"))
    files = ("--output", str(tmp_path / "x.csv"), "--html", f"{tmp_path}/../{tmp_path.name}/x.csv")
    done = cli("duplicates", "news", "--request", str(request), *files)
    assert (done.code, done.out) == (2, "")
    assert "Two results would be written to" in " ".join(done.err.replace("│", " ").split())


@pytest.mark.parametrize("option", ["--output", "--html"])
def test_files_that_cannot_be_written_are_reported_before_the_run(cli: Cli, tmp_path: Path, option: str) -> None:
    request = tmp_path / "request.json"
    request.write_text(example("identical-titles"))
    for file, why in {str(tmp_path): "is a folder", "/dev/null": "is not a regular file"}.items():
        done = cli("duplicates", "news", "--request", str(request), option, file)
        assert (done.code, done.out) == (1, "")
        assert why in one_line(done.err)
    if option == "--html":
        assert "- is not a file name here" in cli("duplicates", "news", "--request", str(request), option, "-").err
