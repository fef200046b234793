"""Normalised tokens of texts: NFKC_Casefold and NFC over the frozen repertoire of `es_neardupe.keys.unicode`.

Each code point is mapped by itself; then the text is composed canonically if any of its marks may need it, which few
texts do. The C kernel does the mapping; without it, numpy does.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
import xxhash

from es_neardupe.keys import hashing
from es_neardupe.keys.arrays import U32, Ints
from es_neardupe.keys.unicode import EXPANDS, MARK, SECOND, SINGLE, TARGET, WORD, table

__all__ = ["Range", "chunks", "contents", "normalize", "spans", "tokenize"]

Range = tuple[int, int]
"""The first character or word, and the one after the last."""

CHUNK_TEXTS = 256
CHUNK_CHARS = 1 << 19

_ASCII = bytes(ord(chr(byte).lower()) if chr(byte).isalnum() or byte == ord("_") else 0x20 for byte in range(0x80))


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
    """Places of the tokens of a text: int64[n, 2], first character and the one after the last.

    Removed characters belong to the token before them. Tokens that one character expands to, such as the two of ``½``,
    have the same place.
    """
    points, sources = _mapped(_code_points(text))
    if _may_compose(points):
        points, sources = _composed(points, sources)
    starts, ends = _tokens(points)
    after = np.append(sources, len(text))[np.searchsorted(sources, sources, side="right")]
    return np.stack((sources[starts], after[ends - 1]), axis=1)


def normalize(texts: Sequence[str]) -> list[bytes]:
    """The normalised tokens of each text, joined by single spaces, as UTF-8; ``b""`` without tokens."""
    if hashing.kernel is None:
        return [_content(text) for text in texts]
    entries, pool, combining = table()
    found: list[bytes] = hashing.kernel.normalize(list(texts), entries, pool, combining, False)
    decomposed = [number for number, one in enumerate(found) if isinstance(one, str)]
    if decomposed:
        composed = [unicodedata.normalize("NFC", str(found[number])) for number in decomposed]
        made = hashing.kernel.normalize(composed, entries, pool, combining, True)
        for number, content in zip(decomposed, made, strict=True):
            found[number] = content
    return found


def _content(text: str) -> bytes:
    """The normalised tokens of a text, without the kernel."""
    if text.isascii():
        return b" ".join(text.encode().translate(_ASCII + bytes(0x80)).split())
    points, _ = _mapped(_code_points(text))
    if _may_compose(points):
        points = _code_points(unicodedata.normalize("NFC", _text(points)))
    mapped = _text(points)
    starts, ends = _tokens(points)
    return " ".join(mapped[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)).encode()


def _code_points(text: str) -> U32:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))


def _text(points: U32) -> str:
    return points.astype("<u4").tobytes().decode("utf-32-le")


def _mapped(points: U32) -> tuple[U32, Ints]:
    """The code points that replace those of a text, with blanks as separators, and the place that each comes from."""
    entries, pool, _ = table()
    found = entries[points]
    expands = (found & EXPANDS) != 0
    if not expands.any():
        return found & np.uint32(TARGET), np.arange(len(points))
    place = np.where(expands, found & np.uint32(TARGET), 0)
    counts = np.where(expands, pool[place], 1).astype(np.int64)
    sources = np.repeat(np.arange(len(points)), counts)
    number = np.arange(len(sources)) - np.repeat(np.cumsum(counts) - counts, counts)
    several = pool[np.minimum(place[sources] + 1 + number, len(pool) - 1)]
    return np.where(expands[sources], entries[several], found[sources]) & np.uint32(TARGET), sources


def _may_compose(points: U32) -> bool:
    return bool((table().entries[points] & np.uint32(MARK | SECOND)).any())


def _composed(points: U32, sources: Ints) -> tuple[U32, Ints]:
    """Mapped code points after canonical composition, and the places that they come from.

    Composition changes nothing across a code point that is neither reordered nor the second of a composition.
    """
    entries, _, combining = table()
    begins = np.flatnonzero(((entries[points] & SECOND) == 0) & (combining[points] == 0))
    begins = np.union1d(begins, [0])
    ends = np.append(begins[1:], len(points))
    points, kept = points.copy(), np.ones(len(points), np.bool_)
    for start, end in zip(begins[ends > begins + 1].tolist(), ends[ends > begins + 1].tolist(), strict=True):
        made = _code_points(unicodedata.normalize("NFC", _text(points[start:end])))
        points[start : start + len(made)] = made
        kept[start + len(made) : end] = False
    return points[kept], sources[kept]


def _tokens(points: U32) -> tuple[Ints, Ints]:
    """First place of each token in mapped code points, and the one after its last.

    A mark is part of a word only after a word character, and stays with that of a script without spaces.
    """
    entries = table().entries[points]
    single, mark = (entries & SINGLE) != 0, (entries & (SINGLE | MARK)) == MARK
    places = np.arange(len(points))
    word = (entries & WORD) != 0
    word &= np.append(word, False)[np.maximum.accumulate(np.where(entries & MARK, -1, places))]
    closed = single[np.maximum.accumulate(np.where(mark, 0, places))]  # the token ends before anything but a mark
    begins = word & ~mark & (single | np.concatenate(([True], ~word[:-1] | closed[:-1])))[: len(word)]
    ends = word & np.append(~word[1:] | begins[1:], True)[: len(word)]
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1


def contents(texts: Sequence[str]) -> list[str]:
    """The content hash of each text, as in its fingerprint: 32 hexadecimal digits, "" without tokens."""
    return [
        xxhash.xxh3_128_hexdigest(content) if content else "" for chunk in chunks(texts) for content in normalize(chunk)
    ]
