"""Normalised tokens of texts: NFKC_Casefold and NFC over the frozen repertoire of `es_neardupe.keys.unicode`.

Each code point is mapped by itself; then the text is composed canonically if any of its marks may need it, which few
texts do. The C kernel does the mapping; without it, numpy does.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence, Sized
from itertools import pairwise
from typing import TypeVar

import numpy as np
import xxhash

from es_neardupe.keys import hashing
from es_neardupe.keys.arrays import U32, Bytes, Ints
from es_neardupe.keys.short_table import short_table
from es_neardupe.keys.unicode import DOT_ABOVE, DOTTED, EXPANDS, MARK, SECOND, SINGLE, TARGET, WORD, table
from es_neardupe.keys.unit import Unit
from es_neardupe.lists import as_list

Some = TypeVar("Some", bound=Sized)

Range = tuple[int, int]
"""The first character or word, and the one after the last."""

CHUNK_TEXTS = 256
CHUNK_CHARS = 1 << 19

LONGEST = 1 << 25
"""Maximum number of characters of a text for the kernel, which counts bytes by 32 bits: a character expands to at most
18, of at most 5 bytes with a blank."""

_BLANK = 0x20
_ASCII = bytes(ord(chr(byte).lower()) if chr(byte).isalnum() or byte == ord("_") else _BLANK for byte in range(0x100))
"""For `bytes.translate` of ASCII."""


def chunks(texts: Sequence[Some], length: Callable[[Some], int] = len) -> Iterator[Sequence[Some]]:
    """Split ``texts`` into chunks that fit into the processor's cache.

    A chunk has at most 256 texts and about half a million characters; a longer text is a chunk of its own. Raises
    `SettingsError` for one text instead of several.
    """
    first, texts = 0, as_list("texts", texts)
    while first < len(texts):
        chunk = texts[first : first + CHUNK_TEXTS]
        if sum(map(length, chunk)) > CHUNK_CHARS:
            chars = 0
            for number, text in enumerate(chunk):
                chars += length(text)
                if number and chars > CHUNK_CHARS:
                    chunk = chunk[:number]
                    break
        yield chunk
        first += len(chunk)


def for_kernel(texts: Sequence[str]) -> bool:
    """Whether the kernel takes these texts."""
    return max(map(len, texts), default=0) <= LONGEST


def tokenize(text: str) -> list[str]:
    """The tokens of a text, normalised, in order."""
    (content,) = normalize([text])
    return content.decode().split(" ") if content else []


def spans(text: str, unit: Unit = Unit.WORD) -> Ints:
    """Places of the tokens of a text: int64[n, 2], first character and the one after the last.

    Removed characters belong to the token before them. Tokens that one character expands to, such as the two of ``½``,
    have the same place. With another unit than words, the place of the token of each of its characters: a shingle of
    characters is shown with whole words.
    """
    if unit is not Unit.WORD:
        return np.repeat(spans(text), [len(token) for token in tokenize(text)], axis=0)
    if text.isascii():
        word = np.frombuffer(text.encode().translate(_ASCII), np.uint8) != _BLANK
        return np.flatnonzero(np.diff(word, prepend=False, append=False)).reshape(-1, 2)
    points, sources = _mapped(_code_points(text))
    if _may_compose(points):
        points, sources = _composed(points, sources)
    starts, ends = _tokens(points)
    after = np.append(sources, len(text))[np.searchsorted(sources, sources, side="right")]
    return np.stack((sources[starts], after[ends - 1]), axis=1)


def normalize(texts: Sequence[str]) -> list[bytes]:
    """The normalised tokens of each text, joined by single spaces, as UTF-8; ``b""`` without tokens."""
    if hashing.kernel is None or not for_kernel(texts):
        return _normalize(texts)
    arrays = tuple(table()), short_table()
    found: list[bytes] = hashing.kernel.normalize(list(texts), False, *arrays)
    decomposed = [number for number, one in enumerate(found) if isinstance(one, str)]
    if decomposed:
        composed = [unicodedata.normalize("NFC", str(found[number])) for number in decomposed]
        made = hashing.kernel.normalize(composed, True, *arrays)
        for number, content in zip(decomposed, made, strict=True):
            found[number] = content
    return found


def _normalize(texts: Sequence[str]) -> list[bytes]:
    """The same without the kernel."""
    ascii_contents = iter(_ascii_contents([text for text in texts if text.isascii()]))
    other_contents = iter(_other_contents([text for text in texts if not text.isascii()]))
    return [next(ascii_contents if text.isascii() else other_contents) for text in texts]


def _ascii_contents(texts: Sequence[str]) -> list[bytes]:
    folded = np.frombuffer("\n".join(texts).encode().translate(_ASCII), np.uint8)
    ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
    keep = folded != _BLANK
    keep[1:] |= keep[:-1].copy()  # one blank after each token, and one too many at the start of a text
    bounds = np.concatenate(([0], np.cumsum(keep)))[np.minimum(np.append(0, ends), len(folded))].tolist()
    kept = folded[keep].tobytes()
    return [kept[start:end].strip(b" ") for start, end in pairwise(bounds)]


def _other_contents(texts: Sequence[str]) -> list[bytes]:
    points, sources = _mapped(_code_points("\n".join(texts)))
    bounds = np.searchsorted(sources, np.cumsum([0, *(len(text) + 1 for text in texts)]))
    if _may_compose(points):
        points, bounds = _composed_texts(points, bounds)
    starts, ends = _tokens(points)
    sizes = ends - starts + 1  # with a blank after each token
    after = np.cumsum(sizes)
    blank = np.uint32(_BLANK)
    chosen = np.append(points, blank)[np.arange(sizes.sum()) + np.repeat(starts - after + sizes, sizes)]
    chosen[after - 1] = blank
    content = _text(chosen)
    places = np.append(0, after)[np.searchsorted(starts, bounds)].tolist()
    return [content[start:end].rstrip(" ").encode() for start, end in pairwise(places)]


def _composed_texts(points: U32, bounds: Ints) -> tuple[U32, Ints]:
    """Mapped code points after canonical composition of the texts that may need it, and the bounds of all texts."""
    mapped = _text(points)
    may_compose = np.append((table().entries[points] & np.uint32(MARK | SECOND)) != 0, False)
    counts = np.append(0, np.cumsum(may_compose))[bounds]
    texts = [
        unicodedata.normalize("NFC", mapped[start:end]) if marks else mapped[start:end]
        for (start, end), marks in zip(pairwise(bounds.tolist()), np.diff(counts).tolist(), strict=True)
    ]
    return _code_points("".join(texts)), np.cumsum([0, *map(len, texts)])


def _code_points(text: str) -> U32:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))


def _text(points: U32) -> str:
    return points.astype("<u4").tobytes().decode("utf-32-le")


def _mapped(points: U32) -> tuple[U32, Ints]:
    """The code points that replace those of a text, with blanks as separators, and the place that each comes from."""
    entries, pool = table().entries, table().pool
    found = entries[points]
    expands = (found & EXPANDS) != 0
    if not expands.any():
        return _without_dots(found & np.uint32(TARGET), np.arange(len(points)))
    place = np.where(expands, found & np.uint32(TARGET), 0)
    counts = np.where(expands, pool[place], 1).astype(np.int64)
    sources = np.repeat(np.arange(len(points)), counts)
    number = np.arange(len(sources)) - np.repeat(np.cumsum(counts) - counts, counts)
    several = pool[np.minimum(place[sources] + 1 + number, len(pool) - 1)]
    return _without_dots(np.where(expands[sources], entries[several], found[sources]) & np.uint32(TARGET), sources)


def _without_dots(points: U32, sources: Ints) -> tuple[U32, Ints]:
    """Mapped code points, and the places that they come from, without a dot above after an `i`: only marks that it can
    be reordered across may stand between them."""
    dots = points == DOT_ABOVE
    if not dots.any():
        return points, sources
    entries = table().entries[points]
    across = dots | ((entries & (MARK | DOTTED)) == (MARK | DOTTED))
    before = np.maximum.accumulate(np.where(across, -1, np.arange(len(points))))
    kept = ~dots | (before < 0) | ((entries[before] & DOTTED) == 0)
    return points[kept], sources[kept]


def _may_compose(points: U32) -> bool:
    return bool((table().entries[points] & np.uint32(MARK | SECOND)).any())


def _composed(points: U32, sources: Ints) -> tuple[U32, Ints]:
    """Mapped code points after canonical composition, and the places that they come from.

    Composition changes nothing across a code point that is neither reordered nor the second of a composition.
    """
    entries, combining = table().entries, table().combining
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
    if not len(points):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    entries = table().entries[points]
    single, mark = (entries & SINGLE) != 0, (entries & (SINGLE | MARK)) == MARK
    places = np.arange(len(points))
    word = (entries & WORD) != 0
    word &= np.append(word, False)[np.maximum.accumulate(np.where(entries & MARK, -1, places))]
    closed = single[np.maximum.accumulate(np.where(mark, 0, places))]  # the token ends before anything but a mark
    begins = word & ~mark & (single | np.append(True, ~word[:-1] | closed[:-1]))
    ends = word & np.append(~word[1:] | begins[1:], True)
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1


def packed_hashes(hashes: Sequence[str]) -> Bytes:
    """Hashes of 32 hexadecimal digits, or "", as 16 bytes; S16[n], which sort in the same order.

    (Such strings are compared in their whole width, so zero bytes at the end do no harm. A hash of zeros only, which no
    text is known to have, counts as none.)
    """
    return np.array([bytes.fromhex(one) for one in hashes], "S16")


def hash_text(packed: bytes) -> str:
    """An element of `packed_hashes` as text."""
    return packed.ljust(16, b"\0").hex() if packed else ""


def word_counts(texts: Sequence[str]) -> list[int]:
    """The number of tokens of each text."""
    return [content.count(b" ") + 1 if content else 0 for content in normalize(texts)]


def contents(texts: Sequence[str]) -> list[str]:
    """The content hash of each text, as in its fingerprint: 32 hexadecimal digits, "" without tokens."""
    return [
        xxhash.xxh3_128_hexdigest(content) if content else "" for chunk in chunks(texts) for content in normalize(chunk)
    ]
