"""Features of normalised tokens: the distinct 64-bit hashes of the shingles of a text.

Features, and the exact resemblance computed from them, depend on the normalisation and the shingles only, not on the
seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from es_neardupe.errors import SettingsError
from es_neardupe.keys import hashing
from es_neardupe.keys.arrays import U64, Ints
from es_neardupe.keys.hashing import GOLDEN, MULTIPLIER, mix64
from es_neardupe.keys.shapes import shaped
from es_neardupe.keys.short_table import short_table
from es_neardupe.keys.text import chunks, for_kernel, normalize
from es_neardupe.keys.unicode import table
from es_neardupe.keys.unit import Unit

_WORD = 8  # bytes hashed at a time
_INVERSE = np.uint64(pow(int(MULTIPLIER), -1, 1 << 64))
_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(_WORD + 1)], np.uint64)


class Shingles(NamedTuple):
    """The distinct shingle hashes of a chunk of texts, text after text, sorted within each."""

    values: U64
    """uint64[total]."""
    bounds: Ints
    """int64[texts + 1]: text i has ``values[bounds[i]:bounds[i + 1]]``."""
    tokens: Ints
    """int64[texts]: number of tokens."""
    units: Ints
    """int64[texts]: number of what the shingles consist of: tokens or characters."""

    def occupied(self) -> Ints:
        """The numbers of the texts that have shingles."""
        return (self.bounds[1:] > self.bounds[:-1]).nonzero()[0]


def features(texts: Sequence[str], shingle: int, unit: Unit = Unit.WORD) -> list[U64]:
    """The sorted distinct shingle hashes of each text (uint64[n]; n = 0 for a text without tokens).

    Resemblance is |A and B| / |A or B| of these sets (Broder 1997). Raises `SettingsError` for shingles of no words.
    """
    if shingle < 1:
        raise SettingsError(f"A shingle has 1 word or more, not {shingle}.")
    runs = (distinct_runs(*_shingle_runs(*text_runs(chunk, unit), shingle)) for chunk in chunks(texts))
    return [one for run in runs for one in _each(*run)]


def token_hashes(texts: Sequence[str], unit: Unit = Unit.WORD) -> list[U64]:
    """The hashes of the tokens of each text, or of its characters, in order (uint64[units]): equal hash, equal unit."""
    return [one for chunk in chunks(texts) for one in _each(*text_runs(chunk, unit))]


def _each(values: U64, bounds: Ints) -> list[U64]:
    """The values of each text, in arrays of their own: those of a chunk are not kept for the sake of one."""
    return [values[start:end].copy() for start, end in pairwise(bounds.tolist())]


def window_hashes(hashes: U64, size: int) -> U64:
    """The hash of each window of ``size`` tokens of a text (uint64[max(tokens - size + 1, 0)]).

    The distinct hashes are the features of a text with ``size`` tokens or more.
    """
    windows = max(len(hashes) - size + 1, 0)
    return mix64(_window_sums(hashes, windows, size))


def span_hashes(hashes: U64, starts: Ints, ends: Ints) -> U64:
    """The hash of each span ``hashes[start:end]`` (uint64[spans]), equal to the hash of a shingle of these tokens.

    Spans may overlap and have any length. The multiplier is odd, so it has an inverse modulo 2^64: the Horner sum of a
    span is the difference of two prefix sums of t(j) / MULTIPLIER^j, times a power of the multiplier.
    """
    size = len(hashes)
    sums = np.zeros(size + 1, np.uint64)
    np.cumsum(hashes * _powers(_INVERSE, size), out=sums[1:])
    powers = _powers(MULTIPLIER, size + 1)
    lengths = ends - starts
    return mix64((sums[ends] - sums[starts]) * powers[ends - 1] + lengths.astype(np.uint64) * powers[lengths])


def _powers(base: np.uint64, count: int) -> U64:
    """The powers 0 to ``count - 1`` (uint64[count])."""
    powers = np.full(count, base)
    powers[:1] = 1
    return np.multiply.accumulate(powers, out=powers)


def shingles(contents: Sequence[bytes], size: int, unit: Unit = Unit.WORD) -> Shingles:
    """The shingle hashes of normalised texts (see :func:`~es_neardupe.keys.text.normalize`)."""
    hashes, bounds = _unit_runs(contents, unit)
    tokens = units = bounds[1:] - bounds[:-1]
    if unit is not Unit.WORD:
        tokens = np.array([content.count(b" ") + 1 if content else 0 for content in contents], np.int64)
    return Shingles(*distinct_runs(*_shingle_runs(hashes, bounds, size)), tokens, units)


def text_runs(texts: Sequence[str], unit: Unit = Unit.WORD) -> tuple[U64, Ints]:
    """The hashes of the tokens of texts, or of their characters, one text after the other (uint64[units]), and where
    those of each text begin (int64[texts + 1])."""
    if unit is Unit.WORD and hashing.kernel is not None and for_kernel(texts):
        found = hashing.kernel.text_runs(list(texts), tuple(table()), short_table())
        if found is not None:
            return _arrays(*found)
    return _unit_runs(normalize(texts), unit)


def _arrays(values: bytearray, bounds: bytearray) -> tuple[U64, Ints]:
    """What the kernel returns, as arrays."""
    return np.frombuffer(values, np.uint64), np.frombuffer(bounds, np.int64)


def _unit_runs(contents: Sequence[bytes], unit: Unit) -> tuple[U64, Ints]:
    if unit is Unit.WORD:
        return token_runs(contents)
    return character_runs(contents if unit is Unit.CHARACTER else [*map(shaped, contents)])


def _shingle_runs(hashes: U64, bounds: Ints, size: int) -> tuple[U64, Ints]:
    """The hashes of the shingles of one text after the other, in any order within a text (uint64[total]), and where
    those of each text begin (int64[texts + 1]). A text of fewer tokens than ``size`` has one shingle, of all its
    tokens."""
    if hashing.kernel is not None:
        return _arrays(*hashing.kernel.shingle_runs(hashes, bounds, size))
    tokens = np.diff(bounds)
    full = np.maximum(tokens - (size - 1), 0)
    short = np.flatnonzero((tokens > 0) & (tokens < size))
    counts = full.copy()
    counts[short] = 1
    found = _full_shingles(hashes, bounds, size)
    if short.size:
        found = np.insert(found, np.cumsum(full)[short], _short_shingles(hashes, bounds, short))
    return found, np.concatenate(([0], np.cumsum(counts)))


def token_runs(contents: Sequence[bytes]) -> tuple[U64, Ints]:
    """The hashes of the tokens of normalised texts, one text after the other (uint64[tokens]), and where those of each
    text begin (int64[texts + 1])."""
    if hashing.kernel is not None and max(map(len, contents), default=0) < 1 << 31:
        return _arrays(*hashing.kernel.token_runs(list(contents)))
    return _token_runs(contents)


def character_runs(contents: Sequence[bytes]) -> tuple[U64, Ints]:
    """The hashes of the code points of normalised texts, each as of a token, without the blanks between tokens, and
    where those of each text begin."""
    contents = [content.replace(b" ", b"") for content in contents]
    joined = b"".join(contents)
    octets = np.frombuffer(joined, np.uint8)
    starts = np.flatnonzero((octets & 0xC0) != 0x80)  # all bytes of UTF-8 but those that continue a code point
    ends = np.cumsum([len(content) for content in contents], dtype=np.int64)
    words = np.ndarray((len(joined) + 1,), np.dtype("<u8"), joined + b" " * _WORD, strides=(1,))
    hashes = _hash_words(words[starts], np.diff(starts, append=len(joined)), 0)
    return hashes, np.concatenate(([0], np.searchsorted(starts, ends)))


def _token_runs(contents: Sequence[bytes]) -> tuple[U64, Ints]:
    """`token_runs` in numpy."""
    joined = b" ".join([content for content in contents if content]) + b" " * _WORD
    buffer = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(buffer[: 1 - _WORD] == 0x20) if len(joined) > _WORD else np.empty(0, np.int64)
    starts = np.zeros_like(ends)
    np.add(ends[:-1], 1, out=starts[1:])
    sizes = np.fromiter(map(len, contents), np.int64, len(contents))
    text_ends = np.cumsum(sizes + (sizes > 0))
    bounds = np.concatenate(([0], np.searchsorted(ends, text_ends)))
    words = np.ndarray((len(joined) - _WORD + 1,), np.dtype("<u8"), joined, strides=(1,))
    return _hash_spans(words, starts, ends - starts), bounds


def _hash_spans(words: U64, starts: Ints, sizes: Ints) -> U64:
    """Sum over the 8-byte words j of a token: mix64(word + GOLDEN * (size + 2^32 * j)).

    Few tokens have a second word and very few a third, but a token may have a hundred thousand: two words are added one
    after the other, and all later ones at once.
    """
    hashes = _hash_words(words[starts], sizes, 0)
    if (long := np.flatnonzero(sizes > _WORD)).size:
        starts, sizes = starts[long], sizes[long]
        second = _hash_words(words[starts + _WORD], sizes, 1)
        if (longer := np.flatnonzero(sizes > 2 * _WORD)).size:
            second[longer] += _hash_tails(words, starts[longer], sizes[longer])
        hashes[long] += second
    return hashes


def _hash_tails(words: U64, starts: Ints, sizes: Ints) -> U64:
    """The sum over the third and later words of tokens that have them."""
    more = (sizes - 1) // _WORD - 1
    first = np.cumsum(more) - more
    number = np.arange(2, more.sum() + 2) - np.repeat(first, more)
    loaded = words[np.repeat(starts, more) + _WORD * number]
    return np.add.reduceat(_hash_words(loaded, np.repeat(sizes, more), number), first)


def _hash_words(loaded: U64, sizes: Ints, number: Ints | int) -> U64:
    """The terms of the sum for the words with this number j, given the 8 bytes from where they begin; in place."""
    loaded &= _MASKS.take(sizes - _WORD * number, mode="clip")
    loaded += (sizes + (number << 32)).view(np.uint64) * GOLDEN
    return mix64(loaded)


def _full_shingles(hashes: U64, bounds: Ints, size: int) -> U64:
    """mix64(Horner sum of ``size``, t0, t1, ...) of each window within one text."""
    windows = max(len(hashes) - size + 1, 0)
    sums = _window_sums(hashes, windows, size)
    within = np.ones(windows, np.bool_)
    for back in range(1, min(size, len(hashes) + 1)):
        crossing = bounds[1:] - back
        within[crossing[(crossing >= 0) & (crossing < windows)]] = False
    return mix64(sums[within])


def _window_sums(hashes: U64, windows: int, size: int) -> U64:
    sums = np.full(windows, size, np.uint64)
    for offset in range(size if windows else 0):
        sums *= MULTIPLIER
        sums += hashes[offset : offset + windows]
    return sums


def _short_shingles(hashes: U64, bounds: Ints, short: Ints) -> U64:
    """mix64(Horner sum of n, t0, t1, ...) of all n tokens of each text that is shorter than a window."""
    first, tokens = bounds[short], np.diff(bounds)[short]
    sums = tokens.astype(np.uint64)
    for offset in range(int(tokens.max())):
        live = np.flatnonzero(tokens > offset)
        sums[live] = sums[live] * MULTIPLIER + hashes[first[live] + offset]
    return mix64(sums)


def distinct_runs(values: U64, bounds: Ints) -> tuple[U64, Ints]:
    """The distinct values of each text, sorted, one text after the other (uint64[distinct]), and where those of each
    text begin (int64[texts + 1]); text i has ``values[bounds[i]:bounds[i + 1]]``."""
    if hashing.kernel is not None:
        return _arrays(*hashing.kernel.distinct_runs(values, bounds))
    values, first = values.copy(), np.ones(len(values), np.bool_)
    for start, end in pairwise(bounds.tolist()):
        values[start:end].sort()
    np.not_equal(values[1:], values[:-1], out=first[1:])
    first[bounds[:-1][bounds[1:] > bounds[:-1]]] = True
    return values[first], np.concatenate(([0], np.cumsum(first)))[bounds]
