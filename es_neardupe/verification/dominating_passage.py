"""Dominating passages: boilerplate so long that different texts match because of it (``--ignore-common`` fixes it)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from es_neardupe.candidates.join import CandidatePairs
from es_neardupe.display_text import beginning
from es_neardupe.index.document_text import text_of
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import U64, Flags, Positions
from es_neardupe.keys.scheme import Unit
from es_neardupe.keys.shingles import features, token_hashes, window_hashes
from es_neardupe.records import FingerprintColumns, TextClasses
from es_neardupe.similarity.common_passages import covered_passages
from es_neardupe.similarity.formulas import Weights, resemblances
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.common_shingles import MIN_DOCUMENTS, shingles_above
from es_neardupe.verification.feature_weights import sample_weights

_BUCKETS = 3
"""Maximum number of large buckets that are searched, each with mostly other texts."""

_TEXTS = 100
"""Texts of a bucket that are compared with each other."""

_MIN_MATCHES = 0.5
"""Minimum share of their pairs that match."""

_CHARACTERS = 6
"""Characters of a word and the space after it, in most languages."""


@dataclass(frozen=True)
class DominatingPassage:
    """A passage that many different texts have in common, and that is so long that most of them match because of it."""

    passage: str
    """Its beginning."""
    documents: int
    """Documents of the large bucket that it was found in."""
    ignore_common: float
    """Value of ``--ignore-common`` with which these texts are compared by the rest."""
    pairs: int
    """Pairs of a sample of these texts."""
    matches: int
    """Those that match."""
    remaining: int
    """Those that match without the common shingles."""
    _ignored: U64 = field(compare=False, repr=False)

    def without(self, shingles: Sequence[U64]) -> list[U64]:
        """The shingles of each text (sorted) that ``ignore_common`` does not ignore; all of them if it ignores all."""
        rest = (np.setdiff1d(one, self._ignored, assume_unique=True) for one in shingles)
        return [some if len(some) else one for some, one in zip(rest, shingles, strict=True)]


def dominating_passage(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, candidates: CandidatePairs, minimum: float
) -> DominatingPassage | None:
    """The dominating passage of the largest bucket that has one, None if there is none. Only resemblances are judged.

    What the common shingles leave of two texts distinguishes near-copies from different texts with boilerplate: of
    near-copies single words or nothing, of different texts at least the words of one shingle in a row; so does their
    resemblance without the common shingles. With shingles of characters, the run is one of as many characters.
    """
    w, unit = index.settings.shingle, index.settings.unit
    weights: Weights | None = None
    for documents, members in _buckets(candidates):
        texts = _texts(index, corpus, classes, members)
        shingles = features(texts, w, unit)
        left, right = np.triu_indices(len(texts), 1)
        matching = resemblances(shingles, left, right) >= minimum
        matches = left[matching], right[matching]
        if not len(left) or len(matches[0]) < _MIN_MATCHES * len(left):
            continue
        here, number = np.unique(np.concatenate(shingles), return_counts=True)
        common = here[number > len(texts) / 2]
        few = len(matches[0]) / 2
        if _remaining(shingles, common, matches, minimum) > few or not _differ(texts, common, w, unit):
            continue
        weights = weights or sample_weights(index, Measure(shingle=w, unit=unit))
        share = _share_below(weights, common)
        ignored = shingles_above(weights, share)
        remaining = _remaining(shingles, ignored, matches, minimum)
        if share and remaining <= few:
            return DominatingPassage(
                passage=beginning(covered_passages(texts, ignored, w, unit)[0][0]),
                documents=documents,
                ignore_common=share,
                pairs=len(left),
                matches=len(matches[0]),
                remaining=remaining,
                _ignored=ignored,
            )
    return None


def _buckets(candidates: CandidatePairs) -> Iterator[tuple[int, Positions]]:
    """The documents and classes of large buckets, largest first, without those that mostly have texts of earlier
    ones."""
    seen = np.zeros(candidates.in_buckets.size, np.bool_)
    chosen = 0
    for bucket in sorted(candidates.in_buckets.buckets, key=lambda one: (-one.documents, one.key)):
        members = candidates.in_buckets.members(bucket)
        if seen[members].mean() <= 0.5:
            seen[members] = True
            chosen += 1
            yield bucket.documents, members
        if chosen == _BUCKETS:
            return


def _texts(index: Index, corpus: FingerprintColumns, classes: TextClasses, members: Positions) -> list[str]:
    """The current texts of some of the classes, evenly spread."""
    spread = members[np.linspace(0, len(members) - 1, min(_TEXTS, len(members))).astype(np.intp)]
    references = [corpus.references[row] for row in classes.first_of(spread).tolist()]
    hits = index.documents.fetch(references, index.settings.fields)
    return [text_of(hit.source, index.settings.fields) for hit in hits if hit is not None]


def _remaining(shingles: Sequence[U64], common: U64, matches: tuple[Positions, Positions], minimum: float) -> int:
    """How many of the matching pairs also match without the common shingles."""
    rest = [np.setdiff1d(one, common, assume_unique=True) for one in shingles]
    return int((resemblances(rest, *matches) >= minimum).sum())


def _differ(texts: Sequence[str], common: U64, w: int, unit: Unit) -> bool:
    """Whether most texts have a run of at least ``w`` words, or as many characters, outside of all passages of common
    shingles. A few characters in a row are common by chance: passages are at least as long as the run."""
    least = w if unit is Unit.WORD else w * _CHARACTERS
    own = 0
    for tokens in token_hashes(texts, unit):
        inside = np.isin(window_hashes(tokens, w), common)
        covered = np.convolve(inside, np.ones(w)) > 0 if len(inside) else np.zeros(len(tokens), np.bool_)
        passages = [edges for edges in _runs(covered) if edges[1] - edges[0] >= least]
        bounds = np.array([0, *np.ravel(passages), len(tokens)])
        own += int((bounds[1::2] - bounds[::2]).max()) >= least
    return own > len(texts) / 2


def _runs(flags: Flags) -> Positions:
    """Start and end of each run of true flags."""
    return np.flatnonzero(np.diff(flags, prepend=False, append=False)).reshape(-1, 2)


def _share_below(weights: Weights, common: U64) -> float:
    """A round share of documents below that of nearly all of the common shingles: half of it. 0 if there are too few
    documents to ignore any."""
    places = np.minimum(np.searchsorted(weights.features, common), max(len(weights.features) - 1, 0))
    if weights.documents < MIN_DOCUMENTS or not len(places):
        return 0.0
    frequency = np.where(weights.features[places] == common, weights.frequencies[places], 0)
    return float(f"{np.quantile(frequency, 0.05) / weights.documents / 2:.1g}")
