"""Cost of preparing texts: how many times as long as signing the same texts as they are, on one core.

    python scripts/bench_prepare.py FILE.jsonl[.gz|.xz] [--field text] [--clean html|html-main|mail] [--mask all]
        [--count 4000] [--rounds 5]

Processor time; both take turns, and the fastest round of each counts.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bench_tools import pin_to_one_core, read_texts

from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.scheme import Scheme


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines")
    parser.add_argument("--field", default="text", help="the field of the texts (default text)")
    parser.add_argument("--clean", help="html, html-main or mail")
    parser.add_argument("--mask", default="", help="all, or kinds separated by commas")
    parser.add_argument("--count", type=int, default=4000, help="how many texts (default 4000)")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds (default 5)")
    arguments = parser.parse_args()
    pin_to_one_core()
    texts = read_texts(arguments.file, arguments.count, arguments.field)
    preparation = Preparation.named(arguments.clean, arguments.mask)
    plain, prepared = Scheme(bands=16, rows=6), Scheme(bands=16, rows=6, preparation=preparation)
    preparation.texts(texts[:1])  # loads what it needs
    rounds = [[signed(texts, scheme) for scheme in (plain, prepared)] for _ in range(arguments.rounds)]
    seconds = [min(side) for side in zip(*rounds, strict=True)]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / 1e6
    rates = [f"{size / one:.0f} MB/s" for one in seconds]
    print(f"{len(texts)} texts of {1e6 * size / len(texts):.0f} bytes on average, {preparation}, one core")
    print(f"plain {rates[0]}, prepared {rates[1]}: {seconds[1] / seconds[0]:.1f} times as long")


def signed(texts: list[str], scheme: Scheme) -> float:
    """Seconds of the processor for the keys of texts."""
    started = time.process_time()
    fingerprints(texts, scheme)
    return time.process_time() - started


if __name__ == "__main__":
    main()
