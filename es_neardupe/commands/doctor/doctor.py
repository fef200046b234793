"""Check whether our commands can work on an index, and say what to do where they cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from es_neardupe.commands.doctor.roles import Check, Level, RoleNames, privilege_checks
from es_neardupe.errors import IndexUnusable, NeardupeError, NotFound, NotInitialised
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.index.mapping import TEXT_TYPES, check_source, check_text_fields, field_types
from es_neardupe.index.migration_state import Phase, next_prefix, phase_of
from es_neardupe.index.permissions import block_names, how_to_unblock, partly_visible, write_blocks
from es_neardupe.index.rollover import alias_named, next_index_has, rollover_aliases
from es_neardupe.index.settings import Settings
from es_neardupe.index.sidecar.indices import must_be_stored, sidecar_name, sidecars_of, writes_group
from es_neardupe.index.storage import settings_mappings
from es_neardupe.index.target import IndexTarget, mappings_of, result_window, stored_settings, with_source_modes
from es_neardupe.index.tuning import records
from es_neardupe.keys.scheme import agreement
from es_neardupe.server.client import Client
from es_neardupe.server.search import count

__all__ = ["Check", "Level", "doctor"]


_UNKNOWN = ("?",)


def doctor(index: Index) -> list[Check]:
    """All checks, in the order in which one would mend things. Writes nothing."""
    checks = [Check("server", "ok", f"{index.client.server} at {index.client.url}")]
    try:
        mappings = with_source_modes(index.client, index.name, mappings_of(index.client, index.name))
    except NotFound as error:
        return [*checks, Check("index", "error", str(error))]
    checks.append(Check("index", "ok", ", ".join(sorted(mappings))))
    sidecars = sidecars_of(index.client, mappings, index.prefix)
    for name, mapping in mappings.items():
        settings = _settings(sidecars.get(name, mapping), index.prefix)
        checks.append(_texts(name, mapping, settings, sidecar=name in sidecars))
        if settings.fields != _UNKNOWN:
            fine = f"{', '.join(settings.fields)} in {name}"
            checks.append(_tried("fields", partial(check_text_fields, name, mapping, settings), fine))
    checks += _rights(index.client, index.name, mappings, sidecars, index.prefix)
    checks += _migration(index.name, settings_mappings(index.client, index.name, index.prefix), index.prefix)
    checks += _tuning({**mappings, **_by_sidecar_name(sidecars, index.prefix)})
    prepared = bool(sidecars) or any(index.prefix in mapping.get("_meta", {}) for mapping in mappings.values())
    try:
        index = opened(index)
    except NeardupeError as error:
        if isinstance(error, NotInitialised) and not prepared:
            return [*checks, *_before_init(index, mappings, error)]
        return [*checks, Check("scheme", "error", str(error))]
    scheme = index.settings.scheme
    bands = f"{scheme.bands} bands of {scheme.rows} rows{agreement(scheme.agree)}"
    parts = f"{scheme.id}: {bands}, threshold {index.settings.threshold:g}"
    if scheme.sample_mod:
        parts += f", sampled keys of one in {scheme.sample_mod:,} shingles"
    checks += [Check("scheme", "ok", parts), *_replaced(index)]
    checks += [*_rollover(index), *_visibility(index)]
    return [*checks, _limits(index.target.max_result_window), *_documents(index)]


def _texts(name: str, mapping: dict[str, object], settings: Settings, *, sidecar: bool) -> Check:
    """Whether the texts can be read back, and inline whether an update would lose nothing."""
    if not sidecar or settings.fields == _UNKNOWN:
        return _tried("_source", partial(check_source, name, mapping, settings), "holds the texts")
    return _tried("_source", partial(_read_back, name, mapping, settings), "the texts can be read")


def _read_back(name: str, mapping: dict[str, object], settings: Settings) -> None:
    must_be_stored(name, mapping, settings)


def _rights(
    client: Client, index: str, mappings: Mapping[str, Any], sidecars: Mapping[str, Any], prefix: str
) -> Iterator[Check]:
    """Rights and blocks: of the index that is written, which may be its sidecar index."""
    names = [sidecar_name(one, prefix) for one in sorted(sidecars)]
    written = any(writes_group(one) for one in sidecars.values())
    if names:
        told = ", group ids in the documents too" if written else ""
        yield Check("sidecar", "ok", f"keys are kept in {', '.join(names)}{told}")
    coming = [sidecar_name(one, next_prefix(prefix)) for one in sorted(sidecars)]
    known = _names(client, mappings, index, prefix)
    about = replace(known, sidecars=names, coming_sidecars=coming, writes=written)
    yield from privilege_checks(client, about)
    yield _blocks(client, ",".join([*([index] if written else []), *names]) or index)


def _settings(mapping: dict[str, object], prefix: str) -> Settings:
    """The stored settings, or ones without a known field where there are none to read."""
    unknown = Settings(_UNKNOWN, prefix=prefix)
    try:
        return stored_settings(mapping, prefix) or unknown
    except NeardupeError:
        return unknown


def _tried(name: str, check: Callable[[], None], fine: str) -> Check:
    try:
        check()
    except IndexUnusable as error:
        return Check(name, "error", str(error))
    return Check(name, "ok", fine)


def _names(client: Client, mappings: Mapping[str, Any], index: str, prefix: str) -> RoleNames:
    """The names that privileges are about: as the user gave it, and those of our hidden indices."""
    alias = alias_named(rollover_aliases(client, index, mappings), index)
    groups, pairs, coming_groups, coming_pairs = (
        hidden_index_name(
            IndexTarget(index, tuple(sorted(mappings)), Settings(_UNKNOWN, prefix=one), 0, rollover_alias=alias), kind
        )
        for one in (prefix, next_prefix(prefix))
        for kind in (HiddenIndex.GROUPS, HiddenIndex.PAIRS)
    )
    return RoleNames(index, groups, pairs, coming_groups, coming_pairs)


def _replaced(index: Index) -> Iterator[Check]:
    """Whether the keys in a sidecar index are those of another index, which this one has replaced."""
    for name, number in index.storage.replaced().items():
        yield Check(
            "sidecar",
            "warning",
            f"of the entries, {number:,} are of an index that was called {name} before: run `es-neardupe enrich "
            f"{index.name}`, then `group`",
        )


def _rollover(index: Index) -> Iterator[Check]:
    """Whether the next index of a data stream, or of an alias with a write index, will have what the others have."""
    if index.target.rollover_alias is None:
        return
    if index.storage.sidecars:
        yield Check(
            "rollover", "ok", f"the next index of {index.name} gets a sidecar index by the next run of `enrich`"
        )
        return
    has = next_index_has(index.client, index.target.rollover_alias, index.settings.prefix, index.settings.to_meta())
    name = index.name
    if has is None:
        yield Check("rollover", "ok", "not checked: the server does not tell what the next index will have")
    elif has:
        yield Check("rollover", "ok", f"an index template gives the next index of {name} our fields")
    else:
        yield Check(
            "rollover",
            "warning",
            f"no index template gives the next index of {name} our fields: until `enrich` does, other commands stop; "
            f"`es-neardupe init {name} --template` with the options of init prints what the template needs",
        )


def _visibility(index: Index) -> Iterator[Check]:
    if partly := partly_visible(index):
        yield Check(
            "visibility",
            "warning",
            f"this user sees only a part of the documents or fields of {', '.join(partly)}: whoever runs `enrich`, "
            f"`group` and `clean` must see all",
        )


def _blocks(client: Client, index: str) -> Check:
    blocks = write_blocks(client, index)
    if not blocks:
        return Check("blocks", "ok", "none")
    return Check(
        "blocks", "error", f"{', '.join(block_names(blocks))}: nothing can be written. {how_to_unblock(index, blocks)}"
    )


def _migration(index: str, mappings: Mapping[str, Mapping[str, Any]], prefix: str) -> Iterator[Check]:
    """Whether the index is on its way to other keys."""
    phase = phase_of(mappings.values(), prefix)
    if phase is not None:
        abort = ", or `--abort` gives up" if phase is Phase.PREPARING else ""
        way = f"`es-neardupe migrate {index}` goes on{abort}"
        yield Check("migration", "warning", f"the index is on its way to other keys ({phase.value}): {way}")


def _by_sidecar_name(sidecars: Mapping[str, Mapping[str, Any]], prefix: str) -> dict[str, Mapping[str, Any]]:
    """The same mappings by the names of the sidecar indices."""
    return {sidecar_name(index, prefix): mapping for index, mapping in sidecars.items()}


def _tuning(mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[Check]:
    """Settings that a run has lowered: one that is at work, or one that came to no end."""
    for index, record in records(mappings).items():
        yield Check(
            "tuning",
            "warning",
            f"settings of {index} were lowered at {record.at} by {record.command} --tune: if that run came to no end, "
            f"the next command that writes, such as `enrich`, gives them back",
        )


def _before_init(index: Index, mappings: Mapping[str, Any], error: NotInitialised) -> Iterator[Check]:
    """What `init` would find; that it was not run yet is no error."""
    for name, mapping in mappings.items():
        texts = sorted(one for one, kind in field_types(mapping.get("properties", {})) if kind in TEXT_TYPES)
        if texts:
            yield Check("fields", "ok", f"text fields of {name}: {', '.join(texts)}")
        else:
            yield Check("fields", "error", f"{name} has no text field that `init` could name")
    yield _limits(result_window(index.client, index.name))
    yield Check("scheme", "warning", str(error))


def _limits(window: int) -> Check:
    if window >= 1000:
        return Check("limits", "ok", f"result window {window}")
    return Check(
        "limits",
        "warning",
        f"index.max_result_window is {window}: `similar` compares with at most that many candidates; raise it",
    )


def _documents(index: Index) -> Iterator[Check]:
    name = index.name
    total = count(index.client, index.path, index.target.within())
    without = count(index.client, index.path, index.target.stale())
    waiting = count(index.client, index.path, queries.ungrouped(index.fields, index.scheme_id))
    if without:
        yield Check("documents", "warning", f"{without:,} of {total:,} have no keys: run `es-neardupe enrich {name}`")
    else:
        yield Check("documents", "ok", f"all {total:,} have keys")
    if waiting:
        yield Check("groups", "warning", f"{waiting:,} wait for grouping: run `es-neardupe group {name}`")
    else:
        yield Check("groups", "ok", "no document waits for grouping")
