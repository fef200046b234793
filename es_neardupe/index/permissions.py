"""Whether a user sees an index whole, and may do what comes last: asked before anything is done.

Servers can hide documents and fields of an index from some users. Elasticsearch tells whether they do. OpenSearch does
not; but it refuses updates to such users, so before anything is written it is asked for one that can change nothing.

What only looks needs no such question: the user's own connection asks, so it finds what this user may see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import Blocked, Forbidden, NotFound, RequestError
from es_neardupe.records import Product
from es_neardupe.server.client import Client, path
from es_neardupe.server.search import knows

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "ASKED",
    "check_may_delete",
    "check_sees_all",
    "check_updates",
    "check_writable",
    "names_of",
    "seen_in_part",
    "way_out",
    "write_blocks",
]


_READING = {"read", "all"}

_NOBODY = "es-neardupe-no-such-document"
_HIDDEN = re.compile(r"\b(DLS|FLS)\b|field or document level security")
"""In the words in which OpenSearch, and Elasticsearch, refuse an update of what a user sees a part of."""


def check_sees_all(index: Index, what: str) -> None:
    """Raises `Forbidden` if this user sees only a part of the documents or fields; ``what`` needs all of them."""
    _refuse(seen_in_part(index), what)


def check_updates(index: Index, what: str, *, whole: bool = False) -> None:
    """Raises `Forbidden` if this user's updates are refused since he sees only a part of the documents or fields.

    An update of a document that is not there is asked for. Elasticsearch, which `check_sees_all` has asked, only if
    ``whole`` documents will be written: then whoever may not update is refused too, as nobody knows what he sees.
    """
    if whole or _has_security_plugin(index.client):
        _refuse(
            [concrete for concrete in index.target.indices if not _may_update(index.client, concrete, surely=whole)],
            what,
        )


def _refuse(partly: Sequence[str], what: str) -> None:
    if partly:
        raise Forbidden(
            f"This user sees only a part of the documents or fields of {', '.join(partly)}, and {what} is about all "
            f"of them: log in as a user whose roles have no query and no list of fields for it.",
            status=403,
        )


def _has_security_plugin(client: Client) -> bool:
    """Whether this is an OpenSearch that may hide something."""
    opensearch = client.server.product is Product.OPENSEARCH
    return opensearch and knows(client, "GET", path("_plugins", "_security", "authinfo"))


def _may_update(client: Client, index: str, *, surely: bool) -> bool:
    """Whether updates are not refused for what is hidden. Refusals for another reason are raised if it must be known
    ``surely``; else they will come when something is written."""
    try:
        client.request("POST", path(index, "_update", _NOBODY), params={"routing": _NOBODY}, body={"doc": {}})
    except NotFound:
        pass
    except RequestError as error:
        if _HIDDEN.search(error.reason):
            return False
        if surely:
            raise
    return True


def check_may_delete(client: Client, names: Sequence[str]) -> None:
    """Raises `Forbidden` if this user may not delete all of these indices; not where nobody tells."""
    if not names or client.server.product is not Product.ELASTICSEARCH:
        return
    body = {"index": [{"names": list(names), "privileges": ["delete_index"]}]}
    try:
        answer = client.request("POST", path("_security", "user", "_has_privileges"), body=body)
    except RequestError:
        return
    if lacking := [name for name in names if not answer["index"][name]["delete_index"]]:
        raise Forbidden(
            f"{answer['username']} lacks the index privilege 'delete_index' on {', '.join(lacking)}: our hidden "
            f"indices there are deleted in the end. Nothing was changed: have it granted; `es-neardupe doctor` says "
            f"what each command needs.",
            status=403,
        )


def seen_in_part(index: Index) -> list[str]:
    """The indices of which roles hide documents or fields from this user. None of them where nobody tells:
    OpenSearch has no such request, and Elasticsearch may not answer it for an API key."""
    if index.client.server.product is not Product.ELASTICSEARCH:
        return []
    try:
        answer = index.client.request("GET", path("_security", "user", "_privileges"))
    except RequestError:  # no security here, or no answer for this kind of login
        return []
    grants = [one for one in answer["indices"] if _READING & set(one["privileges"])]
    return [concrete for concrete in index.target.indices if _in_part(grants, {concrete, index.name})]


def _in_part(grants: list[Mapping[str, Any]], names: set[str]) -> bool:
    """Rights add up: one grant without a limit shows everything. Where none fits, it is by a regex of Lucene's that
    the user reads the index, and any limit under one counts."""
    fitting = [one for one in grants if any(_fits(pattern, name) for pattern in one["names"] for name in names)]
    if not fitting:
        return any(_is_limited(one) for one in grants if any(_is_regex(pattern) for pattern in one["names"]))
    return all(_is_limited(one) for one in fitting)


def _is_limited(grant: Mapping[str, Any]) -> bool:
    fields = grant.get("field_security") or [{"grant": ["*"]}]
    return bool(grant.get("query")) or not any("*" in one["grant"] and not one.get("except") for one in fields)


def _fits(pattern: str, name: str) -> bool:
    """Whether an index is among those that a role names: by name, with ``*`` and ``?``, or by ``/a regex/``."""
    if _is_regex(pattern):
        try:
            return re.fullmatch(pattern[1:-1], name) is not None
        except re.error:  # Lucene's own syntax
            return False
    return fnmatchcase(name, pattern)


def _is_regex(pattern: str) -> bool:
    return len(pattern) > 1 and pattern[0] == pattern[-1] == "/"


_STORE = "index.store.type"
_SNAPSHOTS = ("snapshot", "remote_snapshot")
"""Stores of searchable snapshots, in Elasticsearch and in OpenSearch: such an index is never written again."""

ASKED = f"index.blocks.*,{_STORE}"
"""The settings that tell."""

Blocks = Mapping[str, list[str]]
"""Concrete index -> the names of the settings that keep it from being written, at least one."""


def write_blocks(client: Client, name: str) -> Blocks:
    """What keeps an index, or those behind a name, from being written, such as ``index.blocks.read_only``."""
    answer = client.request("GET", path(name, "_settings", ASKED), params={"flat_settings": "true"}) or {}
    found = {
        index: sorted(key for key, value in entry["settings"].items() if _forbids(key, value))
        for index, entry in sorted(answer.items())
    }
    return {index: keys for index, keys in found.items() if keys}


def _forbids(key: str, value: object) -> bool:
    if key == _STORE:
        return value in _SNAPSHOTS
    return str(value) == "true" and key.rpartition(".")[2] in ("read_only", "read_only_allow_delete", "write")


def check_writable(client: Client, name: str, *, written: str | None = None, new: bool = False) -> None:
    """Raises `Blocked` for an index that is read-only, before any work is done in vain.

    ``written``: the indices that are written for it, if these are others. ``new``: it has no keys yet, and these can be
    elsewhere.
    """
    if blocks := write_blocks(client, written or name):
        raise Blocked(
            f"Index {name} is blocked for writing by {', '.join(names_of(blocks))}. {way_out(name, blocks, new=new)}",
            status=403,
            type="cluster_block_exception",
        )


def names_of(blocks: Blocks) -> list[str]:
    """The settings, each once."""
    return sorted({*chain.from_iterable(blocks.values())})


def way_out(name: str, blocks: Blocks, *, new: bool = False) -> str:
    """What to say of the `write_blocks` of a name; see `check_writable`."""
    frozen = [index for index, keys in blocks.items() if _STORE in keys]
    others = {index: keys for index, keys in blocks.items() if index not in frozen}
    sidecar, said = f"`es-neardupe init {name} --sidecar`", []
    if frozen:
        said.append(
            f"{', '.join(frozen)}: a searchable snapshot, which nobody can write to. Store keys and group "
            f"ids in a sidecar index, with {sidecar}."
        )
    if others:
        settings = json.dumps(dict.fromkeys(names_of(others)))
        said.append(f"If that is a mistake, or the disk has room again: PUT /{','.join(others)}/_settings {settings}")
        if new and not frozen:
            said.append(f"If it is meant to stay, store the keys in a sidecar index, with {sidecar}.")
    return " ".join(said)
