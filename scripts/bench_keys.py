"""Speed of making keys from texts, compared with other libraries, on one core.

    python scripts/bench_keys.py [--texts FILE.jsonl[.gz|.xz]] [--count 4000] [--rounds 5]

All libraries get the same list of ``str`` in each round, one after the other, pinned to one core. The fastest round of
each counts. es_neardupe makes the whole fingerprint (content hash, band keys, record); the others stop at the
signature of 128 slots. datasketch and rensa need tokens and shingles made in Python; daft splits at spaces and neither
lower-cases nor strips punctuation.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench_tools import make_texts, pin_to_one_core, read_texts

Sign = Callable[[list[str]], object]

WORDS = re.compile(r"\w+")
PERMUTATIONS, SHINGLE = 128, 5


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments()
    pin_to_one_core()
    source = read_texts(arguments.texts, arguments.count) if arguments.texts else make_texts(arguments.count)
    report(source, measure(contenders(), source, arguments.rounds))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=Path, help="JSON lines with a field 'text' (default: made-up texts)")
    parser.add_argument("--count", type=int, default=4000, help="how many texts (default 4000)")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds (default 5)")
    return parser.parse_args()


def contenders() -> dict[str, Sign | str]:
    """Library -> the function to measure, or why it cannot be measured."""
    makers: dict[str, Callable[[], Sign]] = {
        "es_neardupe": es_neardupe,
        "datasketch (xxhash, update_batch)": datasketch_batch,
        "datasketch (xxhash, bulk)": datasketch_bulk,
        "rensa RMinHash": rensa_each,
        "rensa digest matrix": rensa_matrix,
        "daft minhash (xxhash)": partial(daft_minhash, "xxhash3_64"),
        "daft minhash (murmurhash3)": partial(daft_minhash, "murmurhash3"),
    }
    return {name: available(make) for name, make in makers.items()}


def available(make: Callable[[], Sign]) -> Sign | str:
    """The function, or the error if its library is not installed."""
    try:
        return make()
    except ImportError as error:
        return f"not measured: {error}"


def es_neardupe() -> Sign:
    """Text to fingerprint, band keys included."""
    from es_neardupe.keys.fingerprint import fingerprints
    from es_neardupe.keys.scheme import Scheme

    return partial(fingerprints, scheme=Scheme.for_threshold(0.8))


def shingled(text: str) -> set[str]:
    """Tokens and shingles, in plain Python."""
    tokens = WORDS.findall(text.lower())
    return {" ".join(tokens[i : i + SHINGLE]) for i in range(max(len(tokens) - SHINGLE + 1, 1))}


def datasketch_batch() -> Sign:
    """One MinHash a text, its shingles in one ``update_batch``."""
    from datasketch import MinHash
    from xxhash import xxh32_intdigest

    def sign(texts: list[str]) -> object:
        made = []
        for text in texts:
            sketch = MinHash(num_perm=PERMUTATIONS, hashfunc=xxh32_intdigest)
            sketch.update_batch([shingle.encode() for shingle in shingled(text)])
            made.append(sketch)
        return made

    return sign


def datasketch_bulk() -> Sign:
    """``MinHash.bulk``, which shares the permutations between texts."""
    from datasketch import MinHash
    from xxhash import xxh32_intdigest

    def sign(texts: list[str]) -> object:
        sets = ([shingle.encode() for shingle in shingled(text)] for text in texts)
        return MinHash.bulk(sets, num_perm=PERMUTATIONS, hashfunc=xxh32_intdigest)

    return sign


def rensa_each() -> Sign:
    """One RMinHash a text."""
    from rensa import RMinHash

    def sign(texts: list[str]) -> object:
        made = []
        for text in texts:
            sketch = RMinHash(PERMUTATIONS, 1)
            sketch.update(shingled(text))
            made.append(sketch)
        return made

    return sign


def rensa_matrix() -> Sign:
    """rensa's call for many texts at once."""
    from rensa import RMinHash

    return lambda texts: RMinHash.digest_matrix_from_token_sets(list(map(shingled, texts)), PERMUTATIONS, 1)


def daft_minhash(hash_function: Any) -> Sign:
    """The native expression of daft, from Arrow to Arrow."""
    import daft
    from daft.functions import minhash

    signed = minhash(daft.col("text"), num_hashes=PERMUTATIONS, ngram_size=SHINGLE, hash_function=hash_function)
    return lambda texts: daft.from_pydict({"text": texts}).select(signed).collect(num_preview_rows=0)


def measure(signers: dict[str, Sign | str], texts: list[str], rounds: int) -> dict[str, list[float] | str]:
    """Seconds of each round, after a warm-up round."""
    taken: dict[str, list[float] | str] = {
        name: sign if isinstance(sign, str) else [] for name, sign in signers.items()
    }
    for number in range(rounds + 1):
        for name, sign in signers.items():
            if isinstance(sign, str):
                continue
            start = time.perf_counter()
            sign(texts)
            if number and isinstance(seconds := taken[name], list):
                seconds.append(time.perf_counter() - start)
    return taken


def report(texts: list[str], taken: dict[str, list[float] | str]) -> None:
    """Print the rate of each library, and how many times as fast es_neardupe is."""
    size = statistics.mean(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    beyond = sum(not text.isascii() for text in texts) / len(texts)
    print(f"{len(texts)} texts of {size:.0f} bytes on average, {beyond:.0%} of them not ASCII, one core")
    base = taken["es_neardupe"]
    for name, seconds in taken.items():
        if isinstance(seconds, str) or isinstance(base, str):
            print(f"{name:36} {seconds}")
            continue
        rate, ratio = len(texts) / min(seconds), min(seconds) / min(base)
        print(f"{name:36} {rate:9,.0f} texts/s   es_neardupe is {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
