"""Accuracy on published sets of texts: recall, wrong values and F of every set, on real servers.

    python scripts/accuracy.py [FOLDER] [--set NAME]... [--url URL]... [--write]

Every value is compared with one that is computed independently of the package: tokens and shingles in plain Python, all
pairs by a sparse matrix, common passages by a plain greedy string tiling. Thresholds that were chosen are applied to
another part of the set than the one they were chosen on. With several servers, all must give the same numbers.
``--write`` replaces the tables of docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from bench_tools import drop_index
from scipy.sparse import csr_array

from es_neardupe import NearDupe, Settings, __version__
from es_neardupe.candidates.detection import TextLength, settings_by_lengths
from es_neardupe.candidates.join import find_candidates
from es_neardupe.commands.distribution.labels import best_threshold
from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.commands.duplicates.results import PairsStageReport
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.intervals import exact_share
from es_neardupe.keys.prepare.preparation import AS_IT_IS
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import shingle_of
from es_neardupe.local_server import control
from es_neardupe.options import PRESETS, preset_measure
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.similarity.measure import Measure, named_measure

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests" / "tools"))
from scheme_oracle import oracle_tokens  # noqa: E402

PAGE = ROOT / "docs" / "accuracy.md"
BEGIN, END = "<!-- begin of what scripts/{} --write wrote: {} -->", "<!-- end of {} -->"

INDEX = "neardupe-accuracy"
EXACT = 1e-9
"""Largest difference between two computations of one value."""

Texts = Mapping[str, str]
Pairs = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Row:
    """Result of a set with one measure and threshold."""

    set: str
    documents: int
    decision: str
    """Command, measure and threshold."""
    true: int
    """True pairs, or true answers."""
    hits: int
    """True pairs that were found."""
    found: int
    """All that were found."""
    wrong: int
    """Reported values that differ from the independent ones."""

    def cells(self) -> list[str]:
        """The cells of the table."""
        recall = exact_share(self.hits, self.true)
        f = 2 * self.hits / (self.true + self.found)
        interval = f"{recall.value:.4f} ({recall.low:.4f} to {recall.high:.4f})"
        numbers = [f"{number:,}" for number in (self.documents, self.true, self.hits, self.found - self.hits)]
        return [self.set, numbers[0], self.decision, *numbers[1:], interval, f"{self.wrong:,}", f"{f:.4f}"]


COLUMNS = (
    "set", "documents", "decided by", "true pairs", "found", "not true", "recall (95 %)", "wrong values", "F",
)  # fmt: skip


# Independent computations: nothing of the package


def tokens(text: str) -> list[str]:
    """The words of a text; of any script by the plain implementation of the tests."""
    return re.findall(r"\w+", text.lower()) if text.isascii() else oracle_tokens(text)


def shingles(words: Sequence[str], size: int = 5) -> set[tuple[str, ...]]:
    """The word n-grams; of a shorter text the one of all its words."""
    size = min(size, len(words))
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)} if words else set()


def jaccard(a: set[Any], b: set[Any]) -> float:
    """Shared elements among all elements."""
    return len(a & b) / len(a | b) if a or b else 0.0


def all_true_pairs(texts: Texts, minimum: float) -> Pairs:
    """Every pair of at least this resemblance, by comparing all with all."""
    ids = sorted(texts)
    number: dict[tuple[str, ...], int] = {}
    columns, bounds = [], [0]
    for id in ids:
        columns += [number.setdefault(one, len(number)) for one in shingles(tokens(texts[id]))]
        bounds.append(len(columns))
    members = csr_array((np.ones(len(columns), np.int32), columns, bounds), shape=(len(ids), max(len(number), 1)))
    sizes, transposed = np.diff(bounds), members.T.tocsr()
    found: Pairs = {}
    for begin in range(0, len(ids), 200):
        common = (members[begin : begin + 200] @ transposed).tocoo()
        left, right = common.coords[0] + begin, common.coords[1]
        similarity = common.data / (sizes[left] + sizes[right] - common.data)
        some = np.flatnonzero((left < right) & (similarity >= minimum))
        for a, b, value in zip(left[some].tolist(), right[some].tolist(), similarity[some].tolist(), strict=True):
            found[ids[a], ids[b]] = value
    return found


def common_words(a: Sequence[str], b: Sequence[str], minimum: int) -> int:
    """Words in common passages, by greedy string tiling: the longest run of unused words first; of equally long ones
    the one with the smaller sum of positions, then the one that is earlier in one of the texts."""
    places = defaultdict(list)
    for j in range(len(b) - minimum + 1):
        places[tuple(b[j : j + minimum])].append(j)
    starts = {(i, j) for i in range(len(a) - minimum + 1) for j in places[tuple(a[i : i + minimum])]}
    runs = []
    for i, j in starts:
        if (i - 1, j - 1) not in starts:
            length = minimum
            while (i + length - minimum + 1, j + length - minimum + 1) in starts:
                length += 1
            runs.append((i, j, length))
    used_a, used_b = [False] * len(a), [False] * len(b)
    total = 0
    while True:
        free = [part for run in runs for part in unused(run, used_a, used_b) if part[2] >= minimum]
        if not free:
            return total
        i, j, length = min(free, key=lambda part: (-part[2], part[0] + part[1], min(part[0], part[1])))
        used_a[i : i + length] = used_b[j : j + length] = [True] * length
        total += length


def unused(run: tuple[int, int, int], used_a: Sequence[bool], used_b: Sequence[bool]) -> Iterator[tuple[int, int, int]]:
    """The parts of a run whose words are not used on either side."""
    i, j, length = run
    start = 0
    for k in range(length + 1):
        if k == length or used_a[i + k] or used_b[j + k]:
            if k > start:
                yield i + start, j + start, k - start
            start = k + 1


# Sets


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The documents of a packed JSON lines file."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def texts_of(file: Path) -> dict[str, str]:
    """Id -> text of a packed JSON lines file."""
    return {one["id"]: one["text"] for one in read_lines(file)}


def articles(folder: Path, size: str) -> dict[str, str]:
    """Id -> text of one of the sets of news articles."""
    packed = folder / f"articles_{size}.train.xz"
    text = lzma.decompress(packed.read_bytes()).decode() if packed.exists() else packed.with_suffix("").read_text()
    return dict(line.split(" ", 1) for line in text.splitlines())


def clusters(folder: Path) -> tuple[list[dict[str, str]], set[tuple[str, str]]]:
    """Bibliographic records, and the pairs of records of one publication."""
    with (folder / "records_pre_merged.csv").open(encoding="utf-8") as lines:
        records = [{"id": row["ID"], **row} for row in csv.DictReader(lines)]
    with (folder / "merged_record_ids.csv").open(encoding="utf-8") as lines:
        groups = [row["merged_ids"].split(";") for row in csv.DictReader(lines)]
    return records, {pair for ids in groups for pair in combinations(sorted(ids), 2)}


"""Records that share two consecutive words of the title, compared by the words of title, year, volume and pages."""


@dataclass(frozen=True)
class Accuracy:
    """Measures the sets on one server."""

    client: Client
    data: Path
    truth: dict[str, Pairs]
    """The true pairs of each set that were computed already, for another server."""

    def senate_press(self) -> Iterator[Row]:
        """Press releases: ordinary texts."""
        folder = self.data / "senate_press"
        yield from self._resemblance("press releases", texts_of(folder / "sample_12_senators.jsonl.xz"), (0.8, 0.5))

    def civil_codes(self) -> Iterator[Row]:
        """Sections of statutes, read by OCR."""
        folder = self.data / "civil_codes"
        texts = texts_of(folder / "sections_field_family_20.jsonl.xz")
        yield from self._resemblance("civil codes", texts, (0.8, 0.5))

    def ttds_articles(self, size: str = "2500") -> Iterator[Row]:
        """News articles with planted copies."""
        folder = self.data / "ttds_articles"
        lines = (folder / f"articles_{size}.truth").read_text("utf-8").splitlines()
        planted = {(min(line.split()), max(line.split())) for line in lines}
        yield from self._resemblance("news articles", articles(folder, size), (0.8,), planted)

    def licence_texts(self) -> Iterator[Row]:
        """Licence texts: many similar texts, large clusters."""
        texts = texts_of(self.data / "licence_texts" / "licence_texts.jsonl.xz")
        yield from self._resemblance("licence texts", texts, (0.8,))

    def clough_stevenson(self) -> Iterator[Row]:
        """Answers with passages of an article. The threshold is chosen on tasks a and b."""
        compared = list(self._answers())
        chosen = [one for one in compared if one.tasks <= {"a", "b"}]
        threshold, _ = best_threshold(np.array([one.share for one in chosen]), np.array([one.true for one in chosen]))
        others = [one for one in compared if one.tasks <= {"c", "d", "e"}]
        false = sum(one.share >= threshold for one in others if not one.true)
        for kind in ("cut", "light", "heavy", "all"):
            same = [one for one in others if one.true and kind in (one.category, "all")]
            hits = sum(one.share >= threshold for one in same)
            wrong = sum(abs(one.share - one.independent) > EXACT for one in (others if kind == "all" else same))
            decision = f"`contained`, 3 words, >= {threshold:g}, chosen on tasks a and b"
            name = "short answers" + ("" if kind == "all" else f", {kind}")
            answers = len({one.id for one in others})
            yield Row(name, answers, decision, len(same), hits, hits + false, wrong)

    def bib_records(self) -> Iterator[Row]:
        """Bibliographic records: short and noisy. The minimum is chosen on the other of the two sets."""
        names = ("respiratory", "cytology_screening")
        read = {name: clusters(self.data / "bib_records" / name) for name in names}
        values = {name: self._records(records) for name, (records, _) in read.items()}
        for name, other in (names, names[::-1]):
            (records, same), (_, labels) = read[name], read[other]
            known = values[other] | dict.fromkeys(labels - values[other].keys(), 0.0)
            pairs = list(known)
            minimum, _ = best_threshold(
                np.array([known[one] for one in pairs]), np.array([one in labels for one in pairs])
            )
            title = f"records, {name.partition('_')[0]}"
            found = {pair: value for pair, value in values[name].items() if value >= minimum}
            wrong = sum(
                abs(value - one) > EXACT
                for value, one in zip(found.values(), shared_words(records, found), strict=True)
            )
            decision = f"`duplicates`, words of 4 fields, >= {minimum:g}, chosen on the other set"
            yield Row(title, len(records), decision, len(same), len(same & found.keys()), len(found), wrong)
            texts = {
                one["id"]: "\n".join(one[field] for field in ("title", "author", "journal", "year")) for one in records
            }
            yield from self._resemblance(title, texts, (0.8,), same)

    def _resemblance(
        self, name: str, texts: Texts, thresholds: Sequence[float], truth: set[tuple[str, str]] | None = None
    ) -> Iterator[Row]:
        """All pairs of an index with each threshold; all pairs that reach it are true, or those of ``truth``."""
        if name not in self.truth:
            self.truth[name] = all_true_pairs(texts, min(thresholds) - EXACT)
        every = self.truth[name]
        for threshold in thresholds:
            near = self._indexed([{"id": id, "text": text} for id, text in texts.items()], threshold=threshold)
            pairs = near.pairs(max_bucket=200)
            found = {
                (min(a, b), max(a, b)): value for a, b, value in ((one.a.id, one.b.id, one.similarity) for one in pairs)
            }
            true = {pair for pair, value in every.items() if value >= threshold} if truth is None else truth
            wrong = sum(abs(every.get(pair, 0) - value) > EXACT for pair, value in found.items())
            decision = f"`pairs`, resemblance >= {threshold:g}"
            yield Row(name, len(texts), decision, len(true), len(true & found.keys()), len(found), wrong)

    def _answers(self) -> Iterator[Answer]:
        """Every answer with every article."""
        folder = self.data / "clough_stevenson"
        with (folder / "file_information.csv").open(encoding="utf-8") as lines:
            files = {row["File"]: (row["Task"], row["Category"]) for row in csv.DictReader(lines)}
        texts = {name: (folder / name).read_text("utf-8", "replace") for name in files}
        near = self._indexed([{"id": id, "text": text} for id, text in texts.items()], shingle=3, sample_mod=4)
        words = {name: tokens(text) for name, text in texts.items()}
        for article, (task, kind) in files.items():
            if kind == "orig":
                hits = near.contained(id=article, min=0.01, top=len(files)).hits
                shares = {hit.id: max(hit.of_probe, hit.of_document) for hit in hits}
                for id, (other, category) in files.items():
                    if category != "orig":
                        share = shares.get(id, 0.0)
                        size = min(len(words[article]), len(words[id]))
                        independent = common_words(words[article], words[id], 3) / size if id in shares else 0.0
                        true = task == other and category != "non"
                        yield Answer(id, frozenset((task, other)), category, true, share, independent)

    def _records(self, records: Sequence[Mapping[str, str]]) -> Pairs:
        """The pairs that the request for records finds from 0.5 on."""
        request = json.loads(example("records"))
        request["stages"]["similarPairs"]["validation"]["min"] = 0.5
        result = self._indexed(records, fields=("title",)).duplicates(request).stages["similarPairs"]
        assert isinstance(result, PairsStageReport)
        return {(min(one.a.id, one.b.id), max(one.a.id, one.b.id)): one.similarity for one in result.pairs}

    def _indexed(
        self, documents: Iterable[Mapping[str, str]], fields: tuple[str, ...] = ("text",), **settings: Any
    ) -> NearDupe:
        """A new index of these documents, with keys."""
        drop_index(self.client, INDEX)
        near = NearDupe(INDEX, self.client)
        near.init(Settings(fields, **settings), create=True)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "documents.jsonl")
            file.write_text("".join(json.dumps(one) + "\n" for one in documents), "utf-8")
            near.load([str(file)])
        return near


@dataclass(frozen=True)
class Answer:
    """An answer and an article."""

    id: str
    tasks: frozenset[str]
    """Of both."""
    category: str
    true: bool
    """Whether the answer was made from the article."""
    share: float
    """Reported; 0 if it was not found."""
    independent: float


def shared_words(records: Sequence[Mapping[str, str]], pairs: Iterable[tuple[str, str]]) -> Iterator[float]:
    """Resemblance of the words of title, year, volume and pages of each pair."""
    words = {
        one["id"]: {word for f in ("title", "year", "volume", "pages") for word in tokens(one[f])} for one in records
    }
    for a, b in pairs:
        yield jaccard(words[a], words[b])


@dataclass(frozen=True)
class PresetRow:
    """What a preset finds in a set."""

    set: str
    preset: str
    true: int
    found: int
    others: int
    """Pairs that it finds and that are not true: they are less similar, or related in another way."""

    def cells(self) -> list[str]:
        """The cells of the table."""
        recall = f"{self.found / self.true:.3f}"
        f = f"{2 * self.found / (self.true + self.found + self.others):.3f}"
        return [self.set, self.preset, f"{self.true:,}", f"{self.found:,}", recall, f"{self.others:,}", f]


PRESET_COLUMNS = ("set", "preset", "true pairs", "found", "recall", "other pairs found", "F")


def presets(data: Path) -> Iterator[PresetRow]:
    """Each preset on each set of whole texts, with its keys and its measure, without a server. True pairs are those of
    the table of the sets."""
    folder = data / "ttds_articles"
    planted = [line.split() for line in (folder / "articles_2500.truth").read_text("utf-8").splitlines()]
    sets: list[tuple[str, Texts, set[tuple[str, str]] | None]] = [
        ("press releases", texts_of(data / "senate_press" / "sample_12_senators.jsonl.xz"), None),
        ("civil codes", texts_of(data / "civil_codes" / "sections_field_family_20.jsonl.xz"), None),
        ("news articles", articles(folder, "2500"), {(min(one), max(one)) for one in planted}),
        ("licence texts", texts_of(data / "licence_texts" / "licence_texts.jsonl.xz"), None),
    ]
    for name in ("respiratory", "cytology_screening"):
        records, same = clusters(data / "bib_records" / name)
        texts = {
            one["id"]: "\n".join(one[field] for field in ("title", "author", "journal", "year")) for one in records
        }
        sets.append((f"records, {name.partition('_')[0]}", texts, same))
    for share in ("02", "05", "10"):
        pages = read_lines(data / "cases" / f"ocr{share}.jsonl.xz")
        twice = {(a["id"], b["id"]) for a, b in combinations(pages, 2) if a["page"] == b["page"]}
        read = {one["id"]: one["text"] for one in pages}
        sets.append((f"pages, {int(share)} % wrong", read, {(min(pair), max(pair)) for pair in twice}))
    for name, documents, truth in sets:
        true = set(all_true_pairs(documents, 0.8 - EXACT)) if truth is None else truth
        for preset in PRESETS:
            found = matched(documents, preset)
            yield PresetRow(name, preset, len(true), len(true & found), len(found - true))


def matched(documents: Texts, preset: str) -> set[tuple[str, str]]:
    """The pairs that the keys of a preset find and that its measure matches, also exact copies."""
    measure = preset_measure(preset)
    settings = Settings.chosen(("text",), preset=preset, measure=measure)
    copies = defaultdict(list)  # by content; the longest texts first, as principals are
    for id, one in zip(documents, fingerprints(list(documents.values()), settings.scheme), strict=True):
        copies[one.content].append((one.tokens, id))
    copies.pop("", None)
    same = sorted(copies.values(), key=lambda some: (-some[0][0], some[0][1]))
    texts = settings.scheme.preparation.texts([documents[some[0][1]] for some in same])
    if measure is not None:
        lengths = [TextLength(one.tokens, one.features) for one in fingerprints(texts, settings.scheme)]
        settings = settings_by_lengths(settings, named_measure(measure), lengths)
    scheme = replace(settings.scheme, preparation=AS_IT_IS)
    made = fingerprints(texts, scheme)
    keys = np.frombuffer("".join(key for one in made for key in one.bands).encode("latin-1"), np.uint64)
    slots = np.frombuffer(b"".join(one.signature for one in made), np.uint8).reshape(len(made), -1)
    pairs = find_candidates(keys.reshape(len(made), -1), 200, lambda rows: slots[rows], agree=scheme.agree)
    decides = Measure(settings.measure, shingle=settings.shingle, unit=settings.unit)
    left, right = pairs.left.astype(np.intp), pairs.right.astype(np.intp)
    minimum = settings.threshold_of(settings.measure)
    matches = decides.scores(decides.prepare(texts), left, right) >= minimum
    ids = [sorted(id for _, id in some) for some in same]
    found = {pair for some in ids for pair in combinations(some, 2)}
    for a, b in zip(left[matches].tolist(), right[matches].tolist(), strict=True):
        found |= {(min(one, other), max(one, other)) for one in ids[a] for other in ids[b]}
    return found


SCAN_KEYS = (
    ("6c", 64, 4), ("5c", 64, 4), ("7c", 64, 3), ("9c", 64, 3), ("4c", 51, 5), ("5c", 85, 3), ("4c", 64, 4),
    ("5s", 64, 4), ("6s", 64, 4), ("6s", 64, 3), ("7s", 64, 3), ("7s", 80, 3), ("8s", 80, 3), ("9s", 80, 3),
)  # fmt: skip
SCAN_COLUMNS = (
    "shingle", "bands x rows", "bytes", "2 % wrong", "5 %", "10 %", "one copy, 10 %", "two copies, 10 %",
    "candidates of a million",
)  # fmt: skip


def scan_keys(data: Path) -> Iterator[list[str]]:
    """Keys of characters and shapes on pages that were read twice, and on press releases with noisy copies and
    without."""
    chance = random.Random(1)
    releases = list(texts_of(data / "senate_press" / "sample_12_senators.jsonl.xz").values())
    releases = chance.sample([text for text in releases if len(tokens(text)) >= 100], 1500)
    copies = [misread(text, 0.1, chance) for text in releases[:600]]
    twice = [confused(text, 0.1, chance) for text in (*releases[:600], *releases[:600])]
    for name, bands, rows in SCAN_KEYS:
        shingle, unit = shingle_of(name)
        scheme = Scheme(shingle=shingle, unit=unit, permutations=bands * rows, bands=bands, rows=rows)
        cells = [name, f"{bands} x {rows}", str(8 * bands + bands * rows)]
        for share in ("02", "05", "10"):
            pages = read_lines(data / "cases" / f"ocr{share}.jsonl.xz")
            found = sharing([one["text"] for one in pages], scheme)
            cells.append(str(sum(pages[a]["page"] == pages[b]["page"] for a, b in found)))
        for texts in (releases[:600] + copies, twice):
            cells.append(f"{sum(b == a + 600 for a, b in sharing(texts, scheme)) / 600:.2f}")
        sets = [shingles(list("".join(tokens(text))), shingle) for text in releases]
        low = sum(jaccard(sets[a], sets[b]) < 0.2 for a, b in sharing(releases, scheme))
        yield [*cells, f"{2 * low / (1500 * 1499) * 1e6:,.0f}"]


def sharing(texts: Sequence[str], scheme: Scheme) -> set[tuple[int, int]]:
    """The pairs of texts that share a key."""
    rows = defaultdict(list)
    for row, one in enumerate(fingerprints(texts, scheme)):
        for key in one.bands or ():
            rows[key].append(row)
    return {pair for some in rows.values() for pair in combinations(some, 2)}


def misread(text: str, share: float, chance: random.Random) -> str:
    """A copy of which that share of the letters and digits is replaced, left out or doubled by another one."""
    letters = "abcdefghijklmnopqrstuvwxyz"

    def read(one: str) -> str:
        if not one.isalnum() or chance.random() >= share:
            return one
        return chance.choices([chance.choice(letters), "", one + chance.choice(letters)], (3, 1, 1))[0]

    return "".join(map(read, text))


ALIKE = "ce oe ao ae oc nu bh hn il l1 ij tl tf fl ri o0 s5 s8 b6 g9 gq yv vu z2 kh wv xv pn"
CONFUSED: dict[str, list[str]] = defaultdict(list)
for _pair in ALIKE.split():
    CONFUSED[_pair[0]].append(_pair[1])
    CONFUSED[_pair[1]].append(_pair[0])


def confused(text: str, share: float, chance: random.Random) -> str:
    """A copy of which that share of the letters and digits is wrong: two thirds of these look alike, the others are
    misread at random."""

    def read(one: str) -> str:
        alike = CONFUSED.get(one.lower())
        if alike and one.isalnum() and chance.random() < 2 * share / 3:
            return chance.choice(alike)
        return misread(one, share if alike is None else share / 3, chance)

    return "".join(map(read, text))


SETS = ("senate_press", "civil_codes", "ttds_articles", "licence_texts", "clough_stevenson", "bib_records")


# What the measure itself cannot do


def limits(data: Path) -> Iterator[tuple[str, str]]:
    """Sentences about texts for which the default measure is weak, with numbers."""
    scheme = Settings(("text",)).scheme
    chance = random.Random(1)
    releases = [tokens(text) for text in texts_of(data / "senate_press" / "sample_12_senators.jsonl.xz").values()]
    for size in (10, 20, 50, 100, 300):
        text = next(words for words in releases if len(words) >= size)[:size]
        value = jaccard(shingles(text), shingles([*text[: size // 2], "another", *text[size // 2 + 1 :]]))
        yield (
            f"one of {size} words replaced",
            f"resemblance {value:.2f}; found with probability {scheme.detection(value):.2f}",
        )
    sample = [words for words in chance.sample(releases, 400) if len(words) >= 100]
    for share in (0.01, 0.02, 0.05, 0.1):
        values = []
        for words in sample:
            noisy = [f"{word}x" if chance.random() < share else word for word in words]
            values.append(jaccard(shingles(words), shingles(noisy)))
        high = sum(value >= 0.8 for value in values) / len(values)
        yield (
            f"{share:.0%} of the words misread at random, {len(sample)} press releases",
            f"mean resemblance {np.mean(values):.2f}; {high:.0%} reach 0.8",
        )
    folder = data / "clough_stevenson"
    with (folder / "file_information.csv").open(encoding="utf-8") as lines:
        files = [(row["File"], row["Task"], row["Category"]) for row in csv.DictReader(lines)]
    found = {name: shingles(tokens((folder / name).read_text("utf-8", "replace"))) for name, _, _ in files}
    article = {task: found[name] for name, task, kind in files if kind == "orig"}
    for kind in ("cut", "light", "heavy"):
        values = [jaccard(found[name], article[task]) for name, task, category in files if category == kind]
        reached = sum(value >= 0.5 for value in values)
        yield (
            f"short answers made from an article: {kind}",
            f"{reached} of {len(values)} have resemblance 0.5 or more with it",
        )
    texts = read_lines(data / "licence_texts" / "licence_texts.jsonl.xz")
    licence = {one["id"]: one["license_expression"] for one in texts}
    pairs = all_true_pairs({one["id"]: one["text"] for one in texts}, 0.8)
    other = sum(licence[a] != licence[b] for a, b in pairs)
    yield (
        "pairs of licence texts with resemblance 0.8 or more",
        f"{other / len(pairs):.0%} are texts of different licences",
    )


# The page


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replaced(page: str, name: str, content: str, *, script: str = "accuracy") -> str:
    """The page with other content between the markers of this name."""
    begin, end = BEGIN.format(script, name), END.format(name)
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        sys.exit(f"The page has no place for {name}: {begin}")
    return f"{before}{begin}\n{content}\n{end}{after}"


def main() -> None:
    """Measure, print, and write the page."""
    arguments = parse_arguments()
    if arguments.presets:
        measure_presets(arguments)
        return
    by_server: dict[str, list[Row]] = {}
    truth: dict[str, Pairs] = {}
    for url in arguments.url or [control.start(say=print).url]:
        client = connect(ConnectionSettings(url=url))
        accuracy = Accuracy(client, arguments.data, truth)
        rows = by_server.setdefault(str(client.server), [])
        for name in arguments.set or SETS:
            measure: Callable[[], Iterator[Row]] = getattr(accuracy, name)
            for row in measure():
                rows.append(row)
                print(client.server, *row.cells(), sep=" | ", flush=True)
        drop_index(client, INDEX)
        client.close()
    servers = list(by_server)
    if any(by_server[server] != by_server[servers[0]] for server in servers):
        sys.exit(f"The numbers differ between {' and '.join(servers)}.")
    if arguments.write:
        today = date.today()
        head = f"es-neardupe {__version__}, {today.day} {today:%B %Y}, {' and '.join(servers)}."
        rows = by_server[servers[0]]
        page = PAGE.read_text("utf-8")
        page = replaced(page, "accuracy", f"{head}\n\n{table(COLUMNS, [row.cells() for row in rows])}")
        page = replaced(page, "limits", table(("texts", "result"), limits(arguments.data)))
        PAGE.write_text(page, "utf-8")


def measure_presets(arguments: argparse.Namespace) -> None:
    """Each preset on each set, and keys for scans."""
    tables: dict[str, tuple[Sequence[str], list[list[str]]]] = {
        "presets": (PRESET_COLUMNS, []),
        "scans": (SCAN_COLUMNS, []),
    }
    by_preset = (row.cells() for row in presets(arguments.data))
    for name, rows in (("scans", scan_keys(arguments.data)), ("presets", by_preset)):
        for cells in rows:
            print(*cells, sep=" | ", flush=True)
            tables[name][1].append(cells)
    if arguments.write:
        page = PAGE.read_text("utf-8")
        for name, (columns, found) in tables.items():
            page = replaced(page, name, table(columns, found))
        PAGE.write_text(page, "utf-8")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the sets"
    )
    parser.add_argument("--set", action="append", choices=SETS, help="only this set; repeatable")
    parser.add_argument("--url", action="append", help="server (default: a local one); repeatable")
    parser.add_argument("--presets", action="store_true", help="measure each preset instead, without a server")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/accuracy.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
