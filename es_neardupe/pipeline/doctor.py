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
from es_neardupe.indices import Target, check_source, check_text_fields, mappings_of, stored_settings
from es_neardupe.keys.scheme import agreement
from es_neardupe.records import Product
from es_neardupe.rights import seen_in_part
from es_neardupe.settings import DEFAULT_PREFIX, Settings
from es_neardupe.sidecar import must_be_stored, opened, sidecar_name, sidecars_of, writes_group

__all__ = ["Check", "Level", "doctor"]

Level = str
"""``ok``, ``warning`` or ``error``."""

_UNKNOWN = ("?",)
_LOOKING_PRIVILEGES = ["read", "view_index_metadata"]
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
    beside = sidecars_of(client, mappings, prefix)
    for name, mapping in mappings.items():
        settings = _settings(beside.get(name, mapping), prefix)
        checks.append(_texts(name, mapping, settings, beside=name in beside))
        if settings.fields != _UNKNOWN:
            fine = f"{', '.join(settings.fields)} in {name}"
            checks.append(_tried("fields", partial(check_text_fields, name, mapping, settings), fine))
    checks += _beside(client, index, beside, prefix)
    try:
        client, target = opened(client, index, prefix)
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


def _texts(name: str, mapping: dict[str, object], settings: Settings, *, beside: bool) -> Check:
    """Whether the texts can be read back, and inline whether an update would lose nothing."""
    if not beside or settings.fields == _UNKNOWN:
        return _tried("_source", partial(check_source, name, mapping, settings), "holds the texts")
    return _tried("_source", partial(_read_back, name, mapping, settings), "the texts can be read")


def _read_back(name: str, mapping: dict[str, object], settings: Settings) -> None:
    must_be_stored(name, mapping, settings)


def _beside(client: Client, index: str, beside: Mapping[str, Any], prefix: str) -> Iterator[Check]:
    """Rights and blocks: of the index that is written, which may be one of ours beside it."""
    if not beside:
        yield _privileges(client, "privileges", index, _INDEX_PRIVILEGES)
        yield _blocks(client, index)
        return
    names = ",".join(sidecar_name(one, prefix) for one in sorted(beside))
    written = any(writes_group(one) for one in beside.values())
    yield Check("sidecar", "ok", f"keys are kept in {names}" + (", group ids in the documents too" if written else ""))
    yield _privileges(client, "privileges", index, _INDEX_PRIVILEGES if written else _LOOKING_PRIVILEGES)
    yield _privileges(client, "privileges", names, _INDEX_PRIVILEGES)
    yield _blocks(client, f"{index},{names}" if written else names)


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
    body = {"cluster": ["monitor"], "index": [{"names": index.split(","), "privileges": wanted}]}
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
