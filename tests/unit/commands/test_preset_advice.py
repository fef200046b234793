"""The preset that `distribution` recommends for texts of the kinds that people have."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import read_jsonl

from es_neardupe.commands.distribution.presets import tried
from es_neardupe.commands.distribution.recommendation import by_trials, preset_advice
from es_neardupe.commands.distribution.report import PresetAdvice, PresetTrial
from es_neardupe.index.index import Index
from es_neardupe.options import PRESETS


def advice(texts: list[str]) -> tuple[PresetAdvice, tuple[PresetTrial, ...]]:
    return preset_advice(cast(Index, SimpleNamespace(name="news")), [], texts)


def trials(**of: tuple[int, int] | tuple[int, int, int]) -> list[PresetTrial]:
    """Pairs, documents and documents held by boilerplate of some presets; 0 of the others."""
    return [PresetTrial(name, *(*of.get(name, (0, 0)), 0)[:3]) for name in PRESETS]


@pytest.mark.parametrize(
    ("found", "median", "of_kind", "preset"),
    [
        ({"strict": (40, 80), "reader": (50, 100)}, 200, None, "strict"),
        ({"strict": (40, 80), "reader": (55, 110)}, 200, None, "reader"),
        ({"strict": (40, 80), "reader": (55, 110), "scans": (9000, 200)}, 200, "scans", "strict"),  # a template
        ({"strict": (40, 80), "reader": (5000, 200)}, 200, None, "strict"),  # it mixes texts
        ({"strict": (40, 80), "reader": (120, 200, 100)}, 200, None, "strict"),
        ({"strict": (0, 0), "scans": (50, 90)}, 200, "scans", "scans"),
        ({"strict": (0, 0), "scans": (50, 90)}, 200, None, None),  # no word looks misread
        ({"strict": (40, 80), "scans": (100, 150)}, 200, "scans", "strict"),
        ({"strict": (10, 20), "short": (50, 100)}, 8, None, "short"),
        ({"strict": (10, 20), "reader": (50, 100)}, 8, None, "strict"),
        ({"strict": (0, 0), "logs": (5000, 200)}, 15, "logs", "logs"),
        ({"strict": (40, 80), "logs": (5000, 200)}, 200, None, "strict"),
        ({"strict": (40, 80), "supershingles": (38, 76), "reader": (40, 80)}, 800, None, "supershingles"),
        ({"strict": (4, 8), "reader": (5, 10)}, 200, None, None),  # too few to decide
        ({"strict": (0, 0), "reader": (3000, 200)}, 200, None, "strict"),
    ],
)
def test_by_the_trials(found: dict[str, Any], median: int, of_kind: str | None, preset: str | None) -> None:
    of_lengths = "short" if median < 19 else None
    chosen = by_trials(trials(**found), 200, median, of_kind=of_kind, of_lengths=of_lengths)
    assert (chosen and chosen.preset) == preset


def test_no_texts_and_one() -> None:
    for texts in ([], ["one text"], ["", ""], ["a", "b"]):
        found, presets = advice(texts)
        assert found.texts == len(texts)
        assert [one.preset for one in presets] == list(PRESETS)


def test_boilerplate_is_named() -> None:
    """A footer of 110 words under texts of 12: reader mixes them all."""
    chance = random.Random(1)
    footer = " ".join(f"footer{n}" for n in range(110))
    texts = [" ".join(f"w{chance.random()}" for _ in range(12)) + " " + footer for _ in range(30)]
    found, presets = advice(texts)
    held = {one.preset: one.held for one in presets}
    assert held["reader"] == 30
    assert held["logs"] == 0
    assert found.preset == "strict"


PAGE = "<html><body><p>One <b>page</b> is here</p></body></html>"
REPLY = "Monday suits me well.\n\nOn 3 Mar 2026 at 09:10, Ann wrote:\n> Shall we meet?"


@pytest.mark.parametrize(
    ("texts", "clean", "found"),
    [
        ([PAGE, "no page", "nor this"], "html-main", "1 of 3 texts of the sample are pages"),
        ([PAGE, *["no page"] * 4], None, ""),
        (["<p>A <b>part</b> of <i>one</i></p>"], "html", "1 of 1 text"),
        ([REPLY, "Monday suits me well."], "mail", "1 of 2 texts of the sample are mails"),
        (["#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void);"] * 4, None, ""),
        (["List<Order> all(Map<String, Order> some, Set<Order> others) { return List.of(); }"] * 4, None, ""),
        (["Author: Ann <a@x.example>\n\nClose it\n\nSigned-off-by: Ann <a@x.example>\nCc: <b@x.example>"], None, ""),
    ],
    ids=["pages", "few pages", "parts of pages", "mails", "C", "Java", "Git"],
)
def test_what_is_left_out_is_what_init_names(texts: list[str], clean: str | None, found: str) -> None:
    advised, _ = advice(texts)
    assert advised.clean == clean
    assert advised.reasons.startswith(found)


@pytest.mark.parametrize(
    ("name", "preset", "clean"),
    [
        ("ocr02", "scans", None),
        ("ocr05", "scans", None),
        ("short_mails", "short", None),
        ("log_lines", "logs", None),
        ("job_ads", "strict", None),
        ("html_pages", "strict", "html-main"),
        ("mails", "strict", "mail"),
        ("rechunked", "reader", None),
    ],
)
def test_kinds_of_texts(name: str, preset: str, clean: str | None) -> None:
    documents = read_jsonl(f"cases/{name}.jsonl.xz")
    field = next(name for name in ("text", "body", "message") if name in documents[0])
    random.Random(1).shuffle(documents)
    found, _ = advice([one[field] for one in documents[: 300 if name == "log_lines" else 600]])
    assert (found.preset, found.clean) == (preset, clean), found
    if clean is not None:
        assert f"`es-neardupe migrate news --preset {preset} --clean {clean}`" in found.reasons


@pytest.mark.parametrize("name", ["senate_press/sample_12_senators", "civil_codes/sections_field_family_20"])
def test_windows_of_documents_are_no_scans(name: str) -> None:
    """Each has half of its words in common with the next one, as no two texts have that are the same."""
    words = [one["text"].split() for one in read_jsonl(f"{name}.jsonl.xz")]
    long = [one for one in words if len(one) >= 500][:12]
    found, _ = advice([" ".join(one[at : at + 200]) for one in long for at in range(0, len(one) - 100, 100)])
    assert found.preset == "strict"


def test_mails_as_they_are() -> None:
    """With quotes and signatures, reader mixes the threads, because of boilerplate."""
    texts = [one["text"] for one in read_jsonl("cases/mails.jsonl.xz")[:300]]
    of = {one.preset: one for one in tried(texts)}
    assert of["reader"].held > 2 * of["strict"].held
    chosen = by_trials(list(of.values()), len(texts), 186, of_kind=None, of_lengths=None)
    assert chosen is None or chosen.preset == "strict"
