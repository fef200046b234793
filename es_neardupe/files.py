"""Output files: checked before long work, and written completely or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile

from es_neardupe.errors import InputError
from es_neardupe.folders import replaced


def check_file(file: Path, read: Iterable[str | None] = ()) -> None:
    """Raise `InputError` if a file cannot be created or replaced, or is one of the input files ``read``.

    Call this before long work.
    """
    if str(file) == "-":
        raise InputError("- is not a file name here: name the file to write.")
    if file.exists() and not file.is_file():
        raise InputError(f"{file} is {'a folder' if file.is_dir() else 'not a regular file'}: name the file to write.")
    if any(name and Path(name).exists() and file.exists() and file.samefile(name) for name in read):
        raise InputError(f"{file} is an input file: name another file to write.")
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
