"""The figures of the structure: each is printed beside what is aimed at."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_names_of_test_files_are_unique() -> None:
    """pytest imports them by their names, and collects the second of two not at all."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


@pytest.mark.long
def test_every_figure_is_printed() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "structure.py")], capture_output=True, text=True, check=True
    )
    rows = {
        name: int(now.replace(",", ""))
        for name, now in re.findall(r"^(\S.*?) {2,}(\S+) +(?:aim|apart)", run.stdout, re.M)
    }
    assert len(rows) == 18
    modules = [number for name, number in rows.items() if name.startswith("modules")]
    assert sum(modules) == len(list((ROOT / "es_neardupe").rglob("*.py")))
    assert rows["layers of import-linter"] == 14
    assert rows["rooms of index in circles"] == rows["rooms of commands in circles"] == 0
