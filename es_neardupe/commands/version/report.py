"""Result of ``version``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from es_neardupe.records import one_line

PACKAGES = (
    *("urllib3", "elasticsearch", "elastic-transport", "opensearch-py"),
    *("numpy", "scipy", "xxhash", "orjson", "rapidfuzz", "selectolax", "pydantic", "tenacity", "typer", "rich"),
)
"""Packages whose version can explain a failure."""


@dataclass(frozen=True)
class VersionReport:
    """Versions, without anything that identifies the user."""

    version: str
    scheme_version: int
    """Version of the scheme."""
    scheme: str
    """Default scheme of `init`."""
    compiled: Mapping[str, bool]
    """Kernel -> whether it is active: the inner loops of ``keys`` and of comparing ``pairs`` in C. Otherwise numpy and
    Python do their work, which is slower."""
    python: str
    system: str
    packages: Mapping[str, str | None]
    """Package -> version; None: not installed."""
    server: str | None
    """Product and version; None without a server."""
    problem: str | None = None
    """Why the version of the server is unknown, if it was requested."""

    def __repr__(self) -> str:
        return one_line(
            self,
            version=self.version,
            scheme=self.scheme,
            compiled=self.compiled,
            python=self.python,
            server=self.server,
        )


def installed(name: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version_of(name)
    except PackageNotFoundError:
        return None
