"""Input streams: the expanded content of a file, plain or compressed (.gz, .xz, .zst), in lines of limited size.

A small compressed file can expand to any size. Files are expanded piece by piece, and a line that exceeds the limit is
dropped while it is read: never more than the limit is in memory.
"""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from es_neardupe.errors import SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.progress import Progress, silent

COMPRESSED = (".gz", ".xz", ".zst")
READ_ERRORS = (OSError, EOFError, zlib.error)
"""Exceptions of reading a file that is truncated, damaged or deleted."""

MAX_EXPANDED = 100_000_000
"""Maximum size of a line, a row and a text file in bytes, expanded: servers accept no larger request by default."""

_XZ_MEMORY = 300_000_000
"""Maximum memory of the decoder of a .xz file in bytes. The default of `xz -9` needs 68,000,000."""
_ZST_WINDOW = 27
"""Maximum window of a .zst file, as the exponent of 2: 128 MiB, which `zstd` too accepts without `--long`."""
_PIECE = 2**20
_MB = 1_000_000
_EMPTY_LINES = 100_000
"""Empty lines between two reports of progress."""
_READ = 2**17


@dataclass(frozen=True)
class InputFile:
    """A file to be read, on this machine or at a URL."""

    name: str
    """As shown in messages: without credentials."""
    path: str
    """Its path; of a file in a folder, relative to the folder."""
    open: Callable[[], IO[bytes]]
    """Opens its content, which may be compressed; raises `OSError`."""
    names_lines: bool = True
    """Whether ``name`` and a line number can be the id of a document."""


def local_file(name: str | Path, path: str | None = None) -> InputFile:
    """The file of this name. ``path``: as in `InputFile`."""
    return InputFile(str(name), str(name) if path is None else path, lambda: Path(name).open("rb"))


def expanded(file: InputFile) -> IO[bytes]:
    """The content of a file, decompressed while it is read.

    Raises `OSError`, and `InputError` if a package is missing.
    """
    suffix = _suffix(file)
    if suffix == ".gz":
        stream: Any = file.open()
        stream = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
        if not stream.peek(1):  # an empty file is no gzip file, although Python reads it as one
            return io.BufferedReader(_Expanding(stream, _xz_decoder, lzma.LZMAError), _READ)
        return cast("IO[bytes]", _Gzip(stream))
    if suffix == ".xz":
        return io.BufferedReader(_Expanding(file.open(), _xz_decoder, lzma.LZMAError), _READ)
    if suffix == ".zst":
        decoder = _zst_decoder()
        return io.BufferedReader(_Expanding(file.open(), *decoder), _READ)
    return file.open()


def check_decoder(file: InputFile) -> None:
    """Raises `SettingsError` if the package that decompresses a file is missing."""
    if _suffix(file) == ".zst":
        _zst_decoder()


def _suffix(file: InputFile) -> str:
    return Path(file.path).suffix.lower()


class _Gzip(gzip.GzipFile):
    """As `GzipFile`, but closes the stream below it."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(fileobj=stream)
        self._below = stream

    def close(self) -> None:
        super().close()
        self._below.close()


def _xz_decoder() -> Any:
    return lzma.LZMADecompressor(memlimit=_XZ_MEMORY)


def _zst_decoder() -> tuple[Callable[[], Any], type[Exception]]:
    """A function that makes decoders, and the class of their errors. Raises `SettingsError` if no package has them."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise SettingsError(f".zst files need the package backports.zstd: {install_extra('tables')}") from None
    limit = {int(zstd.DecompressionParameter.window_log_max): _ZST_WINDOW}
    return lambda: zstd.ZstdDecompressor(options=limit), zstd.ZstdError


class _Expanding(io.RawIOBase):
    """A .xz or .zst file, decompressed. Unlike `lzma.open` and `zstd.open`, it limits the memory of the decoder, which
    the file determines."""

    def __init__(self, file: IO[bytes], new_decoder: Callable[[], Any], error: type[Exception]) -> None:
        self._file = file
        self._new_decoder = new_decoder
        self._error = error
        self._ahead = b""
        """Data that was read after the end of a stream."""
        self._decoder: Any = new_decoder()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises `OSError` or `EOFError` if the file is damaged, truncated, or needs too much memory."""
        while self._decoder is not None:
            data = self._read() if self._decoder.needs_input else b""
            if self._decoder.needs_input and not data:
                raise EOFError("the file ends before the end of its compressed data")
            try:
                content = self._decoder.decompress(data, len(buffer))
            except self._error as error:
                raise OSError(str(error)) from error
            if self._decoder.eof:
                self._ahead = self._decoder.unused_data
                self._decoder = self._new_decoder() if self._has_more() else None
            if content:
                buffer[: len(content)] = content
                return len(content)
        return 0

    def _read(self) -> bytes:
        data, self._ahead = self._ahead or self._file.read(_READ), b""
        return data

    def _has_more(self) -> bool:
        """Whether another stream follows; there may be zeros in between."""
        while data := self._read():
            if data := data.lstrip(b"\0"):
                self._ahead = data
                return True
        return False

    def close(self) -> None:
        self._file.close()
        super().close()


class Reading:
    """Counts what was read of files, and reports it even while no document is found: a small compressed file can expand
    to a billion empty lines, or to one line without an end."""

    def __init__(self, progress: Progress = silent) -> None:
        self.empty_lines = 0
        """Empty lines so far, which are no documents."""
        self._progress = progress
        self._bytes = 0
        self._reported = 0

    def add(self, size: int) -> None:
        """Count bytes of lines, expanded."""
        self._bytes += size
        if self._bytes - self._reported >= _MB:
            self._reported = self._bytes
            self._progress("reading (MB)", self._bytes // _MB, None)

    def add_empty_line(self) -> None:
        """Count a line that holds nothing."""
        self.empty_lines += 1
        if self.empty_lines % _EMPTY_LINES == 0:
            self._progress("empty lines", self.empty_lines, None)


def limited_lines(stream: IO[bytes], reading: Reading | None = None) -> Iterator[bytes | None]:
    """The lines of a stream; None for a line that is longer than `MAX_EXPANDED`. ``reading`` counts their bytes."""
    reading = Reading() if reading is None else reading
    while piece := stream.readline(_PIECE):
        pieces, size = [piece], len(piece)
        reading.add(size)
        while not piece.endswith(b"\n") and (piece := stream.readline(_PIECE)):
            size += len(piece)
            reading.add(len(piece))
            if size <= MAX_EXPANDED:
                pieces.append(piece)
            else:
                pieces.clear()
        yield b"".join(pieces) if size <= MAX_EXPANDED else None


def whole(stream: IO[bytes]) -> bytes | None:
    """The content of a stream; None if it is longer than `MAX_EXPANDED`."""
    pieces, size = [], 0
    while piece := stream.read(_PIECE):
        size += len(piece)
        if size > MAX_EXPANDED:
            return None
        pieces.append(piece)
    return b"".join(pieces)
