"""Data and cache folders of the user, and atomic writing of files."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile

import platformdirs

from es_neardupe.errors import InputError

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


def install_extra(extra: str) -> str:
    """A command that adds an extra to the environment of this process.

    It works for every installed es-neardupe, whether it came from a folder, a file, a repository or an index: pip finds
    it installed, and asks an index only for the packages of the extra. ``pip`` alone could be that of another
    environment.
    """
    return pip_install(f"es-neardupe[{extra}]")


def pip_install(requirement: str) -> str:
    """A command that installs a package into the environment of this process."""
    python = sys.executable
    if os.name == "nt":  # where single quotes are not special
        return f'"{python}" -m pip install "{requirement}"'
    return f"{shlex.quote(python)} -m pip install {shlex.quote(requirement)}"


def check_file(file: Path) -> None:
    """Raise `InputError` if a file cannot be created or replaced. Call this before long work."""
    if str(file) == "-":
        raise InputError("- is not a file name here: name the file to write.")
    if file.exists() and not file.is_file():
        raise InputError(f"{file} is {'a folder' if file.is_dir() else 'not a regular file'}: name the file to write.")
    if not file.parent.is_dir():
        raise InputError(f"{file} cannot be written: its folder does not exist.")
    try:
        with TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror or error}.") from error


@contextmanager
def replacing(file: Path) -> Iterator[TextIOWrapper]:
    """A UTF-8 text stream whose content replaces the file when the ``with`` block ends. Raises `InputError` if the file
    cannot be written."""
    check_file(file)
    try:
        with replaced(file) as draft, draft.open("w", encoding="utf-8", newline="") as stream:
            yield stream
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror or error}.") from error
