"""scripts/comparison on a few texts, and the page that it writes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from server_tools import delete_all, family, true_pairs

from es_neardupe.server.client import Client

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "comparison.md"

TEXTS = {f"{seed}-{number}": text for seed in range(5) for number, text in enumerate(family(seed, 3, edits=2))}


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "scripts"))
        yield import_module("comparison")
        for name in ("accuracy", "bench_tools", "comparison"):
            sys.modules.pop(name, None)


def test_tools_of_the_server_find_families(script: Any, client: Client, index_name: str) -> None:
    true = true_pairs(TEXTS, script.THRESHOLD)
    assert len(true) == 15
    script.INDEX = index_name
    comparison = script.Comparison(client, TEXTS, "no analysis")
    (own,) = comparison.es_neardupe()
    assert own.counts(true) == (15, 15, 15)
    delete_all(client, index_name)
    (usual, strict) = comparison.more_like_this()
    for answer in (usual, strict):
        wanted, hits, reported = answer.counts(true)
        assert (wanted, hits <= wanted, hits <= reported) == (15, True, True)
    assert list(comparison.min_hash()) == []
    assert comparison.missing == {"min_hash": "no analysis"}


def test_pairs_of_clusters_and_of_probes_are_counted(script: ModuleType) -> None:
    true = {("a", "b"): 1.0, ("a", "c"): 0.9, ("d", "e"): 0.8}
    clusters = (frozenset("abx"), frozenset("cd"))
    assert script.Answer("clusters", 1.0, clusters=clusters).counts(true) == (3, 1, 4)
    pairs = frozenset({("a", "b"), ("a", "z")})
    assert script.Answer("queries", 1.0, pairs, probes=frozenset("a")).counts(true) == (2, 1, 2)
    assert script.Answer("nothing", 1.0).counts(true) == (3, 0, 0)


def test_the_page_has_each_tool(script: ModuleType) -> None:
    page = PAGE.read_text("utf-8")
    for name in script.SETS:
        (text,) = re.findall(rf"--write wrote: {name} -->\n(.*?)\n<!-- end of {name} -->", page, re.DOTALL)
        lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
        assert tuple(lines[0]) == script.COLUMNS
        assert all(len(line) == len(script.COLUMNS) for line in lines)
        (own,) = [line for line in lines if line[0] == "es-neardupe"]
        assert own[4:] == ["0", "1"]
        for tool in script.TOOLS:
            named = [line for line in lines[2:] if line[0].startswith(tool.replace("es_neardupe", "es-neardupe"))]
            assert named or f"Not run: {tool}" in text, tool
