"""Input files at URLs, such as ``s3://bucket/news.parquet``. Needs fsspec and its package for the kind of URL.

A URL can contain credentials: a password, or the signature of a request. No message and no exception of this module has
them.
"""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from es_neardupe.display_text import without_credentials
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.folders import pip_install
from es_neardupe.readers.streams import InputFile

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_READ = 2**17
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "abfs", "abfs": "abfs", "abfss": "abfs"}
_EXTRAS |= {"http": "http", "https": "http", "sftp": "sftp", "ssh": "ssh", "smb": "smb", "github": "github"}
"""Kind of URL -> the extra of fsspec with the packages that it needs."""
_T = TypeVar("_T")


def is_url(name: str) -> bool:
    """Whether this is the address of a file, and not its name."""
    return _URL.match(name) is not None or ("::" in name and "://" in name)


def local_path(name: str) -> str:
    """The name of a file; that in a ``file://`` URL for such a URL."""
    parts = urlsplit(name) if name.lower().startswith("file://") else None
    return url2pathname(parts.path) if parts is not None and parts.netloc in ("", "localhost") else name


class RemoteFolder:
    """A folder at a URL."""

    def __init__(self, name: str, system: Any, path: str) -> None:
        self.name = name
        self._system = system
        self._path = path

    def files(self) -> Iterator[InputFile]:
        """Its files and those of its subfolders, sorted by path. Raises `OSError`."""
        root = self._path.rstrip("/")
        for path in sorted(_safely(lambda: self._system.find(self._path))):
            relative = posixpath.relpath(path, root) if root else path.lstrip("/")
            if any(part.startswith(".") for part in relative.split("/")):
                continue  # hidden, as in a folder of this machine
            name = without_credentials(f"{self.name.rstrip('/')}/{relative}")
            yield InputFile(name, relative, _opener(self._system, path))


def remote(url: str) -> InputFile | RemoteFolder:
    """The file or folder at a URL.

    Raises `InputError` if there is none, or a package is missing. HTTP has no folders, and its files are not asked for.
    """
    shown = without_credentials(url)
    if "::" in url:
        raise InputError(f"{shown}: URLs of several parts (::) are not read. Give the URL of a file.")
    extra = _EXTRAS.get(url.partition("://")[0].lower())
    package = f"fsspec[{extra}]" if extra else "fsspec"
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise SettingsError(f"{shown} needs fsspec: {pip_install(package)}") from None
    try:
        system, path = _safely(lambda: url_to_fs(url))
        in_url = urlsplit(url)
        if in_url.scheme.lower() in ("http", "https"):
            return InputFile(shown, in_url.path, _opener(system, path), names_lines=not in_url.query)
        if not _safely(lambda: system.exists(path)):
            raise InputError(f"There is no file or folder {shown!r}.")
        if _safely(lambda: system.isdir(path)):
            return RemoteFolder(shown, system, path)
    except _PackageMissing as error:
        raise SettingsError(f"{shown} needs another package ({error}): {pip_install(package)}") from None
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {error}.") from None
    return InputFile(shown, path, _opener(system, path))


def _opener(system: Any, path: str) -> Callable[[], IO[bytes]]:
    return lambda: io.BufferedReader(_Remote(_safely(lambda: system.open(path, "rb"))), _READ)


def _safely(call: Callable[[], _T]) -> _T:
    """The result of a call of a file system. Raises `OSError` for whatever exception it raises: their classes are those
    of its package, and their messages can contain the URL with its credentials."""
    try:
        return call()
    except ImportError as error:  # with a text of fsspec: which one
        raise _PackageMissing(str(error)) from None
    except Exception as error:  # noqa: BLE001 - see above
        raise OSError(_reason(error)) from None


class _PackageMissing(Exception):
    """The package for a kind of URL is not installed."""


def _reason(error: Exception) -> str:
    for one in (error, error.__cause__):  # fsspec says of each status that there is no file
        if isinstance(status := getattr(one, "status", None), int):
            return f"status {status}"
    if isinstance(error, FileNotFoundError):
        cause = error.__cause__  # fsspec says this of each failed connection, too
        failed = cause is not None and not isinstance(cause, FileNotFoundError)
        return f"no connection: {type(cause).__name__}" if failed else "there is no such file"
    if isinstance(error, ValueError) and "Protocol not known" in str(error):
        return "fsspec does not know this kind of URL"
    if isinstance(error, PermissionError):
        return "access denied"
    return type(error).__name__


class _Remote(io.RawIOBase):
    """A file of fsspec, with the exceptions of `_safely`."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return _safely(lambda: int(self._file.seek(offset, whence)))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        """Raises `OSError`."""
        content = _safely(lambda: self._file.read(len(buffer)))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
