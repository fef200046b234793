"""The preset that `distribution` recommends for texts of the kinds that people have."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import read_jsonl

from es_neardupe.commands.distribution.presets import LOWER, SINGLE_WORDS, WITH_FACTS, tried
from es_neardupe.commands.distribution.recommendation import by_trials, have_moved, preset_advice
from es_neardupe.commands.distribution.report import PresetAdvice, PresetChoice, PresetTrial
from es_neardupe.index.index import Index
from es_neardupe.options import PRESETS


def advice(texts: list[str]) -> tuple[PresetAdvice, tuple[PresetTrial, ...]]:
    return preset_advice(cast(Index, SimpleNamespace(name="news")), [], texts)


def trials(**of: tuple[int, int] | tuple[int, int, int]) -> list[PresetTrial]:
    """Pairs, documents and documents held by boilerplate of some presets, those with options by a name of their own; 0
    of the others."""
    return [trial(one, *of.get(name, (0, 0))) for name, one in CHOICES.items()]


def trial(one: PresetChoice, pairs: int, documents: int, held: int = 0) -> PresetTrial:
    return PresetTrial(**one.named, pairs=pairs, documents=documents, held=held)


CHOICES = {name: PresetChoice(name) for name in PRESETS} | {
    "strict_6": LOWER[0],
    "strict_5": LOWER[1],
    "with_facts": WITH_FACTS,
    "single_words": SINGLE_WORDS,
}


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
        ({"strict": (0, 0), "strict_6": (50, 100), "strict_5": (60, 120)}, 200, None, "strict --threshold 0.6"),
        ({"strict": (0, 0), "strict_5": (60, 120)}, 200, None, "strict --threshold 0.5"),
        ({"strict": (40, 80), "strict_5": (60, 120)}, 200, None, "strict"),
        ({"reader": (40, 80), "strict_6": (60, 120)}, 200, None, "reader"),
        ({"reader": (3000, 200), "strict_5": (60, 120)}, 200, None, "strict"),  # a template
        ({"strict_5": (3000, 200)}, 200, None, None),
        ({"short": (300, 200), "single_words": (90, 180)}, 8, None, SINGLE_WORDS.title),
        ({"short": (300, 200), "with_facts": (60, 120), "single_words": (90, 180)}, 8, None, "short"),
        ({"short": (3000, 200), "with_facts": (60, 120), "single_words": (90, 180)}, 8, None, WITH_FACTS.title),
    ],
)
def test_by_the_trials(found: dict[str, Any], median: int, of_kind: str | None, preset: str | None) -> None:
    of_lengths = "short" if median < 19 else None
    chosen = by_trials(trials(**found), 200, median, of_kind=of_kind, of_lengths=of_lengths)
    assert (chosen and chosen.title) == preset


def test_no_texts_and_one() -> None:
    for texts in ([], ["one text"], ["", ""], ["a", "b"]):
        found, presets = advice(texts)
        assert found.texts == len(texts)
        assert list(dict.fromkeys(one.preset for one in presets)) == list(PRESETS)


def test_boilerplate_of_publishers_is_no_moved_passage() -> None:
    """Three texts of each publisher have two thirds in common: with a lower threshold, they would match."""
    chance = random.Random(2)

    def words(number: int) -> str:
        return " ".join(f"w{chance.randrange(10**9)}" for _ in range(number))

    texts = [f"{about} {words(64)}" for about in [words(136) for _ in range(20)] for _ in range(3)]
    found, presets = advice(texts)
    assert found.title == "strict"
    assert {one.pairs for one in presets if one.choice in LOWER} == {0}


def test_boilerplate_is_named() -> None:
    """A footer of 110 words under texts of 12: reader mixes them all."""
    chance = random.Random(1)
    footer = " ".join(f"footer{n}" for n in range(110))
    texts = [" ".join(f"w{chance.random()}" for _ in range(12)) + " " + footer for _ in range(30)]
    found, presets = advice(texts)
    held = {one.title: one.held for one in presets}
    assert held["reader"] == 30
    assert held["logs"] == 0
    assert found.preset == "strict"


PAGE = "<html><body><p>One <b>page</b> is here</p></body></html>"
REPLY = "Monday suits me well.\n\nOn 3 Mar 2026 at 09:10, Ann wrote:\n> Shall we meet?"


@pytest.mark.parametrize(
    ("texts", "clean", "found"),
    [
        ([PAGE, "no page", "nor this"], "html-main", "1 of 3 texts of the sample are pages"),
        ([PAGE, *["no page"] * 19], "html-main", "1 of 20 texts of the sample are pages"),
        ([PAGE, *["no page"] * 20], None, ""),
        (["<p>A <b>part</b> of <i>one</i></p>"], "html", "1 of 1 text"),
        ([REPLY, "Monday suits me well."], "mail", "1 of 2 texts of the sample are mails"),
        (["#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void);"] * 4, None, ""),
        (["List<Order> all(Map<String, Order> some, Set<Order> others) { return List.of(); }"] * 4, None, ""),
        (["Author: Ann <a@x.example>\n\nClose it\n\nSigned-off-by: Ann <a@x.example>\nCc: <b@x.example>"], None, ""),
    ],
    ids=["pages", "few pages", "fewer pages", "parts of pages", "mails", "C", "Java", "Git"],
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
        ("product_titles", WITH_FACTS.title, None),
        ("log_lines", "logs", None),
        ("job_ads", "strict", None),
        ("html_pages", "strict", "html-main"),
        ("mails", "strict", "mail"),
        ("rechunked", "strict --threshold 0.6", None),  # it matches chunks of the same document only, reader others too
    ],
)
def test_kinds_of_texts(name: str, preset: str, clean: str | None) -> None:
    documents = read_jsonl(f"cases/{name}.jsonl.xz")
    field = next(name for name in ("text", "body", "message", "title") if name in documents[0])
    random.Random(1).shuffle(documents)
    found, _ = advice([one[field] for one in documents[: 300 if name == "log_lines" else 600]])
    assert (found.title, found.clean) == (preset, clean), found
    if clean is not None:
        assert f"`es-neardupe migrate news --preset {preset} --clean {clean}`" in found.reasons


@pytest.mark.parametrize("name", ["senate_press/sample_12_senators", "civil_codes/sections_field_family_20"])
def test_windows_of_documents_are_no_scans(name: str) -> None:
    """Each has half of its words in common with the next one, as no two texts have that are the same."""
    words = [one["text"].split() for one in read_jsonl(f"{name}.jsonl.xz")]
    long = [one for one in words if len(one) >= 500][:12]
    found, _ = advice([" ".join(one[at : at + 200]) for one in long for at in range(0, len(one) - 100, 100)])
    assert found.title == "strict"


def test_moved_passages() -> None:
    """Two sites with the same entries in another order, of which some were rewritten."""
    chance = random.Random(3)

    def entry() -> str:
        return " ".join(f"w{chance.randrange(3000)}" for _ in range(45))

    pages = []
    for number in range(40):
        entries = [entry() for _ in range(12)]
        pages.append(" ".join(entries))
        if number < 25:
            entries[:2] = [entry(), entry()]
            chance.shuffle(entries)
            pages.append(" ".join(entries))
    found, presets = advice(pages)
    assert {one.title: one.pairs for one in presets}["strict --threshold 0.6"] == 25
    assert found.title == "strict --threshold 0.6"
    assert "`es-neardupe migrate news --preset strict --threshold 0.6`" in found.reasons


def test_passages_that_moved_are_not_for_reader() -> None:
    """Even where a lower threshold would mix texts: it does not find them, whatever the candidate pairs are."""
    found = trials(strict_6=(92, 30), strict_5=(435, 30))
    assert by_trials(found, 50, 775, of_kind=None, of_lengths=None) is None
    assert have_moved(found, 50)
    assert not have_moved(trials(strict_6=(3, 4)), 50), "too few to decide"
    assert not have_moved(trials(strict_6=(92, 30), reader=(80, 20)), 50)


def test_titles_with_words_in_another_order() -> None:
    """Titles of the same product have the same words; two products have all but one in common."""
    names = [(brand, f"A{number}") for brand in ("Bosch", "Makita") for number in range(12, 32)]
    titles = [
        title
        for brand, model in names
        for title in (
            f"{brand} drill {model} 500 W black with case",
            f"{brand} {model} drill, 500 W, with case, black",
        )
    ]
    found, presets = advice(titles)
    assert {one.title: one.pairs for one in presets}[SINGLE_WORDS.title] == len(names)
    assert found.choice == SINGLE_WORDS
    assert "`es-neardupe migrate news --preset short --shingle 1 --threshold 0.5`" in found.reasons
    assert "`es-neardupe group news --facts facts,words`" in found.reasons


def test_mails_as_they_are() -> None:
    """With quotes and signatures, reader mixes the threads, because of boilerplate."""
    texts = [one["text"] for one in read_jsonl("cases/mails.jsonl.xz")[:300]]
    of = {one.title: one for one in tried(texts)}
    assert of["reader"].held > 2 * of["strict"].held
    chosen = by_trials(list(of.values()), len(texts), 186, of_kind=None, of_lengths=None)
    assert chosen is None or chosen.preset == "strict"
