"""Detection: the probability that the keys find pairs of a given similarity.

Keys are made for resemblance. By another measure, two texts can be very similar and have few shingles in common. The
probability then depends on how the texts differ and on their lengths, and is given for some typical cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, NamedTuple, TypeVar

from es_neardupe.candidates.unrelated import MANY
from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.settings import Settings
from es_neardupe.keys.scheme import Scheme, bands_for, mean_detection
from es_neardupe.keys.unit import Unit
from es_neardupe.options import BY_LENGTHS, PRESETS, SHORT, MeasureName
from es_neardupe.records import Fingerprint
from es_neardupe.similarity.measure import Measure
from es_neardupe.wording import counted

_RATIOS = (1, 2, 5)
_ONE_PASSAGE = "one passage"
_RESEMBLANCES = (0.8, 0.5, 0.2)
_BY_WORDS = ("strict", "reader")
"""The presets with shingles of words for texts of any length, those for longer texts first."""


@dataclass(frozen=True)
class DetectionCase:
    """Pairs of one shape that only just reach the minimum: no pair of this shape has a lower similarity that does."""

    shape: str
    """Such as ``one passage, 6 and 8 words``, or ``resemblance 0.5`` if the measure does not determine it."""
    resemblance: float
    """Resemblance of such a pair."""
    probability: float
    """Probability that such a pair is a candidate."""


_ALMOST_ALL = 0.985


@dataclass(frozen=True)
class Detection:
    """How surely the keys of an index find the pairs that are similar enough."""

    min: float
    """The least similarity of a match."""
    probability: float | None
    """Probability that a pair exactly ``min`` similar is a candidate; None if the measure does not determine it."""
    cases: tuple[DetectionCase, ...]
    """If ``probability`` is None, the probabilities for some kinds of pairs."""
    keys_made_for: bool
    """Whether the keys were made for such pairs: the measure of the index, or the resemblance, decides with its
    threshold or a higher minimum."""

    @classmethod
    def of(cls, settings: Settings, measure: Measure, minimum: float, length: TextLength) -> Detection:
        """For the keys of an index. ``length``: that of the shorter texts in the `cases`."""
        return cls(
            minimum,
            settings.scheme.detection(minimum) if measure.by_keys else None,
            detection_cases(measure, minimum, settings.scheme, length),
            _are_made_for(settings, measure, minimum),
        )

    @classmethod
    def in_index(cls, index: Index, measure: Measure, minimum: float) -> Detection:
        """For the keys of an opened index, and texts of their median length."""
        length = _median_length(index) if _by_order(measure) else TextLength(0, 0)
        return cls.of(index.settings, measure, minimum, length)

    @property
    def words(self) -> str:
        """How surely pairs that are at least ``min`` similar are found, in words; "" if almost all are. Results are
        called incomplete only if the keys were not made for such pairs: otherwise this was chosen with the keys."""
        if self.probability is not None and self.probability < _ALMOST_ALL:
            if self.keys_made_for:
                return (
                    f"Pairs exactly {self.min:g} similar become candidates with probability {self.probability:.3f}, "
                    f"more similar ones more often."
                )
            return (
                f"Results are incomplete: pairs exactly {self.min:g} similar become candidates with probability "
                f"{self.probability:.3f}, and the others are missed. To find more, migrate the index to a lower "
                f"threshold."
            )
        if missed := [one for one in self.cases if one.probability < _ALMOST_ALL]:
            shown = ", ".join(f"{one.probability:.3f} ({one.shape})" for one in missed)
            become = f"that only just reach {self.min:g} by this measure become candidates with probability {shown}"
            if self.keys_made_for:
                return f"Pairs {become}."
            return (
                f"Results are incomplete, because the keys are made for resemblance: pairs {become}, and the others "
                f"are missed."
            )
        return ""


class TextLength(NamedTuple):
    """The length of a text."""

    words: int
    features: int
    """Number of different shingles."""

    @classmethod
    def of(cls, fingerprint: Fingerprint) -> TextLength:
        """The length of a text with this fingerprint."""
        return cls(fingerprint.tokens, fingerprint.features)

    def width(self, scheme: Scheme) -> float:
        """Units of a shingle in a word: 1, or the mean number of characters."""
        return 1.0 if scheme.unit is Unit.WORD or not self.words else (self.features + scheme.shingle - 1) / self.words


def _are_made_for(settings: Settings, measure: Measure, minimum: float) -> bool:
    """See `Detection.keys_made_for`."""
    own = measure.name is settings.measure and not measure.sources and measure.ignored is None
    return (own or measure.by_keys) and minimum >= settings.threshold_of(measure.name)


def detection_cases(measure: Measure, minimum: float, scheme: Scheme, length: TextLength) -> tuple[DetectionCase, ...]:
    """If the similarity by the measure does not determine the probability of a candidate, the probabilities for typical
    pairs of a text of this ``length`` and an equally long or longer one; otherwise empty. Also empty if only exact
    copies can reach ``minimum``: they share all keys."""
    if measure.by_keys:
        return ()
    if _by_order(measure):
        shapes = list(_shapes(measure, minimum, scheme, length))
    else:
        shapes = [(f"resemblance {resemblance:g}", resemblance) for resemblance in _RESEMBLANCES]
    return tuple(DetectionCase(shape, value, scheme.detection(value)) for shape, value in shapes)


def _by_order(measure: Measure) -> bool:
    """Whether the measure compares words in order, so that lengths and common passages determine the resemblance."""
    return measure.aligned or measure.name is MeasureName.EDIT


def _median_length(index: Index) -> TextLength:
    """The median length of the documents that have any tokens, as the server estimates it; 0 without such."""
    found = index.documents.search(queries.median_lengths(index.fields))["aggregations"]
    return TextLength(*(round(found[name]["values"]["50.0"] or 0) for name in ("tokens", "features")))


_WORD = 5
"""Characters of a word, about."""

_MANY = 0.25
"""Share of the documents from which their lengths matter."""


@dataclass(frozen=True, kw_only=True)
class UnsuitedTexts:
    """Documents that are too short or too long for the keys of an index.

    Too short: if one word of such a text is changed, both texts are less similar than the threshold of the keys. Too
    long: different texts have phrases in common, and the keys, which are for short texts, find these too.
    """

    too: Literal["short", "long"]
    words: int
    """Texts of fewer words are too short, or texts of so many and more too long."""
    unsuited: int
    """Documents with such a text."""
    documents: int
    """Documents with any words."""
    threshold: float
    preset: str | None
    """The preset whose keys suit these texts; None if they are less than a quarter of the documents, or if none suits
    short and long ones."""


def least_words(shingle: int, unit: Unit, threshold: float) -> int:
    """The number of words of the shortest text that has at least this resemblance with a copy in which one word in the
    middle is another one."""
    changed, width = (shingle, 1) if unit is Unit.WORD else (shingle + _WORD - 1, _WORD)
    needed = math.ceil(changed * (1 + threshold) / (1 - threshold) - 1e-9)
    return math.ceil((needed + shingle - 1) / width)


def unsuited_texts(index: Index) -> UnsuitedTexts | None:
    """The documents whose length does not suit the keys of an index, as the server counts them. None if the keys suit
    all lengths."""
    limit = _limit(index.settings)
    if limit is None:
        return None
    name = index.fields.tokens
    limits = {limit.words, *_LEAST.values()}
    below = {f"below_{words}": {"range": {name: {"gte": 1, "lt": words}}} for words in sorted(limits)}
    found = index.documents.counts(shard=None, documents={"range": {name: {"gte": 1}}}, **below)
    return _unsuited(index.settings, limit, lambda words: found[f"below_{words}"], found["documents"])


def unsuited_lengths(settings: Settings, lengths: Mapping[int, int]) -> UnsuitedTexts | None:
    """The same for some texts. ``lengths``: number of words -> texts."""
    limit = _limit(settings)
    if limit is None:
        return None

    def below(limit: int) -> int:
        return sum(texts for words, texts in lengths.items() if 0 < words < limit)

    return _unsuited(settings, limit, below, sum(lengths.values()) - lengths.get(0, 0))


class _Limit(NamedTuple):
    too: Literal["short", "long"]
    words: int


_LEAST = {name: least_words(PRESETS[name]["shingle"], Unit.WORD, PRESETS[name]["threshold"]) for name in _BY_WORDS}
"""Preset -> the least words of the texts that it suits."""


def _limit(settings: Settings) -> _Limit | None:
    """Which texts do not suit the keys; None if they are for exact copies, for the lengths of the texts, or for log
    lines, which may be short."""
    if settings.measure in BY_LENGTHS:
        small = settings.unit is not Unit.WORD or settings.shingle <= PRESETS["short"]["shingle"]
        return _Limit("long", SHORT) if small else None
    are_for_logs = settings.shingle <= PRESETS["logs"]["shingle"] and settings.scheme.preparation.keeps_only_places
    if settings.threshold == 1 or are_for_logs:
        return None
    return _Limit("short", least_words(settings.shingle, settings.unit, settings.threshold))


def _unsuited(settings: Settings, limit: _Limit, below: Callable[[int], int], documents: int) -> UnsuitedTexts:
    """``below``: the number of documents with fewer words than a limit."""
    long, many = limit.too == "long", _MANY * documents
    unsuited = documents - below(limit.words) if long else below(limit.words)
    suited = (name for name, words in _LEAST.items() if (long or words < limit.words) and below(words) < many)
    return UnsuitedTexts(
        too=limit.too,
        words=limit.words,
        unsuited=unsuited,
        documents=documents,
        threshold=settings.threshold,
        preset=next(suited, None if long else "short") if unsuited and unsuited >= many else None,
    )


def _shapes(measure: Measure, minimum: float, scheme: Scheme, length: TextLength) -> Iterator[tuple[str, float]]:
    """Pairs of texts without repeated words that have as few common words as ``minimum`` allows, and their resemblance.

    First with one common passage. If a longer text is too long to reach ``minimum`` even if it contains all of the
    shorter one, the longest that does takes its place. Then equally long texts with single words changed, evenly
    spread: so they have the fewest common shingles.
    """
    words, w = length.words, measure.passage
    width = length.width(scheme)
    longest = math.inf if measure.name is MeasureName.CONTAINMENT else _floor(words / minimum)
    for longer in dict.fromkeys(int(min(ratio * words, longest)) for ratio in _RATIOS):
        if common := _common(measure, minimum, w, words, longer):
            yield f"{_ONE_PASSAGE}, {words} and {longer} words", _resemblance(words, longer, [common], scheme, width)
    if common := _common(measure, minimum, w, words, words):
        passages = words - common + 1
        if measure.aligned:  # ignores passages of fewer than w words
            passages = min(passages, common // w)
        sizes = [(common + k) // passages for k in range(passages)]
        yield f"changes throughout, {words} and {words} words", _resemblance(words, words, sizes, scheme, width)


def _common(measure: Measure, minimum: float, w: int, shorter: int, longer: int) -> int:
    """C: the lowest number of common words with which texts of these lengths reach ``minimum``; 0 if none does."""
    wanted = {
        MeasureName.JACCARD: minimum * (shorter + longer) / (1 + minimum),
        MeasureName.CONTAINMENT: minimum * shorter,
    }.get(measure.name, minimum * longer)
    common = max(-_floor(-wanted), w if measure.aligned else 1)
    return common if common <= shorter else 0


def _resemblance(shorter: int, longer: int, passages: Sequence[int], scheme: Scheme, width: float) -> float:
    """The resemblance of texts of so many words with common passages of so many.

    With character shingles, each word has ``width`` characters.
    """
    if sum(passages) == longer:
        return 1.0
    shared = sum(max(size * width - scheme.shingle + 1, 0) for size in passages)
    both = sum(max(size * width - scheme.shingle + 1, 1) for size in (shorter, longer))
    return min(shared / (both - shared), 1.0)


def _floor(number: float) -> int:
    """The largest whole number up to a number that was computed with rounding errors."""
    return math.floor(number + 1e-9)


def default_lengths(settings: Settings) -> list[TextLength]:
    """Assumed lengths of the texts of an empty index: 3 to 20 words, each as frequent, of 5 letters."""
    shingle, characters = settings.shingle, settings.unit is not Unit.WORD
    return [TextLength(words, max((5 * words if characters else words) - shingle + 1, 1)) for words in range(3, 21)]


class Changes(str, Enum):
    """Where two texts differ."""

    IN_ONE_PLACE = "in one place"
    """They have one common passage."""
    THROUGHOUT = "throughout"
    """Single words are changed, evenly spread, so that the fewest shingles are common; or in one place, if that leaves
    fewer."""


@dataclass(frozen=True)
class BandsByLengths:
    """How well bands find the pairs that only just reach a minimum, in texts of the lengths of an index."""

    measure: MeasureName
    min: float
    """The threshold, by this measure and literal matching."""
    shingle: int
    unit: Unit
    documents: int
    """Random documents with words that were read; 0: default lengths were assumed."""
    words: tuple[int, int, int]
    """Words in their texts: minimum, median, maximum."""
    only_copies: int
    """Texts so short that only an exact copy reaches ``min``. Exact copies are always found."""
    resemblance: tuple[float, float, float]
    """Resemblance of the least similar shape of such pairs (`DetectionCase`), for each other text: minimum, median,
    maximum."""
    changes: Changes
    """The changes that the bands are chosen for, and that ``resemblance`` is of."""
    detection: float
    """Mean probability that such a pair is a candidate."""
    detection_by_changes: Mapping[str, float]
    """The same for changes of both kinds."""


def settings_by_lengths(settings: Settings, measure: MeasureName, lengths: Sequence[TextLength]) -> Settings:
    """The settings with the bands that find, on average over these texts, the share ``detection`` of the pairs exactly
    at ``threshold`` by ``measure``, which becomes the one that decides a match; and with the lowest resemblance in
    thousandths that they find as often as the new threshold.

    If bands for changes throughout would make unrelated texts meet, as those of one row do, they are chosen for changes
    in one place. Raises `SettingsError` if no bands find these.
    """
    chosen = None
    for changes in (Changes.THROUGHOUT, Changes.IN_ONE_PLACE):
        similarities = _least_resemblances(settings, measure, lengths, changes) or [1.0]
        chosen = bands_for(similarities, settings.detection, settings.permutations)
        if chosen is not None and not _meet_by_chance(*chosen):
            break
    if chosen is None:
        raise SettingsError(
            f"{counted(settings.permutations, 'permutation')} cannot find pairs at {settings.threshold:g} by "
            f"{measure.value} with probability {settings.detection:g}: use shorter shingles, a higher threshold or "
            f"more permutations."
        )
    bands, rows = chosen
    threshold = next(k / 1000 for k in range(1, 1001) if mean_detection([k / 1000], bands, rows) >= settings.detection)
    return replace(settings, threshold=threshold, bands=bands, rows=rows, measure=measure, min=settings.threshold)


def bands_by_lengths(
    settings: Settings, measure: MeasureName, minimum: float, lengths: Sequence[TextLength], documents: int
) -> BandsByLengths:
    """How often the bands of these settings find pairs exactly at ``minimum`` by ``measure``."""
    given = replace(settings, threshold=minimum)
    every = {changes: _least_resemblances(given, measure, lengths, changes) for changes in Changes}
    found = {
        changes: mean_detection(least or [1.0], settings.scheme.bands, settings.scheme.rows)
        for changes, least in every.items()
    }
    wanted = found[Changes.THROUGHOUT] >= settings.detection
    changes = Changes.THROUGHOUT if wanted else Changes.IN_ONE_PLACE
    least = every[changes]
    return BandsByLengths(
        measure,
        minimum,
        settings.shingle,
        settings.unit,
        documents,
        _spread([one.words for one in lengths]),
        len(lengths) - len(least),
        _spread(least or [1.0]),
        changes,
        found[changes],
        {one.value: share for one, share in found.items()},
    )


def _meet_by_chance(bands: int, rows: int) -> bool:
    """Whether texts without a common shingle become candidates too often."""
    return 1e6 * mean_detection([1 / 256], bands, rows) > MANY


def _least_resemblances(
    settings: Settings, measure: MeasureName, lengths: Sequence[TextLength], changes: Changes
) -> list[float]:
    """For each text the lowest resemblance of the shapes of pairs exactly at the threshold by ``measure``, with these
    changes. Texts that only exact copies reach are left out."""
    at_threshold = Measure(measure, shingle=settings.shingle, unit=settings.unit)
    shapes = (list(_shapes(at_threshold, settings.threshold, settings.scheme, one)) for one in lengths)
    chosen = (
        [value for shape, value in one if changes is Changes.THROUGHOUT or shape.startswith(_ONE_PASSAGE)]
        for one in shapes
    )
    return [least for one in chosen if (least := min(one, default=1.0)) < 1]


_Number = TypeVar("_Number", int, float)


def _spread(numbers: Sequence[_Number]) -> tuple[_Number, _Number, _Number]:
    """Minimum, lower median and maximum."""
    ordered = sorted(numbers)
    return ordered[0], ordered[(len(ordered) - 1) // 2], ordered[-1]
