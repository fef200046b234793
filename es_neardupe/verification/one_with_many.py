"""Comparison of one text with many others of the same cluster, with all of its texts in memory."""

from __future__ import annotations

import numpy as np

from es_neardupe.keys.arrays import Floats, Positions
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity.formulas import FeatureTable
from es_neardupe.verification.current_texts import PairComparer


class OneWithMany:
    """The prepared texts of n classes, read once. Made for sets of features, and slow for other measures."""

    def __init__(self, comparer: PairComparer, classes: Positions, progress: Progress = silent) -> None:
        """``comparer`` has one measure."""
        (self._measure,) = comparer.measures.values()
        self._texts, self._exists = comparer.read_classes(classes, progress)
        self._filled = np.array([len(one) > 0 for one in self._texts], np.bool_)
        self._table = FeatureTable(self._texts) if self._measure.at_once else None
        if self._table is not None:
            self._texts = []

    def similarities(self, one: int, others: Positions) -> Floats:
        """The similarity of one class to others, by their places; float64 of the same length as ``others``. NaN if a
        text was changed or deleted; 0 if there is nothing to compare in a text."""
        if self._table is not None:
            similarity = self._table.resemblances(one, others)
        else:
            similarity = self._measure.scores(self._texts, np.full(len(others), one), others)
        similarity[~(self._filled[others] & self._filled[one])] = 0
        similarity[~(self._exists[others] & self._exists[one])] = np.nan
        return similarity
