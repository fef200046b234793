"""The near-duplicates of one document or of any text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe import options
from es_neardupe.candidates.detection import DetectionCase
from es_neardupe.commands.report_parts import one_line
from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.document_text import read_text
from es_neardupe.index.index import Index, opened
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Fingerprint, Reference, State
from es_neardupe.server.search import search
from es_neardupe.similarity.features import named_fields
from es_neardupe.verification.criterion import MatchCriterion, MatchOptions, WeightsUsed, match_criterion
from es_neardupe.verification.current_texts import compared_with, current_source

__all__ = ["Detection", "Similar", "SimilarHit", "similar"]


@dataclass(frozen=True)
class SimilarHit:
    """A verified near-duplicate."""

    index: str
    id: str
    similarity: float
    shared_bands: int
    group: str | None
    measure: str = "resemblance"

    @property
    def resemblance(self) -> float | None:
        """The similarity if it is the resemblance, None for another measure."""
        return self.similarity if self.measure == "resemblance" else None


@dataclass(frozen=True)
class Detection:
    """How likely a document exactly ``min`` similar is a candidate; ``probability`` is None where
    the measure does not decide that."""

    min: float
    probability: float | None


@dataclass(frozen=True)
class Similar:
    """The answer, most similar first; equal ones by shared bands, then by address."""

    query: Mapping[str, Any]
    """``index`` and ``id``, or ``text`` (its beginning); with the probe's ``state`` and ``tokens``."""
    hits: tuple[SimilarHit, ...]
    candidates: int
    """Documents that share enough band keys: one, unless the scheme asks for more."""
    not_compared: int
    """Candidates beyond ``max_candidates``, those that share the fewest keys."""
    detection: Detection
    measure: str
    """What decided, in words; ``resemblance`` by default."""
    max: float
    detection_cases: tuple[DetectionCase, ...]
    """For another measure than the resemblance: how likely some kinds of documents are candidates."""
    weights: WeightsUsed | None
    """For the measure weighted: where the weights are from."""

    def __repr__(self) -> str:
        return one_line(
            self,
            query=self.query,
            hits=len(self.hits),
            candidates=self.candidates,
            min=self.detection.min,
            measure=self.measure,
        )


@dataclass(frozen=True)
class _Probe:
    text: str
    source: Mapping[str, Any]
    name: dict[str, Any]
    address: tuple[str, str] | None = None


def similar(
    index: Index,
    *,
    id: options.Id = None,
    text: options.Text = None,
    measure: options.Measure = "resemblance",
    matching: options.MatchingName = None,
    min: options.Minimum = None,
    max: options.Maximum = 1.0,
    features: options.Features = (),
    ngram: options.Ngram = None,
    whitespace: options.Whitespace = False,
    renew: options.Renew = False,
    top: options.TopHits = 10,
    query: options.Query = None,
    max_candidates: options.CandidatesByKeys = 1000,
) -> Similar:
    """Documents whose exact similarity to a document of the index, or to any text, lies between ``min`` (default: the
    threshold of the index) and ``max``.

    Give ``id`` or ``text``. ``query`` filters the documents to compare with. Both sides are compared by their
    present texts. Raises `NotFound` for an unknown id, `InputError` for a probe without readable text, and
    `SettingsError` for options that are unknown, contradict each other or mean nothing to the measure.
    """
    if (id is None) == (text is None):
        raise SettingsError("Give either the id of a document or a text.")
    if top < 1 or max_candidates < 1:
        raise SettingsError("`top` and `max_candidates` must be 1 or more.")
    index = opened(index, texts=True)
    options = MatchOptions().having(
        measure=measure, matching=matching, min=min, max=max, features=features, ngram=ngram, whitespace=whitespace
    )
    wanted = match_criterion(index, options, renew=renew)
    probe = _document(index, id, wanted) if id is not None else _text(text or "", index.target, wanted)
    (fingerprint,) = fingerprints([probe.text], index.settings.scheme, max_chars=DEFAULT_MAX_CHARS)
    named = probe.name | {"state": fingerprint.state.value, "tokens": fingerprint.tokens}
    found: list[tuple[Reference, int]] = []
    hits: list[SimilarHit] = []
    total = 0
    if fingerprint.state in (State.SIGNED, State.SHORT):
        found, total = _candidates(index, fingerprint, probe=probe, query=query, maximum=max_candidates)
        hits = list(_verified(index, wanted, probe, found))
        hits.sort(key=lambda hit: (-hit.similarity, -hit.shared_bands, hit.index, hit.id))
    return Similar(
        query=named,
        hits=tuple(hits[:top]),
        candidates=total,
        not_compared=total - len(found),
        detection=Detection(wanted.min, wanted.detection),
        measure=wanted.measure.label,
        max=wanted.max,
        detection_cases=wanted.detection_cases,
        weights=wanted.weights,
    )


def _text(text: str, target: IndexTarget, wanted: MatchCriterion) -> _Probe:
    """Any text, as a document that has it in the first field of the index."""
    named = named_fields(wanted.measure.sources)
    if named:
        raise SettingsError(f"A text has no field {named[0]!r}: compare a document of the index by its `id`.")
    return _Probe(text, {target.settings.fields[0]: text}, {"text": text[:80]})


def _document(index: Index, id: str, wanted: MatchCriterion) -> _Probe:
    """The present text of a document, and whatever else of it is compared."""
    concrete, source = current_source(index, id, wanted.measure.fields(index.settings.fields))
    text = read_text(source, index.settings.fields)
    return _Probe(text, source, {"index": concrete, "id": id}, (concrete, id))


def _candidates(
    index: Index,
    fingerprint: Fingerprint,
    *,
    probe: _Probe,
    query: Mapping[str, Any] | None,
    maximum: int,
) -> tuple[list[tuple[Reference, int]], int]:
    """Documents that share keys with the probe, each with how many, and their total; the probe itself left out."""
    size = min(maximum + 1, index.target.max_result_window)
    body = queries.candidates(
        index.fields, fingerprint.bands, size=size, agree=index.settings.scheme.agree, scope=query
    )
    answer = search(index.client, index.path, body)["hits"]
    others = [hit for hit in answer["hits"] if (hit["_index"], hit["_id"]) != probe.address]
    total = answer["total"]["value"] - (len(answer["hits"]) - len(others))
    found = [((hit["_index"], hit["_id"], hit.get("_routing")), round(hit["_score"])) for hit in others[:maximum]]
    return found, total


def _verified(
    index: Index, wanted: MatchCriterion, probe: _Probe, found: Sequence[tuple[Reference, int]]
) -> Iterator[SimilarHit]:
    """Compare the probe with the present text of each candidate; one deleted meanwhile is no hit."""
    shared = {reference[:2]: bands for reference, bands in found}
    references = [reference for reference, _ in found]
    group = index.fields.group
    for hit, similarity in compared_with(index, wanted.measure, probe.source, references, more=[group]):
        if wanted.min <= similarity <= wanted.max:
            own = group_of(stored_fields(hit.source, index.settings.prefix))
            yield SimilarHit(hit.index, hit.id, similarity, shared[hit.address], own, wanted.measure.label)
