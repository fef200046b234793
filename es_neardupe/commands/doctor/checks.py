"""Checks of ``doctor``, each with its result and how to fix a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from es_neardupe.commands.doctor.roles import CLUSTER, ROLES, Role, RoleNames
from es_neardupe.errors import (
    Forbidden,
    IndexUnusable,
    NameTaken,
    NeardupeError,
    NotFound,
    NotInitialised,
    RequestError,
    SettingsError,
)
from es_neardupe.groups.incremental import damaged_clusters
from es_neardupe.groups.read import read_groups
from es_neardupe.groups.registry import Registry, remembered
from es_neardupe.groups.rules import remembered_rules, rules_of
from es_neardupe.groups.waiting import next_run, of_deleted, waiting_of_deleted, written_since_enrich
from es_neardupe.index.hidden_indices import HiddenIndex, check_names, hidden_index_name
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import WHOLE_TEXTS, check_source, check_text_fields, fields_with_texts
from es_neardupe.index.migration_state import Phase, next_prefix, phase_of
from es_neardupe.index.on_server import folding, ingest_pipeline
from es_neardupe.index.permissions import Blocks, block_names, blocks_of, how_to_unblock, partly_visible
from es_neardupe.index.rollover import RolloverAlias, settings_of_next
from es_neardupe.index.runs import lease
from es_neardupe.index.runs.tuning import records
from es_neardupe.index.settings import Settings
from es_neardupe.index.slices import external_version
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.storage.sidecar.indices import must_be_stored, sidecar_name, writes_group
from es_neardupe.index.target import Definitions, IndexTarget, result_window, stored_settings
from es_neardupe.keys.scheme import agreement
from es_neardupe.records import Product, State
from es_neardupe.server.client import Client, path
from es_neardupe.wording import command, counted, indices

Level = Literal["ok", "warning", "error"]

_UNKNOWN = ("?",)
"""Text fields of settings that cannot be read."""

_STORE_AGAIN = "store it again, or remove it from the settings of the index"
"""How to fix a missing pipeline that this program did not make."""


@dataclass(frozen=True)
class Check:
    """One line of the result of `doctor`. A ``message`` of another level than ok says how to fix the problem."""

    name: str
    level: Level
    message: str


def fields(mappings: Mapping[str, Any], sidecars: Mapping[str, Any], prefix: str) -> Iterator[Check]:
    """Whether the texts of each index can be read, and updated without loss if keys are stored in the documents."""
    for name, mapping in mappings.items():
        settings = _settings(sidecars.get(name, mapping), prefix)
        known = settings.fields != _UNKNOWN
        if name in sidecars and known:
            yield _tried(
                "_source", partial(must_be_stored, name, mapping, settings), f"the texts of {name} can be read"
            )
        else:
            yield _tried("_source", partial(check_source, name, mapping, settings), f"{name} holds the texts")
        if known:
            texts = f"{', '.join(settings.fields)} in {name}"
            yield _tried("fields", partial(check_text_fields, name, mapping, settings), texts)


def _settings(mapping: Mapping[str, Any], prefix: str) -> Settings:
    """The stored settings, or settings with the fields `_UNKNOWN` if there are none, or if they cannot be read."""
    unknown = Settings(_UNKNOWN, prefix=prefix)
    try:
        return stored_settings(mapping, prefix) or unknown
    except NeardupeError:
        return unknown


def _tried(name: str, check: Callable[[], object], message: str) -> Check:
    """The result of a check that raises `IndexUnusable`; else the message."""
    try:
        check()
    except IndexUnusable as error:
        return Check(name, "error", str(error))
    return Check(name, "ok", message)


def rights(
    client: Client, names: RoleNames, sidecars: Mapping[str, Any], prefix: str, *, prepared: bool
) -> Iterator[Check]:
    """Sidecar indices, privileges, and blocks on the indices that are written."""
    sidecar_names = [sidecar_name(one, prefix) for one in sorted(sidecars)]
    group_ids_written = any(writes_group(one) for one in sidecars.values())
    if sidecar_names:
        documents = "; group ids are also written into the documents" if group_ids_written else ""
        yield Check("sidecar", "ok", f"keys are stored in {', '.join(sidecar_names)}{documents}")
    names = replace(
        names,
        sidecars=sidecar_names,
        coming_sidecars=[sidecar_name(one, next_prefix(prefix)) for one in sorted(sidecars)],
        writes=group_ids_written,
    )
    yield from privilege_checks(client, names)
    written = [*([names.index] if group_ids_written else []), *sidecar_names] or [names.index]
    blocks = dict(blocks_of(Definitions(client, ",".join(written))))
    for hidden in (names.groups, names.pairs, names.decisions):
        with suppress(NotFound, Forbidden):
            blocks |= blocks_of(Definitions(client, hidden))
    yield _blocks(blocks, names.index, prepared=prepared)


def role_names(mappings: Mapping[str, Any], family: RolloverAlias | None, name: str, prefix: str) -> RoleNames:
    """The index as named by the user, and its hidden indices."""

    def hidden(prefix: str, kind: HiddenIndex) -> str:
        settings = Settings(_UNKNOWN, prefix=prefix)
        return hidden_index_name(IndexTarget(name, tuple(sorted(mappings)), settings, 0, rollover_alias=family), kind)

    coming = next_prefix(prefix)
    return RoleNames(
        index=name,
        groups=hidden(prefix, HiddenIndex.GROUPS),
        pairs=hidden(prefix, HiddenIndex.PAIRS),
        coming_groups=hidden(coming, HiddenIndex.GROUPS),
        coming_pairs=hidden(coming, HiddenIndex.PAIRS),
        decisions=hidden(prefix, HiddenIndex.DECISIONS),
    )


def privilege_checks(client: Client, names: RoleNames) -> Iterator[Check]:
    """A check for each role: whether this user may run its commands.

    Missing privileges for occasional commands (not `Role.everyday`) are reported with the level ok.
    """
    if client.server.product is not Product.ELASTICSEARCH:
        message = "not checked: OpenSearch has no API for this; a refused request names the missing privilege"
        yield Check("privileges", "ok", message)
        return
    roles = [role for role in ROLES if role.commands_for(names)]
    answer = _has_privileges(client, [role.privileges(names) for role in roles])
    if answer is None:
        yield Check("privileges", "ok", "not checked: security is disabled on this server, or not installed")
        return
    for role in roles:
        yield _privileges(role, names, answer)


def _has_privileges(client: Client, needed: list[dict[str, tuple[str, ...]]]) -> Mapping[str, Any] | None:
    """Which of the privileges of all roles the user has; None without security.

    ``needed``: for each role, index -> its privileges.
    """
    names = {name: sorted({one for role in needed for one in role.get(name, ())}) for role in needed for name in role}
    body = {
        "cluster": list(CLUSTER),
        "index": [{"names": [name], "privileges": privileges} for name, privileges in names.items()],
    }
    try:
        answer: Mapping[str, Any] = client.request("POST", path("_security", "user", "_has_privileges"), body=body)
    except RequestError:
        return None
    return answer


def _privileges(role: Role, names: RoleNames, answer: Mapping[str, Any]) -> Check:
    """Whether the user has all privileges of a role. Missing optional ones are named only if no other is missing."""
    user, commands = answer["username"], ", ".join(role.commands_for(names))
    lacking = [f"{name} on the cluster" for name in CLUSTER if not answer["cluster"][name]]
    lacking += _missing(role.required(names), answer)
    if lacking:
        message = f"{user} may not run {commands}: lacks {' and '.join(lacking)}"
        return Check("privileges", "error" if role.everyday else "ok", message)
    if lacking := _missing(role.optional_privileges(names), answer):
        message = f"{user} may run {commands}, without noticing changed texts: lacks {' and '.join(lacking)}"
        return Check("privileges", "warning" if role.everyday else "ok", message)
    return Check("privileges", "ok", f"{user} may run {commands}")


def _missing(needed: Mapping[str, tuple[str, ...]], answer: Mapping[str, Any]) -> list[str]:
    """The needed privileges that the user does not have, by index."""
    by_index = {
        index: [one for one in privileges if not answer["index"][index][one]] for index, privileges in needed.items()
    }
    return [f"{', '.join(missing)} on {index}" for index, missing in by_index.items() if missing]


def _blocks(blocks: Blocks, name: str, *, prepared: bool) -> Check:
    if not blocks:
        return Check("blocks", "ok", "none")
    message = f"{indices(blocks, 'is', 'are')} blocked for writing by {', '.join(block_names(blocks))}. "
    return Check("blocks", "error", message + how_to_unblock(name, blocks, new=not prepared))


def migration(name: str, mappings: Mapping[str, Mapping[str, Any]], prefix: str) -> Iterator[Check]:
    """Whether a migration to new keys is in progress."""
    phase = phase_of(mappings.values(), prefix)
    if phase is not None:
        cancel = ", and with `--abort` cancels it" if phase is Phase.PREPARING else ""
        message = f"a migration is in progress ({phase.value}): `{command('migrate', name)}` continues it{cancel}"
        yield Check("migration", "warning", message)


def tuning(mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[Check]:
    """Settings lowered by ``--tune``, of a run that is active or was killed."""
    for index, record in records(mappings).items():
        yield Check(
            "tuning",
            "warning",
            f"{record.command} --tune lowered settings of {index} at {record.at}: if that run was killed, the next "
            f"command that writes, such as `enrich`, restores them",
        )


def before_init(index: Index, mappings: Mapping[str, Any], error: NotInitialised) -> Iterator[Check]:
    """Checks for `init`. A missing `init` is only a warning."""
    for name, mapping in mappings.items():
        properties = mapping.get("properties", {})
        if texts := fields_with_texts(properties):
            yield Check("fields", "ok", f"text fields of {name}: {', '.join(texts)}")
        elif whole := fields_with_texts(properties, WHOLE_TEXTS):
            yield Check("fields", "warning", f"{name} has no text field; `init` also takes {', '.join(whole)}")
        else:
            yield Check("fields", "error", f"{name} has no text field: `init` needs at least one")
    yield limits(result_window(index.definitions.states().values()))
    yield Check("scheme", "warning", str(error))


def scheme(settings: Settings) -> Check:
    """The scheme of the keys."""
    scheme = settings.scheme
    bands = f"{counted(scheme.bands, 'band')} of {counted(scheme.rows, 'row')}{agreement(scheme.agree)}"
    sampled = f", sampled keys: one in {counted(scheme.sample_mod, 'shingle')}" if scheme.sample_mod else ""
    of_matches = "" if settings.min is None else f", {settings.min:g} by {settings.measure.value}"
    return Check("scheme", "ok", f"{scheme.id}: {bands}, threshold {settings.threshold:g}{of_matches}{sampled}")


def hidden_names(index: Index) -> Iterator[Check]:
    """Whether another index has the name of the registry or of the evidence, as far as this user may see it."""
    with suppress(Forbidden):
        try:
            check_names(index)
        except NameTaken as error:
            yield Check("hidden indices", "error", str(error))


def replaced(index: Index) -> Iterator[Check]:
    """Whether a sidecar index has entries of a former index with the same name."""
    for name, number in index.storage.replaced().items():
        yield Check(
            "sidecar",
            "warning",
            f"{counted(number, 'entry is from', 'entries are from')} a former index named {name}: run "
            f"`{command('enrich', index.name)}`, then `group`",
        )


def rollover(index: Index) -> Iterator[Check]:
    """Whether the next index of a data stream, or of an alias with a write index, gets the fields."""
    if index.target.rollover_alias is None:
        return
    name, prefix = index.name, index.settings.prefix
    if index.storage.sidecars:
        yield Check("rollover", "ok", f"`enrich` creates a sidecar index for each new index of {name}")
        return
    coming = settings_of_next(index.client, index.target.rollover_alias, prefix)
    if coming is None:
        yield Check("rollover", "ok", f"not checked: this user may not read the index template of {name}")
    elif coming == index.settings.to_meta():
        yield Check("rollover", "ok", f"an index template adds the {prefix} fields to the next index of {name}")
    else:
        added = f"no index template adds the {prefix} fields to the next index of {name}"
        stop = "other commands stop until `enrich` has run"
        if coming:
            added = f"an index template adds the {prefix} fields to the next index of {name} with other settings"
            stop = "all commands stop"
        versions = "" if index.settings.versions is None else f" --versions {index.settings.versions.value}"
        options = index.settings.as_options() + versions
        yield Check(
            "rollover",
            "warning",
            f"{added}: after a rollover, {stop}; `{command('init', name)} {options} --template` prints what the "
            f"template needs",
        )


def visibility(index: Index) -> Iterator[Check]:
    """Whether roles hide documents or fields."""
    if partly := partly_visible(index):
        yield Check(
            "visibility",
            "warning",
            f"roles hide documents or fields of {', '.join(partly)} from this user: `enrich`, `group`, `migrate` and "
            f"`clean` need a user who sees all of them",
        )


def lease_holder(index: Index) -> Iterator[Check]:
    """Whether a run holds the lease for writing groups. A user who may not read the registry gets no answer."""
    with suppress(Forbidden):
        if run := lease.holder(index):
            yield Check(
                "lease",
                "warning",
                f"held by {run}: if that run was killed, the next run takes the lease after a minute, and "
                f"`{command('group', index.name)} --break-lease` deletes it at once",
            )


def pipeline(index: Index) -> Iterator[Check]:
    """The ingest pipelines of the index: missing ones, and whether that of `pipeline` makes the keys of the present
    settings. A user who may not read pipelines gets no answer."""
    with suppress(Forbidden):
        name, own = index.name, ingest_pipeline.OwnPipelines(index)
        state = own.state()
        if state == "missing":
            (some, pipeline), *_ = ingest_pipeline.missing_pipelines(index.server, own.of_indices).items()
            install = f"`{command('pipeline', name)} install` stores it again, and `remove` removes the setting"
            how = install if ingest_pipeline.is_ours(pipeline) else _STORE_AGAIN
            message = f"the ingest pipeline {pipeline} of {some} is missing, so the server rejects its documents: {how}"
            yield Check("pipeline", "error", message)
        elif state in ("outdated", "partly"):
            why, role = "is of other settings", ""
            if state == "partly":
                final = any(one.final == own.name for one in own.of_indices.values())
                why, role = "processes only some of the indices", " --final" if final else " --default"
            message = f"the ingest pipeline for new keys {why}: run `{command('pipeline', name)} install{role}`"
            yield Check("pipeline", "warning", message)
        elif state == "stored":
            yield Check("pipeline", "ok", f"{own.name} is stored; the index does not use it by itself")
        elif state != "none":
            yield Check("pipeline", "ok", f"the {state} pipeline {own.name} makes the keys of new documents")


def folded(index: Index) -> Iterator[Check]:
    """The default search pipelines: missing ones, and whether those of `fold` find a group in each document of all
    indices. A user who may not read pipelines gets no answer."""
    with suppress(Forbidden):
        if found := _folding(index, folding.default_pipelines(index)):
            yield Check("folding", *found)


def _folding(index: Index, pipelines: Mapping[str, str | None]) -> tuple[Level, str] | None:
    """The result for the default search pipelines of the indices; None if none of them folds."""
    state, field = folding.state(index, pipelines), index.settings.group_field
    fold = command("fold", index.name)
    ours = {one for one, pipeline in pipelines.items() if folding.is_ours(pipeline, field)}
    if state == "missing":
        (some, gone), *_ = folding.missing_pipelines(index.server, pipelines).items()
        remove = f"`{fold} remove` removes it from the settings of the index, and `install` stores it"
        how = remove if folding.is_ours(gone) else _STORE_AGAIN
        return "error", f"the default search pipeline {gone} of {some} is missing, so searches fail: {how}"
    if state == "folded":
        return _folding_by(index, field)
    if state == "unused":
        message = f"no index is folded, but the search pipeline is stored: run `{fold} install` or `{fold} remove`"
    elif state == "partly":
        are = "is" if len(ours) == 1 else "are"
        message = f"{len(ours):,} of {counted(len(pipelines), 'index', 'indices')} {are} folded: run `{fold} install`"
    elif state == "other" and ours:
        (some, other), *_ = ((one, its) for one, its in pipelines.items() if its and one not in ours)
        message = (
            f"{some} has the default search pipeline {other}, so a search of all indices is not folded: remove it from "
            f"the settings of the index, then run `{fold} install`"
        )
    else:
        return None
    return "warning", message


def _folding_by(index: Index, field: str | None) -> tuple[Level, str]:
    """The result for indices that are all folded by a group field."""
    without = index.plain_documents.count({"bool": {"must_not": [{"exists": {"field": field}}]}})
    if without:
        lacking = counted(without, "document has", "documents have")
        enrich = command("enrich", index.name)
        return "warning", f"{lacking} no value in {field}, so one hit stands for all of them: run `{enrich}`"
    return "ok", f"searches return one hit of each group, by {field}"


def limits(window: int) -> Check:
    """The limits of searches."""
    if window >= 1000:
        return Check("limits", "ok", f"result window {window}")
    return Check(
        "limits",
        "warning",
        f"index.max_result_window is {window}, the maximum number of candidates that `similar` compares: increase it",
    )


def documents(index: Index) -> Iterator[Check]:
    """Documents that are not enriched."""
    total = index.documents.count(index.target.within())
    without = index.documents.count(index.target.stale())
    if without:
        are = "is" if without == 1 else "are"
        message = f"{without:,} of {total:,} {are} not enriched: run `{command('enrich', index.name)}`"
        yield Check("documents", "warning", message)
    else:
        yield Check("documents", "ok", f"all {total:,} are enriched")
    empty = index.documents.count({"term": {f"{index.settings.prefix}.state": State.EMPTY.value}})
    if 2 * empty > total:
        fields = ", ".join(index.settings.fields)
        have, their = ("has", "its text is") if empty == 1 else ("have", "their texts are")
        message = f"{empty:,} of {total:,} {have} no text in {fields}: if {their} in other fields, name these by "
        message += f"`{command('migrate', index.name)} --field FIELD`"
        yield Check("documents", "warning", message)


def versions(index: Index) -> Iterator[Check]:
    """Whether another system sets the versions of the documents. Not checked if `init` has set `versions`."""
    if index.storage.sidecars or index.settings.versions is not None:
        return
    if (found := external_version(index.plain_documents, index.target.max_result_window)) is not None:
        yield Check(
            "versions",
            "warning",
            f"document {found.id!r} has version {found.version}, which the server has not given it: if another system "
            f"sets versions (version_type=external), partial updates make the server reject its next changes. Run "
            f"`{command('init', index.name)} {index.settings.as_options()} --versions external`, or, if the server "
            f"sets them now, the same with --versions internal",
        )


def changes(index: Index) -> Iterator[Check]:
    """Whether texts can have changed since they got their keys. A user who may not refresh the index gets no answer."""
    if index.storage.sidecars:
        yield from _changes_of_sidecar(index)
        return
    with suppress(Forbidden):
        feed = ChangeFeed(index, Consumer.TEXTS, stores=False)
        unknown, enrich = feed.unknown_changes(), f"run `{command('enrich', index.name)}`"
        written = written_since_enrich(index, feed)
        if unknown:
            name, reason = next(iter(unknown.items()))
            message = f"it is unknown which documents of {name} have changed ({reason}): {enrich}, which reads all"
            yield Check("changes", "warning", message)
        if written:
            yield _written(written, enrich)
        if not (unknown or written):
            yield Check("changes", "ok", "no text has changed since it got its keys")


def _written(number: int, enrich: str) -> Check:
    """Documents that were written since the last `enrich`."""
    these, them = counted(number, "document was", "documents were"), "it" if number == 1 else "them"
    return Check("changes", "warning", f"{these} written since the last enrich: {enrich}, which reads {them}")


def _changes_of_sidecar(index: Index) -> Iterator[Check]:
    """Documents that were written or deleted since the last `enrich`, which always knows which have changed. Other
    counts are those of entries, among which a new document can make up for a deleted one."""
    with suppress(Forbidden):
        feed, scope = ChangeFeed(index, Consumer.TEXTS, stores=False), index.target.within()
        enrich = f"run `{command('enrich', index.name)}`"
        if deleted := index.storage.of_deleted(index.plain_documents.count(scope)):
            entries = counted(deleted, "entry is that of a deleted document", "entries are those of deleted documents")
            yield Check("changes", "warning", f"{entries}: {enrich}, then `group`")
        elif not feed.unknown_changes() and (written := written_since_enrich(index, feed)):
            yield _written(written, enrich)


def groups(index: Index) -> Iterator[Check]:
    """Documents that wait for `group`, groups without a principal, records of related groups that others have changed,
    and the rules of the last run."""
    name, left = index.name, next_run(index)
    headless = sum(one.principal is None for one in read_groups(index)) if left.lost else 0
    damaged, registry = False, Registry(index)
    with suppress(Forbidden, NameTaken):
        try:
            last = registry.last_run()
            damaged = last is not None and last.finished and damaged_clusters(registry, last)
            match, rules = remembered(last, index.settings)
            with remembered_rules(index, match, rules):
                rules_of(index, rules)
        except SettingsError as error:
            yield Check("groups", "error", str(error))
            return
    if headless:
        lost = counted(headless, "group has lost its", "groups have lost their")
        message = f"{lost} principal: run `{command('group', name)}`"
        yield Check("groups", "warning", message)
    elif damaged:
        message = "records of related groups were changed or deleted in"
        yield Check("groups", "warning", f"{message} {registry.name}: run `{command('group', name)} --check`")
    elif left.waiting:
        deleted = waiting_of_deleted(index)
        message = counted(left.waiting - deleted, "document waits", "documents wait")
        message += f" for grouping: run `{command('group', name)}`"
        if left.waiting == deleted:  # in a sidecar index
            message = of_deleted(deleted, name)
        yield Check("groups", "warning", message)
    else:
        yield Check("groups", "ok", "no document waits for grouping")
