"""Check an installed wheel, with its dependencies.

    ENVIRONMENT/bin/python tests/tools/installed_wheel.py

All modules in C must belong to the wheel; that of the keys must make the golden vectors.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from golden_vectors import FOLDER, golden_text

import es_neardupe
from es_neardupe.compiled import MODULES, compiled
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import Scheme

TEXTS = np.array([1, 2, 3, 4, 9, 5, 6, 7], np.uint64), np.array([5, 6, 7, 8, 1, 2, 3, 4], np.uint64)
TILES = [[0, 4, 4], [5, 0, 3]]
"""First word in the first of these texts, first word in the second, words."""


def main() -> None:
    """Raises `SystemExit` with the reason if the wheel is wrong."""
    if Path(es_neardupe.__file__).parents[1] == Path(__file__).parents[2]:
        sys.exit("This is the package of the repository, not an installed wheel.")
    if missing := [name for name in MODULES if compiled(name) is None]:
        sys.exit(f"Not compiled: {', '.join(missing)}.")
    compared = compare_keys()
    pairs: Any = compiled("similarity._pairs")
    tiles = np.frombuffer(pairs.tiles(*TEXTS, 3), np.int64).reshape(-1, 3).tolist()
    if tiles != TILES:
        sys.exit(f"The module of pairs found other tiles: {tiles}.")
    print(f"Python {sys.version.split()[0]}: all modules in C are active, {compared} golden vectors are equal.")


def compare_keys() -> int:
    """Compare the keys of the golden texts; returns the number of their vectors."""
    golden = json.loads((FOLDER / "scheme_v1.json").read_text("ascii"))
    schemes = {name: Scheme.from_dict(one["settings"]) for name, one in golden["schemes"].items()}
    compared = 0
    for case in golden["cases"]:
        for name, expected in case["fingerprints"].items():
            (made,) = fingerprints([golden_text(case)], schemes[name])
            if ("".join(made.bands), made.signature.hex(), made.content) != tuple(
                expected[field] for field in ("bands", "signature", "content")
            ):
                sys.exit(f"The keys of {case['name']} in the scheme {name} are others.")
            compared += 1
    return compared


if __name__ == "__main__":
    main()
