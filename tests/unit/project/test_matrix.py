"""The table of what ran: its cells are the recorded results, its versions those of the servers and drivers we name."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from drivers import DRIVERS
from matrix import BEGIN, END, MANAGED, OLDER, PAGE, Row, counts, recorded, results_table, services_table, wanted
from packaging.requirements import Requirement
from packaging.version import Version

from es_neardupe.local_server import versions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
ROW = Row("opensearch-2.19", "2.19.1", "opensearch-py-2", "2.8.0", 1234, 0, 5, 60, "2026-01-01", "3.11.7")


def requirements() -> dict[str, Requirement]:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {one.name: one for one in map(Requirement, about["optional-dependencies"]["dev"])}


def test_the_drivers_are_all_major_versions_that_the_project_allows() -> None:
    for package in {driver.package for driver in DRIVERS}:
        specifier = requirements()[package].specifier
        allowed = [n for n in range(1, 30) if any(Version(f"{n}.{m}.99") in specifier for m in range(99))]
        assert sorted(driver.major for driver in DRIVERS if driver.package == package) == allowed


def test_installation_names_the_lowest_versions_that_the_project_allows() -> None:
    text = " ".join(PAGE.read_text("utf-8").split())
    for package, title in (("elasticsearch", "elasticsearch-py"), ("opensearch-py", "opensearch-py")):
        (minimum,) = (one.version for one in requirements()[package].specifier if one.operator == ">=")
        newest = max(driver.major for driver in DRIVERS if driver.package == package)
        assert f"{title} {minimum} and later or {newest}" in text


def test_what_ran_was_what_is_supported_now_and_nothing_failed() -> None:
    rows = recorded()
    assert [row.key for row in rows] == [key for key in wanted() if key in {row.key for row in rows}]
    assert {(row.server, row.version) for row in rows} <= {
        (f"{r.server}-{r.minor}", r.version) for r in versions.SUPPORTED
    }
    assert [row for row in rows if row.failed or not row.passed] == []
    assert all(row.driver_version.partition(".")[0] == row.driver.rpartition("-")[2] for row in rows if row.driver)
    newest = {driver.product: str(driver.major) for driver in DRIVERS if driver not in OLDER}
    assert all(
        row.driver_version.partition(".")[0] == newest[row.server.partition("-")[0]] for row in rows if not row.driver
    )


def test_installation_holds_the_table_of_the_results() -> None:
    text = PAGE.read_text("utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == results_table(recorded())


def test_the_page_of_services_holds_the_table_of_their_results() -> None:
    text = MANAGED.read_text("utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == services_table(recorded())


def test_a_table() -> None:
    whole = replace(ROW, driver="", driver_version="3.2.0", passed=10, failed=2, skipped=0)
    lines = results_table([ROW, whole]).splitlines()
    assert (
        lines[0] == "| server | all server tests, with the newest driver | elasticsearch-py 8 | opensearch-py 2.8.0 |"
    )
    assert "| OpenSearch 2.19.1 | 2 FAILED, 10 passed (opensearch-py 3.2.0) | – | 1,234 passed, 5 skipped |" in lines
    assert "| Elasticsearch 9.5.3 | not run yet | not run yet | – |" in lines
    assert len(lines) == 2 + len(versions.SUPPORTED)


@pytest.mark.parametrize(
    ("report", "code", "found"),
    [
        ('<testsuites><testsuite tests="9" failures="2" errors="1" skipped="1"/></testsuites>', 1, (5, 3, 1)),
        ('<testsuites><testsuite tests="9" failures="0" errors="0" skipped="1"/></testsuites>', 0, (8, 0, 1)),
        ('<testsuites><testsuite tests="9" failures="0" errors="0" skipped="0"/></testsuites>', 2, (9, 1, 0)),
        ("", 4, (0, 1, 0)),
    ],
)
def test_counts_of_a_report(report: str, code: int, found: tuple[int, int, int], tmp_path: Path) -> None:
    """A run that was cut off has failed, whatever its report says."""
    file = tmp_path / "report.xml"
    if report:
        file.write_text(report, "utf-8")
    assert counts(file, code) == found
