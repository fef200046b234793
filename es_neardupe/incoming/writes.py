"""Writes, such as bulk actions, that get the fingerprint fields before they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.index.document_text import fingerprint_sources, has_any
from es_neardupe.index.mapping import dotted_names, foreign_value, relation_in
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import encode, timestamp
from es_neardupe.index.updates import InUse, first_groups
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Address, Fingerprint
from es_neardupe.server.bulk import chunked

_CHUNK = 256
_CLEARED = dict.fromkeys(("content", "signature", "numeric", "principal", "similarity"))
"""Fields that an update sets to null unless the new text has a value for them."""


@dataclass(slots=True)
class Incoming:
    """A write that is about to be sent."""

    action: Mapping[str, Any]
    """As the caller passed it."""
    op: str
    address: Address | None
    """None if the server chooses the id."""
    routing: str | None
    source: Mapping[str, Any]
    """The document, or its changed fields."""
    fingerprint: Fingerprint | None
    """None if the write gets no keys."""
    changes_text: bool
    """Whether the text of the document is another one after this write, or the document is deleted."""

    @property
    def is_whole(self) -> bool:
        """Whether a document is indexed as a whole, with keys."""
        return self.fingerprint is not None and self.op != "update"


Piece = Sequence[Incoming]
"""Writes that are processed together."""

ChooseGroups = Callable[[Iterator[Piece]], Iterator[tuple[Piece, Sequence["Mapping[str, Any] | None"]]]]
"""Returns each piece with the group fields of its writes, which only documents that are indexed as a whole get; None:
leave the write out."""


def of_their_own(in_use: InUse = lambda ids: ()) -> ChooseGroups:
    """Each document gets a group of its own; without ``_id``, with a random id. If its own group id is ``in_use``, it
    waits for ``group``."""

    def choose(pieces: Iterator[Piece]) -> Iterator[tuple[Piece, list[Mapping[str, Any]]]]:
        for piece in pieces:
            yield piece, own_groups(piece, in_use)

    return choose


def own_groups(piece: Piece, in_use: InUse) -> list[Mapping[str, Any]]:
    """The group fields of each write if every document gets a group of its own; empty for other writes."""
    groups = iter(first_groups([one.address for one in piece if one.is_whole], in_use))
    return [next(groups) if one.is_whole else {} for one in piece]


def first_fields(fingerprint: Fingerprint, group: Mapping[str, Any], at: str) -> dict[str, Any]:
    """The ``neardupe`` object of a document that is indexed as a whole: its fingerprint and its group fields."""
    return {name: value for name, value in {**encode(fingerprint, at), **group}.items() if value is not None}


def fingerprinted_actions(
    actions: Iterable[Mapping[str, Any]],
    settings: Settings,
    *,
    index: str | None = None,
    max_chars: int = DEFAULT_MAX_CHARS,
    skipped_relations: Mapping[str, Sequence[str]] = MappingProxyType({}),
    choose_groups: ChooseGroups | None = None,
) -> Iterator[dict[str, Any]]:
    """Add the fingerprint fields to bulk actions in the form of the drivers' ``helpers.bulk``.

    Actions of type ``index`` and ``create`` (the default), flat or with ``_source``, get a full fingerprint. An
    ``update`` whose ``doc`` has all configured fields gets one too; an ``update`` of only some of them marks the
    document as stale, so that the next ``enrich`` renews it. All other actions are returned unchanged. The input is not
    modified. ``index`` is the index of actions without ``_index``.

    A document that is indexed as a whole gets the group that ``choose_groups`` returns; by default one of its own, see
    `of_their_own`. An update keeps the group id, and its document waits for ``group``.

    ``skipped_relations``: join field -> the relations whose documents get no keys. An update without the relation of
    its document marks it as stale.

    A document that has another value under the names of the fields is returned unchanged, and gets no keys: ``enrich``
    names it. Fields with dotted names are replaced by the object.
    """
    pieces = (_incoming(chunk, settings, index, max_chars, skipped_relations) for chunk in chunked(actions, _CHUNK))
    for piece, groups in (choose_groups or of_their_own())(pieces):
        at = timestamp()
        for one, group in zip(piece, groups, strict=True):
            if group is None:
                continue
            if one.fingerprint is not None:
                cleared = {} if one.is_whole else _CLEARED
                yield _with(one.action, settings, {**cleared, **first_fields(one.fingerprint, group, at)})
            elif one.changes_text and one.op == "update":
                yield _with(one.action, settings, {"scheme": None})
            else:
                yield dict(one.action)


def _incoming(
    chunk: Sequence[Mapping[str, Any]],
    settings: Settings,
    index: str | None,
    max_chars: int,
    skipped_relations: Mapping[str, Sequence[str]],
) -> list[Incoming]:
    """The actions of a chunk, with the fingerprints of those that have a complete text."""
    sources = [_document(action) for action in chunk]
    skipped = [_is_skipped(one, skipped_relations) or foreign_value(one, settings) is not None for one in sources]
    complete = [
        not one and _is_complete(action, settings, skipped_relations)
        for action, one in zip(chunk, skipped, strict=True)
    ]
    texts = [source for source, one in zip(sources, complete, strict=True) if one]
    fingerprints = fingerprint_sources(texts, settings, max_chars)
    return [
        Incoming(
            action,
            _type(action),
            _address(action, index),
            _routing(action),
            source,
            next(fingerprints) if has_keys else None,
            has_keys or _type(action) == "delete" or (not left and _changes_text(action, settings)),
        )
        for action, source, has_keys, left in zip(chunk, sources, complete, skipped, strict=True)
    ]


def _type(action: Mapping[str, Any]) -> str:
    if not isinstance(action, Mapping):
        raise SettingsError(f"An action must be a dict, as for the bulk helpers of the clients, not {action!r:.100}.")
    return str(action.get("_op_type", "index"))


def _path(action: Mapping[str, Any]) -> tuple[str, ...]:
    """Path of the document, or of its changed fields, in an action: flat, in ``_source``, or in ``doc``."""
    changed = ("doc",) if _type(action) == "update" else ()
    return ("_source", *changed) if isinstance(action.get("_source"), Mapping) else changed


def _document(action: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document, or its changed fields."""
    inner: Any = action
    for name in _path(action):
        inner = inner.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _is_complete(action: Mapping[str, Any], settings: Settings, skipped_relations: Mapping[str, Sequence[str]]) -> bool:
    """Whether an action has all that a fingerprint needs: all text fields and, with a join field, the relation."""
    if _type(action) in ("index", "create"):
        return True
    document = _document(action)
    return (
        _type(action) == "update"
        and all(has_any(document, [name]) for name in settings.fields)
        and (not skipped_relations or any(relation_in(document, name) for name in skipped_relations))
    )


def _changes_text(action: Mapping[str, Any], settings: Settings) -> bool:
    return _type(action) == "update" and has_any(_document(action), settings.fields)


def _is_skipped(document: Mapping[str, Any], skipped_relations: Mapping[str, Sequence[str]]) -> bool:
    """Whether a document has a relation whose documents get no keys."""
    return any(relation_in(document, name) in relations for name, relations in skipped_relations.items())


def _address(action: Mapping[str, Any], index: str | None) -> Address | None:
    """The address of a document; None if the action does not have it."""
    name, id = action.get("_index", index), action.get("_id")
    return None if name is None or id is None else Address(str(name), str(id))


def _routing(action: Mapping[str, Any]) -> str | None:
    """The routing of an action, by either of the names that the drivers accept."""
    routing = action.get("routing", action.get("_routing"))
    return None if routing is None else str(routing)


def _with(action: Mapping[str, Any], settings: Settings, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The action with the ``neardupe`` object in its document, and without such fields that have dotted names: the
    server does not `collapse` by two values."""
    document = {**_document(action), **settings.in_document(dict(fields))}
    for name in dotted_names(document, settings.prefix):
        del document[name]
    return _put(action, _path(action), document)


def _put(inner: Mapping[str, Any], path: Sequence[str], value: dict[str, Any]) -> dict[str, Any]:
    """A copy with another value at a path."""
    if not path:
        return value
    name, *rest = path
    return {**inner, name: _put(inner[name], rest, value)}
