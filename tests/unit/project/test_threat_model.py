"""``docs/threat-model.md``: every promise names tests that exist, in the file that it links to."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from docs_pages import DOCS

PAGE = DOCS / "threat-model.md"
LINKED = re.compile(r"\[(?P<name>[^\]]+)\]\((?P<path>\.\./tests/[^)]+)\)(?P<tests>(?:,? `[^`]+`)*)")


def promises() -> list[tuple[str, str]]:
    """Each promise with its cell of tests."""
    text = PAGE.read_text("utf-8").partition("## Promises")[2].partition("## Not promised")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert all(len(row) == 2 for row in rows)
    return [(promise, tests) for promise, tests in rows if promise != "promise"]


@cache
def defined_in(file: Path) -> frozenset[str]:
    """The test functions of a file, also those in classes."""
    found = (node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in found if node.name.startswith("test_"))


@pytest.mark.parametrize(("promise", "cell"), promises(), ids=[promise[:40] for promise, _ in promises()])
def test_each_promise_has_tests(promise: str, cell: str) -> None:
    linked = list(LINKED.finditer(cell))
    assert "; ".join(one[0] for one in linked) == cell, promise
    for one in linked:
        file, names = (PAGE.parent / one["path"]).resolve(), re.findall("`([^`]+)`", one["tests"])
        assert (file.name, file.is_file()) == (one["name"], True)
        assert names
        assert set(names) <= defined_in(file)


def test_there_are_promises_of_each_kind() -> None:
    headings = re.findall(r"^### (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(headings) == 7
    assert len(promises()) >= 5 * len(headings)
