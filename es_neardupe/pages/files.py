"""Files that people asked for: written whole, or what was there stays as it was."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from es_neardupe.errors import InputError

__all__ = ["check_file", "replacing"]


def check_file(file: Path, read: Iterable[str | None] = ()) -> None:
    """Raises `InputError` where a file cannot be made or replaced, or is one of those that are ``read``: to be asked
    before long work."""
    if str(file) == "-":
        raise InputError("- is no file here: name the file to write.")
    if file.exists() and not file.is_file():
        raise InputError(f"{file} is {'a folder' if file.is_dir() else 'no ordinary file'}: name the file to write.")
    if any(name and Path(name).exists() and file.exists() and file.samefile(name) for name in read):
        raise InputError(f"{file} is what is to be read: name another file to write.")
    if not file.parent.is_dir():
        raise InputError(f"{file} cannot be written: there is no such folder.")


@contextmanager
def replacing(file: Path) -> Iterator[IO[str]]:
    """A stream of UTF-8 that becomes the file when all was written. Raises `InputError` where that is impossible."""
    check_file(file)
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                yield stream
            temporary.chmod(stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o666 & ~_mask())
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror or error}.") from error


def _mask() -> int:
    """What the user takes from new files, which can be read by setting it only."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
