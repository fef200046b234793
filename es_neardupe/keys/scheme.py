"""The keys of a text: tokens, features, signature, band keys, content hash.

Scheme v1
=========
Keys outlive the code that made them. This is the complete definition of the scheme, enough to implement it again.
``tests/golden/scheme_v1.json`` has test vectors, and ``tests/unit/keys/test_keys_oracle.py`` a plain implementation.
All arithmetic is on unsigned 64-bit numbers (32-bit where noted), modulo 2^64 (2^32); bytes are read little-endian.

::

    GOLDEN     = 9E3779B97F4A7C15 (hex)    MULTIPLIER = D1342543DE82EF95 (hex)
    mix64(x):    x ^= x >> 30;  x *= BF58476D1CE4E5B9;
                 x ^= x >> 27;  x *= 94D049BB133111EB;  x ^= x >> 31
    stream(i):   mix64(seed + GOLDEN * i)  for i = 1, 2, 3, ...       (splitmix64)

**Tokens.** NFKC_Casefold (UAX 44), with the repertoire frozen at Unicode 13.0. ``unicode_v1.json`` lists, by first
and last code point, those that map to themselves (``word``), those that are removed (``removed``), and the other
mappings: to one code point (``mapped``: first, last, step, and what is added) or to several (``expanded``). All other
code points become blanks, lone surrogates and NUL among them. A dot above (U+0307) after one of ``dotted`` is removed;
only marks of other classes (``combining``) than 230 may stand between them. The text is composed canonically (NFC). A
token is a longest run of word characters, but each of ``single`` begins and ends one. A mark (``mark``) after a blank,
or at the beginning, is a blank; one that is not single stays in the token of the character before it. ``digit`` lists
the digits of texts that are ``numeric``.

**Content hash.** ``xxh3_128`` of the tokens joined by single spaces, in UTF-8, as 32 hexadecimal digits.

**Token hash.** A token of n UTF-8 bytes is padded with zeros to words of 8 bytes w(0), w(1), ...::

    T = sum over j of mix64(w(j) + GOLDEN * (n + 2^32 * j))

**Features.** Each window of k = ``shingle`` tokens gives ``mix64(h)`` with ``h = k`` and, for each token,
``h = h * MULTIPLIER + T``. A text of fewer tokens, but at least one, gives one such number, of all the k tokens that
it has. The features are the set of these numbers. A text without tokens has no features and no keys.

If ``unit`` is ``character``, the code points of all tokens, one after the other, take the place of the tokens: T is the
token hash of one code point, whose 1 to 4 UTF-8 bytes are one word. Nothing else differs.

If it is ``shape``, likewise, but of the code points below U+0180, one that has a canonical decomposition counts as the
letter that this begins with; then each of ``ao0ø ce fijlt1ł nu bh68 s5 gq9 vy z2 dđ`` counts as the first of its group.

**Signature.** With ``permutations`` = m, and n = m / 2, rounded up::

    c(k) = stream(1 + k) >> 32             for k = 0 .. 7                      (32 bits)
    a(p) = (stream(9 + p) >> 32) | 1       for p = 0 .. n - 1                  (32 bits)
    y(p) = (x + c(p mod 8)) * a(p)         for each feature, x = its lower 32 bits (32 bits)
    v(p)     = minimum of y(p) over all features
    v(p + n) = maximum of y(p) over all features, all bits inverted    (if p + n < m)
    v ^= v >> 16;  v *= 85EBCA6B;  v ^= v >> 13;  v *= C2B2AE35               (32 bits)
    slot = v >> 24

**Band keys.** Band i has the slots ``i * rows`` to ``i * rows + rows - 1``. ``h = 0``; for each of them
``h = h * MULTIPLIER + slot + 1``; the key is the character of the position i followed by the 42 bits
``mix64(h) >> 22`` as seven characters of URL-safe base64, highest first. Positions 0 to 63 are the
characters of URL-safe base64, 64 to 127 are U+00C0 to U+00FF.

``agree`` does not change the keys: two texts are candidates if at least this many of their keys are equal.

**Sampled keys**, only if ``sample_mod`` = K is above 0: for each feature x with ``x mod K = 0`` the upper 48 bits,
``x >> 16``, as eight characters of URL-safe base64, highest first. K is at most 2^16, so these bits do not decide
whether x is sampled. They need no mixing, since x is an output of ``mix64``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import lru_cache
from typing import Any

import xxhash

from es_neardupe.errors import SettingsError
from es_neardupe.keys.prepare.preparation import AS_IT_IS, Preparation
from es_neardupe.keys.unit import Unit
from es_neardupe.wording import counted

MAX_BANDS = 128
"""A band's position is one character of its key."""
MAX_ROWS = 32
"""Maximum number of rows that `choose_bands` chooses: 256 bits per band, of which a key holds a hash of 42 bits. More
rows would only make near-certain pairs (similarity above 0.99) easier to miss."""
MAX_SHINGLE = 1_000_000
"""Maximum number of words, characters or shapes. A text of fewer than ``shingle`` gives one shingle."""
_MAX_CHOICES = 128
"""Maximum number of ways to choose ``agree`` out of ``bands`` bands; each is joined like a band key."""
MAX_SAMPLE_MOD = 2**16
"""A sampled key consists of the bits above the lower 16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """Settings that determine the keys. Two indices can be compared if their schemes are equal.

    Raises `SettingsError` for values out of range.
    """

    version: int = 1
    shingle: int = 5
    """Words, characters or shapes in a shingle."""
    permutations: int = 128
    """Slots of a signature, one byte each."""
    bands: int
    rows: int
    """Slots in a band; ``bands * rows`` slots are used."""
    seed: int = 1
    agree: int = 1
    """Bands that two texts must share to be candidates. It does not change the keys."""
    sample_mod: int = 0
    """One in ``sample_mod`` features becomes a sampled key; 0: none."""
    unit: Unit = Unit.WORD
    """What shingles consist of."""
    preparation: Preparation = AS_IT_IS
    """What is left out of texts before they are normalised."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "unit", Unit(self.unit))
        except ValueError:
            raise SettingsError(f"unit must be word, character or shape, not {self.unit!r}") from None
        for field in fields(self):
            if field.name not in ("unit", "preparation"):
                check_whole(field.name, getattr(self, field.name))
        _check("version", self.version, 1, 1)
        _check("shingle", self.shingle, 1, MAX_SHINGLE)
        _check("permutations", self.permutations, 8, 256)
        _check("bands", self.bands, 1, MAX_BANDS)
        _check("rows", self.rows, 1, None)
        _check("seed", self.seed, 0, 2**64 - 1)
        _check("agree", self.agree, 1, self.bands)
        if (choices := math.comb(self.bands, self.agree)) > _MAX_CHOICES and self.agree > 1:
            ways = f"{self.agree} of {counted(self.bands, 'band')} can be chosen in {choices:,} ways"
            raise SettingsError(f"{ways}, the maximum is {_MAX_CHOICES}: use fewer bands, or set agree to 1")
        _check("sample_mod", self.sample_mod, 0, MAX_SAMPLE_MOD)
        if (used := self.bands * self.rows) > self.permutations:
            product = f"b*r = {self.bands} x {self.rows} = {used}"
            raise SettingsError(f"{product} is over the {counted(self.permutations, 'slot')} (permutations)")

    @property
    def id(self) -> str:
        """``v1-`` and 8 hexadecimal digits of ``xxh3_64`` over the settings as compact, sorted JSON."""
        return _id_of(self)

    def to_dict(self) -> dict[str, int | str]:
        """The settings by name, without later additions that have their default, so that ids do not change."""
        prepared = {"clean": self.preparation.clean, "mask": self.preparation.mask}
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "preparation"}
        chosen = {name: value for name, value in (named | prepared).items() if value != _LATER.get(name)}
        return {name: value.value if isinstance(value, Enum) else value for name, value in chosen.items()}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Scheme:
        """The scheme of `to_dict`. Raises `SettingsError` if a key is missing, unknown or has the wrong type."""
        names = {field.name for field in fields(cls)} - {"preparation"} | {"clean", "mask"}
        if missing := sorted(names - set(mapping) - set(_LATER)):
            raise SettingsError(f"the scheme lacks {', '.join(missing)}")
        if unknown := sorted(map(str, set(mapping) - names)):
            raise SettingsError(f"the scheme has unknown settings: {', '.join(unknown)}")
        named = {name: value for name, value in mapping.items() if name not in ("clean", "mask")}
        return cls(**named, preparation=Preparation.named(mapping.get("clean"), mapping.get("mask", "")))

    @classmethod
    def for_threshold(
        cls,
        threshold: float,
        detection: float = 0.99,
        shingle: int = 5,
        permutations: int = 128,
        seed: int = 1,
    ) -> Scheme:
        """The scheme whose bands find a pair at ``threshold`` with probability ``detection``."""
        _check("permutations", permutations, 8, 256)
        bands, rows = choose_bands(threshold, detection, permutations)
        return cls(shingle=shingle, permutations=permutations, bands=bands, rows=rows, seed=seed)

    def detection(self, similarity: float) -> float:
        """The probability that two texts of this resemblance s share at least ``agree`` of b bands of r rows.

        It is the upper tail of the binomial distribution of b trials with probability s^r; for ``agree`` 1,
        1 - (1 - s^r)^b. Raises `SettingsError` for a number that is no resemblance.
        """
        if not 0 <= similarity <= 1:
            raise SettingsError(f"A resemblance lies between 0 and 1, not {similarity}.")
        return _detection(similarity, self.bands, self.rows, self.agree)

    def candidate_probability(self, similarity: float) -> float:
        """The probability that two texts of this resemblance become candidates, if slots that are equal by chance count
        too: a slot has 256 values."""
        return self.detection(similarity + (1 - similarity) / 256)

    @property
    def step(self) -> float:
        """The similarity near which `detection` rises most steeply: (1/b)^(1/r), or (agree/b)^(1/r).

        It is an approximation (Leskovec, Rajaraman, Ullman, chapter 3): there, pairs share ``agree`` bands on average.
        """
        return float((self.agree / self.bands) ** (1 / self.rows))


_LATER = {"agree": 1, "sample_mod": 0, "unit": Unit.WORD, "clean": None, "mask": ""}
"""Settings that were added later, with their defaults."""


@lru_cache(maxsize=64)
def _id_of(scheme: Scheme) -> str:
    """Computed once: for a single text, it takes as long as its keys."""
    canonical = json.dumps(scheme.to_dict(), sort_keys=True, separators=(",", ":"))
    return f"v{scheme.version}-{xxhash.xxh3_64_hexdigest(canonical.encode())[:8]}"


def agreement(agree: int) -> str:
    """The end of a description of bands: how many must agree; empty for one."""
    return "" if agree == 1 else f", of which {agree} must agree"


def choose_bands(threshold: float, detection: float, permutations: int) -> tuple[int, int]:
    """``(bands, rows)`` that find a pair at the threshold: as many rows, then as few bands as possible.

    Rows come first, since more rows mean fewer false candidates. ``bands * rows <= permutations``, ``bands <= 128`` and
    ``rows <= 32``, so a threshold of 1 gives one band of 32 rows (or of all slots).
    Raises `SettingsError` for values out of range and for a threshold that no bands can reach.
    """
    if not 0 < threshold <= 1:
        raise SettingsError(f"the threshold must be above 0 and at most 1, not {threshold}")
    if not 0 < detection < 1:
        raise SettingsError(f"the detection probability must lie between 0 and 1, not {detection}")
    if chosen := bands_for([threshold], detection, permutations):
        return chosen
    lowest = 1 - (1 - detection) ** (1 / min(MAX_BANDS, permutations))
    raise SettingsError(
        f"{counted(permutations, 'permutation')} cannot find pairs at {threshold} with probability {detection}; "
        f"the lowest threshold they reach is {math.ceil(lowest * 10_000) / 10_000}"
    )


def bands_for(similarities: Sequence[float], detection: float, permutations: int) -> tuple[int, int] | None:
    """Like `choose_bands`, for pairs of these similarities, of which the share ``detection`` must be found on average.
    None if no bands do."""
    for rows in range(min(MAX_ROWS, permutations), 0, -1):
        most = min(MAX_BANDS, permutations // rows)
        if mean_detection(similarities, most, rows) >= detection:
            enough = (bands for bands in range(1, most) if mean_detection(similarities, bands, rows) >= detection)
            return next(enough, most), rows
    return None


def mean_detection(similarities: Sequence[float], bands: int, rows: int) -> float:
    """The share of pairs of these similarities that are found on average."""
    return math.fsum(_detection(one, bands, rows) for one in similarities) / len(similarities)


def _detection(similarity: float, bands: int, rows: int, agree: int = 1) -> float:
    shared = similarity**rows
    too_few = (math.comb(bands, k) * shared**k * (1 - shared) ** (bands - k) for k in range(agree))
    return float(1 - math.fsum(too_few))


def check_whole(name: str, value: object) -> None:
    """Raises `SettingsError` for a setting that is no whole number."""
    if type(value) is not int:
        raise SettingsError(f"{name} must be a whole number, not {value!r}.")


def _check(name: str, value: int, low: int, high: int | None) -> None:
    if value < low or (high is not None and value > high):
        allowed = f"at least {low}" if high is None else f"{low}" if low == high else f"{low} to {high}"
        raise SettingsError(f"{name} must be {allowed}, not {value}")
