"""Permission checks before a command starts: access to all documents and fields, updates, deletion, write blocks.

Servers can hide documents and fields of an index from some users. Elasticsearch has an API that reports this.
OpenSearch has none, but rejects updates by such users; so before anything is written, an update of a document that does
not exist is sent.

Read-only commands need no check: their results are what the user may see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

from es_neardupe.errors import Blocked, Forbidden, NotFound, RequestError, UnsupportedServer
from es_neardupe.index.handle import IndexHandle, UnpreparedIndex
from es_neardupe.index.target import STORE_TYPE, Definitions, write_blocks
from es_neardupe.records import Product, Service
from es_neardupe.server.client import NO_DOCUMENT, Client, path
from es_neardupe.server.search import knows
from es_neardupe.wording import command, indices

_READING = {"read", "all"}

_HIDDEN = re.compile(r"\b(DLS|FLS)\b|field or document level security")
"""Words in the error if OpenSearch or Elasticsearch rejects an update because documents or fields are hidden."""


def check_sees_all(index: IndexHandle, operation: str) -> None:
    """Raises `Forbidden` if the user may see only a part of the documents or fields; ``operation`` needs all."""
    _check_none_partly_visible(partly_visible(index), operation)


def check_updates(index: IndexHandle, operation: str, *, whole: bool = False) -> None:
    """Raises `Forbidden` if the server rejects the user's updates because documents or fields are hidden.

    Sends an update of a document that does not exist: to OpenSearch with security, to Elastic Cloud Serverless, which
    does not report the privileges of users, and if ``whole`` documents will be written, also to Elasticsearch, which
    does not report those of every login (see `partly_visible`). With
    ``whole``, rejections for other reasons are raised too.
    """
    serverless = index.client.server.service is Service.ELASTIC_SERVERLESS
    if whole or serverless or _has_security_plugin(index.client):
        hidden = [one for one in index.target.indices if not _may_update(index, one, raise_others=whole)]
        _check_none_partly_visible(hidden, operation)


def _check_none_partly_visible(indices: Sequence[str], operation: str) -> None:
    if indices:
        raise Forbidden(
            f"This user sees only a part of the documents or fields of {', '.join(indices)}, and {operation} needs "
            f"all of them: log in as a user whose roles have no query and no list of fields for it.",
            status=403,
        )


def _has_security_plugin(client: Client) -> bool:
    """Whether this is an OpenSearch with security, which can hide documents and fields."""
    opensearch = client.server.product is Product.OPENSEARCH
    return opensearch and knows(client, "GET", path("_plugins", "_security", "authinfo"))


def _may_update(index: IndexHandle, concrete: str, *, raise_others: bool) -> bool:
    """Whether updates are not rejected because documents or fields are hidden. Rejections for other reasons are raised
    if ``raise_others``; otherwise the first write will report them."""
    try:
        routing = {} if index.client.server.is_collection else {"routing": NO_DOCUMENT}
        index.client.request("POST", path(concrete, "_update", NO_DOCUMENT), params=routing, body={"doc": {}})
    except NotFound:
        pass
    except RequestError as error:
        if _HIDDEN.search(error.reason):
            return False
        if raise_others:
            raise
    return True


def check_takes_ids(client: Client, names: Sequence[str]) -> None:
    """Raises `UnsupportedServer` if a collection of Amazon OpenSearch Serverless accepts no ids of documents, which
    depends on its type. Sends an update of a document that does not exist."""
    for name in names if client.server.is_collection else ():
        try:
            client.request("POST", path(name, "_update", NO_DOCUMENT), body={"doc": {}})
        except (Forbidden, NotFound):
            continue
        except RequestError as error:
            raise UnsupportedServer(
                "Collections of this type accept no document ids, so keys cannot be stored: use a collection of type "
                "SEARCH."
            ) from error


def check_may_delete(client: Client, names: Sequence[str]) -> None:
    """Raises `Forbidden` if the user may not delete all of the indices. Does nothing if the server has no API for
    this."""
    if not names or client.server.product is not Product.ELASTICSEARCH:
        return
    body = {"index": [{"names": list(names), "privileges": ["delete_index"]}]}
    try:
        answer = client.request("POST", path("_security", "user", "_has_privileges"), body=body)
    except RequestError:
        return
    if lacking := [name for name in names if not answer["index"][name]["delete_index"]]:
        raise Forbidden(
            f"{answer['username']} lacks the index privilege 'delete_index' on the hidden indices "
            f"{', '.join(lacking)}, which the command deletes. Nothing was changed: ask an administrator to grant it; "
            f"`es-neardupe doctor` lists the privileges that each command needs.",
            status=403,
        )


def partly_visible(index: IndexHandle) -> list[str]:
    """The indices with documents or fields that roles hide from the user. Empty if the server does not report this:
    OpenSearch has no API for it, and Elasticsearch may not answer for an API key."""
    if index.client.server.product is not Product.ELASTICSEARCH:
        return []
    try:
        answer = index.client.request("GET", path("_security", "user", "_privileges"))
    except RequestError:  # no security, or not available for this kind of login
        return []
    grants = [one for one in answer["indices"] if _READING & set(one["privileges"])]
    return [concrete for concrete in index.target.indices if _in_part(grants, {concrete, index.name})]


def _in_part(grants: list[Mapping[str, Any]], names: set[str]) -> bool:
    """Whether all grants for an index limit documents or fields: privileges add up, so one without a limit is enough.

    If no grant matches, the user must have access by a regular expression of Lucene, which is not evaluated here: then
    one limited grant with a regular expression is enough.
    """
    matching = [one for one in grants if any(_matches(pattern, name) for pattern in one["names"] for name in names)]
    if not matching:
        return any(_is_limited(one) for one in grants if any(_is_regex(pattern) for pattern in one["names"]))
    return all(_is_limited(one) for one in matching)


def _is_limited(grant: Mapping[str, Any]) -> bool:
    fields = grant.get("field_security") or [{"grant": ["*"]}]
    return bool(grant.get("query")) or not any("*" in one["grant"] and not one.get("except") for one in fields)


def _matches(pattern: str, name: str) -> bool:
    """Whether an index matches a pattern of a role: a name, with ``*`` and ``?``, or a ``/regex/``."""
    if _is_regex(pattern):
        try:
            return re.fullmatch(pattern[1:-1], name) is not None
        except re.error:  # syntax of Lucene only
            return False
    return fnmatchcase(name, pattern)


def _is_regex(pattern: str) -> bool:
    return len(pattern) > 1 and pattern[0] == pattern[-1] == "/"


BLOCK_SETTINGS = ("index.blocks.*", STORE_TYPE)
"""The settings that can make an index read-only."""

Blocks = Mapping[str, Sequence[str]]
"""Concrete index -> names of the settings that make it read-only, at least one."""


def blocks_of(definitions: Definitions) -> Blocks:
    """The settings that make the indices of a name read-only."""
    settings = definitions.settings(*BLOCK_SETTINGS)
    return {index: blocks for index, one in settings.items() if (blocks := write_blocks(one))}


def check_writable(index: IndexHandle | UnpreparedIndex, *, written: str | None = None, new: bool = False) -> None:
    """Raises `Blocked` if an index is read-only.

    ``written``: the indices that will be written, if not those of its name. ``new``: the index has no keys yet, so
    these can be stored in a sidecar index instead.
    """
    check_unblocked(index.name, blocks_of(Definitions(index.client, written or index.name)), new=new)


def check_unblocked(name: str, blocks: Blocks, *, new: bool = False) -> None:
    """Raises `Blocked` if there are any blocks of the indices of a name. ``new``: see `check_writable`."""
    if blocks:
        raise Blocked(
            f"{indices(blocks, 'is', 'are')} blocked for writing by {', '.join(block_names(blocks))}. "
            f"{how_to_unblock(name, blocks, new=new)}",
            status=403,
            type="cluster_block_exception",
        )


def block_names(blocks: Blocks) -> list[str]:
    """The names of the settings, without duplicates."""
    return sorted({*chain.from_iterable(blocks.values())})


def how_to_unblock(name: str, blocks: Blocks, *, new: bool = False) -> str:
    """How to fix the `blocks_of` a name, for a message. ``new``: see `check_writable`; an index that has keys in
    its documents can have a sidecar index under another prefix only."""
    frozen = [index for index, keys in blocks.items() if STORE_TYPE in keys]
    others = {index: keys for index, keys in blocks.items() if index not in frozen}
    init, sentences = command("init", name, prefix=None if new else "OTHER"), []
    sidecar = f"`{init} --field FIELD --sidecar`"
    if frozen:
        sentences.append(
            f"{', '.join(frozen)}: a searchable snapshot, which cannot be written. Store keys and group ids in a "
            f"sidecar index, with {sidecar}."
        )
    if others:
        settings = json.dumps(dict.fromkeys(block_names(others)))
        sentences.append(
            f"To remove the block, if it is a mistake or the disk has space again: "
            f"PUT /{','.join(others)}/_settings {settings}"
        )
        if new and not frozen:
            sentences.append(f"To keep the block, store the keys in a sidecar index, with {sidecar}.")
    return " ".join(sentences)
