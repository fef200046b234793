"""The Pythons that are supported: classifiers, and the table of docs/install.md, say on which the unit tests ran."""

from __future__ import annotations

import sys

from matrix import PAGE
from packaging.specifiers import SpecifierSet
from pythons import BEGIN, END, OLDEST, RESULTS, Row, pythons, recorded, table
from repository import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PREFIX = "Programming Language :: Python :: 3."


def test_classifiers_are_what_ran_and_nothing_failed() -> None:
    assert [row for row in recorded() if row.failed or not row.passed] == []
    classifiers = [one.removeprefix(PREFIX) for one in PROJECT["classifiers"] if one.startswith(PREFIX)]
    assert [f"3.{one}" for one in classifiers] == [row.minor for row in recorded()]


def test_the_oldest_python() -> None:
    supported = SpecifierSet(PROJECT["requires-python"])
    assert f"3.{OLDEST}" in supported
    assert f"3.{OLDEST - 1}" not in supported
    assert recorded()[0].minor == f"3.{OLDEST}"


def test_installation_holds_the_table_of_the_results() -> None:
    assert PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0] == "".join(table(recorded()))


def test_a_table() -> None:
    rows = [Row("3.12.1", 5238, 0, 1, 577, "2026-01-01"), Row("3.13.0", 5, 2, 0, 60, "2026-01-02")]
    found = "".join(table(rows))
    assert found.startswith("| Python | unit tests | day |\n| --- |")
    assert (
        "\n| 3.12.1 | 5,238 passed, 1 skipped | 2026-01-01 |\n| 3.13.0 | 2 FAILED, 5 passed | 2026-01-02 |\n" in found
    )


def test_this_python_is_found() -> None:
    assert pythons()[f"3.{sys.version_info.minor}"] == sys.executable
    assert RESULTS.exists()
