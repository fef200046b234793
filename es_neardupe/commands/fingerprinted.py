"""``fingerprinted``: adds the fingerprint fields to bulk actions before they are indexed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from es_neardupe import options
from es_neardupe.index.document_text import fingerprint_sources, has_any
from es_neardupe.index.index import Index, opened_inline
from es_neardupe.index.mapping import relation_in
from es_neardupe.index.own_groups import GroupIdsInUse, InUse, first_groups
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import encode, timestamp
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked

__all__ = ["fingerprinted", "fingerprinted_actions", "first_fields"]

_CHUNK = 256
_CLEARED = dict.fromkeys(("content", "signature", "numeric", "principal", "similarity"))
"""Fields that an update sets to null unless the new text has a value for them."""


def first_fields(
    sources: Sequence[Mapping[str, Any]],
    groups: Sequence[Mapping[str, Any]],
    settings: Settings,
    max_chars: int,
) -> list[dict[str, Any]]:
    """The ``neardupe`` object of documents that are indexed as a whole: the fingerprint, and the group fields of
    each."""
    at = timestamp()
    fingerprints = fingerprint_sources(sources, settings, max_chars)
    return [
        {name: value for name, value in {**encode(fingerprint, at), **group}.items() if value is not None}
        for fingerprint, group in zip(fingerprints, groups, strict=True)
    ]


def fingerprinted(
    index: Index, actions: Iterable[Mapping[str, Any]], *, max_chars: options.MaxChars = DEFAULT_MAX_CHARS
) -> Iterator[dict[str, Any]]:
    """Add the keys to your own bulk actions: pass the result to the driver's ``helpers.bulk``.

    See `fingerprinted_actions` for the kinds of actions. Actions without ``_index`` are assumed to go to this index.
    """
    found = opened_inline(index, "fingerprinted", writes=True)
    yield from fingerprinted_actions(
        actions,
        found.settings,
        index=index.name,
        max_chars=max_chars,
        left_alone=found.target.skipped_relations,
        in_use=GroupIdsInUse(found).among,
    )


def fingerprinted_actions(
    actions: Iterable[Mapping[str, Any]],
    settings: Settings,
    *,
    index: str | None = None,
    max_chars: int = DEFAULT_MAX_CHARS,
    left_alone: Mapping[str, Sequence[str]] = MappingProxyType({}),
    in_use: InUse = lambda ids: (),
) -> Iterator[dict[str, Any]]:
    """Add the fingerprint fields to bulk actions in the form of the drivers' ``helpers.bulk``.

    Actions of type ``index`` and ``create`` (the default), flat or with ``_source``, get a full fingerprint. An
    ``update`` whose ``doc`` has all configured fields gets one too; an ``update`` of only some of them marks the
    document as stale, so that the next ``enrich`` renews it. All other actions are returned unchanged. The input is not
    modified. ``index`` is the index of actions without ``_index``.

    A document that is indexed as a whole gets a group of its own; without ``_id``, with a random id. If its own group
    id is ``in_use``, it waits for ``group``. An update keeps the group id, and its document waits for ``group``.

    ``left_alone``: join field -> the relations whose documents get no keys. An update without the relation of its
    document marks it as stale.
    """
    for chunk in chunked(actions, _CHUNK):
        skipped = [_is_skipped(action, left_alone) for action in chunk]
        complete = [
            place
            for place, action in enumerate(chunk)
            if not skipped[place] and _is_complete(action, settings, left_alone)
        ]
        sources = [_document(chunk[place]) for place in complete]
        whole = [place for place in complete if _type(chunk[place]) != "update"]
        groups = dict(zip(whole, first_groups([_address(chunk[place], index) for place in whole], in_use), strict=True))
        fields = first_fields(sources, [groups.get(place, {}) for place in complete], settings, max_chars)
        added = dict(zip(complete, fields, strict=True))
        for place, action in enumerate(chunk):
            if place in added:
                cleared = _CLEARED if _type(action) == "update" else {}
                yield _with(action, settings, {**cleared, **added[place]})
            elif not skipped[place] and _changes_text(action, settings):
                yield _with(action, settings, {"scheme": None})
            else:
                yield dict(action)


def _type(action: Mapping[str, Any]) -> str:
    return str(action.get("_op_type", "index"))


def _path(action: Mapping[str, Any]) -> tuple[str, ...]:
    """Path of the document, or of its changed fields, in an action: flat, in ``_source``, or in ``doc``."""
    source = ("_source",) if isinstance(action.get("_source"), Mapping) else ()
    return (*source, "doc") if _type(action) == "update" else source


def _document(action: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document, or its changed fields."""
    inner: Any = action
    for name in _path(action):
        inner = inner.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _is_complete(action: Mapping[str, Any], settings: Settings, left_alone: Mapping[str, Sequence[str]]) -> bool:
    """Whether an action has all that a fingerprint needs: all text fields and, with a join field, the relation."""
    if _type(action) in ("index", "create"):
        return True
    document = _document(action)
    return (
        _type(action) == "update"
        and all(has_any(document, [name]) for name in settings.fields)
        and (not left_alone or any(relation_in(document, name) for name in left_alone))
    )


def _changes_text(action: Mapping[str, Any], settings: Settings) -> bool:
    return _type(action) == "update" and has_any(_document(action), settings.fields)


def _is_skipped(action: Mapping[str, Any], left_alone: Mapping[str, Sequence[str]]) -> bool:
    """Whether the document has a relation whose documents get no keys."""
    return any(relation_in(_document(action), name) in relations for name, relations in left_alone.items())


def _address(action: Mapping[str, Any], index: str | None) -> Address | None:
    """The address of a document; None if the action does not have it."""
    name, id = action.get("_index", index), action.get("_id")
    return None if name is None or id is None else Address(str(name), str(id))


def _with(action: Mapping[str, Any], settings: Settings, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The action with the ``neardupe`` object in its document."""
    changed = dict(action)
    for name, value in settings.in_document(dict(fields)).items():
        changed = _put(changed, (*_path(action), name), value)
    return changed


def _put(inner: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy with another value at a path."""
    name, *rest = path
    return {**inner, name: _put(inner[name], rest, value) if rest else value}
