"""Near-duplicates of one document or of any text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from es_neardupe import options
from es_neardupe.candidates.detection import DetectionCase, detection_cases
from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.document_text import read_text
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import ShownFields, shown_fields
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Fingerprint, Reference, State, one_line
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
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Field -> its text, for the fields to show."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            id=self.id,
            similarity=self.similarity,
            shared_bands=self.shared_bands,
            group=self.group,
        )

    @property
    def resemblance(self) -> float | None:
        """The similarity if it is the resemblance, None for another measure."""
        return self.similarity if self.measure == "resemblance" else None


@dataclass(frozen=True)
class Detection:
    """Probability that a document exactly ``min`` similar is a candidate; None if the measure does not determine it."""

    min: float
    probability: float | None


@dataclass(frozen=True)
class Similar:
    """The hits, most similar first; equal ones by shared bands, then by index and id."""

    query: Mapping[str, Any]
    """``index`` and ``id``, or ``text`` (its beginning); with ``state`` and ``tokens`` of the probe."""
    hits: tuple[SimilarHit, ...]
    candidates: int
    """Documents that share enough band keys: one, unless the scheme requires more."""
    not_compared: int
    """Candidates beyond ``max_candidates``, with the fewest shared keys."""
    detection: Detection
    measure: str
    """Name of the measure with its options; ``resemblance`` by default."""
    max: float
    detection_cases: tuple[DetectionCase, ...]
    """For other measures than the resemblance: probabilities of some kinds of documents to be candidates."""
    weights: WeightsUsed | None
    """For the measure weighted: the source of the weights."""

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
    fields: options.TitleFields = (),
) -> Similar:
    """Documents whose exact similarity to a document of the index, or to any text, lies between ``min`` (default: the
    threshold of the index) and ``max``.

    Give ``id`` or ``text``. ``query`` selects the documents to compare with. Both sides are compared by their current
    texts. ``fields`` are shown of each hit; None: none. Raises `NotFound` for an unknown id, `InputError` for a
    document without readable text, and `SettingsError` for options that are unknown, contradict each other or do not
    apply to the measure.
    """
    if (id is None) == (text is None):
        raise SettingsError("Give either the id of a document or a text.")
    if top < 1 or max_candidates < 1:
        raise SettingsError("`top` and `max_candidates` must be 1 or more.")
    index = opened(index, texts=True)
    options = MatchOptions().having(
        measure=measure, matching=matching, min=min, max=max, features=features, ngram=ngram, whitespace=whitespace
    )
    match = match_criterion(index, options, renew=renew)
    shown = shown_fields(index, fields)
    probe = _document(index, id, match) if id is not None else _text(text or "", index.target, match)
    (fingerprint,) = fingerprints([probe.text], index.settings.scheme, max_chars=DEFAULT_MAX_CHARS)
    candidates: list[tuple[Reference, int]] = []
    hits: list[SimilarHit] = []
    total = 0
    if fingerprint.state in (State.SIGNED, State.SHORT):
        candidates, total = _candidates(index, fingerprint, probe=probe, query=query, maximum=max_candidates)
        hits = list(_verified(index, match, probe, candidates, shown))
        hits.sort(key=lambda hit: (-hit.similarity, -hit.shared_bands, hit.index, hit.id))
    return Similar(
        query=probe.name | {"state": fingerprint.state.value, "tokens": fingerprint.tokens},
        hits=tuple(hits[:top]),
        candidates=total,
        not_compared=total - len(candidates),
        detection=Detection(match.min, match.detection),
        measure=match.measure.label,
        max=match.max,
        detection_cases=detection_cases(match.measure, match.min, index.settings.scheme, fingerprint.tokens),
        weights=match.weights,
    )


def _text(text: str, target: IndexTarget, match: MatchCriterion) -> _Probe:
    """Any text, as a document with this text in the first field of the index."""
    names = named_fields(match.measure.sources)
    if names:
        raise SettingsError(f"A text has no field {names[0]!r}: compare a document of the index by its `id`.")
    return _Probe(text, {target.settings.fields[0]: text}, {"text": text[:80]})


def _document(index: Index, id: str, match: MatchCriterion) -> _Probe:
    """The current text of a document, and the other fields that are compared."""
    concrete, source = current_source(index, id, match.measure.fields(index.settings.fields))
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
    """Documents that share keys with the probe, each with the number of these keys, and the total of such documents.
    The probe itself is left out."""
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
    index: Index, match: MatchCriterion, probe: _Probe, candidates: Sequence[tuple[Reference, int]], shown: ShownFields
) -> Iterator[SimilarHit]:
    """Compare the probe with the current text of each candidate. Candidates that were deleted are no hits."""
    shared = {reference[:2]: bands for reference, bands in candidates}
    references = [reference for reference, _ in candidates]
    more = [index.fields.group, *shown.names]
    for hit, similarity in compared_with(index, match.measure, probe.source, references, more=more):
        if match.min <= similarity <= match.max:
            group = group_of(stored_fields(hit.source, index.settings.prefix))
            yield SimilarHit(
                index=hit.index,
                id=hit.id,
                similarity=similarity,
                shared_bands=shared[hit.address],
                group=group,
                measure=match.measure.label,
                fields=shown.of(hit.source),
            )
