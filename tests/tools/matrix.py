"""Tests on every supported server, with every supported driver: ``scripts/test --matrix``.

    scripts/test --matrix [SERVER ...]     the server tests on each server, then the drivers' tests with older drivers;
                                           on the newest of each product also through the proxies of managed services
    scripts/test --clients [SERVER ...]    the drivers' tests only

The newest major version of each driver is installed: all server tests run with it.

The servers run one after the other, each as one node, on which two processes share the tests. The results are printed
at the end. Those of each server are written, when it is done, into docs/matrix.json and the table of docs/install.md,
which hold the last run of each server.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, Protocol
from xml.etree import ElementTree as ET

from drivers import DRIVERS, Driver, environment, version
from jvm_tools import start_quickly
from shared_servers import HEAP

from es_neardupe.errors import NodeError
from es_neardupe.local_server import control, versions

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "matrix.json"
PAGE = ROOT / "docs" / "install.md"
MANAGED = ROOT / "docs" / "managed.md"
BEGIN, END = "<!-- begin of what scripts/test --matrix wrote -->\n", "<!-- end of it -->\n"

OLDER = tuple(one for one in DRIVERS if any(one.package == d.package and one.major < d.major for d in DRIVERS))
"""All but the newest major version of each driver, which is installed."""

_TWO = ["-n", "2", "--dist", "loadgroup"]
_WHICH = ["-m", "server and not nodes and not long"]
_SERVER_TESTS = [*_TWO, "--soak-seconds", "10", *_WHICH]
_DRIVER_TESTS = [
    *_TWO,
    "tests/servers/test_smoke.py",
    "tests/commands/test_fingerprinted.py",
    "tests/servers/test_clients.py",
    "tests/unit/server/test_clients_faults.py",
    *("-m", "not long"),
]

SERVICES = {
    "domain": ("opensearch", "Amazon OpenSearch Service"),
    "collection": ("opensearch", "Amazon OpenSearch Serverless"),
    "serverless": ("elasticsearch", "Elastic Cloud Serverless"),
}
"""Word in the names of its tests -> product and name of a service."""
_OF_SERVICES = {"domain": "domain or signed"}
_SERVICE_TESTS = ["tests/servers/test_managed.py", "tests/servers/test_signed.py", "-m", "server"]


@dataclass(frozen=True)
class Row:
    """Results of the tests on one server. ``driver`` is empty if all tests ran, with the installed driver."""

    server: str
    """Such as ``opensearch-2.19``."""
    version: str
    driver: str
    """Such as ``opensearch-py-2``."""
    driver_version: str
    passed: int
    failed: int
    skipped: int
    seconds: int
    day: str
    python: str
    service: str = ""
    """One of `SERVICES`, if its proxy was in front of the server."""

    @property
    def key(self) -> tuple[str, str]:
        return (self.server, self.driver or self.service)


def main() -> int:
    """Run the requested tests; the exit code is 1 if anything failed or nothing ran."""
    arguments = _arguments()
    start_quickly()
    rows: list[Row] = []
    files = server_files() if arguments.matrix else []
    for release in arguments.servers or versions.SUPPORTED:
        with _server(release) as given:
            if arguments.matrix:
                rows.append(_run(release, None, [*files, *_SERVER_TESTS], {**os.environ, **given}))
            if arguments.matrix or arguments.services:
                rows += run_services(release, given)
            if not arguments.services:
                rows += run_drivers(release, given)
        record(rows)  # an interrupted run keeps the servers that it has finished
    for line in table(rows):
        print(line)
    return int(any(row.failed or not row.passed for row in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/test")
    parser.add_argument("servers", nargs="*", type=_release, metavar="SERVER", help="such as opensearch-2.19")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--matrix", action="store_true", help="every server test, then the drivers'")
    which.add_argument("--clients", action="store_true", help="the drivers' tests only")
    which.add_argument("--services", action="store_true", help="the tests of managed services only")
    return parser.parse_args()


def _release(name: str) -> versions.Release:
    server, _, wanted = name.partition("-")
    try:
        return versions.pick(server, wanted or None)
    except NodeError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def server_files() -> list[str]:
    """The files with server tests: each process that imports all the others takes some seconds."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *_WHICH]
    collected = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted({line.partition("::")[0] for line in collected.splitlines() if "::" in line})


def run_drivers(release: versions.Release, given: Mapping[str, str]) -> Iterator[Row]:
    """The drivers' tests with each older driver of the product, on the given node."""
    for driver in OLDER:
        if driver.product == release.server:
            yield _run(release, driver, _DRIVER_TESTS, {**environment(driver), **given})


def run_services(release: versions.Release, given: Mapping[str, str]) -> Iterator[Row]:
    """The tests of the services of a product, on the given node if it is the newest release."""
    for service in services_of(release):
        tests = [*_SERVICE_TESTS, "-k", _OF_SERVICES.get(service, service)]
        yield replace(_run(release, None, tests, {**os.environ, **given}), service=service)


def services_of(release: versions.Release) -> list[str]:
    """The services whose proxies are tried with a release: only the newest one of a product."""
    if release != versions.pick(release.server, None):
        return []
    return [service for service, (product, _) in SERVICES.items() if product == release.server]


@contextmanager
def _server(release: versions.Release) -> Iterator[dict[str, str]]:
    """A node for the block, in the form in which the tests' environment names it."""
    with tempfile.TemporaryDirectory() as data:
        started = control.start(release.server, release.version, data=data, heap=HEAP)
        try:
            yield {"ES_NEARDUPE_TEST_URL": f"{_name(release)}={started.url}"}
        finally:
            control.stop(release.server, release.version, data=data)


def _name(release: versions.Release) -> str:
    return f"{release.server}-{release.minor}"


def _run(release: versions.Release, driver: Driver | None, tests: Sequence[str], variables: dict[str, str]) -> Row:
    """Run pytest and show its output; returns the row of its results."""
    name = _name(release)
    print(f"\n==== {name}{f' with {driver.slug}' if driver else ''}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--servers", name, "--smoke", name, f"--junitxml={report}"]
        ended = subprocess.run([*command, *tests], cwd=ROOT, env=variables, check=False)
        passed, failed, skipped = counts(report, ended.returncode)
    return Row(
        server=name,
        version=release.version,
        driver=driver.slug if driver else "",
        driver_version=version(driver) if driver else installed(_newest(release).package),
        passed=passed,
        failed=failed,
        skipped=skipped,
        seconds=round(time.monotonic() - started),
        day=datetime.now(timezone.utc).date().isoformat(),
        python=platform.python_version(),
    )


def counts(report: Path, code: int) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of a report; a run that ended in another way counts as at least one failure."""
    suites = ET.parse(report).getroot().iter("testsuite") if report.exists() else ()
    total = failed = skipped = 0
    for suite in suites:
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return max(0, total - failed - skipped), failed or int(code != 0), skipped


class Counted(Protocol):
    """Numbers of tests."""

    @property
    def passed(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def skipped(self) -> int: ...


def in_words(row: Counted) -> str:
    """The result in a cell of a table."""
    parts = {"FAILED": row.failed, "passed": row.passed, "skipped": row.skipped}
    return ", ".join(f"{number:,} {word}" for word, number in parts.items() if number) or "nothing ran"


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The lines for the terminal."""
    yield f"\n{'server':<22} {'driver':<22} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}"
    for row in rows:
        driver = f"{_title(row.driver or row.server)} {row.driver_version}"
        figures = f"{row.passed:>7} {row.failed:>7} {row.skipped:>8} {row.seconds:>8}"
        yield f"{row.server.partition('-')[0] + ' ' + row.version:<22} {driver:<22} {figures}"


def record(rows: Iterable[Row]) -> None:
    """Replace the results of earlier runs, and rewrite the table of docs/install.md."""
    kept = {row.key: row for row in (*recorded(), *rows)}
    ordered = [kept[key] for key in wanted() if key in kept]
    store(ordered, RESULTS, results_table(ordered), (BEGIN, END))
    write_table(MANAGED, services_table(ordered), (BEGIN, END))


def store(rows: Iterable[Any], results: Path, table: str, markers: tuple[str, str]) -> None:
    """Write rows into a file of results, and their table between two markers of docs/install.md."""
    results.write_text("[\n" + ",\n".join(json.dumps(asdict(row)) for row in rows) + "\n]\n", "utf-8")
    write_table(PAGE, table, markers)


def write_table(page: Path, table: str, markers: tuple[str, str]) -> None:
    """Write a table between two markers of a page."""
    begin, end = markers
    before, _, rest = page.read_text("utf-8").partition(begin)
    page.write_text(before + begin + table + end + rest.partition(end)[2], "utf-8")


def recorded() -> list[Row]:
    """The results of the last run of each server with each driver."""
    return [Row(**one) for one in json.loads(RESULTS.read_text("utf-8"))] if RESULTS.exists() else []


def wanted() -> list[tuple[str, str]]:
    """The keys of all rows that should exist, in the order of the table."""
    return [
        (_name(release), driver)
        for release in versions.SUPPORTED
        for driver in (
            "",
            *services_of(release),
            *(one.slug for one in OLDER if one.product == release.server),
        )
    ]


def results_table(rows: Iterable[Row]) -> str:
    """The table: servers in rows, drivers in columns."""
    found = {row.key: row for row in rows}
    heads = ["server", "all server tests, with the newest driver", *(_head(one, found.values()) for one in OLDER)]
    lines = [heads, ["---"] * len(heads)]
    for release in versions.SUPPORTED:
        cells = [_cell(found, release, driver) for driver in (None, *OLDER)]
        title = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}[release.server]
        lines.append([f"{title} {release.version}", *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def services_table(rows: Iterable[Row]) -> str:
    """The table of the tests through the proxies of services."""
    found = {row.service: row for row in rows if row.service}
    lines = [["proxy of", "in front of", "tests", "day"], ["---"] * 4]
    for service, (product, name) in SERVICES.items():
        row = found.get(service)
        title = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}[product]
        cells = [f"{title} {row.version}", in_words(row), row.day] if row else [title, "not run yet", ""]
        lines.append([name, *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(rows: Mapping[tuple[str, str], Row], release: versions.Release, driver: Driver | None) -> str:
    if driver is not None and driver.product != release.server:
        return "–"
    row = rows.get((_name(release), driver.slug if driver else ""))
    if row is None:
        return "not run yet"
    return in_words(row) if driver else f"{in_words(row)} ({_title(row.server)} {row.driver_version})"


def _head(driver: Driver, rows: Iterable[Row]) -> str:
    """The name of a driver with the version that was used."""
    ran = sorted({row.driver_version for row in rows if row.driver == driver.slug})
    return f"{_title(driver.slug)} {', '.join(ran) or driver.major}"


def _title(name: str) -> str:
    """The name of a driver (elasticsearch-py, opensearch-py), from its package or from a server."""
    return f"{name.partition('-')[0]}-py"


def _newest(release: versions.Release) -> Driver:
    """The installed driver for a server."""
    return next(one for one in DRIVERS if one.product == release.server and one not in OLDER)


if __name__ == "__main__":
    sys.exit(main())
