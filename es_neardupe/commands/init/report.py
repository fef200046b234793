"""The report of `init`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from es_neardupe.candidates.detection import (
    BandsByLengths,
    UnsuitedTexts,
)
from es_neardupe.candidates.unprepared import UnpreparedTexts
from es_neardupe.candidates.unrelated import UnrelatedCandidates
from es_neardupe.commands.init.prepared_sample import PreparedSample
from es_neardupe.index.settings import Settings
from es_neardupe.records import one_line
from es_neardupe.server.dry_run import ShownRequest


@dataclass(frozen=True)
class Sampling:
    """The modulus chosen for sampled keys, and the figures it was chosen by."""

    sample_mod: int
    wanted: int
    """Sampled keys that a document of mean length should have."""
    documents: int
    """Random documents with words that were read."""
    mean_words: float
    mean_shingles: float
    """Mean number of different shingles."""
    without: float
    """Expected share of these documents that get no sampled key: `contained` cannot find them."""


@dataclass(frozen=True, kw_only=True)
class InitReport:
    """Result of `init`."""

    index: str
    indices: tuple[str, ...]
    created: bool = False
    prepared: tuple[str, ...] = ()
    """Concrete indices whose mapping was changed in this run; the others were up to date."""
    scheme: str
    fields: tuple[str, ...]
    threshold: float
    bands: int
    rows: int
    agree: int
    """Bands that a candidate pair shares."""
    detection: float
    """Probability that a pair exactly at the threshold becomes a candidate."""
    sample_mod: int
    """One in this many shingles becomes a sampled key; 0: no sampled keys."""
    group_field: str | None
    """The field with a copy of the group id."""
    versions: str
    """Who sets the versions of the documents, ``internal`` or ``external``."""
    sampling: Sampling | None = None
    """How ``sample_mod`` was chosen; None if it was given or already stored."""
    by_lengths: BandsByLengths | None = None
    """With ``measure``: what the bands find, for the lengths of the texts."""
    preparation: PreparedSample | None = None
    """What is left of the texts of random documents, with examples; None if texts are not prepared."""
    unrelated: UnrelatedCandidates | None = None
    """How many of a million unrelated texts become candidates; None if this user may not read documents, and for a new
    index with bands for short texts."""
    unsuited: UnsuitedTexts | None = None
    """Random documents that are too short or too long for the keys; None if these suit all lengths, or if this user may
    not read documents."""
    unprepared: UnpreparedTexts | None = None
    """Random documents with texts of a kind that should be prepared; None if there is none."""
    skipped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Join field -> the relations whose documents are not processed."""
    rolls_over: bool = False
    """Whether the name is a data stream or an alias with a write index: it gets new indices by rollover."""
    next_prepared: bool | None = None
    """Whether an index template gives the next of these indices the same fields and settings; None: unknown."""
    template: Mapping[str, Any] | None = None
    """With ``template``: the body of a component template. It is not sent to the server."""
    sidecars: tuple[str, ...] = ()
    """The sidecar indices; empty if keys are stored in the documents."""
    write_group: bool = False
    """Whether group ids are written into the documents in addition to the sidecar indices."""
    dry_run: bool
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``."""

    def chosen(self, settings: Settings) -> Settings:
        """The given settings with those that were chosen or kept."""
        return replace(
            settings,
            threshold=self.threshold,
            bands=self.bands,
            rows=self.rows,
            agree=self.agree,
            sample_mod=self.sample_mod,
            group_field=self.group_field,
            measure=settings.measure if self.by_lengths is None else self.by_lengths.measure,
            min=settings.min if self.by_lengths is None else self.by_lengths.min,
        )

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            scheme=self.scheme,
            threshold=self.threshold,
            detection=self.detection,
            dry_run=self.dry_run,
        )
