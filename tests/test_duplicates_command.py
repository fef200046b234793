"""The command duplicates where it needs no server: ready requests, schema, and how it is called."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import Cli
from server_tools import one_line

from es_neardupe.requests import example, names, schema

PAGE = Path(__file__).parents[1] / "docs" / "duplicates.md"


@pytest.mark.parametrize("name", names())
def test_example(cli: Cli, name: str) -> None:
    done = cli("duplicates", "--example", name)
    assert (done.code, done.out, done.err) == (0, example(name), "")


def test_unknown_example(cli: Cli) -> None:
    done = cli("duplicates", "--example", "titles")
    assert (done.code, done.out) == (1, "")
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
        ("news", "--example", "identical-titles"),
        ("--example", "identical-titles", "--schema"),
        ("news", "--request", "x.json", "--json", "--pairs-only"),
        ("news", "--request", "x.json", "--csv", "-", "--pairs-only"),
        ("news", "--request", "x.json", "--json", "--csv", "-"),
        ("news", "--request", "x.json", "--top", "0"),
    ],
)
def test_wrong_usage(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("duplicates", *arguments).code == 2


def test_the_page_has_all_ready_requests() -> None:
    blocks = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert sorted(blocks) == sorted(map(example, names()))
    assert all(json.loads(block) for block in blocks)
