"""Matches of writes, and the report of their comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.options import OnMatch

_KEPT = 100_000
"""Maximum number of matches that a report keeps."""


@dataclass(frozen=True)
class OtherMatch:
    """Another document that matches an action."""

    index: str
    id: str
    similarity: float


@dataclass(frozen=True)
class Match:
    """The document that is most similar to that of an action."""

    index: str
    id: str
    similarity: float
    measure: str
    copy: bool
    """Whether both texts have the same words, recognised by their content hashes."""
    group: str | None
    """The group that ``mark`` puts the document of the action into. None if it is not similar enough to the principal
    of any group, and with ``skip`` and ``pass``."""
    others: tuple[OtherMatch, ...] = ()
    """All other matches, most similar first. Of texts with the same words, only one is compared."""


@dataclass(frozen=True)
class MatchedAction:
    """An action whose document matches another one."""

    index: str
    id: str
    match: Match
    done: str
    """``marked``; ``apart``: to be marked, but not similar enough to the principal of any group; ``skipped``; or
    ``passed``."""


@dataclass
class ScreenCounts:
    """Actions by their outcome: ``actions`` is the sum of all up to ``other_actions``.

    ``screened = unique + marked + apart + skipped + passed``.
    """

    actions: int = 0
    screened: int = 0
    """New documents that were compared with all others that share keys."""
    known: int = 0
    """Documents that are in the index already, which are written as they are."""
    repeated: int = 0
    """Actions whose document is written again, or deleted, by a later action of the same piece of 256."""
    without_id: int = 0
    without_keys: int = 0
    """Documents that are empty or too large, or whose text is not a string."""
    other_indices: int = 0
    other_actions: int = 0
    """Updates, deletions, and documents with a relation whose documents get no keys."""
    unique: int = 0
    """Documents that match no other."""
    marked: int = 0
    apart: int = 0
    skipped: int = 0
    passed: int = 0
    copies: int = 0
    """Matches with the same words, recognised by their content hashes."""
    repeated_skipped: int = 0
    """``repeated`` actions that were not yielded either, because the last one with their id was skipped."""
    not_compared: int = 0
    """Documents that share keys with an action and were not compared: those beyond ``max_candidates``."""
    unsure: int = 0
    """Documents among ``unique`` that share keys with documents that were not compared: they may match one of these."""
    forgotten: int = 0
    """Documents that were no longer remembered before a search could see them: later actions may have missed them."""

    def take_back(self, skipped: MatchedAction) -> None:
        """Do not count an action that was skipped, which is compared once more."""
        self.actions -= 1
        self.screened -= 1
        self.skipped -= 1
        self.copies -= skipped.match.copy


class ScreenReport:
    """Counts and matches of `screened`; complete when the last action was yielded."""

    counts: ScreenCounts
    matches: list[MatchedAction]

    def __init__(self, note: Callable[[MatchedAction], None] | None = None) -> None:
        """``note`` is called with each match. By default, the first 100,000 are kept in ``matches``."""
        self.counts = ScreenCounts()
        self.matches = []
        self.note = self._keep if note is None else note

    def _keep(self, matched: MatchedAction) -> None:
        if len(self.matches) < _KEPT:
            self.matches.append(matched)

    def __repr__(self) -> str:
        counts = self.counts
        return f"ScreenReport(actions={counts.actions}, screened={counts.screened}, unique={counts.unique})"


WhatToDo = Callable[[Mapping[str, Any], Match], OnMatch | str]
"""Decides for one action and its match: ``mark``, ``skip`` or ``pass``."""
