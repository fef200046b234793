"""``version``: the versions of this package, its dependencies, the system and the server, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from es_neardupe.commands.version.report import VersionReport
    from es_neardupe.index.index import Index


def version(index: Index | None) -> VersionReport:
    """Show the versions of the program, the scheme, Python, the libraries and the server, for bug reports.

    With an index also the version of its server.

    >>> report = news.version()
    >>> report.scheme_version
    1
    """
    from es_neardupe.commands.version.report import PACKAGES, VersionReport, installed
    from es_neardupe.index.settings import Settings
    from es_neardupe.keys import hashing
    from es_neardupe.keys.scheme import Scheme
    from es_neardupe.similarity import batch

    scheme: Scheme = Settings(("text",)).scheme
    return VersionReport(
        version=version_of("es-neardupe"),
        scheme_version=scheme.version,
        scheme=scheme.id,
        compiled={"keys": hashing.kernel is not None, "pairs": batch.kernel is not None},
        python=f"{platform.python_implementation()} {sys.version.split()[0]}",
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages={name: installed(name) for name in PACKAGES},
        server=None if index is None else str(index.client.server),
    )
