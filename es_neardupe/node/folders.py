"""Where the files of the local servers lie."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["HOME_VARIABLE", "cache", "default_data", "home", "run"]

HOME_VARIABLE = "ES_NEARDUPE_HOME"
CACHE_VARIABLE = "ES_NEARDUPE_CACHE"
_APP = "es-neardupe"


def home() -> Path:
    """The folder of data, logs and PID files: ``$ES_NEARDUPE_HOME``, else the user's data folder."""
    return Path(os.environ.get(HOME_VARIABLE) or platformdirs.user_data_dir(_APP)).expanduser().absolute()


def cache() -> Path:
    """The folder of the jars: ``$ES_NEARDUPE_CACHE``, else the user's cache folder."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir(_APP)).expanduser().absolute()


def run() -> Path:
    """The folder of the PID files and locks."""
    return home() / "run"


def default_data(slug: str) -> Path:
    """The folder of one server when ``--data`` was not given."""
    return home() / "nodes" / slug
