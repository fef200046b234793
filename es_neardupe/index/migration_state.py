"""A change of scheme that is under way: the new one has a prefix of its own, whose ``_meta`` says how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from es_neardupe.errors import SettingsError

__all__ = [
    "Migration",
    "Phase",
    "inherited_prefix",
    "is_switching",
    "migration_of",
    "next_prefix",
    "phase_of",
    "replaced_prefix",
]

_SUFFIX = "_next"
_KEY = "migration"


class Phase(str, Enum):
    """How far a migration is, in this order."""

    PREPARING = "preparing"
    """The new fields are made beside the old ones, which serve."""
    SWITCHING = "switching"
    """The new fields serve from their own prefix, while each document gets them under the old one."""
    CLEANING = "cleaning"
    """The new scheme serves under the old prefix; what is left under the other one is taken away."""


@dataclass(frozen=True)
class Migration:
    """What the ``_meta`` of the new prefix says besides its settings."""

    phase: Phase
    evidence: bool = False
    """Whether evidence of the new keys is kept."""

    def to_meta(self) -> dict[str, Any]:
        """What is stored beside the settings."""
        return {_KEY: {"phase": self.phase.value, "evidence": self.evidence}}


def next_prefix(prefix: str) -> str:
    """Where the fields of the new scheme are made."""
    return prefix + _SUFFIX


def replaced_prefix(prefix: str) -> str:
    """The prefix of the keys that those of `next_prefix` replace; any other prefix as it is."""
    return prefix.removesuffix(_SUFFIX)


def migration_of(mapping: Mapping[str, Any], prefix: str) -> Migration | None:
    """The migration that replaces the keys under a prefix; None if there is none. Raises `SettingsError`."""
    return _read(mapping, next_prefix(prefix))


def phase_of(mappings: Iterable[Mapping[str, Any]], prefix: str) -> Phase | None:
    """The phase of several indices together: one may have been told of it before the others were."""
    found = {one.phase for mapping in mappings if (one := migration_of(mapping, prefix)) is not None}
    order = (Phase.SWITCHING, Phase.PREPARING, Phase.CLEANING)
    return next((phase for phase in order if phase in found), None)


def is_switching(mappings: Iterable[Mapping[str, Any]], prefix: str) -> bool:
    """Whether documents are on their way to a prefix, so that its fields are of two schemes."""
    return phase_of(mappings, prefix) is Phase.SWITCHING


def inherited_prefix(mappings: Iterable[Mapping[str, Any]], prefix: str) -> str | None:
    """The prefix whose group ids the documents of this one begin with: that of the keys which these will replace."""
    former = replaced_prefix(prefix)
    return former if phase_of(mappings, former) is Phase.PREPARING and former != prefix else None


def _read(mapping: Mapping[str, Any], prefix: str) -> Migration | None:
    meta = mapping.get("_meta", {}).get(prefix)
    found = meta.get(_KEY) if isinstance(meta, Mapping) else None
    if found is None:
        return None
    try:
        return Migration(Phase(found["phase"]), found["evidence"] is True)
    except (KeyError, TypeError, ValueError) as error:
        raise SettingsError(
            f"The stored state of a migration under _meta.{prefix} cannot be read ({error!r}): was it edited by hand?"
        ) from error
