"""State of a migration: the new scheme has a prefix of its own, and the ``_meta`` of this prefix holds the phase."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from es_neardupe.errors import SettingsError

_SUFFIX = "_next"
_KEY = "migration"


class Phase(str, Enum):
    """Phase of a migration, in this order."""

    PREPARING = "preparing"
    """The new fields are written under their own prefix. Commands use the old ones."""
    SWITCHING = "switching"
    """Commands use the new fields under their own prefix, while these are copied to the old one."""
    CLEANING = "cleaning"
    """Commands use the new scheme under the old prefix. The fields under the other prefix are removed."""


@dataclass(frozen=True)
class Migration:
    """State stored in the ``_meta`` of the new prefix, with its settings."""

    phase: Phase
    evidence: bool = False
    """Whether evidence is stored for the pairs of the new keys."""

    def to_meta(self) -> dict[str, Any]:
        """The JSON object to add to the settings."""
        return {_KEY: {"phase": self.phase.value, "evidence": self.evidence}}


def next_prefix(prefix: str) -> str:
    """The prefix under which a migration prepares the fields of the new scheme."""
    return prefix + _SUFFIX


def replaced_prefix(prefix: str) -> str:
    """The prefix whose keys are replaced by those under a `next_prefix`; any other prefix unchanged."""
    return prefix.removesuffix(_SUFFIX)


def migration_of(mapping: Mapping[str, Any], prefix: str) -> Migration | None:
    """The migration that replaces the keys under a prefix; None if there is none. Raises `SettingsError`."""
    return _read(mapping, next_prefix(prefix))


def phase_of(mappings: Iterable[Mapping[str, Any]], prefix: str) -> Phase | None:
    """The phase of several indices together. They can differ, since it is written index by index."""
    phases = {one.phase for mapping in mappings if (one := migration_of(mapping, prefix)) is not None}
    order = (Phase.SWITCHING, Phase.PREPARING, Phase.CLEANING)
    return next((phase for phase in order if phase in phases), None)


def is_switching(mappings: Iterable[Mapping[str, Any]], prefix: str) -> bool:
    """Whether new fields are being copied to a prefix, so that its fields are of two schemes."""
    return phase_of(mappings, prefix) is Phase.SWITCHING


def inherited_prefix(mappings: Iterable[Mapping[str, Any]], prefix: str) -> str | None:
    """The prefix from which documents take their first group ids under this prefix: that of the keys to be replaced,
    while a migration is being prepared."""
    former = replaced_prefix(prefix)
    return former if phase_of(mappings, former) is Phase.PREPARING and former != prefix else None


def _read(mapping: Mapping[str, Any], prefix: str) -> Migration | None:
    meta = mapping.get("_meta", {}).get(prefix)
    stored = meta.get(_KEY) if isinstance(meta, Mapping) else None
    if stored is None:
        return None
    try:
        return Migration(Phase(stored["phase"]), stored["evidence"] is True)
    except (KeyError, TypeError, ValueError) as error:
        raise SettingsError(
            f"The stored state of a migration under _meta.{prefix} cannot be read ({error!r}): was it edited by hand?"
        ) from error
