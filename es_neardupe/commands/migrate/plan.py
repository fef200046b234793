"""What a migration starts from: where it stands, and to which settings it leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_neardupe.commands.init import init
from es_neardupe.errors import IndexUnusable, NotInitialised, SchemeMismatch, SettingsError
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import Migration, Phase, migration_of, next_prefix, phase_of, replaced_prefix
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage import settings_mappings
from es_neardupe.index.target import stored_settings

__all__ = ["MigrationOptions", "MigrationPlan", "mark", "open_plan"]

_CHOICE = ("threshold", "detection", "permutations", "bands", "rows", "agree")
"""Options that decide the bands: with any of them, these are chosen anew."""


@dataclass(frozen=True)
class MigrationOptions:
    """The options as they were given; None: as it is."""

    fields: Sequence[str]
    preset: str | None
    numbers: Mapping[str, Any]
    """Options of `Settings` by their names."""
    sample_keys: int | None
    evidence: bool = False

    @property
    def something(self) -> bool:
        """Whether settings were given at all."""
        return bool(self.fields or self.preset or self.sample_keys or self._given)

    @property
    def _given(self) -> dict[str, Any]:
        return {name: value for name, value in self.numbers.items() if value is not None}

    def settings(self, old: Settings, prefix: str) -> Settings:
        """The new settings: what was not given stays, but for bands that do not fit. Raises `SettingsError`."""
        given, fields = self._given, tuple(self.fields) or old.fields
        stays: dict[str, Any] = {"sample_mod": old.sample_mod, "relations": old.relations}
        if self.preset is not None:
            return Settings.chosen(fields, preset=self.preset, **{**stays, **given}, prefix=prefix)
        stays |= {name: getattr(old, name) for name in ("threshold", "detection", "shingle", "permutations")}
        if not given.keys() & set(_CHOICE):
            stays |= {name: getattr(old, name) for name in ("bands", "rows", "agree")}
        return Settings(fields, **{**stays, **given}, prefix=prefix)


@dataclass(frozen=True)
class MigrationPlan:
    """Where a migration stands."""

    phase: Phase | None
    """None: it has not begun."""
    old: Index
    """As it is served; from the switch on, that of the new keys."""
    settings: Settings
    """Those to come, under the prefix of the new keys."""
    evidence: bool
    """Whether evidence of the new keys is kept."""
    changes: tuple[str, ...]
    """What becomes other, as ``name: new, not old``; empty from the switch on."""

    @property
    def after(self) -> Index:
        """The target when all is done: the new settings under the old prefix."""
        settings = replace(self.settings, prefix=self.prefix)
        return self.old.with_target(replace(self.old.target, settings=settings, inherits=None))

    @property
    def coming(self) -> Index:
        """The target of the new keys under their own prefix, be they there or not."""
        return self.old.with_target(replace(self.old.target, settings=self.settings))

    @property
    def prefix(self) -> str:
        """The prefix that searches use."""
        return replaced_prefix(self.settings.prefix)


def open_plan(index: Index, wanted: MigrationOptions) -> MigrationPlan | None:
    """Where the migration of an index stands; None where the index has the wanted settings already.

    Raises `SchemeMismatch` for other settings than those of a migration under way, `SettingsError` where nothing is
    to be changed, and what `open_target` and `init` raise.
    """
    old, prefix = opened(index, adopting=True), index.prefix
    mappings = settings_mappings(index.plain, index.name, prefix)
    phase = phase_of(mappings.values(), prefix)
    if phase is not None:
        return _going_on(mappings, prefix, phase, old, wanted)
    if not wanted.something:
        raise SettingsError(f"Say what is to become other for index {index.name}, with `threshold` for example.")
    settings = wanted.settings(old.settings, next_prefix(prefix))
    if any(stored_settings(mapping, settings.prefix) is not None for mapping in mappings.values()):
        raise IndexUnusable(
            f"Index {index.name} has keys under {settings.prefix!r}, which migrate would use for the new ones: take "
            f"them away with `es-neardupe clean {index.name} --prefix {settings.prefix}`."
        )
    chosen = wanted.numbers["sample_mod"] or not old.settings.sample_mod  # a modulus that is stored stays, as with init
    keys = wanted.sample_keys if chosen else None
    coming = Index(index.name, index.plain, settings.prefix)
    checked = init(coming, settings, sample_keys=keys, sidecar=bool(old.storage.sidecars), dry_run=True)
    settings = replace(settings, sample_mod=checked.sample_mod)
    changes = tuple(settings.differences(old.settings))
    return MigrationPlan(None, old, settings, wanted.evidence, changes) if changes else None


def _going_on(
    mappings: Mapping[str, Any], prefix: str, phase: Phase, old: Index, wanted: MigrationOptions
) -> MigrationPlan:
    index = old.name
    stored = [stored_settings(mapping, next_prefix(prefix)) for mapping in mappings.values()]
    settings = next((one for one in stored if one is not None), None)
    migration = next((one for mapping in mappings.values() if (one := migration_of(mapping, prefix))), None)
    if settings is None or migration is None:
        raise NotInitialised(f"The settings of the migration of index {index} are gone: were they edited by hand?")
    asked = wanted.settings(settings, settings.prefix) if wanted.something else settings
    if differences := settings.differences(asked):
        raise SchemeMismatch(
            f"Index {index} is on its way to other settings than these ({'; '.join(differences)}). Go on to them "
            f"with `es-neardupe migrate {index}` and no other options, or, before the switch, give up with `--abort`."
        )
    changes = tuple(settings.differences(old.settings)) if phase is Phase.PREPARING else ()
    return MigrationPlan(phase, old, settings, wanted.evidence or migration.evidence, changes)


def mark(index: Index, plan: MigrationPlan, phase: Phase) -> None:
    """Write how far the migration is; the one moment in which a phase begins."""
    notes = Migration(phase, plan.evidence).to_meta()
    plan.old.through(index.plain).storage.mark_migration(phase, plan.settings, notes)
