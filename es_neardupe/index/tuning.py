"""Index settings that slow down writing, lowered for a run and given back whatever happens.

Before anything is lowered, the former values are written into the ``_meta`` of each index's mapping: they go where the
index goes, and reading them needs no right that a command does not need anyway. A lease says whether the run that
wrote them is at work. If it is not, the next command that writes gives back what is there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from es_neardupe.errors import Forbidden, NeardupeError, NotFound
from es_neardupe.index.hidden_indices import read
from es_neardupe.index.index import Index, opened
from es_neardupe.index.lease import held, is_held, written_now
from es_neardupe.index.storage import sidecar_mappings
from es_neardupe.index.target import mappings_of
from es_neardupe.server.client import Client, path

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["LOWERED", "TuningRecord", "TuningWarning", "mend", "records", "tunable", "tuned", "tuned_mappings"]


LOWERED: Mapping[str, str] = {"index.refresh_interval": "-1", "index.number_of_replicas": "0"}
"""Nobody searches for what is written before the run is over, and replicas are copied at its end at once."""

_KEY = "neardupe.tune"
"""In ``_meta``; no prefix has a dot."""

_LEASE = "lease-tune"

Values = Mapping[str, "str | None"]
"""Name of a setting -> its value; None: the default of the server."""


class TuningWarning(UserWarning):
    """Settings that an earlier run lowered were given back now, or could not be."""


@dataclass(frozen=True)
class TuningRecord:
    """What a run has lowered in an index."""

    token: str
    """Of the lease that the run holds."""
    registry: str
    """The index that holds the lease."""
    command: str
    at: str
    before: Values
    lowered: Mapping[str, str]


@contextmanager
def tuned(index: Index, command: str) -> Iterator[dict[str, Values]]:
    """Lower the settings of each index for as long as the block runs; gives index -> values before.

    With sidecar storage, the sidecar indices are written, so their settings are lowered.
    An index that another run has lowered is left to that. Raises `Forbidden` for a user who may not change settings,
    and `LeaseHeld` while another run does the same, before anything is changed.
    """
    written = index.storage.written
    present = {name: _settings(index.client, name) for name in written}
    for name, settings in present.items():
        _check_right(index.client, name, settings)
    with held(index, f"{command} --tune", id=_LEASE) as lease:
        lowered: dict[str, Values] = {}
        try:
            for name in written:
                if _KEY in _meta(index.client, name):
                    continue
                to_lower = _to_lower(present[name])
                lowered[name] = {setting: present[name].get(setting) for setting in to_lower}
                record = TuningRecord(lease.token, lease.registry, command, written_now(), lowered[name], to_lower)
                _put_record(index.client, name, record)
                _put(index.client, name, to_lower)
            yield lowered
        finally:
            _give_back_all(index.client, written, lease.token)


def _give_back_all(client: Client, indices: Iterable[str], token: str) -> None:
    """Restore what this run has lowered, index by index; where the server does not take that, a later command will."""
    for index in indices:
        try:
            record = records({index: {"_meta": _meta(client, index)}}).get(index)
            if record is not None and record.token == token:
                _give_back(client, index, record)
        except NotFound:  # deleted meanwhile, as old indices of a data stream are
            continue
        except NeardupeError as error:
            _warn(f"The settings of {index} that were lowered could not be given back; the next run will: {error}")


def mend(client: Client, mappings: Mapping[str, Mapping[str, Any]]) -> None:
    """Give back what runs have lowered that came to no end; a `TuningWarning` says so, or why it is not possible.

    ``mappings``: index -> mapping, as they are now.
    """
    for index, record in records(mappings).items():
        try:
            if _is_dead(client, record):
                kept = _give_back(client, index, record)
                _warn(f"{_lowered(index, record)} They are back as they were{kept}. Replicas may have to be built.")
        except NeardupeError as error:
            _warn(f"{_lowered(index, record)} They could not be given back: {error}")


def records(mappings: Mapping[str, Mapping[str, Any]]) -> dict[str, TuningRecord]:
    """The records in mappings, by index. Anybody can write there: what we cannot have written is none."""
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
    when = f"at {record.at} by a run of {record.command} that came to no end"
    return f"Settings of index {index} ({names}) were lowered {when}."


def _warn(message: str) -> None:
    warnings.warn(message, TuningWarning, stacklevel=4)


def _is_dead(client: Client, record: TuningRecord) -> bool:
    """Whether the run that wrote it is over."""
    return not is_held(read(client, record.registry, _LEASE), record.token)


def _give_back(client: Client, index: str, record: TuningRecord) -> str:
    """Restore what nobody else has changed meanwhile, then forget it; says what was left alone."""
    present = _settings(client, index)
    ours = [name for name, value in record.lowered.items() if present.get(name) == value]
    if ours:
        _put(client, index, {name: record.before[name] for name in ours})
    _put_record(client, index, None)
    others = ", ".join(name.removeprefix("index.") for name in record.lowered if name not in ours)
    return f", but {others}, which somebody has changed since" if others else ""


def _to_lower(present: Values) -> dict[str, str]:
    """Replicas that the server chooses by itself are left to it."""
    expands = present.get("index.auto_expand_replicas") not in (None, "false")
    return {
        name: value
        for name, value in LOWERED.items()
        if present.get(name) != value and not (expands and name == "index.number_of_replicas")
    }


def _check_right(client: Client, index: str, present: Values) -> None:
    """Raises `Forbidden` unless the user may change settings; asks by putting what is there already."""
    try:
        _put(client, index, {"index.refresh_interval": present.get("index.refresh_interval")})
    except Forbidden as error:
        raise Forbidden(
            f"This user may not change the settings of index {index}, which `tune` does: have the privilege `manage` "
            f"granted on it, or leave `tune` out. Nothing was changed.",
            status=error.status,
            type=error.type,
            reason=error.reason,
        ) from error


def _settings(client: Client, index: str) -> Values:
    """The settings that were set."""
    answer = client.request("GET", path(index, "_settings"), params={"flat_settings": "true"})
    values: Values = answer[index]["settings"]
    return values


def _meta(client: Client, index: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = mappings_of(client, index)[index].get("_meta", {})
    return found


def _put(client: Client, index: str, values: Values) -> None:
    client.request("PUT", path(index, "_settings"), body=dict(values))


def _put_record(client: Client, index: str, record: TuningRecord | None) -> None:
    """Write the record into ``_meta``, or take it out; the rest of ``_meta`` stays."""
    meta = dict(_meta(client, index))
    meta.pop(_KEY, None)
    if record is not None:
        plain = {"token": record.token, "registry": record.registry, "command": record.command, "at": record.at}
        meta[_KEY] = plain | {"before": dict(record.before), "lowered": dict(record.lowered)}
    client.request("PUT", path(index, "_mapping"), body={"_meta": meta})


P = ParamSpec("P")
R = TypeVar("R")


def tunable(command: Callable[P, R]) -> Callable[P, R]:
    """Give a command's ``tune`` its meaning: the settings of its indices are lowered while it runs, and the field
    ``tuned`` of its report says what they were. With or without it, what an earlier run left lowered is given back.

    The command takes an index, and by keyword ``tune`` and ``dry_run``; a dry run changes no settings. Raises what
    `tuned` raises.
    """

    parameters = signature(command)

    @wraps(command)
    def run(*given: P.args, **options: P.kwargs) -> R:
        arguments = parameters.bind(*given, **options).arguments
        index: Index = arguments["index"]
        if arguments.get("dry_run"):
            return command(*given, **options)
        mend(index.plain, tuned_mappings(index.plain, index.name, index.prefix))
        if not arguments.get("tune"):
            return command(*given, **options)
        found = opened(index, adopting=True, writes=command.__name__ != "migrate")
        with tuned(found, command.__name__) as lowered:
            report: Any = command(*given, **options)
        return cast("R", replace(report, tuned=lowered))

    return run


def tuned_mappings(client: Client, name: str, prefix: str) -> dict[str, dict[str, Any]]:
    """Index -> mapping, of those that a run with ``tune`` may have lowered: with the sidecar indices."""
    found = mappings_of(client, name)
    return found | sidecar_mappings(client, found, prefix)
