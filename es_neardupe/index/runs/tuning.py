"""Tuning: index settings that slow down writing are lowered during a run, and always restored.

Before a setting is lowered, its former value is stored in the ``_meta`` of the mapping, which stays with the index and
can be read without further privileges. A lease shows whether the run that lowered it is still running. If not, the next
command that writes restores the settings.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import Forbidden, NeardupeError, NotFound, SettingsError, TuningWarning
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.hidden_indices import HiddenDocuments
from es_neardupe.index.index import Index
from es_neardupe.index.runs.lease import held, is_held, written_now
from es_neardupe.index.storage.stored_settings import sidecar_mappings
from es_neardupe.index.target import Definitions
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Server
from es_neardupe.server.client import Client, path
from es_neardupe.wording import option

LOWERED: Mapping[str, str] = {"index.refresh_interval": "-1", "index.number_of_replicas": "0"}
"""Settings during a run: no refresh, since searches need the new fields only after it, and no replicas, which are then
copied as a whole."""

_KEY = "neardupe.tune"
"""Key in ``_meta``. It contains a dot, so it cannot be a prefix."""

_LEASE = "lease-tune"

Values = Mapping[str, "str | None"]
"""Name of a setting -> its value; None for the default of the server."""


@dataclass(frozen=True)
class TuningRecord:
    """The settings that a run has lowered in an index."""

    token: str
    """Token of the lease that the run holds."""
    registry: str
    """The index that holds the lease."""
    command: str
    at: str
    before: Values
    lowered: Mapping[str, str]


@contextmanager
def tuned(index: Index, command: str, progress: Progress = silent) -> Iterator[dict[str, Values]]:
    """Lower the settings of each index during a block; yields index -> former values.

    With sidecar storage, the settings of the sidecar indices are lowered, since these are written. Indices that already
    have a record of lowered settings are skipped. Raises `SettingsError` for a collection, `Forbidden` if the user may
    not change settings, and `LeaseHeld` while another run has lowered them; all before any change.
    """
    if index.client.server.is_collection:
        raise SettingsError(f"Amazon OpenSearch Serverless manages refresh and replicas: omit {option('tune')}.")
    written = index.storage.written
    indices = {name: _TunedIndex(index.client, name) for name in written}
    present = {name: one.settings() for name, one in indices.items()}
    for name, settings in present.items():
        indices[name].check_may_change(settings)
    with held(index, f"{command} --tune", id=_LEASE, progress=progress) as lease:
        lowered: dict[str, Values] = {}
        try:
            for name, one in indices.items():
                if _KEY in one.meta():
                    continue
                to_lower = _to_lower(present[name], index.client.server)
                lowered[name] = {setting: present[name].get(setting) for setting in to_lower}
                record = TuningRecord(lease.token, lease.registry.name, command, written_now(), lowered[name], to_lower)
                one.put_record(record)
                one.put(to_lower)
            yield lowered
        finally:
            _restore_all(indices.values(), lease.token)


def _restore_all(indices: Iterable[_TunedIndex], token: str) -> None:
    """Restore the settings that this run has lowered. If this fails for an index, a later command restores them."""
    for index in indices:
        try:
            record = records({index.name: {"_meta": index.meta()}}).get(index.name)
            if record is not None and record.token == token:
                index.restore(record)
        except NotFound:  # deleted during the run, as old indices of a data stream are
            continue
        except NeardupeError as error:
            _warn(
                f"The lowered settings of {index.name} could not be restored; the next run will restore them: {error}"
            )


def restore_abandoned(client: Client, mappings: Mapping[str, Mapping[str, Any]], progress: Progress = silent) -> None:
    """Restore the settings lowered by runs that were killed. Warns with `TuningWarning`, also if this fails.

    ``mappings``: index -> its current mapping. The lease of a run on another machine is watched.
    """
    alive: dict[str, bool] = {}
    for index, record in records(mappings).items():
        try:
            if record.token not in alive:
                alive[record.token] = is_held(HiddenDocuments(client, record.registry), _LEASE, record.token, progress)
            if not alive[record.token]:
                kept = _TunedIndex(client, index).restore(record)
                _warn(f"{_lowered(index, record)} They are now restored{kept}. Replicas may have to be built.")
        except NeardupeError as error:
            _warn(f"{_lowered(index, record)} They could not be restored: {error}")


def records(mappings: Mapping[str, Mapping[str, Any]]) -> dict[str, TuningRecord]:
    """Index -> its record, from the mappings. Values that cannot be a record are ignored, since any client can write
    there."""
    found = {index: _decoded(mapping.get("_meta", {}).get(_KEY)) for index, mapping in mappings.items()}
    return {index: record for index, record in found.items() if record is not None}


def _decoded(value: Any) -> TuningRecord | None:
    try:
        record = TuningRecord(**value)
    except TypeError:
        return None
    texts = (record.token, record.registry, record.command, record.at)
    if not all(isinstance(one, str) and one for one in texts) or not isinstance(record.before, Mapping):
        return None
    sound = isinstance(record.lowered, Mapping) and record.before.keys() == record.lowered.keys()
    sound = sound and all(LOWERED.get(name) == one for name, one in record.lowered.items())
    return record if sound and all(isinstance(one, str | None) for one in record.before.values()) else None


def _lowered(index: str, record: TuningRecord) -> str:
    names = ", ".join(name.removeprefix("index.") for name in record.lowered) or "none"
    when = f"at {record.at} by a run of {record.command} that did not end normally"
    return f"Settings of index {index} ({names}) were lowered {when}."


def _warn(message: str) -> None:
    warnings.warn(message, TuningWarning, stacklevel=4)


def _to_lower(present: Values, server: Server) -> dict[str, str]:
    """The settings to lower. If the server chooses the number of replicas automatically, it is not changed."""
    expands = server.is_serverless or present.get("index.auto_expand_replicas") not in (None, "false")
    return {
        name: value
        for name, value in LOWERED.items()
        if present.get(name) != value and not (expands and name == "index.number_of_replicas")
    }


@dataclass(frozen=True)
class _TunedIndex:
    """A concrete index whose settings are lowered and restored."""

    client: Client
    name: str

    def settings(self) -> Values:
        """The explicit settings, by flat name."""
        answer = self.client.request("GET", path(self.name, "_settings"), params={"flat_settings": "true"})
        values: Values = answer[self.name]["settings"]
        return values

    def meta(self) -> Mapping[str, Any]:
        """The ``_meta`` of its mapping."""
        found: Mapping[str, Any] = Definitions(self.client, self.name).mappings()[self.name].get("_meta", {})
        return found

    def put(self, values: Values) -> None:
        """Change settings."""
        self.client.request("PUT", path(self.name, "_settings"), body=dict(values))

    def put_record(self, record: TuningRecord | None) -> None:
        """Write the record into ``_meta``, or remove it; the rest of ``_meta`` is kept."""
        meta = dict(self.meta())
        meta.pop(_KEY, None)
        if record is not None:
            run = {"token": record.token, "registry": record.registry, "command": record.command, "at": record.at}
            meta[_KEY] = run | {"before": dict(record.before), "lowered": dict(record.lowered)}
        self.client.request("PUT", path(self.name, "_mapping"), body={"_meta": meta})

    def restore(self, record: TuningRecord) -> str:
        """Restore the settings that still have the lowered value, and remove the record; returns a part of a message
        with the others."""
        current = self.settings()
        unchanged = [name for name, value in record.lowered.items() if current.get(name) == value]
        if unchanged:
            self.put({name: record.before[name] for name in unchanged})
        self.put_record(None)
        changed = ", ".join(name.removeprefix("index.") for name in record.lowered if name not in unchanged)
        return f", except {changed}, which another client has changed since" if changed else ""

    def check_may_change(self, present: Values) -> None:
        """Raises `Forbidden` if the user may not change settings, by writing a current value again."""
        try:
            self.put({"index.refresh_interval": present.get("index.refresh_interval")})
        except Forbidden as error:
            raise Forbidden(
                f"This user may not change the settings of index {self.name}, which {option('tune')} requires: ask an "
                f"administrator to grant the privilege `manage` on it, or omit {option('tune')}. Nothing was changed.",
                status=error.status,
                type=error.type,
                reason=error.reason,
            ) from error


def tuned_mappings(index: IndexHandle) -> dict[str, dict[str, Any]]:
    """Index -> mapping, for all indices whose settings a run with ``tune`` can have lowered, sidecar indices
    included."""
    mappings = index.definitions.mappings()
    return mappings | sidecar_mappings(index.server, mappings, index.prefix)
