"""Speed of the measures on one core, and its growth with the length of the texts.

    python scripts/bench_measures.py [--texts FILE.jsonl[.gz|.xz]] [--count 400] [--rounds 5]

Pairs are texts of about 250 words and edited copies of them, also 20 and 200 times as long. The fastest round of each
counts. Growth is the time per word of long texts divided by the time per word of shorter ones: 1 for linear.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
from bench_tools import make_texts, pin_to_one_core, read_texts
from numpy.typing import NDArray

from es_neardupe.keys.arrays import Positions
from es_neardupe.keys.fingerprint import signatures
from es_neardupe.keys.minhash import estimate
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.options import MeasureName
from es_neardupe.similarity import batch, formulas
from es_neardupe.similarity.alignment import Alignment, information, literal
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Measure

U64 = NDArray[np.uint64]
Run = Callable[[], object]

SIZES = (250, 5_000, 50_000)
PAGE, HEADING = 100, 60


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments()
    pin_to_one_core()
    texts = read_texts(arguments.texts, arguments.count) if arguments.texts else make_texts(arguments.count, words=250)
    report_pairs(texts, arguments.rounds)
    report_resemblance(texts, arguments.rounds)
    report_batches(texts, arguments.rounds)
    report_edit(texts, arguments.rounds)
    report_growth(arguments.rounds)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=Path, help="JSON lines with a field 'text' (default: made-up texts)")
    parser.add_argument("--count", type=int, default=400, help="how many texts (default 400)")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds (default 5)")
    return parser.parse_args()


def fastest(run: Run, rounds: int) -> float:
    """CPU seconds of the fastest round, after a warm-up round: other work on the machine only slows down."""
    run()
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def edited(text: str, chance: random.Random, share: float = 0.1) -> str:
    """A copy with that share of the words replaced."""
    return " ".join(f"w{chance.getrandbits(40)}" if chance.random() < share else word for word in text.split())


def report_pairs(texts: list[str], rounds: int) -> None:
    """Pairs a second, each measure alone, from what is computed once per text."""
    chance = random.Random(1)
    copies = [edited(text, chance) for text in texts]
    one, other = token_hashes(texts), token_hashes(copies)
    tokens = list(zip(one, other, strict=True))
    sets = list(zip(features(texts, 5), features(copies, 5), strict=True))
    scheme = Scheme(bands=16, rows=6)
    signed = list(zip(signatures(texts, scheme), signatures(copies, scheme), strict=True))
    weights = frequencies(features(texts, 5))
    bags, pairs = Measure(MeasureName.BAG).prepare([*texts, *copies]), np.arange(len(texts))

    def hashed() -> list[Alignment]:
        return [literal(a, b) for a, b in zip(token_hashes(texts), token_hashes(copies), strict=True)]

    runs: dict[str, Run] = {
        "literal matching": lambda: [literal(a, b) for a, b in tokens],
        "literal matching, from text": hashed,
        "information matching": lambda: [information(a, b) for a, b in tokens],
        "resemblance, pair by pair": lambda: [formulas.resemblance(a, b) for a, b in sets],
        "bag": lambda: Measure(MeasureName.BAG).scores(bags, pairs, pairs + len(texts)),
        "weighted": lambda: [formulas.weighted(a, b, weights) for a, b in sets],
        "edit": lambda: [formulas.edit(a, b) for a, b in tokens],
        "estimate": lambda: [estimate(a, b) for a, b in signed],
    }
    size = sum(map(len, one + other)) / len(one + other)
    print(f"{len(texts)} pairs of texts of {size:.0f} words on average, 90 % equal, one core")
    for name, run in runs.items():
        print(f"{name:36} {len(texts) / fastest(run, rounds):11,.0f} pairs/s")


def frequencies(found: list[U64]) -> Weights:
    """How many of the texts have each feature."""
    every, counts = np.unique(np.concatenate(found), return_counts=True)
    return Weights(len(found), every, counts)


def report_resemblance(texts: list[str], rounds: int) -> None:
    """Resemblance of candidates as verification computes it: texts in groups of edited copies, all pairs of each."""
    chance = random.Random(2)
    print("\nresemblance of candidates in batches")
    for size in (2, 4, 10, 100):
        groups = [[text, *(edited(text, chance) for _ in range(size - 1))] for text in texts[: max(8, 2000 // size)]]
        found = features([one for group in groups for one in group], 5)
        pairs = [(size * k + a, size * k + b) for k in range(len(groups)) for a, b in combinations(range(size), 2)]
        left, right = np.array(pairs, np.intp).T
        seconds = fastest(partial(formulas.resemblances, found, left, right), rounds)
        print(f"{f'groups of {size}':36} {len(pairs) / seconds:11,.0f} pairs/s   {len(pairs)} pairs")


def report_batches(texts: list[str], rounds: int) -> None:
    """Scores of candidates as verification computes them, against one pair at a time, and without the loops in C."""
    print(f"\n{'candidates in batches, and how often as fast as':56}     one by one      without C")
    for name in (MeasureName.CONTAINMENT, MeasureName.EDIT, MeasureName.WEIGHTED):
        for size in (2, 10):
            prepared, left, right, measure = candidates(name, texts, size)
            batched = partial(measure.scores, prepared, left, right)
            singly = partial(one_by_one, measure, prepared, left, right)
            seconds = fastest(batched, rounds)
            ratios = [fastest(run, rounds) / seconds for run in (singly, partial(without_c, batched))]
            label = f"{measure.label}, groups of {size}"
            print(f"{label:36} {len(left) / seconds:11,.0f} pairs/s{ratios[0]:15.1f}{ratios[1]:15.1f}")


def report_edit(texts: list[str], rounds: int) -> None:
    """The edit similarity of candidates against their resemblance, both from the texts on: each text in four pairs."""
    print(f"\n{'candidates from the texts on':36}          edit   resemblance")
    for words in (250, 2_500, 25_000):
        long = [" ".join([*texts, *texts][k : k + max(1, words // 250)]) for k in range(max(4, 100_000 // words))]
        chance = random.Random(3)
        groups = [[text, *(edited(text, chance) for _ in range(4))] for text in long]
        near = [(5 * k + a, 5 * k + b) for k in range(len(long)) for a, b in combinations(range(5), 2)]
        unrelated = [(a, (b + 5) % (5 * len(long))) for a, b in near]
        for kind, pairs in (("near-copies", near), ("unrelated", unrelated)):
            left, right = np.array(pairs, np.intp).T.copy()
            rates = [
                len(left) / fastest(partial(from_texts, Measure(name), groups, left, right), min(rounds, 2))
                for name in (MeasureName.EDIT, MeasureName.RESEMBLANCE)
            ]
            print(f"{f'{words:,} words, {kind}':36}" + "".join(f"{rate:14,.0f}" for rate in rates) + " pairs/s")


def from_texts(measure: Measure, groups: list[list[str]], left: Positions, right: Positions) -> None:
    """Prepare the texts and score the pairs, as verification does."""
    measure.scores(measure.prepare([one for group in groups for one in group]), left, right)


def candidates(name: MeasureName, texts: list[str], size: int) -> tuple[list[U64], Positions, Positions, Measure]:
    """Groups of edited copies, prepared for a measure, and all pairs of each group."""
    chance = random.Random(2)
    groups = [[text, *(edited(text, chance) for _ in range(size - 1))] for text in texts[: max(8, 800 // size)]]
    every = [one for group in groups for one in group]
    weights = frequencies(features(every, 5)) if name is MeasureName.WEIGHTED else None
    measure = Measure(name, weights=weights)
    pairs = [(size * k + a, size * k + b) for k in range(len(groups)) for a, b in combinations(range(size), 2)]
    left, right = np.array(pairs, np.intp).T.copy()
    return measure.prepare(every), left, right, measure


def one_by_one(measure: Measure, prepared: list[U64], left: Positions, right: Positions) -> None:
    """Score each pair alone."""
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        measure.score(prepared[a], prepared[b])


def without_c(run: Run) -> None:
    """Run a function as if no compiler had been available."""
    kernel, batch.kernel = batch.kernel, None
    try:
        run()
    finally:
        batch.kernel = kernel


def report_growth(rounds: int) -> None:
    """Time per word of long texts over that of shorter ones."""
    makers: dict[str, Callable[[int], tuple[U64, U64]]] = {
        "90 % equal": equal_in_most,
        "a b a b ...": partial(periodic, 2),
        "one word": partial(periodic, 1),
        "one word, 5 % of them others": gaps,
        "two words at random": coins,
        "headings on each page": report,
    }
    print(
        f"\nmicroseconds a word, and growth{'':5}{SIZES[0]:>9}{SIZES[1]:>9}{SIZES[2]:>9}{'':6}50,000/5,000  50,000/250"
    )
    for matching in (literal, information):
        for name, make in makers.items():
            times = []
            for size in SIZES:
                repeat = max(1, 5_000 // size)
                run = partial(again, partial(matching, *make(size)), repeat)
                times.append(fastest(run, min(rounds, 3)) / repeat / size * 1e6)
            row = "".join(f"{taken:9.3f}" for taken in times)
            print(f"{f'{matching.__name__}: {name}':43}{row}{times[2] / times[1]:15.2f}{times[2] / times[0]:12.2f}")


def again(run: Run, times: int) -> None:
    """Run a function several times."""
    for _ in range(times):
        run()


def language(size: int, chance: np.random.Generator) -> U64:
    """Words with the frequencies of a language (Zipf)."""
    frequency = 1 / np.arange(4, 8004)
    known = np.random.default_rng(0).integers(0, 2**64, 8000, np.uint64)
    return known[chance.choice(8000, size, p=frequency / frequency.sum())]


def replaced(words: U64, share: float, chance: np.random.Generator) -> U64:
    """That share of the words replaced by words that occur nowhere else."""
    return np.where(chance.random(len(words)) < share, chance.integers(0, 2**64, len(words), np.uint64), words)


def equal_in_most(size: int) -> tuple[U64, U64]:
    """A text and a copy with one word in ten changed."""
    chance = np.random.default_rng(1)
    words = language(size, chance)
    return words, replaced(words, 0.1, chance)


def periodic(period: int, size: int) -> tuple[U64, U64]:
    """A few words repeated."""
    words = np.resize(np.arange(1, period + 1, dtype=np.uint64), size)
    return words, words[: size - 7]


def gaps(size: int) -> tuple[U64, U64]:
    """One word repeated, with 5 % other words."""
    chance = np.random.default_rng(2)
    return replaced(np.ones(size, np.uint64), 0.05, chance), replaced(np.ones(size, np.uint64), 0.05, chance)


def coins(size: int) -> tuple[U64, U64]:
    """Two words in random order."""
    chance = np.random.default_rng(3)
    return chance.integers(0, 2, size, np.uint64), chance.integers(0, 2, size, np.uint64)


def report(size: int) -> tuple[U64, U64]:
    """Pages of 100 words, 60 of them the same heading; a copy with one word in twenty changed."""
    chance = np.random.default_rng(4)
    count = -(-size // PAGE)
    heading = np.broadcast_to(language(HEADING, chance), (count, HEADING))
    body = language(count * (PAGE - HEADING), chance).reshape(count, -1)
    words = np.concatenate([heading, body], axis=1).reshape(-1)[:size]
    return words, replaced(words, 0.05, chance)


if __name__ == "__main__":
    main()
