"""scripts/accuracy on small sets, and the page that it writes."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import DATA, read_data

from es_neardupe.server.client import Client

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accuracy.md"
NAMES = ("press releases", "civil codes", "news articles", "licence texts", "short answers", "records")
"""Of the sets, on the page."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "scripts"))
        spec = importlib.util.spec_from_file_location("accuracy", ROOT / "scripts" / "accuracy.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patched.setitem(sys.modules, "accuracy", module)
        spec.loader.exec_module(module)
        return module


def rows(name: str) -> list[list[str]]:
    """The cells of one of the tables of the page."""
    (text,) = re.findall(rf"--write wrote: {name} -->\n(.*?)<!-- end of {name} -->", PAGE.read_text("utf-8"), re.DOTALL)
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return lines[2:]


def test_the_script_on_small_sets(script: ModuleType, client: Client) -> None:
    read_data("ttds_articles/articles_100.train")
    accuracy = script.Accuracy(client, DATA, {})
    (articles,) = accuracy.ttds_articles("100")
    assert (articles.documents, articles.true, articles.hits, articles.found, articles.wrong) == (100, 5, 5, 5, 0)
    assert articles.cells()[6:] == ["1.0000 (0.4782 to 1.0000)", "0", "1.0000"]
    # Values that differ from the independent ones are counted.
    (articles,) = script.Accuracy(client, DATA, {"news articles": {}}).ttds_articles("100")
    assert articles.wrong == 5


def test_the_page_has_the_numbers_of_the_script(script: ModuleType, client: Client) -> None:
    read_data("clough_stevenson/file_information.csv")
    found = [row.cells() for row in script.Accuracy(client, DATA, {}).clough_stevenson()]
    assert [row for row in rows("accuracy") if row[0].startswith("short answers")] == found
    script.drop_index(client, script.INDEX)


def test_the_page_has_the_numbers_of_presets(script: ModuleType) -> None:
    """Each preset on pages with wrong characters, by its keys and measure."""
    read_data("cases/ocr02.jsonl.xz")
    pages = {one["id"]: one for one in script.read_lines(DATA / "cases" / "ocr02.jsonl.xz")}
    texts = {id: one["text"] for id, one in pages.items()}
    for preset in ("strict", "reader", "scans", "short"):
        pairs = script.matched(texts, preset)
        twice = sum(pages[a]["page"] == pages[b]["page"] for a, b in pairs)
        (row,) = (row for row in rows("presets") if row[:2] == ["pages, 2 % wrong", preset])
        assert (row[3], row[5]) == (f"{twice:,}", f"{len(pairs) - twice:,}")
    assert script.matched({"a": "One two", "b": "one, two"}, "strict") == {("a", "b")}
    assert len(rows("scans")) == len(script.SCAN_KEYS)


def test_the_page_has_every_set(script: ModuleType) -> None:
    page = PAGE.read_text("utf-8")
    shown = rows("accuracy")
    assert all(len(row) == len(script.COLUMNS) for row in shown)
    for name in NAMES:
        some = [row for row in shown if row[0].startswith(name)]
        assert some, name
        assert all(re.fullmatch(r"\d\.\d{4} \(\d\.\d{4} to \d\.\d{4}\)", row[6]) for row in some)
        assert f"\n- **{name.capitalize()}**" in page, "each set is described with its source"
    assert len(script.SETS) == len(NAMES)
    assert re.search(r"^es-neardupe \S+, \d+ \w+ 20\d\d, \S+ \S+ and \S+ \S+\.$", page, re.MULTILINE)
    assert {row[7] for row in shown} == {"0"}, "a wrong value is an error of the program"
    assert len(rows("limits")) > 10
    assert "## What the program is not good at" in page
