"""Stage: the user's own bulk actions -> the same actions with fingerprint fields, before they are indexed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from es_neardupe import options
from es_neardupe.index.document_text import fingerprint_sources, has_any
from es_neardupe.index.index import Index, opened_inline
from es_neardupe.index.mapping import relation_in
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import encode, own_group, timestamp
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked

__all__ = ["fingerprinted", "fingerprinted_actions", "first_fields"]

_CHUNK = 256
_OF_BEFORE = dict.fromkeys(("content", "signature", "numeric", "principal", "similarity"))
"""What an update has to clear where the new text gives nothing to put in its place."""


def first_fields(
    sources: Sequence[Mapping[str, Any]],
    addresses: Sequence[Address | None],
    settings: Settings,
    max_chars: int,
) -> list[dict[str, Any]]:
    """Our object field for documents that are indexed whole: fingerprint, and a group of their own.

    Without an address (the server will choose the id) there is no group id yet; ``enrich`` adds it.
    """
    at = timestamp()
    found = fingerprint_sources(sources, settings, max_chars)
    result = []
    for fingerprint, address in zip(found, addresses, strict=True):
        fields = {name: value for name, value in encode(fingerprint, at).items() if value is not None}
        result.append(fields | ({"group": own_group(*address)} if address else {}))
    return result


def fingerprinted(
    index: Index, actions: Iterable[Mapping[str, Any]], *, max_chars: options.MaxChars = DEFAULT_MAX_CHARS
) -> Iterator[dict[str, Any]]:
    """Add the keys to your own bulk actions: hand the result to the driver's ``helpers.bulk``.

    See `fingerprinted_actions` for what happens to which action. Actions that name no index are taken to go to this
    one.
    """
    found = opened_inline(index, "fingerprinted", writes=True)
    yield from fingerprinted_actions(
        actions, found.settings, index=index.name, max_chars=max_chars, left_alone=found.target.skipped_relations
    )


def fingerprinted_actions(
    actions: Iterable[Mapping[str, Any]],
    settings: Settings,
    *,
    index: str | None = None,
    max_chars: int = DEFAULT_MAX_CHARS,
    left_alone: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[dict[str, Any]]:
    """Add the fingerprint fields to bulk actions as the drivers' ``helpers.bulk`` takes them.

    Actions of type ``index`` and ``create`` (the default), flat or with ``_source``, get a full fingerprint. An
    ``update`` whose ``doc`` holds all configured fields gets one too; one that holds only some of them marks the
    document as stale, so that the next ``enrich`` renews it; any other action passes unchanged. The actions
    given are not modified. ``index`` is the index of actions that name none.

    ``left_alone``: join field -> the relations whose documents get no keys. An update that does not say which relation
    its document has marks it as stale.
    """
    for chunk in chunked(actions, _CHUNK):
        alone = {place for place, action in enumerate(chunk) if _is_left_alone(action, left_alone)}
        known = {place for place, action in enumerate(chunk) if not left_alone or _tells_relation(action, left_alone)}
        places = [place for place in sorted(known - alone) if _is_whole(chunk[place], settings)]
        sources = [_document(chunk[place]) for place in places]
        addresses = [_address(chunk[place], index) for place in places]
        fields = dict(zip(places, first_fields(sources, addresses, settings, max_chars), strict=True))
        for place, action in enumerate(chunk):
            if place in fields:
                cleared = _OF_BEFORE if _type(action) == "update" else {}
                yield _with(action, settings.prefix, {**cleared, **fields[place]})
            elif place not in alone and _is_partial(action, settings):
                yield _with(action, settings.prefix, {"scheme": None})
            else:
                yield dict(action)


def _type(action: Mapping[str, Any]) -> str:
    return str(action.get("_op_type", "index"))


def _path(action: Mapping[str, Any]) -> tuple[str, ...]:
    """Where in an action the document, or its change, stands: flat, in ``_source``, or in ``doc``."""
    whole = ("_source",) if isinstance(action.get("_source"), Mapping) else ()
    return (*whole, "doc") if _type(action) == "update" else whole


def _document(action: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of an action that becomes, or changes, the document."""
    inner: Any = action
    for name in _path(action):
        inner = inner.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _is_whole(action: Mapping[str, Any], settings: Settings) -> bool:
    if _type(action) in ("index", "create"):
        return True
    return _type(action) == "update" and all(has_any(_document(action), [name]) for name in settings.fields)


def _is_partial(action: Mapping[str, Any], settings: Settings) -> bool:
    return _type(action) == "update" and has_any(_document(action), settings.fields)


def _is_left_alone(action: Mapping[str, Any], left_alone: Mapping[str, Sequence[str]]) -> bool:
    """Whether the document says that it is of one of these relations."""
    return any(relation_in(_document(action), name) in some for name, some in left_alone.items())


def _tells_relation(action: Mapping[str, Any], left_alone: Mapping[str, Sequence[str]]) -> bool:
    """Whether the relation of the document can be told: one without any has none, an update may leave it as it is."""
    return _type(action) != "update" or any(relation_in(_document(action), name) for name in left_alone)


def _address(action: Mapping[str, Any], index: str | None) -> Address | None:
    name, id = action.get("_index", index), action.get("_id")
    return None if name is None or id is None or _type(action) == "update" else Address(str(name), str(id))


def _with(action: Mapping[str, Any], prefix: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The action with our object field in its document."""
    return _put(action, (*_path(action), prefix), dict(fields))


def _put(inner: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy with another value at a path."""
    name, *rest = path
    return {**inner, name: _put(inner[name], rest, value) if rest else value}
