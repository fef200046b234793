"""Report of `distribution`: histograms, results of each threshold, examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from es_neardupe.commands.distribution.sample import EstimatedPairs
from es_neardupe.keys.unit import Unit, shingle_text
from es_neardupe.records import Address, one_line
from es_neardupe.similarity.facts.differing import Fact
from es_neardupe.similarity.histogram import Histogram
from es_neardupe.tables import Cell, Table, Tabular


@dataclass(frozen=True)
class ThresholdLevel:
    """Results of a threshold."""

    threshold: float
    detection: float | None
    """Probability that the bands find a pair of exactly this similarity; None if they were made for another measure."""
    pairs: int
    """Candidate pairs of documents that reach it, in the whole index."""
    documents: int
    """Documents in these pairs."""
    groups: int
    """Star groups of two or more documents."""
    largest: int
    """Documents in the largest group."""
    sample_pairs: int
    """Pairs of the sample that reach it, found by comparing all documents with each other."""
    sample_found: int
    """Of these, pairs that share keys and so are candidates."""
    expected: EstimatedPairs
    """All pairs of the index that reach it, including those that are not candidates."""


@dataclass(frozen=True)
class SimilarityExample:
    """A pair near the threshold, with excerpts of its texts from about the first word that differs."""

    similarity: float
    a: Address
    b: Address
    excerpt_a: str
    excerpt_b: str


@dataclass(frozen=True)
class LabelCounts:
    """Pairs of the file with labels: ``pairs = same + different + missing + changed``."""

    file: str
    pairs: int
    same: int
    """Pairs labelled same whose documents have a fingerprint and are unchanged."""
    different: int
    missing: int
    """Pairs with a document that is not in the index, or has no fingerprint."""
    changed: int
    """Pairs with a document that changed or was deleted since it got its fingerprint."""


@dataclass(frozen=True)
class LabelLevel:
    """Labelled pairs that reach a threshold, whether they are candidates or not."""

    threshold: float
    same: int
    """Pairs labelled same that reach it."""
    different: int
    """Pairs labelled different that reach it."""
    found: int
    """Of ``same``, pairs that share keys and so are candidates."""
    precision: float | None
    """Share of the pairs that reach it that are labelled same; None if none reaches it."""
    recall: float
    """Share of the pairs labelled same that reach it."""
    f: float
    """Harmonic mean of precision and recall."""


@dataclass(frozen=True)
class CrossValidation:
    """Result of thresholds that were chosen by other pairs than those they were applied to."""

    folds: int
    precision: float | None
    recall: float
    f: float
    """Of the pairs of all folds together."""
    lowest_f: float
    highest_f: float
    """Of a single fold."""
    lowest_threshold: float
    highest_threshold: float
    """Of those chosen for the folds."""


@dataclass(frozen=True)
class LabelsReport:
    """Results of a measure for labelled pairs."""

    levels: tuple[LabelLevel, ...]
    best: LabelLevel
    """The threshold with the highest F of all labelled pairs."""
    above: float
    """Every threshold above this one up to ``best.threshold`` has the same result."""
    validated: CrossValidation


@dataclass(frozen=True)
class Recommendation:
    """The measure and threshold with the highest cross-validated F."""

    measure: str
    matching: str | None
    shingle: int | None
    unit: Unit | None
    whitespace: bool
    threshold: float
    text: str
    """The same in words, with the labels it rests on and how to use it."""


@dataclass(frozen=True)
class PresetChoice:
    """A preset, and the options with which it is tried: of `init` and `migrate`, and ``facts`` of `group`."""

    preset: str
    shingle: int | None = field(default=None, kw_only=True)
    """Words of a shingle; None for those of the preset."""
    threshold: float | None = field(default=None, kw_only=True)
    """None for that of the preset."""
    facts: str | None = field(default=None, kw_only=True)
    """Facts that decide, as a value of ``--facts``."""

    @property
    def named(self) -> dict[str, Any]:
        """The preset and the options, by their names."""
        return {one.name: getattr(self, one.name) for one in fields(PresetChoice)}

    @property
    def choice(self) -> PresetChoice:
        """This alone, without what was found out about it."""
        return PresetChoice(**self.named)

    @property
    def options(self) -> str:
        """The options of `init` and `migrate` besides the preset, as on the command line."""
        given = {"--shingle": self.shingle, "--threshold": self.threshold}
        return " ".join(f"{name} {value:g}" for name, value in given.items() if value is not None)

    @property
    def title(self) -> str:
        """The preset with all options, as on the command line."""
        return " ".join(filter(None, (self.preset, self.options, self.facts and f"--facts {self.facts}")))


@dataclass(frozen=True)
class PresetAdvice(PresetChoice):
    """The preset of `init` that suits the texts of an index."""

    reasons: str
    """In words, with the numbers it rests on."""
    clean: str | None = None
    """What else to leave out of texts: ``html-main`` or ``mail``. The presets were tried without it."""
    texts: int = 0
    """Texts of the sample that were compared with each other by each preset."""


@dataclass(frozen=True)
class PresetTrial(PresetChoice):
    """What the rule of a preset matches in a sample of texts, each compared with all others."""

    pairs: int
    """Pairs that it matches, of those that its keys probably find. With another threshold, without those of which the
    end of one text is the beginning of the other; with ``facts``, of each text only those with the most similar
    ones."""
    documents: int
    """Documents in these pairs."""
    held: int
    """Documents in clusters of five different texts and more that only boilerplate holds together. 0 for a preset that
    masks texts: what is left of these is the template that they are meant to be grouped by."""


@dataclass(frozen=True)
class LabelledTrial:
    """How well a preset decides labelled pairs, with options."""

    preset: str
    clean: str | None
    """What is left out of texts."""
    ignore_common: Literal["auto"] | None
    facts: str | None
    """Facts that decide, as a value of ``--facts``."""
    threshold: float
    """The best one, of the measure that decides."""
    keys: float
    """The threshold of the keys that find 95 % of the pairs labelled same that reach it."""
    validated: CrossValidation


@dataclass(frozen=True)
class FactsExample:
    """A candidate pair that a value of ``--facts`` would separate."""

    similarity: float
    a: Address
    b: Address
    facts: tuple[Fact, ...]
    """Some of the facts that differ, of the kinds of the value."""


@dataclass(frozen=True)
class FactsValue:
    """What a value of ``--facts`` separates. With labelled pairs, ``pairs = same + different``."""

    value: str
    pairs: int
    """Pairs examined that differ in these facts."""
    same: int | None
    """Of these, labelled same: wrongly separated."""
    different: int | None
    """Of these, labelled different."""
    examples: tuple[FactsExample, ...]
    """Without labelled pairs, and for lists: up to ten of these pairs, which shorter lists would not separate."""


@dataclass(frozen=True)
class FactsReport:
    """Pairs that reach the threshold by the first measure, and those of them that facts would separate. With labelled
    pairs, these are the pairs, and ``pairs = same + different``; otherwise they are the candidates of the index."""

    pairs: int
    """All that reach the threshold."""
    examined: int
    """Those whose facts were compared: of candidates a random sample, which is all of them if they are few."""
    same: int | None
    different: int | None
    values: tuple[FactsValue, ...]
    """Each kind of facts, and each list."""


@dataclass(frozen=True)
class Distribution:
    """Distribution of one measure."""

    measure: str
    matching: str | None
    """For measures of common passages; None for others."""
    shingle: int | None
    """Words, characters or shapes (``unit``) per shingle, words per n-gram or in the shortest common passage; None for
    a measure without these."""
    unit: Unit | None
    whitespace: bool
    """For bag: whether words are separated by white space only."""
    sampled: int
    """Documents in the sample, which were all compared with each other."""
    sample: Histogram
    candidates: Histogram
    """Pairs of documents of the whole index that are candidates or exact copies."""
    levels: tuple[ThresholdLevel, ...]
    above: tuple[SimilarityExample, ...]
    below: tuple[SimilarityExample, ...]
    labels: LabelsReport | None
    """With labelled pairs."""
    other_facts: int = 0
    """With ``facts``: candidate pairs of documents that reach the lowest threshold and differ in these facts. They are
    in no other number about candidates."""

    @property
    def title(self) -> str:
        """The measure with its settings."""
        words = "" if self.shingle is None or self.unit is None else f", {shingle_text(self.shingle, self.unit)}"
        words += ", split at white space" if self.whitespace else ""
        return self.measure + (f", {self.matching}" if self.matching else "") + words


@dataclass(frozen=True)
class DistributionReport(Tabular):
    """The distributions of an index. ``edges`` are the bin edges of all histograms."""

    index: str
    indices: tuple[str, ...]
    """Concrete indices that were read."""
    scheme: str
    threshold: float
    seed: int
    documents: int
    """Documents with keys, from which samples are drawn."""
    candidates: int
    """Candidate pairs of distinct texts, which were all compared."""
    skipped: int
    """Pairs that share a large bucket and were not compared, each once."""
    stale: int
    """Documents that changed or were deleted since they got their keys. They are in no pair."""
    edges: tuple[float, ...]
    labels: LabelCounts | None
    recommendation: Recommendation | None
    """With labelled pairs."""
    preset: PresetAdvice
    """By the labelled pairs, or without them by the sample."""
    presets: tuple[PresetTrial, ...]
    """Each preset, tried on the sample."""
    trials: tuple[LabelledTrial, ...]
    """With labelled pairs: each preset with options, tried on them."""
    facts: FactsReport
    distributions: tuple[Distribution, ...]
    seconds: float = field(compare=False)

    def table(self) -> Table:
        """A row for each bin of each distribution: pairs of at least ``low`` and below ``high``, or of exactly 0 or 1,
        which are in bins of their own (``low == high``)."""
        columns: dict[str, type] = {"index": str, "scheme": str, "measure": str, "matching": str, "shingle": int}
        columns |= {"unit": str, "whitespace": bool, "low": float, "high": float, "sample": int, "candidates": int}
        return Table(columns, self._rows())

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        bins = [(0.0, 0.0), *zip(self.edges, self.edges[1:], strict=False), (1.0, 1.0)]
        for one in self.distributions:
            unit = None if one.unit is None else one.unit.value
            kind = (one.measure, one.matching, one.shingle, unit, one.whitespace)
            for (low, high), sample, candidates in zip(bins, one.sample.bins, one.candidates.bins, strict=True):
                yield self.index, self.scheme, *kind, low, high, sample, candidates

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.documents,
            candidates=self.candidates,
            measures=[one.measure for one in self.distributions],
        )
