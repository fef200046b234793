"""The plan of a migration: its phase, the settings that it switches to, and the checks before its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from es_neardupe.candidates.unrelated import UnrelatedCandidates
from es_neardupe.commands.init import init
from es_neardupe.errors import BeingMigrated, IndexUnusable, NotInitialised, SchemeMismatch, SettingsError
from es_neardupe.groups.registry import Registry, remembered
from es_neardupe.groups.rules import remembered_rules, rules_of
from es_neardupe.index.hidden_indices import OF_KEYS, check_names, hidden_index_name, remove
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import Migration, Phase, migration_of, next_prefix, phase_of, replaced_prefix
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.stored_settings import settings_mappings
from es_neardupe.index.target import stored_group_field, stored_settings
from es_neardupe.options import PRESETS, preset_measure
from es_neardupe.server.client import Client
from es_neardupe.similarity.measure import named_measure
from es_neardupe.verification.criterion import match_criterion
from es_neardupe.wording import command, option

if TYPE_CHECKING:
    from es_neardupe.commands.migrate import NewKeys

_NOTHING = "none"
"""The value of `clean` and `mask` that removes those of the index."""

LEASE = "lease-migrate"
"""Id of the lease of a migration."""

_BAND_OPTIONS = ("threshold", "detection", "permutations", "bands", "rows", "agree")
"""Options that affect the choice of bands: with any of them, bands are chosen again."""


@dataclass(frozen=True)
class MigrationPlan:
    """A migration: its phase, the old and the new settings."""

    phase: Phase | None
    """None: not begun."""
    old: Index
    """The index with the keys that searches use: the old ones, from the switch on the new ones."""
    settings: Settings
    """The new settings, with the prefix of the new keys."""
    evidence: bool
    """Whether evidence of the new keys is kept."""
    changes: tuple[str, ...]
    """Changed settings, as ``name: new, not old``; empty from the switch on."""
    unrelated: UnrelatedCandidates | None = None
    """How many unrelated texts become candidates by the new keys; None once the migration has begun."""

    @property
    def state(self) -> str:
        """``not begun``, ``prepared`` or ``switching``."""
        return {None: "not begun", Phase.PREPARING: "prepared"}.get(self.phase, "switching")

    @property
    def after(self) -> Index:
        """The index after the migration: the new settings with the old prefix."""
        group_field = stored_group_field(self.old.target.mappings.values(), self.prefix)
        settings = replace(self.settings, prefix=self.prefix, group_field=group_field)
        return self.old.with_target(replace(self.old.target, settings=settings, inherits=None, opened_with={}))

    @property
    def coming(self) -> Index:
        """The index with the new keys under their own prefix, which may not exist yet."""
        return self.old.with_target(replace(self.old.target, settings=self.settings))

    @property
    def prefix(self) -> str:
        """The old prefix, which searches use."""
        return replaced_prefix(self.settings.prefix)

    def mark(self, phase: Phase, client: Client) -> None:
        """Store the phase and the new settings in the mapping. A phase begins with this request."""
        notes = Migration(phase, self.evidence).to_meta()
        self.old.through(client).storage.mark_migration(phase, self.settings, notes)


def open_plan(index: Index, keys: NewKeys, *, evidence: bool = False) -> MigrationPlan | None:
    """The plan of a migration that has begun, or of a new one; None if the index already has the given settings.

    Raises `SchemeMismatch` for settings that differ from those of a migration that has begun, `SettingsError` without
    new settings for a new one, and the errors of `opened` and `init`.
    """
    old, prefix = opened(index, adopting=True), index.prefix
    mappings = settings_mappings(index, prefix)
    phase = phase_of(mappings.values(), prefix)
    if phase is not None:
        return _begun_plan(old, phase, mappings, prefix, keys, evidence=evidence)
    if not keys:
        raise SettingsError(
            f"Index {index.name} has no migration to continue: give a new setting, such as {option('threshold')}."
        )
    settings = _new_settings(keys, old.settings, next_prefix(prefix))
    if any(stored_settings(mapping, settings.prefix) is not None for mapping in mappings.values()):
        raise IndexUnusable(
            f"Index {index.name} already has keys under {settings.prefix!r}, the prefix that migrate needs for the new "
            f"keys: remove them with `{command('clean', index.name, prefix=settings.prefix)}`."
        )
    old.storage.check_writable()
    # As with init, a stored sample_mod is kept.
    sample_keys = keys.get("sample_keys") if keys.get("sample_mod") or not old.settings.sample_mod else None
    coming = Index(index.name, index.server, settings.prefix)
    checked = init(
        coming,
        settings,
        measure=_measure(keys),
        sample_keys=sample_keys,
        versions=settings.versions,
        sidecar=bool(old.storage.sidecars),
        dry_run=True,
    )
    settings = checked.chosen(settings)
    changes = tuple(settings.differences(replace(old.settings, group_field=None)))
    return MigrationPlan(None, old, settings, evidence, changes, checked.unrelated) if changes else None


def plan_to_abort(index: Index) -> MigrationPlan | None:
    """The migration to abort, if one has begun. Raises `BeingMigrated` once the switch has begun."""
    phase = phase_of(settings_mappings(index, index.prefix).values(), index.prefix)
    if phase is None:
        return None
    if phase is not Phase.PREPARING:
        raise BeingMigrated(
            f"The switch of index {index.name} has begun and cannot be cancelled: documents have lost their old keys. "
            f"Complete it with `{command('migrate', index.name)}`; another migration can switch back."
        )
    return open_plan(index, {})


def _begun_plan(
    old: Index, phase: Phase, mappings: Mapping[str, Any], prefix: str, keys: NewKeys, *, evidence: bool
) -> MigrationPlan:
    """The plan of a migration that has begun, from the settings stored in the mappings."""
    stored = [stored_settings(mapping, next_prefix(prefix)) for mapping in mappings.values()]
    settings = next((one for one in stored if one is not None), None)
    migration = next((one for mapping in mappings.values() if (one := migration_of(mapping, prefix))), None)
    if settings is None or migration is None:
        raise NotInitialised(
            f"The mapping of index {old.name} lacks the settings of its migration: _meta may have been edited by hand."
        )
    requested = _new_settings(keys, settings, settings.prefix) if keys else settings
    if (measure := _measure(keys)) is not None:  # the bands were chosen when the migration began
        requested = replace(
            requested,
            threshold=settings.threshold,
            bands=settings.bands,
            rows=settings.rows,
            measure=named_measure(measure),
            min=requested.threshold,
        )
    if differences := settings.differences(requested):
        raise SchemeMismatch(
            f"Index {old.name} is already being migrated to other settings ({'; '.join(differences)}). Continue with "
            f"`{command('migrate', old.name)}` and no other options, or, before the switch, cancel with `--abort`."
        )
    replaced = replace(old.settings, group_field=None)  # new keys under their own prefix have no copy of the group id
    changes = tuple(settings.differences(replaced)) if phase is Phase.PREPARING else ()
    return MigrationPlan(phase, old, settings, evidence or migration.evidence, changes)


def _measure(keys: NewKeys) -> str | None:
    """Measure of the new threshold, if bands are chosen for it by the lengths of texts."""
    return keys.get("measure") or preset_measure(keys.get("preset"))


def _new_settings(keys: NewKeys, old: Settings, prefix: str) -> Settings:
    """The old settings with the new ones; bands that no longer apply are chosen again. Raises `SettingsError`."""
    fields, preset, measure = tuple(keys.get("fields", old.fields)), keys.get("preset"), _measure(keys)
    if measure is not None and preset is None and "threshold" not in keys:
        raise SettingsError(f"{option('measure')} is that of a new threshold: give {option('threshold')} too.")
    kept: dict[str, Any] = {"sample_mod": old.sample_mod, "relations": old.relations, "versions": old.versions}
    prepared = {name: getattr(old, name) for name in ("clean", "mask") if name not in PRESETS.get(preset or "", {})}
    numbers = {name: one for name, one in keys.items() if name not in ("fields", "preset", "measure", "sample_keys")}
    given = {name: value for name, value in {**prepared, **numbers}.items() if value != _NOTHING}
    if preset is not None:
        return Settings.chosen(fields, preset=preset, measure=measure, **{**kept, **given}, prefix=prefix)
    kept |= {name: getattr(old, name) for name in ("threshold", "detection", "permutations")}
    if "shingle" not in given:
        kept |= {"shingle": old.shingle, "unit": old.unit}
    if measure is None and not given.keys() & set(_BAND_OPTIONS):
        kept |= {name: getattr(old, name) for name in ("bands", "rows", "agree")}
    settings = Settings.chosen(fields, **{**kept, **given}, prefix=prefix)
    return settings if "threshold" in given else replace(settings, measure=old.measure, min=old.min)


def temporary_indices(plan: MigrationPlan) -> list[str]:
    """The hidden indices and sidecar indices under the second prefix, which are deleted at the end."""
    coming = plan.coming
    every = coming.with_target(replace(coming.target, new=()))  # includes those of rolled-over indices
    return [*(hidden_index_name(coming.target, kind) for kind in OF_KEYS), *every.storage.sidecars]


def check_both_names(plan: MigrationPlan) -> None:
    """Raises `NameTaken` if another index has the name of a hidden index under one of both prefixes."""
    check_names(plan.old)
    check_names(plan.coming, OF_KEYS)


def check_phase(plan: MigrationPlan) -> None:
    """Raises `BeingMigrated` if another run changed the phase before this one got the lease."""
    index = plan.old.name
    if phase_of(settings_mappings(plan.old, plan.prefix).values(), plan.prefix) is not plan.phase:
        raise BeingMigrated(
            f"Another run has continued the migration of index {index} in the meantime: run the same command again."
        )


def remove_abandoned_lease(index: Index) -> None:
    """Delete hidden indices under the second prefix that belong to no migration.

    They hold only the lease of a run that was killed at its very beginning.
    """
    settings = replace(index.settings, prefix=next_prefix(index.settings.prefix))
    coming = index.with_target(replace(index.target, settings=settings))
    mappings = settings_mappings(index, index.settings.prefix).values()
    if all(stored_settings(mapping, coming.settings.prefix) is None for mapping in mappings):
        remove(coming, OF_KEYS)


def check_rules(old: Index) -> None:
    """Raises `SettingsError` for rules of the last run that `group` would reject, before any work is done."""
    match, group = remembered(Registry(old).last_run(), old.settings)
    with remembered_rules(old, match, group):
        rules_of(old, group)
        match_criterion(old, match)
