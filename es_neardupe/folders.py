"""Data and cache folders of the user, and atomic writing of files."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs

_HOME = "ES_NEARDUPE_HOME"
_CACHE = "ES_NEARDUPE_CACHE"
_APP = "es-neardupe"


def home() -> Path:
    """The folder of data, logs and PID files of local servers: ``$ES_NEARDUPE_HOME``, else the user's data folder."""
    return chosen(os.environ.get(_HOME) or platformdirs.user_data_dir(_APP))


def cache() -> Path:
    """The folder of jars and feature frequencies: ``$ES_NEARDUPE_CACHE``, else the user's cache folder."""
    return chosen(os.environ.get(_CACHE) or platformdirs.user_cache_dir(_APP))


def run() -> Path:
    """The folder of the PID files of local servers, and of their locks."""
    return home() / "run"


def default_data(slug: str) -> Path:
    """The default data folder of a local server, without ``--data``."""
    return home() / "nodes" / slug


def chosen(path: Path | str) -> Path:
    """A folder given by the user as an absolute path without links, so that equal folders have equal paths."""
    return Path(path).expanduser().resolve()


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, which only this user can enter, whatever the umask. Existing folders
    keep their permissions. Raises `OSError`."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    with suppress(FileExistsError):  # made by another process meanwhile, or a file
        folder.mkdir(0o700)
        folder.chmod(0o700)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


@contextmanager
def replaced(file: Path) -> Iterator[Path]:
    """A new, empty file in the same folder, which replaces ``file`` when the ``with`` block ends.

    Readers never see partial content, and after an error the old file is unchanged. An existing file keeps its
    permissions. Raises `OSError`.
    """
    mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else None
    draft = file.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        draft.touch(0o666 if mode is None else mode | stat.S_IWUSR, exist_ok=False)
        yield draft
        if mode is not None:
            draft.chmod(mode)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
