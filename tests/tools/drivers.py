"""Supported major versions of the drivers, each in a folder that comes before the installed one.

A folder holds the newest release of its major version when it was made, with its dependencies; delete it to update.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from es_neardupe import folders
from es_neardupe.errors import NodeError
from es_neardupe.local_server import state

_TIMEOUT = 300.0


TESTED_DRIVER = "ES_NEARDUPE_TEST_DRIVER"


@dataclass(frozen=True)
class Driver:
    """A major version of a driver."""

    package: str
    major: int
    product: str
    """The servers that it supports, as in ``versions.Release.server``."""

    @property
    def slug(self) -> str:
        return f"{self.package}-{self.major}"

    @property
    def folder(self) -> Path:
        return folders.cache() / "drivers" / f"{self.slug}-python{sys.version_info[0]}.{sys.version_info[1]}"


DRIVERS = (
    Driver("elasticsearch", 9, "elasticsearch"),
    Driver("elasticsearch", 8, "elasticsearch"),
    Driver("opensearch-py", 3, "opensearch"),
    Driver("opensearch-py", 2, "opensearch"),
)


def environment(driver: Driver) -> dict[str, str]:
    """Environment variables with which Python imports this driver instead of the installed one, and tests use a client
    of it. Downloads it once.

    Raises `NodeError` if it cannot be installed.
    """
    fetch(f"{driver.package}=={driver.major}.*", driver.folder)
    paths = [str(driver.folder), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), TESTED_DRIVER: driver.package}


def version(driver: Driver) -> str:
    """The full version that Python imports with `environment`, read from the module."""
    module = {"elasticsearch": "elasticsearch", "opensearch-py": "opensearchpy"}[driver.package]
    code = f"import json, {module} as m; print(json.dumps([m.__versionstr__, m.__file__]))"
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment(driver), check=True, capture_output=True, text=True
    )
    found, file = json.loads(run.stdout)
    if driver.folder not in Path(file).parents or int(found.split(".")[0]) != driver.major:
        raise NodeError(f"{file} was imported instead of {driver.slug}: {found}")
    return str(found)


def fetch(requirement: str, folder: Path) -> None:
    """Install a package with its dependencies into a folder, unless it exists: into a temporary one, then rename it.
    Raises `NodeError` if it cannot be installed."""
    with state.hold(folder.with_name(f"{folder.name}.lock"), timeout=_TIMEOUT, doing=f"fetching {requirement}"):
        if folder.exists():
            return
        staging = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(staging, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(staging), requirement]
        run = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        if run.returncode:
            raise NodeError(f"{requirement} could not be installed: {run.stderr.strip().splitlines()[-1:]}")
        staging.replace(folder)
