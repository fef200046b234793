"""Input streams: the expanded content of a file, plain or compressed (.gz, .xz), in lines of limited size.

A small compressed file can expand to any size. Files are expanded piece by piece, and a line that exceeds the limit is
dropped while it is read: never more than the limit is in memory.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

__all__ = ["COMPRESSED", "MAX_EXPANDED", "READ_ERRORS", "expanded", "limited_lines", "whole"]

COMPRESSED = (".gz", ".xz")
READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""Exceptions of reading a file that is truncated, damaged or deleted."""

MAX_EXPANDED = 100_000_000
"""Maximum size of a line, a CSV row and a text file in bytes, expanded: servers accept no larger request by default."""

_XZ_MEMORY = 300_000_000
"""Maximum memory of the decoder of a .xz file in bytes. The default of `xz -9` needs 68,000,000."""
_PIECE = 2**20
_READ = 2**17


def expanded(file: Path) -> IO[bytes]:
    """The content of a file, decompressed while it is read."""
    if file.suffix.lower() == ".gz":
        return cast("IO[bytes]", gzip.open(file))
    if file.suffix.lower() == ".xz":
        return io.BufferedReader(_Xz(file), _READ)
    return file.open("rb")


class _Xz(io.RawIOBase):
    """A .xz file, decompressed. Unlike `lzma.open`, it limits the memory of the decoder, which the file determines."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("rb")
        self._ahead = b""
        """Data that was read after the end of a stream."""
        self._decoder: lzma.LZMADecompressor | None = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Raises `LZMAError` or `EOFError` if the file is damaged, truncated, or needs too much memory."""
        while self._decoder is not None:
            data = self._read() if self._decoder.needs_input else b""
            if self._decoder.needs_input and not data:
                raise EOFError("the file ends before the end of its compressed data")
            content = self._decoder.decompress(data, len(buffer))
            if self._decoder.eof:
                self._ahead = self._decoder.unused_data
                self._decoder = lzma.LZMADecompressor(memlimit=_XZ_MEMORY) if self._has_more() else None
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


def limited_lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """The lines of a stream; None for a line that is longer than `MAX_EXPANDED`."""
    while piece := stream.readline(_PIECE):
        pieces, size = [piece], len(piece)
        while not piece.endswith(b"\n") and (piece := stream.readline(_PIECE)):
            size += len(piece)
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
