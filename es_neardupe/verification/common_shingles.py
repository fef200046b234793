"""Common shingles (``--ignore-common``): shingles that many documents of an index have, or those of boilerplate that
holds unrelated texts together, in a list that is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import xxhash

from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.display_text import beginning
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index.document_text import prepared_text
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.arrays import U64, Flags, Floats
from es_neardupe.options import AUTO
from es_neardupe.progress import Progress, silent
from es_neardupe.server.search import fetch
from es_neardupe.similarity.common_passages import covered_passages
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Ignored, Measure
from es_neardupe.verification.boilerplate import sampled_boilerplate
from es_neardupe.verification.feature_weights import frequencies, sampled
from es_neardupe.verification.verify import Verified, Verifier
from es_neardupe.wording import counted, option

MIN_DOCUMENTS = 100
"""Minimum number of documents in the sample."""

_TEXTS = 200
"""Texts in which examples of common passages are searched for."""

_EXAMPLES = 5


@dataclass(frozen=True)
class CommonShingles:
    """A list of common shingles."""

    ignored: Ignored
    share: float | Literal["auto"]
    documents: int
    """Documents of the sample."""
    at: str
    stored: bool
    """Whether the list is in the registry."""
    passages: tuple[str, ...] = ()
    """With ``auto``: the beginnings of the passages that most documents of the sample share; at most three."""


@dataclass(frozen=True)
class CommonShinglesEffect:
    """The effect of ignoring common shingles on the candidates of a run."""

    without: int
    """Candidates that match if nothing is ignored."""
    gained: int
    """Pairs that match only if the common shingles are ignored."""
    lost: int
    """Pairs that match only if nothing is ignored."""
    examples: tuple[str, ...]
    """Beginnings of the most frequent common passages."""


@dataclass(frozen=True)
class CommonShinglesList:
    """The list that a run used, for its report."""

    version: str
    share: float | Literal["auto"]
    documents: int
    """Documents of the sample."""
    at: str
    shingles: int
    passages: tuple[str, ...]
    """With ``auto``: the beginnings of the passages that most documents of the sample share; at most three."""


@dataclass(frozen=True)
class CommonShinglesUsed(CommonShinglesList):
    """The list that a run used to compare pairs, for its report."""

    texts: int
    """Documents that have no other shingles; these are compared by all their shingles."""
    effect: CommonShinglesEffect | None
    """Only in a dry run."""


def common_shingles(
    index: Index,
    share: float | Literal["auto"],
    minimum: float,
    *,
    renew: bool,
    limit: MemoryLimit | None = None,
    progress: Progress = silent,
) -> CommonShingles:
    """The shingles that more than ``share`` of the documents have, or with ``auto`` those of the boilerplate that holds
    texts of this ``minimum`` resemblance together: the list in the registry, or a new one.

    Raises `SettingsError` for a share that is out of range or differs from that of the stored list, or if ``limit`` is
    too small for the candidates, and `IndexUnusable` for an index with too few documents.
    """
    if isinstance(share, str) and share != AUTO:
        raise SettingsError(f"{option('ignore_common')} must be a share of the documents or auto, not {share!r}.")
    if not isinstance(share, str) and not 0 < share < 1:
        raise SettingsError(f"{option('ignore_common')} must lie between 0 and 1, not {share}.")
    registry = HiddenStore(index, HiddenIndex.GROUPS)
    stored = registry.read(_id(index.target)) if not renew and registry.exists() else None
    if stored is None:
        if not isinstance(share, str):
            return _sampled(index, share, renew)
        found, texts = sampled_boilerplate(index, minimum, limit=limit, progress=progress)
        passages = tuple(one.passage for one in found.passages)
        ignored = _ignored(found.ignored.features)
        return CommonShingles(ignored, AUTO, texts, timestamp(), stored=False, passages=passages)
    common = _decoded(stored.source.get("value"))
    if common.share != share:
        raise SettingsError(
            f"The list of common shingles of {index.name} is for {option('ignore_common')} {common.share}. Use this "
            f"value, or add {option('renew')} to create a list for {share}."
        )
    return common


def _id(target: IndexTarget) -> str:
    return f"common-{target.scheme_id}"


def _sampled(index: Index, share: float, renew: bool) -> CommonShingles:
    measure = Measure(shingle=index.settings.shingle, unit=index.settings.unit)
    sample = frequencies(index, measure, renew=renew)
    if sample.weights.documents < MIN_DOCUMENTS:  # the cached sample may be smaller than the index is now
        sample = frequencies(index, measure, renew=True)
    weights = sample.weights
    if weights.documents < MIN_DOCUMENTS:
        raise IndexUnusable(
            f"{counted(weights.documents, 'document with keys is too few', 'documents with keys are too few')} to "
            f"determine common shingles: at least {MIN_DOCUMENTS} are needed."
        )
    return CommonShingles(_ignored(shingles_above(weights, share)), share, weights.documents, sample.at, stored=False)


def shingles_above(weights: Weights, share: float) -> U64:
    """The shingles that more than this share of the sample of the weights have; sorted."""
    return weights.features[weights.frequencies > share * weights.documents]


def _ignored(features: U64) -> Ignored:
    return Ignored(xxhash.xxh3_64_hexdigest(features.astype("<u8").tobytes())[:8], features)


def _decoded(value: Any) -> CommonShingles:
    """Read a list that `store_list` wrote. Raises `SettingsError` if it is invalid or does not match its version."""
    try:
        features = np.array([int(one, 16) for one in value["hashes"]], np.uint64)
        common = CommonShingles(
            _ignored(features),
            _share(value["share"]),
            int(value["documents"]),
            str(value["at"]),
            stored=True,
            passages=tuple(map(str, value["passages"])),
        )
        valid = common.ignored.version == value["version"] and bool((features[1:] > features[:-1]).all())
    except (KeyError, TypeError, ValueError, OverflowError):
        valid = False
    if not valid:
        raise SettingsError(
            f"The stored list of common shingles cannot be read: add {option('renew')} to create a new one."
        )
    return common


def _share(stored: Any) -> float | Literal["auto"]:
    return AUTO if stored == AUTO else float(stored)


def store_list(index: Index, common: CommonShingles) -> None:
    """Store a new list in the registry, so that later runs use the same one."""
    if common.stored:
        return
    registry, id = HiddenStore(index, HiddenIndex.GROUPS), _id(index.target)
    registry.create()
    value = {
        "version": common.ignored.version,
        "share": common.share,
        "documents": common.documents,
        "at": common.at,
        "passages": list(common.passages),
        "hashes": [f"{one:016x}" for one in common.ignored.features.tolist()],
    }
    registry.put(id, {"kind": "common", "value": value}, registry.read(id))


def described_list(common: CommonShingles) -> CommonShinglesList:
    """The list, as it is reported."""
    return CommonShinglesList(
        version=common.ignored.version,
        share=common.share,
        documents=common.documents,
        at=common.at,
        shingles=len(common.ignored.features),
        passages=common.passages,
    )


def used(common: CommonShingles, verifier: Verifier, effect: CommonShinglesEffect | None = None) -> CommonShinglesUsed:
    """The list and its effect, as they are reported."""
    return CommonShinglesUsed(**vars(described_list(common)), texts=len(verifier.common), effect=effect)


def effect(
    index: Index,
    verified: Verified,
    matching: Callable[[Floats], Flags],
    progress: Progress,
) -> CommonShinglesEffect:
    """Compare all candidates again without ignoring shingles."""
    measure, candidates = verified.verifier.measure, verified.candidates
    assert measure.ignored is not None
    plain = Verifier(index.client, index.settings, verified.corpus, verified.classes, replace(measure, ignored=None))
    before = matching(plain.similarities(candidates.left, candidates.right, progress))
    after = matching(verified.similarity)
    return CommonShinglesEffect(
        without=int(before.sum()),
        gained=int((after & ~before).sum()),
        lost=int((before & ~after).sum()),
        examples=tuple(_examples(index, measure.ignored)),
    )


def _examples(index: Index, ignored: Ignored) -> list[str]:
    """The most frequent common passages in a sample of documents."""
    fields = index.settings.fields
    hits = fetch(index.client, islice(sampled(index), _TEXTS), fields)
    texts = [prepared_text(hit.source, index.settings) for hit in hits if hit is not None]
    passages = covered_passages(texts, ignored.features, index.settings.shingle, index.settings.unit)
    return [beginning(passage, 100) for passage, _ in passages[:_EXAMPLES]]
