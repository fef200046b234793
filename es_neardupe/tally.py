"""What became of writes, counted."""

from __future__ import annotations

from collections import Counter

from es_neardupe.records import Outcome

__all__ = ["Tally"]

_MOST_REASONS = 5


class Tally:
    """Counts of outcomes by kind, and the reasons of refusals."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """``written``, ``deleted``, ``refused``, and whatever else is counted along."""
        self._reasons: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        """Count an outcome. Conflicts are not for here: they are settled, or counted under a name of their own."""
        if outcome.done:
            self.counts["written"] += 1
        elif outcome.gone:
            self.counts["deleted"] += 1
        else:
            self.counts["refused"] += 1
            self._reasons[f"{outcome.type}: {outcome.reason}"] += 1

    def note(self, reason: str) -> None:
        """Keep a reason of our own, of what was not even sent."""
        self._reasons[reason] += 1

    @property
    def refusals(self) -> tuple[str, ...]:
        """The most frequent reasons in the server's words."""
        return tuple(reason for reason, _ in self._reasons.most_common(_MOST_REASONS))
