"""Common shingles (``--ignore-common``): those that many documents of an index have, as a list for later runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.display_text import beginning
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index.document_text import text_of
from es_neardupe.index.hidden_indices import HiddenIndex, ensure, hidden_index_name, read, store
from es_neardupe.index.index import Index
from es_neardupe.index.target import IndexTarget
from es_neardupe.progress import Progress
from es_neardupe.server.fetch import fetch
from es_neardupe.similarity.common_passages import covered_passages
from es_neardupe.similarity.measure import Ignored, Measure
from es_neardupe.verification.feature_weights import frequencies, sampled
from es_neardupe.verification.verify import Verified, Verifier

__all__ = ["CommonShingles", "CommonShinglesEffect", "CommonShinglesUsed", "common_shingles", "effect", "keep", "used"]

_MIN = 100
"""Documents of a sample that says how common a shingle is."""

_TEXTS = 200
_EXAMPLES = 5


@dataclass(frozen=True)
class CommonShingles:
    """A list of common shingles."""

    ignored: Ignored
    share: float
    documents: int
    """Of the sample."""
    at: str
    stored: bool
    """Whether it is in the registry."""


@dataclass(frozen=True)
class CommonShinglesEffect:
    """What ignoring common shingles changes among the candidates of a run."""

    without: int
    """Candidates that match if nothing is ignored."""
    gained: int
    """Pairs that match only if the common shingles are ignored."""
    lost: int
    """Pairs that match only if they are not."""
    examples: tuple[str, ...]
    """Common passages, the beginnings of the most frequent ones."""


@dataclass(frozen=True)
class CommonShinglesUsed:
    """The list that was used, for the report."""

    version: str
    share: float
    documents: int
    """Of the sample."""
    at: str
    shingles: int
    texts: int
    """Documents that were read and have no other shingles: they keep them."""
    effect: CommonShinglesEffect | None
    """In a dry run."""


def common_shingles(index: Index, share: float, *, renew: bool) -> CommonShingles:
    """The shingles that more than ``share`` of the documents have: the list of the registry, or one from a new sample.

    Raises `SettingsError` for a share out of range or another one than that of the list, and `IndexUnusable` for an
    index with too few documents to say so.
    """
    if not 0 < share < 1:
        raise SettingsError(f"`ignore_common` must lie between 0 and 1, not {share}.")
    known = (
        None if renew else read(index.client, hidden_index_name(index.target, HiddenIndex.GROUPS), _id(index.target))
    )
    if known is None:
        return _sampled(index, share, renew)
    found = _decoded(known.source.get("value"))
    if found.share != share:
        raise SettingsError(
            f"The list of common shingles of {index.name} is for `ignore_common` {found.share:g}. Use that, or add "
            f"`renew` to make one for {share:g}."
        )
    return found


def _id(target: IndexTarget) -> str:
    return f"common-{target.scheme_id}"


def _sampled(index: Index, share: float, renew: bool) -> CommonShingles:
    measure = Measure(shingle=index.settings.shingle)
    found = frequencies(index, measure, renew=renew)
    if found.weights.documents < _MIN:  # there may be more by now
        found = frequencies(index, measure, renew=True)
    weights = found.weights
    if weights.documents < _MIN:
        raise IndexUnusable(
            f"{weights.documents} documents with keys are too few to say which shingles are common: there must be "
            f"{_MIN}."
        )
    features = weights.features[weights.frequencies > share * weights.documents]
    return CommonShingles(_ignored(features), share, weights.documents, found.at, stored=False)


def _ignored(features: NDArray[np.uint64]) -> Ignored:
    return Ignored(xxhash.xxh3_64_hexdigest(features.astype("<u8").tobytes())[:8], features)


def _decoded(value: Any) -> CommonShingles:
    """Read what `keep` wrote; the list must be the one that its version names."""
    try:
        features = np.array([int(one, 16) for one in value["hashes"]], np.uint64)
        found = CommonShingles(
            _ignored(features), float(value["share"]), int(value["documents"]), str(value["at"]), stored=True
        )
        sound = found.ignored.version == value["version"] and bool((features[1:] > features[:-1]).all())
    except (KeyError, TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        raise SettingsError("The stored list of common shingles cannot be read: add `renew` to make a new one.")
    return found


def keep(index: Index, common: CommonShingles) -> None:
    """Store a new list in the registry, so that later runs use the same one."""
    if common.stored:
        return
    name = ensure(index, HiddenIndex.GROUPS)
    value = {
        "version": common.ignored.version,
        "share": common.share,
        "documents": common.documents,
        "at": common.at,
        "hashes": [f"{one:016x}" for one in common.ignored.features.tolist()],
    }
    store(
        index.client,
        name,
        _id(index.target),
        {"kind": "common", "value": value},
        read(index.client, name, _id(index.target)),
    )


def used(common: CommonShingles, verifier: Verifier, effect: CommonShinglesEffect | None = None) -> CommonShinglesUsed:
    """What the report says of a list."""
    return CommonShinglesUsed(
        version=common.ignored.version,
        share=common.share,
        documents=common.documents,
        at=common.at,
        shingles=len(common.ignored.features),
        texts=len(verifier.common),
        effect=effect,
    )


def effect(
    index: Index,
    found: Verified,
    fits: Callable[[NDArray[np.float64]], NDArray[np.bool_]],
    progress: Progress,
) -> CommonShinglesEffect:
    """Compare all candidates once more, with nothing ignored."""
    measure, candidates = found.verifier.measure, found.candidates
    assert measure.ignored is not None
    plain = Verifier(index.client, index.settings, found.corpus, found.classes, replace(measure, ignored=None))
    before = fits(plain.similarities(candidates.left, candidates.right, progress))
    after = fits(found.similarity)
    return CommonShinglesEffect(
        without=int(before.sum()),
        gained=int((after & ~before).sum()),
        lost=int((before & ~after).sum()),
        examples=tuple(_examples(index, measure.ignored)),
    )


def _examples(index: Index, ignored: Ignored) -> list[str]:
    """The most frequent common passages of some documents."""
    fields = index.settings.fields
    some = fetch(index.client, islice(sampled(index), _TEXTS), fields, batch=50)
    texts = [text_of(hit.source, fields) for hit in some if hit is not None]
    found = covered_passages(texts, ignored.features, index.settings.shingle)
    return [beginning(passage, 100) for passage, _ in found[:_EXAMPLES]]
