"""Check whether our commands can work on an index, and say what to do where they cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from es_neardupe import queries
from es_neardupe.asking import count
from es_neardupe.blocks import way_to_lift, write_blocks
from es_neardupe.clients import Client, path
from es_neardupe.companions import Companion, companion_name
from es_neardupe.errors import IndexUnusable, NeardupeError, NotFound, RequestError
from es_neardupe.indices import Target, check_source, check_text_fields, mappings_of, open_target, stored_settings
from es_neardupe.keys.scheme import agreement
from es_neardupe.migrations import Phase, phase_of
from es_neardupe.records import Product
from es_neardupe.rights import seen_in_part
from es_neardupe.settings import DEFAULT_PREFIX, Settings
from es_neardupe.tuning import records

__all__ = ["Check", "Level", "doctor"]

Level = str
"""``ok``, ``warning`` or ``error``."""

_UNKNOWN = ("?",)
_INDEX_PRIVILEGES = ["read", "view_index_metadata", "index", "maintenance"]
_REGISTRY_PRIVILEGES = ["create_index", *_INDEX_PRIVILEGES]


@dataclass(frozen=True)
class Check:
    """One line of the result; ``message`` names the way out where the level is not ok."""

    name: str
    level: Level
    message: str


def doctor(client: Client, index: str, *, prefix: str = DEFAULT_PREFIX) -> list[Check]:
    """All checks, in the order in which one would mend things. Writes nothing."""
    checks = [Check("server", "ok", f"{client.server} at {client.url}")]
    try:
        mappings = mappings_of(client, index)
    except NotFound as error:
        return [*checks, Check("index", "error", str(error))]
    checks.append(Check("index", "ok", ", ".join(sorted(mappings))))
    for name, mapping in mappings.items():
        settings = _settings(mapping, prefix)
        checks.append(_tried("_source", partial(check_source, name, mapping, settings), "holds the texts"))
        if settings.fields != _UNKNOWN:
            fine = f"{', '.join(settings.fields)} in {name}"
            checks.append(_tried("fields", partial(check_text_fields, name, mapping, settings), fine))
    checks.append(_privileges(client, "privileges", index, _INDEX_PRIVILEGES))
    checks += [_blocks(client, index), *_migration(index, mappings, prefix), *_tuning(mappings)]
    try:
        target = open_target(client, index, prefix)
    except NeardupeError as error:
        return [*checks, Check("scheme", "error", str(error))]
    scheme = target.settings.scheme
    bands = f"{scheme.bands} bands of {scheme.rows} rows{agreement(scheme.agree)}"
    parts = f"{scheme.id}: {bands}, threshold {target.settings.threshold:g}"
    if scheme.sample_mod:
        parts += f", sampled keys of one in {scheme.sample_mod:,} shingles"
    checks += [Check("scheme", "ok", parts), *_visibility(client, target)]
    if client.server.product is Product.ELASTICSEARCH:
        registry = companion_name(target, Companion.GROUPS)
        checks.append(_privileges(client, "registry", registry, _REGISTRY_PRIVILEGES))
    return [*checks, *_limits(client, target), *_documents(client, target)]


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


def _privileges(client: Client, check: str, index: str, wanted: list[str]) -> Check:
    """Whether the user has the rights that our commands need on an index, and on the cluster."""
    if client.server.product is not Product.ELASTICSEARCH:
        return Check(
            check,
            "ok",
            "not checked: OpenSearch does not tell; a refused request will name what lacks",
        )
    body = {"cluster": ["monitor"], "index": [{"names": [index], "privileges": wanted}]}
    try:
        answer = client.request("POST", path("_security", "user", "_has_privileges"), body=body)
    except RequestError:
        return Check(check, "ok", "not checked: this server has no security, or it is turned off")
    if answer["has_all_requested"]:
        return Check(check, "ok", f"{answer['username']} may do all that is needed on {index}")
    lacking = [f"{name} (of the cluster)" for name, has in answer["cluster"].items() if not has]
    lacking += [name for rights in answer["index"].values() for name, has in rights.items() if not has]
    return Check(check, "error", f"{answer['username']} lacks {', '.join(lacking)} on {index}: have them granted")


def _visibility(client: Client, target: Target) -> Iterator[Check]:
    if partly := seen_in_part(client, target):
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
    return Check("blocks", "error", f"{', '.join(blocks)}: nothing can be written. {way_to_lift(index, blocks)}")


def _migration(index: str, mappings: Mapping[str, Mapping[str, Any]], prefix: str) -> Iterator[Check]:
    """Whether the index is on its way to other keys."""
    phase = phase_of(mappings.values(), prefix)
    if phase is not None:
        abort = ", or `--abort` gives up" if phase is Phase.PREPARING else ""
        way = f"`es-neardupe migrate {index}` goes on{abort}"
        yield Check("migration", "warning", f"the index is on its way to other keys ({phase.value}): {way}")


def _tuning(mappings: Mapping[str, Mapping[str, Any]]) -> Iterator[Check]:
    """Settings that a run has lowered: one that is at work, or one that came to no end."""
    for index, record in records(mappings).items():
        yield Check(
            "tuning",
            "warning",
            f"settings of {index} were lowered at {record.at} by {record.command} --tune: if that run came to no end, "
            f"the next command that writes, such as `enrich`, gives them back",
        )


def _limits(client: Client, target: Target) -> Iterator[Check]:
    window = target.max_result_window
    if window < 1000:
        yield Check(
            "limits",
            "warning",
            f"index.max_result_window is {window}: `similar` compares with at most that many candidates; raise it",
        )
    else:
        yield Check("limits", "ok", f"result window {window}")


def _documents(client: Client, target: Target) -> Iterator[Check]:
    fields, name = target.fields, target.name
    total = count(client, target.path)
    without = count(client, target.path, queries.stale(fields, target.scheme_id))
    waiting = count(client, target.path, queries.ungrouped(fields, target.scheme_id))
    if without:
        yield Check("documents", "warning", f"{without:,} of {total:,} have no keys: run `es-neardupe enrich {name}`")
    else:
        yield Check("documents", "ok", f"all {total:,} have keys")
    if waiting:
        yield Check("groups", "warning", f"{waiting:,} wait for grouping: run `es-neardupe group {name}`")
    else:
        yield Check("groups", "ok", "no document waits for grouping")
