"""Boilerplate: passages that most of some texts have in common, while the rest of each text is about something else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from es_neardupe.keys.arrays import U64, Flags, Positions
from es_neardupe.keys.shingles import token_hashes, window_hashes
from es_neardupe.keys.text import spans
from es_neardupe.similarity.formulas import resemblances

_WORDS = 5
"""Words of the windows by which texts are compared: texts on different subjects have hardly one in common, whatever
shingles the index has."""

_ALIKE = 0.05
"""Resemblance from which the rests of two texts have something to do with each other."""

_UNRELATED = 0.9
"""Minimum share of the pairs whose rests have nothing to do with each other."""

_COVERED = 0.5
"""Minimum share of the words of most texts that the passages cover."""


def boilerplate_of(texts: Sequence[str]) -> list[str] | None:
    """The passages, as written in the texts, because of which unrelated texts look similar; None if there are none.

    Windows of five words that more than half of the texts have form passages. They are boilerplate if they cover at
    least half of the words of most texts, if in most texts something is said between them, and if of nine in ten pairs
    the rests have a resemblance below 0.05. So form letters, contracts and versions of one text, which differ in a few
    places, have none: what they have in common is their subject.

    Something is said if five words of one place are neither names nor figures. An address or a party has five words in
    a row too, but hardly any that begins with a small letter.
    """
    tokens = token_hashes(texts)
    windows = [window_hashes(one, _WORDS) for one in tokens]
    every, counts = np.unique(np.concatenate([np.unique(one) for one in windows]), return_counts=True)
    common = every[counts > len(texts) / 2]
    inside = [np.isin(one, common) for one in windows]
    covered = [_covered(flags, len(one)) for flags, one in zip(inside, tokens, strict=True)]
    half = len(texts) / 2
    if sum(flags.mean() >= _COVERED for flags in covered if len(flags)) <= half:
        return None
    plain = [_plain(text) for text in texts]
    if sum((one & flags).any() for one, flags in zip(plain, covered, strict=True)) <= half:  # all is in capitals
        plain = [np.ones_like(one) for one in plain]
    if sum(_said(one, flags) >= _WORDS for one, flags in zip(plain, covered, strict=True)) <= half:
        return None
    rests = [np.unique(one[~flags]) for one, flags in zip(windows, inside, strict=True)]
    if (resemblances(rests, *np.triu_indices(len(texts), 1)) < _ALIKE).mean() < _UNRELATED:
        return None
    return list(_passages(texts, tokens, covered).values())


def _covered(inside: Flags, size: int) -> Flags:
    """Whether each of the words is in one of the windows."""
    return np.convolve(inside, np.ones(_WORDS)) > 0 if len(inside) else np.zeros(size, np.bool_)


def _plain(text: str) -> Flags:
    """Whether each of the words begins with a small letter, or one of a script without capitals."""
    first = (text[start] for start in spans(text)[:, 0].tolist())
    return np.array([one.isalpha() and not one.isupper() for one in first], np.bool_)


def _said(plain: Flags, covered: Flags) -> int:
    """The most plain words in a row of words that are not covered."""
    return max((int(plain[start:end].sum()) for start, end in _runs(~covered).tolist()), default=0)


def _passages(texts: Sequence[str], tokens: Sequence[U64], covered: Sequence[Flags]) -> dict[bytes, str]:
    """Words of a passage -> the passage as written in the first text that has it; the longest first."""
    written: dict[bytes, str] = {}
    for text, words, flags in zip(texts, tokens, covered, strict=True):
        at = spans(text)
        for start, end in _runs(flags).tolist():
            written.setdefault(words[start:end].tobytes(), text[at[start, 0] : at[end - 1, 1]])
    return dict(sorted(written.items(), key=lambda passage: -len(passage[0])))


def _runs(flags: Flags) -> Positions:
    """Start and end of each run of true flags; shape (runs, 2)."""
    return np.flatnonzero(np.diff(flags, prepend=False, append=False)).reshape(-1, 2)
