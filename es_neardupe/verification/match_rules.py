"""Match rules: the options that decide whether a pair is a match. Stored with each run, and read without the modules
that compare texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from es_neardupe.errors import SettingsError
from es_neardupe.index.settings import Settings
from es_neardupe.options import DECIDING, FactKind, Matching, MeasureName
from es_neardupe.similarity.facts.kinds import parse_facts

FACTS_OF_LOGS = (FactKind.NUMBER.value, FactKind.NEGATION.value)
"""What decides in log lines of which the variables are masked: the numbers of places in source code, the status of
HTTP, and whether something ``opened`` or ``closed``."""


@dataclass(frozen=True)
class MatchRules:
    """The options that decide whether a pair is a match. `of` gives the defaults of an index."""

    measure: MeasureName = MeasureName.RESEMBLANCE
    matching: Matching | None = None
    """Default: literal."""
    passage: int | None = None
    """Default: the words of a shingle of the index; 1 with shingles of characters."""
    min: float | None = None
    """Default: the threshold of the index by this measure."""
    max: float = 1.0
    features: tuple[str, ...] = ()
    ngram: int | None = None
    """Default: 1."""
    whitespace: bool = False
    ignore_common: float | Literal["auto"] | None = None
    """Ignore shingles that more than this share of the documents have, or those of boilerplate that is found."""
    facts: tuple[str, ...] = ()
    """Kinds of facts that must not differ, in the order of `FactKind`."""

    @classmethod
    def of(cls, settings: Settings) -> MatchRules:
        """The defaults of an index: the measure that its threshold was given by; and if all numbers are masked but
        those of places in source code, `FACTS_OF_LOGS` decide."""
        are_logs = settings.scheme.preparation.keeps_only_places
        return cls(settings.measure, facts=FACTS_OF_LOGS if are_logs else ())

    def having(self, given: Mapping[str, object]) -> MatchRules:
        """A copy with those of the given options that are not None; an option of something else is ignored. Raises
        `SettingsError` for unknown names."""
        changes: dict[str, Any] = {
            name: _READ[name](value) if name in _READ else value
            for name, value in given.items()
            if value is not None and name in _OPTIONS
        }
        return replace(self, **changes)

    @property
    def by_resemblance(self) -> bool:
        """Whether the measure is the resemblance that the keys estimate."""
        return self.measure is MeasureName.RESEMBLANCE and not self.features and self.ignore_common is None


@dataclass(frozen=True)
class WeightsUsed:
    """The sample that the feature weights were computed from."""

    documents: int
    at: str


def _measure(name: str) -> MeasureName:
    """The measure of this name, which may be one. Raises `SettingsError` for an unknown one."""
    from es_neardupe.similarity.measure import named_measure

    return named_measure(name, DECIDING)


def _features(names: Sequence[str]) -> tuple[str, ...]:
    """The features of the values of an option. Raises `SettingsError` for an unknown one."""
    from es_neardupe.similarity.features import parse_all

    parse_all(names)
    return tuple(names)


def _kinds(names: Sequence[str]) -> tuple[str, ...]:
    """The kinds of facts of the values of an option."""
    chosen = parse_facts(names) if names else frozenset()
    return tuple(kind.value for kind in FactKind if kind in chosen)


def matching_named(name: str) -> Matching:
    """The matching of this name, which may be one. Raises `SettingsError` for an unknown one."""
    try:
        return Matching(name)
    except ValueError:
        known = ", ".join(one.value for one in Matching)
        raise SettingsError(f"Unknown matching {str(name)!r}. Known: {known}.") from None


_READ: Mapping[str, Callable[[Any], Any]] = {
    "measure": _measure,
    "matching": matching_named,
    "features": _features,
    "facts": _kinds,
}
"""Option -> what makes its value of what was given; any other value is as it was given."""

_OPTIONS = {one.name for one in fields(MatchRules)}
