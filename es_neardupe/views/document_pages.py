"""One document or two as the web application, programs and agents see them: the text, what can be decided about it, and
what was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, overload

from es_neardupe.errors import InputError, SettingsError
from es_neardupe.groups.decisions import Decision, Decisions, Verdict, said_about_pairs
from es_neardupe.groups.former import FormerVerdict, former_verdicts
from es_neardupe.groups.listing import QueuePlace, queue_place
from es_neardupe.groups.read import known_records, with_other_documents
from es_neardupe.groups.registry import GroupRecord
from es_neardupe.groups.reviewed import last_decisions
from es_neardupe.index.document_text import prepared_text, read_values
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import NO_FIELDS, shown_fields
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.keys.text import contents
from es_neardupe.records import Address, one_line
from es_neardupe.verification.current_texts import current_source


@overload
def by_address(id: str, index: str | None) -> str | Address: ...
@overload
def by_address(id: str | None, index: str | None) -> str | Address | None: ...
def by_address(id: str | None, index: str | None) -> str | Address | None:
    """A document as it is given by its id, and by its concrete index if that is known; None for none. Raises
    `SettingsError` for an index without an id."""
    if not index:
        return id
    if id is None:
        raise SettingsError(f"The index {index!r} of a document is given without its id: add the id, or leave it out.")
    return Address(index, id)


@dataclass(frozen=True)
class CurrentDocument:
    """A document with the state of its text."""

    address: Address
    content: str | None
    """The content hash of its text; None if it has no words, cannot be read, or has changed since `enrich`: then
    nothing can be decided about it."""
    changed: bool
    """Whether its text has changed since `enrich`, or is new."""
    group: str | None
    characters: int
    """Those of its text."""


@dataclass(frozen=True)
class DocumentReview:
    """One document or two, and what reviewers have decided about their texts."""

    documents: tuple[CurrentDocument, ...]
    group: str | None
    """The group that has all of them; None for a document that is alone."""
    record: GroupRecord | None
    """Its record in the registry; None if there is none, or if this user may not read it."""
    queue: QueuePlace | None
    """Where it stands; None if it has exact copies only."""
    decisions: Sequence[Decision]
    """Those that hold and are about at least one of these texts, newest first."""
    last: Sequence[Decision]
    """Those that the reviewer has stored last about these texts, or others of the group."""
    former: Sequence[FormerVerdict] = ()
    """What was decided about both documents before one of them or both changed."""

    @property
    def copies(self) -> bool:
        """Whether these are exact copies."""
        known = [one.content for one in self.documents]
        return len(known) > 1 and None not in known and len(set(known)) == 1

    @property
    def characters(self) -> int:
        """Those of the texts together."""
        return sum(one.characters for one in self.documents)

    @property
    def decidable(self) -> bool:
        """Whether something can be decided about each of these texts."""
        return all(one.content is not None for one in self.documents)

    @property
    def verdicts(self) -> Mapping[str, tuple[Verdict, Decision]]:
        """What each reviewer says about the two texts."""
        if len(self.documents) != 2 or not self.decidable:
            return {}
        low, high = sorted(one.content or "" for one in self.documents)
        return said_about_pairs(reversed(self.decisions)).get((low, high), {})


def review_of_documents(index: Index, documents: Sequence[str | Address], reviewer: str) -> DocumentReview:
    """One document or two of an opened index, and the decisions about their texts, as one ``reviewer`` sees them.
    Raises `NotFound` and `SettingsError` as `current_source` does."""
    found = tuple(_current(index, one) for one in documents)
    groups = {one.group for one in found}
    group = groups.pop() if len(groups) == 1 else None
    record = None if group is None else known_records(index, [group]).get(group)
    if group is not None and record is None and not with_other_documents(index, [group]):
        group = None
    contents_of = {one.address: one.content for one in found if one.content is not None}
    known = set(contents_of.values())
    return DocumentReview(
        documents=found,
        group=group,
        record=record,
        queue=queue_place(index, record.group, record.size) if record is not None and record.texts > 1 else None,
        decisions=Decisions(index).about(known)[::-1],
        last=last_decisions(index, group, known, reviewer),
        former=former_verdicts(index, contents_of) if len(known) > 1 else (),
    )


def _current(index: Index, document: str | Address) -> CurrentDocument:
    return _state(index, *current_source(index, document, _state_fields(index)))


def _state_fields(index: Index) -> list[str]:
    return [*index.settings.fields, index.fields.content, index.fields.group]


def _state(index: Index, address: Address, source: Mapping[str, Any]) -> CurrentDocument:
    stored = stored_fields(source, index.settings.prefix)
    text = content = ""
    with suppress(InputError):  # a text that cannot be read
        text = prepared_text(source, index.settings)
        (content,) = contents([text])
    changed = bool(content) and stored.get("content") != content
    return CurrentDocument(address, None if changed else content or None, changed, group_of(stored), len(text))


@dataclass(frozen=True)
class DocumentPart:
    """A document with a part of its text."""

    index: str
    id: str
    fields: Mapping[str, str]
    """Field -> its text, for the fields to show."""
    text: str
    """The text from character ``start`` on."""
    start: int
    """Number of its first character, from 0."""
    characters: int
    """Characters of the whole text."""
    changed: bool
    """Whether the text has changed since `enrich`, or is new."""
    group: str | None

    def __repr__(self) -> str:
        return one_line(self, index=self.index, id=self.id, characters=self.characters, group=self.group)


def part_of_document(
    index: Index, document: str | Address, fields: Sequence[str], *, start: int = 0, size: int
) -> DocumentPart:
    """A document with up to ``size`` characters of its text. ``fields`` are shown; by default its title. Raises
    `NotFound` and `SettingsError` as `current_source` does, `InputError` for a text that cannot be read."""
    index = opened(index, texts=True)
    shown = shown_fields(index, fields)
    if shown.beginning_of is not None:
        shown = NO_FIELDS
    address, source = current_source(index, document, [*_state_fields(index), *shown.names])
    text = index.settings.scheme.preparation.placed(read_values(source, index.settings.fields)).original
    state = _state(index, address, source)
    part = text[start : start + size]
    return DocumentPart(address.index, address.id, shown.of(source), part, start, len(text), state.changed, state.group)
