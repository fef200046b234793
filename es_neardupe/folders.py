"""Where the files of the local servers lie."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["cache", "chosen", "default_data", "home", "run"]

_HOME = "ES_NEARDUPE_HOME"
_CACHE = "ES_NEARDUPE_CACHE"
_APP = "es-neardupe"


def home() -> Path:
    """The folder of data, logs and PID files: ``$ES_NEARDUPE_HOME``, else the user's data folder."""
    return chosen(os.environ.get(_HOME) or platformdirs.user_data_dir(_APP))


def cache() -> Path:
    """The folder of the jars: ``$ES_NEARDUPE_CACHE``, else the user's cache folder."""
    return chosen(os.environ.get(_CACHE) or platformdirs.user_cache_dir(_APP))


def run() -> Path:
    """The folder of the PID files and locks."""
    return home() / "run"


def default_data(slug: str) -> Path:
    """The folder of one server when ``--data`` was not given."""
    return home() / "nodes" / slug


def chosen(path: Path | str) -> Path:
    """A folder that the user named, without links and dots, so that it is known again."""
    return Path(path).expanduser().resolve()
