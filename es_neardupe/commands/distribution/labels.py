"""Labelled pairs: precision, recall and F of each measure and threshold, and the best threshold by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from es_neardupe.commands.distribution.report import CrossValidation, LabelCounts, LabelLevel, LabelsReport
from es_neardupe.errors import InputError
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import Flags, Floats, Positions
from es_neardupe.keys.bands import share_keys
from es_neardupe.progress import Progress, silent
from es_neardupe.readers.files import FileRecord, check_paths, read_records
from es_neardupe.records import FingerprintColumns
from es_neardupe.similarity.measure import Measure, measure_name
from es_neardupe.verification.current_texts import CurrentDocuments, PairComparer
from es_neardupe.wording import counted

_LABELS = {"same": True, "true": True, "1": True, "different": False, "false": False, "0": False}

_FOLDS = 10
_MIN_OF_EACH = 2

_Name = tuple[str | None, str]
"""Index, if the file names it, and id of a document."""


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A pair of the file. ``place``: file and line."""

    place: str
    a: _Name
    b: _Name
    same: bool


def read_labels(file: str) -> Labels:
    """The pairs of a file of JSON lines, CSV or TSV with ``a``, ``b`` and ``label``.

    Raises `InputError` for the first line that is no labelled pair, or names a pair of an earlier line.
    """
    check_paths([file])
    if Path(file).is_dir():
        raise InputError(f"{file} is a folder: labelled pairs are JSON lines, CSV or TSV.")
    found: dict[frozenset[_Name], LabelledPair] = {}
    for record in read_records([file], text_field=""):
        if not isinstance(record, FileRecord):
            raise InputError(f"{record.place}: {record.why}.")
        pair = _labelled(record)
        earlier = found.setdefault(frozenset((pair.a, pair.b)), pair)
        if earlier is not pair:
            raise InputError(f"{pair.place}: the pair was already labelled at {earlier.place}.")
    return Labels(file, tuple(found.values()))


def _labelled(record: FileRecord) -> LabelledPair:
    place, source = record.place, record.source
    if missing := [name for name in ("a", "b", "label") if name not in source]:
        raise InputError(f"{place}: a labelled pair needs a, b and label, but has no {missing[0]}.")
    a, b = (_name(source[side]) for side in "ab")
    if a is None or b is None:
        wrong = "a" if a is None else "b"
        raise InputError(f'{place}: {wrong} is neither an id nor {{"index": ..., "id": ...}}.')
    if a == b:
        raise InputError(f"{place}: a and b are the same document.")
    label = source["label"]
    same = _LABELS.get(str(label).lower()) if isinstance(label, str | int) else None
    if same is None:
        raise InputError(f"{place}: the label is none of {', '.join(_LABELS)}.")
    return LabelledPair(place, a, b, same)


def _name(value: Any) -> _Name | None:
    """Index and id of a document; None for anything else."""
    index = None
    if isinstance(value, Mapping):
        if value.keys() != {"index", "id"} or not isinstance(value["index"], str):
            return None
        index, value = value["index"], value["id"]
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return None
    return index, str(value)


@dataclass(frozen=True)
class Labels:
    """The labelled pairs of a file."""

    file: str
    pairs: tuple[LabelledPair, ...]

    def compared(
        self,
        index: Index,
        corpus: FingerprintColumns,
        documents: CurrentDocuments,
        measures: Sequence[Measure],
        progress: Progress = silent,
    ) -> ComparedLabels:
        """Compare the pairs by their current texts, whether they are candidates or not.

        Raises `InputError` for an id that is in several indices, and if too few pairs of either label can be compared.
        """
        rows = _rows_of(self.pairs, corpus)
        known = [(*both, pair.same) for pair in self.pairs if (both := _both(pair, rows)) is not None]
        left, right = (np.array([one[side] for one in known], np.intp) for side in (0, 1))
        comparer = PairComparer(documents, {f"labelled pairs, {measure_name(one)}": one for one in measures})
        similarity = comparer.compare(left, right, progress).similarity
        unchanged = comparer.exist(left) & comparer.exist(right)
        same = np.array([one[2] for one in known], np.bool_)[unchanged]
        counts = LabelCounts(
            file=self.file,
            pairs=len(self.pairs),
            same=int(same.sum()),
            different=int((~same).sum()),
            missing=len(self.pairs) - len(known),
            changed=int((~unchanged).sum()),
        )
        _check_enough(counts)
        keys, agree = corpus.keys, index.settings.scheme.agree
        found = share_keys(keys[left], keys[right], agree)[unchanged]
        return ComparedLabels(counts, left[unchanged], right[unchanged], same, found, similarity[:, unchanged])


def _rows_of(pairs: Sequence[LabelledPair], corpus: FingerprintColumns) -> dict[_Name, list[int]]:
    """The rows of the labelled documents, by index and id and by id alone."""
    wanted = {id for pair in pairs for _, id in (pair.a, pair.b)}
    rows: dict[_Name, list[int]] = {}
    for row, (index, id, _) in enumerate(corpus.references):
        if id in wanted:
            for name in ((index, id), (None, id)):
                rows.setdefault(name, []).append(row)
    return rows


def _both(pair: LabelledPair, rows: Mapping[_Name, Sequence[int]]) -> tuple[int, int] | None:
    """The rows of both documents of a pair; None if one is missing."""
    found = [rows.get(name, ()) for name in (pair.a, pair.b)]
    for (_, id), some in zip((pair.a, pair.b), found, strict=True):
        if len(some) > 1:
            raise InputError(
                f'{pair.place}: id {id!r} is in several indices. Write {{"index": ..., "id": ...}}, in JSON lines.'
            )
    if not all(found):
        return None
    if found[0] == found[1]:
        raise InputError(f"{pair.place}: a and b are the same document.")
    return found[0][0], found[1][0]


def _check_enough(counts: LabelCounts) -> None:
    if min(counts.same, counts.different) < _MIN_OF_EACH:
        raise InputError(
            f"{counts.file} has {counted(counts.same, 'pair labelled same', 'pairs labelled same')} and "
            f"{counts.different:,} labelled different that can be compared ({counts.missing:,} "
            f"{'has' if counts.missing == 1 else 'have'} a missing document, {counts.changed} a changed one), but a "
            f"threshold needs at least {_MIN_OF_EACH} of each."
        )


@dataclass(frozen=True)
class ComparedLabels:
    """Similarities of p labelled pairs by m measures."""

    counts: LabelCounts
    left: Positions
    right: Positions
    """The rows of both documents; shape (p,)."""
    same: Flags
    """Shape (p,)."""
    found: Flags
    """Whether the keys make the pair a candidate; shape (p,)."""
    similarity: Floats
    """Shape (m, p)."""

    def results(self, measure: int, thresholds: Sequence[float], seed: int) -> LabelsReport:
        """The results of one of the measures."""
        similarity = self.similarity[measure]
        best, above = best_threshold(similarity, self.same)
        return LabelsReport(
            levels=tuple(_level(one, similarity, self.same, self.found) for one in thresholds),
            best=_level(best, similarity, self.same, self.found),
            above=above,
            validated=cross_validated(similarity, self.same, seed),
        )


def _level(threshold: float, similarity: Floats, same: Flags, found: Flags) -> LabelLevel:
    reached = similarity >= threshold
    return LabelLevel(
        threshold=threshold,
        same=int((reached & same).sum()),
        different=int((reached & ~same).sum()),
        found=int((reached & same & found).sum()),
        **_rates(int((reached & same).sum()), int(reached.sum()), int(same.sum())),
    )


def _rates(hits: int, reached: int, same: int) -> dict[str, Any]:
    """Precision (None if no pair is reached), recall, and their harmonic mean."""
    return {
        "precision": hits / reached if reached else None,
        "recall": hits / same,
        "f": 2 * hits / (reached + same),
    }


def best_threshold(similarity: Floats, same: Flags) -> tuple[float, float]:
    """The threshold with the highest F of these pairs, and the highest similarity below it.

    All thresholds above the second value, up to the lowest similarity that reaches the first, have the same result. The
    middle of this range is chosen, rounded to two decimals, or to more where necessary. Of several ranges with the same
    F it is the highest.
    """
    values, place = np.unique(similarity, return_inverse=True)
    place = place.reshape(-1)
    reached = np.bincount(place, minlength=len(values))[::-1].cumsum()[::-1]
    hits = np.bincount(place[same], minlength=len(values))[::-1].cumsum()[::-1]
    f = 2 * hits / (reached + int(same.sum()))
    f[values == 0] = -1  # no threshold is 0
    best = len(f) - 1 - int(np.argmax(f[::-1]))
    if values[best] == 0:
        return 1.0, 0.0
    top, below = float(values[best]), float(values[best - 1]) if best else 0.0
    rounded = (round((top + below) / 2, digits) for digits in range(2, 18))
    return next((one for one in rounded if below < one <= top), top), below


def cross_validated(similarity: Floats, same: Flags, seed: int) -> CrossValidation:
    """The result of choosing the threshold by other pairs than those it is applied to.

    The pairs are divided at random into folds with the same share of both labels. For each fold, the best threshold of
    all others is applied to it. The rates are those of the decisions of all folds together, as recommended by Forman &
    Scholz, Apples-to-apples in cross-validation studies, 2010: a mean of the F of folds is biased.
    """
    folds = min(_FOLDS, int(same.sum()), int((~same).sum()))
    fold = np.empty(len(same), np.intp)
    chance = np.random.default_rng(seed)
    for label in (True, False):
        some = np.flatnonzero(same == label)
        fold[chance.permutation(some)] = np.arange(len(some)) % folds
    decided = np.zeros(len(same), np.bool_)
    thresholds = []
    for k in range(folds):
        test = fold == k
        threshold, _ = best_threshold(similarity[~test], same[~test])
        decided[test] = similarity[test] >= threshold
        thresholds.append(threshold)
    each = [_rates_of(decided[fold == k], same[fold == k])["f"] for k in range(folds)]
    return CrossValidation(
        folds=folds,
        **_rates_of(decided, same),
        lowest_f=min(each),
        highest_f=max(each),
        lowest_threshold=min(thresholds),
        highest_threshold=max(thresholds),
    )


def _rates_of(decided: Flags, same: Flags) -> dict[str, Any]:
    return _rates(int((decided & same).sum()), int(decided.sum()), int(same.sum()))
