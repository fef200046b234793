"""Measure the facts that differ, and star groups: the tables of docs/accuracy.md.

    python scripts/measure_facts.py [FOLDER]

FOLDER has the sets that ``scripts/accuracy`` measures, and ``cases``. Needs no server. Pairs of licence texts,
releases, and what is changed in them are chosen by a fixed seed.
"""

from __future__ import annotations

import re
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations, groupby
from pathlib import Path
from random import Random

import numpy as np
from accuracy import Pairs, all_true_pairs, jaccard, read_lines, table, texts_of, tokens

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tools"))

from fact_letters import letters

from es_neardupe.groups.stars import Matches, star
from es_neardupe.options import FactKind, MeasureName
from es_neardupe.similarity.facts.differing import differing_facts
from es_neardupe.similarity.facts.kinds import ALL, FACTS, FIGURES, OF_THE_COPY
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens

Texts = dict[str, str]
IN_TITLES = FIGURES | {FactKind.NAME}
LETTERS = 3_000
RELEASES, CHANGED = 500, 390
WRONG = 0.02
OF_LICENCES = 1_000
NUMBER = re.compile(r"(?<![\w.,$/:-])[1-9]\d{1,3}(?![\w.,/:-]|\s?[%$])")
SENTENCE = re.compile(r"(?<=[a-z]{3}[.])\s+(?=[A-Z])")

found_tokens: Callable[[str], FactTokens] = cache(fact_tokens)


def kinds(a: str, b: str) -> list[FactKind]:
    """The kinds of each fact that differs, without those of a copy."""
    found = differing_facts(found_tokens(a), found_tokens(b))
    return [kind for one in found for kind in one.kinds if kind not in OF_THE_COPY]


def apart(pairs: Iterable[tuple[str, str]], chosen: Iterable[FactKind]) -> int:
    """How many pairs differ in these facts."""
    return sum(not set(chosen).isdisjoint(kinds(a, b)) for a, b in pairs)


def of_letters() -> Iterator[list[str]]:
    """Letters whose facts a program changed."""
    for first in (0, LETTERS):
        right = 0
        for seed in range(first, first + LETTERS):
            one = letters(seed)
            right += sorted(kinds(one.a, one.b), key=list(FactKind).index) == one.changed
        yield [f"letters {first + 1:,} to {first + LETTERS:,}: exactly the changed facts", f"{right:,}"]


def of_releases(data: Path) -> Iterator[list[str]]:
    """Press releases, and the same with one number changed, in other layouts, and misread."""
    texts = list(texts_of(data / "senate_press" / "sample_12_senators.jsonl.xz").values())
    chance = Random(1)
    chance.shuffle(texts)
    changed = [pair for text in texts if (pair := with_other_number(text, chance))][:CHANGED]
    alone = sum(len(differing_facts(found_tokens(a), found_tokens(b))) == 1 for a, b in changed)
    yield [f"{len(changed)} releases with one number changed and a sentence moved: exactly one fact", str(alone)]
    some = [text for text in texts if len(text) > 500][:RELEASES]
    layouts: dict[str, Callable[[str], str]] = {
        "lower case": str.lower,
        "capitals": str.upper,
        "wrapped": lambda text: textwrap.fill(text, 50),
        "without punctuation": lambda text: re.sub(r"[^\w\s]", " ", text),
        "without a sentence": lambda text: " ".join(sentences(text)[:-2] + sentences(text)[-1:]),
        "with a moved sentence": lambda text: " ".join(sentences(text)[1:] + sentences(text)[:1]),
        "2 % of the letters wrong": lambda text: misread(text, chance),
    }
    for name, layout in layouts.items():
        yield [
            f"{RELEASES} releases, {name}: texts with facts",
            str(apart([(one, layout(one)) for one in some], FACTS)),
        ]


def sentences(text: str) -> list[str]:
    """A text at the ends of its sentences."""
    return SENTENCE.split(text)


def with_other_number(text: str, chance: Random) -> tuple[str, str] | None:
    """A text, and it with another number inside of a sentence and another sentence moved to the end."""
    parts = sentences(text)
    inside = [
        (k, one) for k, part in enumerate(parts) for one in NUMBER.finditer(part) if 40 < one.start() < len(part) - 40
    ]
    inside = [(k, one) for k, one in inside if k and not one[0].startswith(("19", "20"))]
    others = {k for k, part in enumerate(parts[1:-1], 1) if len(part) > 80}
    if not inside or len(others) < 3:
        return None
    k, number = chance.choice(inside)
    moved = chance.choice(sorted(others - {k}))
    value = int(number[0])
    other = str(value % 28 + 1 if value <= 31 else value + chance.randint(1, 9))  # it may be a day
    parts[k] = parts[k][: number.start()] + other + parts[k][number.end() :]
    return text, " ".join([*parts[:moved], *parts[moved + 1 :], parts[moved]])


def misread(text: str, chance: Random) -> str:
    """A text with some letters replaced by others."""
    return "".join(
        chance.choice("abcdefghijklmnopqrstuvwxyz") if one.isalpha() and chance.random() < WRONG else one
        for one in text
    )


def of_cases(data: Path) -> Iterator[list[str]]:
    """Titles of products, and job ads."""
    titles = [(one["sku"], one["title"]) for one in read_lines(data / "cases" / "product_titles.jsonl.xz")]
    parts = {title: {title.lower()[k : k + 4] for k in range(len(title) - 3)} for _, title in titles}
    same = [(a, b) for (x, a), (y, b) in combinations(titles, 2) if x == y]
    other = [(a, b) for (x, a), (y, b) in combinations(titles, 2) if x != y and jaccard(parts[a], parts[b]) >= 0.5]
    for name, chosen in (("figures,names", IN_TITLES), ("all", ALL)):
        yield [f"{len(other)} pairs of titles of different products, `{name}`", str(apart(other, chosen))]
        yield [f"{len(same)} pairs of titles of the same product, `{name}`", str(apart(same, chosen))]
    ads = read_lines(data / "cases" / "job_ads.jsonl.xz")
    original = {one["job"]: one["text"] for one in ads if one["kind"] == "orig"}
    copies = sorted((one["kind"], one["job"], one["text"]) for one in ads if one["kind"] != "orig")
    for kind, its in groupby(copies, lambda one: one[0]):
        pairs = [(original[job], text) for _, job, text in its if job in original]
        for name, chosen in (("figures", FIGURES), ("figures,names", IN_TITLES)) if pairs else ():
            yield [f"{len(pairs)} job ads, {kind}, `{name}`", str(apart(pairs, chosen))]


def of_licences(data: Path, pairs: Pairs) -> Iterator[list[str]]:
    """Pairs of similar licence texts, one for each two licences, or for a licence."""
    lines = {one["id"]: one for one in read_lines(data / "licence_texts" / "licence_texts.jsonl.xz")}
    by_licences: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for a, b in sorted(pairs):
        texts = lines[a]["text"], lines[b]["text"]
        if tokens(texts[0]) != tokens(texts[1]):
            one, other = sorted((lines[a]["license_expression"], lines[b]["license_expression"]))
            by_licences.setdefault((one, other), []).append(texts)
    chance = Random(1)
    for is_same in (True, False):
        some = [chance.choice(its) for (one, other), its in sorted(by_licences.items()) if (one == other) == is_same]
        some = chance.sample(some, min(len(some), OF_LICENCES))
        for name, chosen in (("facts", FACTS), ("all", ALL)):
            licence = "one licence" if is_same else "two licences"
            yield [f"{len(some):,} pairs of {licence}, `{name}`", str(apart(some, chosen))]


def of_stars(name: str, texts: Texts, pairs: Pairs, minimum: float) -> list[str]:
    """The groups of a simple rule, by which the longest texts are principals, and those of the program."""
    words = {id: tuple(tokens(text)) for id, text in texts.items()}
    first: dict[tuple[str, ...], str] = {}
    for id in sorted(texts):
        first.setdefault(words[id], id)
    copies = Counter(words.values())
    order = sorted(first.values(), key=lambda id: (-len(words[id]), id))
    number = {id: k for k, id in enumerate(order)}
    similar = {
        (number[a], number[b]): value
        for (a, b), value in pairs.items()
        if value >= minimum and a in number and b in number
    }
    rows = sorted((min(pair), max(pair), value) for pair, value in similar.items())
    left, right, values = (np.array(column) for column in zip(*rows, strict=True))
    started = time.process_time()
    chosen = star(
        Matches(left.astype(np.uint32), right.astype(np.uint32), values.astype(np.float64)),
        np.array([copies[words[id]] for id in order], np.uint32),
        MeasureName.RESEMBLANCE,
    )
    seconds = time.process_time() - started
    simple = np.arange(len(order))
    near: dict[int, list[int]] = {}
    for a, b, _ in rows:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    taken = np.zeros(len(order), np.bool_)
    for one in range(len(order)):
        if not taken[one]:
            free = [other for other in near.get(one, []) if not taken[other]]
            simple[[one, *free]], taken[[one, *free]] = one, True
    columns = []
    for principal in (simple, np.asarray(chosen)):
        sizes = np.bincount(principal, minlength=len(order))
        kept = principal[left] == principal[right]
        alone = sum(sizes[principal[k]] == 1 and copies[words[order[k]]] == 1 for k in near)
        groups = sum(size > 1 or (size == 1 and copies[words[order[k]]] > 1) for k, size in enumerate(sizes.tolist()))
        inside = int((sizes * (sizes - 1) // 2).sum())
        high = int((~kept & (values >= 0.9)).sum())
        columns.append(
            (f"{alone:,}", f"{kept.sum():,}", f"{(~kept).sum():,}, {high:,}", f"{groups:,}", f"{inside - kept.sum():,}")
        )
    changes = [f"{one} -> {other}" for one, other in zip(*columns, strict=True)]
    return [f"{name}, {minimum}", f"{len(order):,}, {len(rows):,}", *changes, f"{seconds:.3f}"]


def main() -> None:
    """Measure and print."""
    root = Path(__file__).parents[1]
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else root.parent / "shared" / "data"
    releases = texts_of(data / "senate_press" / "sample_12_senators.jsonl.xz")
    codes = texts_of(data / "civil_codes" / "sections_field_family_20.jsonl.xz")
    licences = texts_of(data / "licence_texts" / "licence_texts.jsonl.xz")
    of_licence_texts = all_true_pairs(licences, 0.8)
    of_others = [
        ("press releases", releases, all_true_pairs(releases, 0.5)),
        ("codes", codes, all_true_pairs(codes, 0.5)),
    ]
    stars = [of_stars(*one, minimum) for one in of_others for minimum in (0.5, 0.8)]
    stars.append(of_stars("licence texts", licences, of_licence_texts, 0.8))
    columns = ("set, `--min`", "texts, pairs", "alone", "kept", "split, from .9", "groups", "below", "seconds")
    print(table(columns, stars), flush=True)
    facts = [*of_letters(), *of_releases(data), *of_cases(data), *of_licences(data, of_licence_texts)]
    print(table(("texts", "result"), facts))


if __name__ == "__main__":
    main()
