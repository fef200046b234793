"""Normalised tokens of texts, computed for a chunk of texts at once.

All work is done on UTF-8 bytes. ASCII is folded by one ``bytes.translate``; other characters are decoded, looked up and
written back in place, so that a few of them cost little time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xxhash

from es_neardupe.keys import hashing
from es_neardupe.keys.arrays import U32, Ints, Octets
from es_neardupe.keys.unicode import LOWER, RESIZED, SINGLE, UPPER, WORD, table

__all__ = ["Range", "chunks", "contents", "normalize", "spans", "tokenize"]


Range = tuple[int, int]
"""The first character or word, and the one after the last."""

CHUNK_TEXTS = 256
CHUNK_CHARS = 1 << 19

_BLANK = 0x20
_END = 0xFF  # ends a text; no byte of UTF-8 has this value
_ASCII = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or byte == ord("_") else _BLANK for byte in range(0x80)
) + bytes(range(0x80, 0x100))


def chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split ``texts`` into chunks that fit into the processor's cache.

    A chunk has at most 256 texts and about half a million characters; a longer text is a chunk of its own.
    """
    first, chars = 0, 0
    for number, text in enumerate(texts):
        if number > first and (number - first == CHUNK_TEXTS or chars + len(text) > CHUNK_CHARS):
            yield texts[first:number]
            first, chars = number, 0
        chars += len(text)
    if first < len(texts):
        yield texts[first:]


def tokenize(text: str) -> list[str]:
    """The tokens of a text, normalised, in order."""
    (content,) = normalize([text])
    return content.decode().split(" ") if content else []


def spans(text: str) -> Ints:
    """Positions of the tokens of a text: int64[n, 2], the first character and the one after the last."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
    entries = np.concatenate(([0], table()[points], [0]))
    word, single = (entries & WORD) != 0, (entries & SINGLE) != 0
    joined = word[1:] & word[:-1] & ~single[1:] & ~single[:-1]
    starts = np.flatnonzero(word[1:] & ~joined)
    ends = np.flatnonzero(word[:-1] & ~joined)
    return np.stack((starts, ends), axis=1)


def normalize(texts: Sequence[str]) -> list[bytes]:
    """The normalised tokens of each text, joined by single spaces, as UTF-8; ``b""`` without tokens."""
    folded = _folded(texts)
    if hashing.kernel is not None:
        contents: list[bytes] = hashing.kernel.contents(folded)
        return contents
    return _contents(folded)


def _contents(folded: Octets) -> list[bytes]:
    """The tokens of each folded text, joined by single spaces."""
    keep = folded != _BLANK
    keep[1:] |= keep[:-1].copy()  # one blank after each token, and an unneeded one at the start of a text
    return [content.strip(b" ") for content in folded[keep].tobytes().split(b"\xff")[:-1]]


def _folded(texts: Sequence[str]) -> Octets:
    """The texts in UTF-8, lower-cased, with blanks for separators and between tokens; ``_END`` follows each text."""
    joined = bytearray(b"\xff").join([text.encode("utf-8", "surrogatepass") for text in texts])
    joined.append(_END)
    joined = joined.translate(_ASCII)
    if all(map(str.isascii, texts)):
        return np.frombuffer(joined, np.uint8)
    return _fold_beyond_ascii(joined)


def _fold_beyond_ascii(joined: bytearray) -> Octets:
    buffer = np.frombuffer(joined, np.uint8)
    lead = np.flatnonzero((buffer >= 0xC0) & (buffer != _END))
    first = buffer[lead]
    ranges = ((2, 0xC0, 0xE0), (3, 0xE0, 0xF0), (4, 0xF0, 0xF8))
    groups = [(size, lead[(first >= low) & (first < high)]) for size, low, high in ranges]
    points = [_decode(buffer, at, size) for size, at in groups]
    entries = [table()[of_size] for of_size in points]
    if resized := _resized(points, entries):
        return _fold_beyond_ascii(_resize(joined, resized))
    apart = [_fold(buffer, at, entry, size) for (size, at), entry in zip(groups, entries, strict=True)]
    return _insert_blanks(buffer, np.concatenate(apart)) if any(map(len, apart)) else buffer


def _resized(points: list[U32], entries: list[U32]) -> set[int]:
    pairs = zip(points, entries, strict=True)
    return {int(point) for of_size, entry in pairs for point in of_size[entry & RESIZED != 0]}


def _resize(joined: bytearray, points: set[int]) -> bytearray:
    """Lower-case the characters whose length changes: they cannot be replaced in place."""
    for point in sorted(points):
        lower = chr(int(table()[point]) & LOWER)
        joined = joined.replace(chr(point).encode(), lower.encode())
    return joined


def _decode(buffer: Octets, at: Ints, size: int) -> U32:
    points = (buffer[at] & (0x7F >> size)).astype(np.uint32)
    for offset in range(1, size):
        points = (points << np.uint32(6)) | (buffer[at + offset] & 0x3F)
    return points


def _encode(buffer: Octets, at: Ints, points: U32, size: int) -> None:
    for offset in range(size - 1, 0, -1):
        buffer[at + offset] = 0x80 | (points & 0x3F)
        points = points >> np.uint32(6)
    buffer[at] = (0xF00 >> size) & 0xFF | points


def _fold(buffer: Octets, at: Ints, entries: U32, size: int) -> Ints:
    """Write lower case and blanks into ``buffer``; return where blanks must be inserted."""
    upper = np.flatnonzero(entries & UPPER)
    _encode(buffer, at[upper], entries[upper] & np.uint32(LOWER), size)
    blank = at[entries & WORD == 0]
    for offset in range(size):
        buffer[blank + offset] = _BLANK
    return _around(buffer, at[entries & SINGLE != 0], size)


def _around(buffer: Octets, single: Ints, size: int) -> Ints:
    """Where single characters need a blank: after each, and before each that does not follow another."""
    ends = single + size
    before = buffer[single - 1] != _BLANK
    before[1:] &= single[1:] != ends[:-1]
    return np.concatenate((ends, single[before]))


def _insert_blanks(buffer: Octets, positions: Ints) -> Octets:
    positions.sort(kind="stable")  # a few sorted runs
    positions += np.arange(len(positions))
    spread = np.full(len(buffer) + len(positions), _BLANK, np.uint8)
    kept = np.ones(len(spread), np.bool_)
    kept[positions] = False
    spread[kept] = buffer
    return spread


def contents(texts: Sequence[str]) -> list[str]:
    """The content hash of each text, as in its fingerprint: 32 hexadecimal digits, "" without tokens."""
    return [
        xxhash.xxh3_128_hexdigest(content) if content else "" for chunk in chunks(texts) for content in normalize(chunk)
    ]
