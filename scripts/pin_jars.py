"""The jars of local servers: resolves and downloads releases again, and writes the coordinates and the SHA-256 of their
jars into tables.

    .venv/bin/python scripts/pin_jars.py [RELEASE ...]

RELEASE is a name such as opensearch-3.8.0; without one, the releases that are not in a table yet. Prints the difference
to the checksums before, and removes releases that are no longer supported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tools"))

import secured_opensearch
from jgo.maven import MavenContext
from jgo.parse import Endpoint

from es_neardupe.local_server import download
from es_neardupe.local_server.versions import SUPPORTED, Release, file_name

Table = dict[str, dict[str, str]]


def table_of(file: Path) -> Table:
    """The table in a file: release -> coordinates of a jar -> SHA-256."""
    table: Table = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return table


def resolved(coordinates: str, repository: Path) -> list[str]:
    """The coordinates of jars and of their dependencies, for jars given as ``group:artifact:version[+...]``."""
    # jgo.build would do the same, and then sort the jars into modules with a full JDK, which is not needed here.
    context = MavenContext(repo_cache=repository, remote_repos=download.remotes())
    requested = [replace(c, scope="compile") for c in Endpoint.parse(coordinates).coordinates]
    direct, transitive = context.resolver.resolve([context.create_dependency(c) for c in requested])
    needed = [*direct, *(d for d in transitive if d.scope in ("compile", "runtime"))]
    parts = [(one.groupId, one.artifactId, one.version, one.classifier) for one in needed]
    return [":".join(filter(None, one)) for one in parts]


def jars(release: Release) -> dict[str, str]:
    """Coordinates -> checksum of the jars of a release, downloaded now."""
    with TemporaryDirectory() as folder:
        found = resolved(release.coordinates, Path(folder))
        files = download.download(found, Path(folder))
        assert [file.name for file in files] == [file_name(one) for one in found]
        return dict(zip(found, map(download.sha256, files), strict=True))


def pin(file: Path, releases: Iterable[Release], wanted: list[str]) -> None:
    """Update the table in a file, which has these releases."""
    before, after = table_of(file), Table()
    for release in releases:
        known = before.get(release.slug, {})
        again = release.slug in wanted or not (wanted or known)
        after[release.slug] = jars(release) if again else known
        changed = sorted(dict(known.items() ^ after[release.slug].items()))
        print(f"{release.slug}: {len(after[release.slug])} jars, {len(changed)} changed")
        for name in changed:
            print(f"  {name}: {known.get(name, 'new')} -> {after[release.slug].get(name, 'removed')}")
    file.write_text(json.dumps(after, indent=1, sort_keys=True) + "\n", "utf-8")


def main() -> None:
    releases = [*SUPPORTED, secured_opensearch.RELEASE]
    wanted = sys.argv[1:]
    if unknown := sorted(set(wanted) - {release.slug for release in releases}):
        sys.exit(f"unknown: {', '.join(unknown)}; known: {', '.join(release.slug for release in releases)}")
    for file in dict.fromkeys(release.table for release in releases):
        pin(file, [release for release in releases if release.table == file], wanted)


if __name__ == "__main__":
    main()
