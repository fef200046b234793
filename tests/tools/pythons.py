"""Unit tests on every installed Python: ``scripts/test --pythons``.

    scripts/test --pythons [VERSION ...]    such as 3.12; by default all that are found

Each Python gets an environment of its own, such as ``.venv-3.12``. The results are written into docs/pythons.json and
the table of docs/install.md, which hold the last run of each version. All other tests run on one Python.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

from matrix import ROOT, counts, in_words, store

RESULTS = ROOT / "docs" / "pythons.json"
BEGIN, END = "<!-- begin of what scripts/test --pythons wrote -->\n", "<!-- end of it -->\n"
OLDEST = 10
"""Minor version of the oldest Python 3 that is supported."""

_TESTS = [
    *("tests/unit", "--ignore", "tests/unit/project/test_pythons.py"),  # about the results that this run writes
    *("-m", "not server and not nodes and not long", "-n", "2", "--dist", "loadgroup"),
]


@dataclass(frozen=True)
class Row:
    """Results of the unit tests on one Python."""

    python: str
    """Such as ``3.12.1``."""
    passed: int
    failed: int
    skipped: int
    seconds: int
    day: str

    @property
    def minor(self) -> str:
        """Such as ``3.12``."""
        return self.python.rpartition(".")[0]


def main() -> int:
    """Run the tests; the exit code is 1 if anything failed or nothing ran."""
    parser = argparse.ArgumentParser(prog="scripts/test --pythons")
    parser.add_argument("--pythons", action="store_true", required=True, help="unit tests on every installed Python")
    parser.add_argument("versions", nargs="*", type=_found, metavar="VERSION", help="such as 3.12")
    rows: list[Row] = []
    for minor in parser.parse_args().versions or pythons():
        rows.append(run(minor, pythons()[minor]))
        record(rows)  # an interrupted run keeps the versions that it has finished
    for row in rows:
        print(f"{row.python:<10} {in_words(row)} in {row.seconds} seconds")
    return int(any(row.failed or not row.passed for row in rows))


def _found(version: str) -> str:
    if version not in pythons():
        raise argparse.ArgumentTypeError(f"no Python {version} was found, only {', '.join(pythons())}")
    return version


@cache
def pythons() -> dict[str, str]:
    """Version -> executable of each supported Python that is found: this one, others on the PATH, those of pyenv."""
    found = {f"3.{sys.version_info.minor}": sys.executable}
    folder = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    for minor in range(OLDEST, 30):
        name = f"python3.{minor}"
        candidates = [shutil.which(name), *map(str, sorted(folder.glob(f"3.{minor}.*/bin/{name}"), reverse=True))]
        for python in candidates:
            if python is not None and f"3.{minor}" not in found and _runs(python):
                found[f"3.{minor}"] = python
    return dict(sorted(found.items(), key=lambda one: int(one[0].partition(".")[2])))


def _runs(python: str) -> bool:
    """Whether this is a Python with the modules of an environment: a shim without a version is not, for example."""
    code = "import sys, importlib.util as u; sys.exit(None in map(u.find_spec, ('venv', 'ensurepip')))"
    return subprocess.run([python, "-ISc", code], capture_output=True, check=False).returncode == 0


def run(minor: str, python: str) -> Row:
    """Install everything for a Python, run its tests and show their output."""
    print(f"\n==== Python {minor}", flush=True)
    folder = f".venv-{minor}"
    subprocess.run(["scripts/venv", "dev", folder], cwd=ROOT, env={**os.environ, "PYTHON": python}, check=True)
    version = subprocess.check_output([f"{folder}/bin/python", "--version"], cwd=ROOT, text=True).split()[1]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.xml"
        command = [f"{folder}/bin/python", "-m", "pytest", "-q", f"--junitxml={report}", *_TESTS]
        ended = subprocess.run(command, cwd=ROOT, check=False)
        passed, failed, skipped = counts(report, ended.returncode)
    seconds, day = round(time.monotonic() - started), datetime.now(timezone.utc).date().isoformat()
    return Row(version, passed, failed, skipped, seconds, day)


def record(rows: Iterable[Row]) -> None:
    """Replace the results of earlier runs, and rewrite the table of docs/install.md."""
    kept = {row.minor: row for row in (*recorded(), *rows)}
    ordered = sorted(kept.values(), key=lambda row: int(row.minor.partition(".")[2]))
    store(ordered, RESULTS, "".join(table(ordered)), (BEGIN, END))


def recorded() -> list[Row]:
    """The results of the last run of each version."""
    return [Row(**one) for one in json.loads(RESULTS.read_text("utf-8"))] if RESULTS.exists() else []


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The table of docs/install.md."""
    yield "| Python | unit tests | day |\n| --- | --- | --- |\n"
    for row in rows:
        yield f"| {row.python} | {in_words(row)} | {row.day} |\n"


if __name__ == "__main__":
    sys.exit(main())
