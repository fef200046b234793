"""``version``: the versions of this package, its dependencies, the system and the server, for bug reports."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from es_neardupe.index.index import Index


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
    """Module in C -> whether it was built. Otherwise numpy and Python do its work, which is slower."""
    python: str
    system: str
    packages: Mapping[str, str | None]
    """Package -> version; None: not installed."""
    server: str | None
    """Product and version; None without a server."""
    problem: str | None = None
    """Why the version of the server is unknown, if it was requested."""

    def __repr__(self) -> str:
        from es_neardupe.records import one_line

        return one_line(
            self,
            version=self.version,
            scheme=self.scheme,
            compiled=self.compiled,
            python=self.python,
            server=self.server,
        )


def version(index: Index | None) -> VersionReport:
    """Show the versions of the program, the scheme, Python, the libraries and the server, for bug reports.

    With an index also the version of its server.

    >>> report = news.version()
    >>> report.scheme_version
    1
    """
    from es_neardupe.compiled import MODULES, compiled
    from es_neardupe.index.settings import Settings
    from es_neardupe.keys.scheme import Scheme

    scheme: Scheme = Settings(("text",)).scheme
    return VersionReport(
        version=version_of("es-neardupe"),
        scheme_version=scheme.version,
        scheme=scheme.id,
        compiled={name: compiled(name) is not None for name in MODULES},
        python=f"{platform.python_implementation()} {sys.version.split()[0]}",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages={name: _installed(name) for name in PACKAGES},
        server=None if index is None else str(index.client.server),
    )


def _installed(name: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version_of(name)
    except PackageNotFoundError:
        return None
