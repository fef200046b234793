"""The rules of one run of ``group``, and the form in which the registry keeps them for the next run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.options import DECIDING
from es_neardupe.verification.criterion import MatchCriterion, MatchOptions, WeightsUsed

__all__ = ["RunRules", "decode_rules", "encode_rules"]


@dataclass(frozen=True)
class RunRules:
    """The rules as they were chosen (``match``, ``group``), and what they came to in an index."""

    version: Literal[1] = field(default=1, kw_only=True)
    match: MatchOptions
    group: GroupRules
    scheme: str
    measure: str
    """In words: ``jaccard (literal)``, for example."""
    weights: WeightsUsed | None
    min: float
    """``match.min``, or the threshold of the index."""

    @classmethod
    def of(cls, match: MatchOptions, group: GroupRules, wanted: MatchCriterion, scheme: str) -> RunRules:
        """The rules of a run in an index of this scheme."""
        return cls(match, group, scheme, wanted.measure.label, wanted.weights, wanted.min)

    @property
    def deciding(self) -> dict[str, object]:
        """All that decides the groups, by name: with the same values, groups stay as they are."""
        return {
            "scheme": self.scheme,
            "measure": self.measure,
            "weights": self.weights.at if self.weights else None,
            "min": self.min,
            "max": self.match.max,
            "max_bucket": self.group.max_bucket,
            "linkage": self.group.linkage.value,
            "principal": self.group.principal,
            "within": self.group.within,
            "window": self.group.window,
        }

    def __str__(self) -> str:
        """All rules in force, in one line."""
        named = {name: value for name, value in self.deciding.items() if value is not None and name != "scheme"}
        if self.match.min is None:
            named["min"] = f"{self.min} (the threshold of the index)"
        if self.match.ignore_common is not None:
            named["ignore_common"] = self.match.ignore_common
        return ", ".join(f"{name.replace('_', '-')} {value}" for name, value in named.items())


_RULES = TypeAdapter(RunRules)


def encode_rules(rules: RunRules) -> dict[str, Any]:
    """The rules as JSON; `decode_rules` reads them back."""
    encoded: dict[str, Any] = _RULES.dump_python(rules, mode="json")
    return encoded


def decode_rules(stored: object) -> RunRules:
    """Read what `encode_rules` wrote. Raises `ValueError` for anything else."""
    version = stored.get("version") if isinstance(stored, Mapping) else None
    if version != 1:
        raise ValueError(f"version {version!s:.20}, not 1")
    try:
        found = _RULES.validate_json(json.dumps(stored), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if encode_rules(found) != stored or found.match.measure not in DECIDING:
        raise ValueError("values that no run stores")
    return found
