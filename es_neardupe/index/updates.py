"""Stage: documents as they were read -> the updates that give them their fingerprint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import decode, encode, group_of, own_group, stored_fields
from es_neardupe.records import Action, Fingerprint, Hit

__all__ = ["DocumentUpdate", "is_current", "plan", "source_of", "update"]


@dataclass(frozen=True, slots=True)
class DocumentUpdate:
    """A document and the fingerprint that its present text has."""

    hit: Hit
    fingerprint: Fingerprint


def source_of(settings: Settings, inherits: str | None = None) -> list[str]:
    """What `plan` and `update` have to read of a document."""
    ours = ("scheme", "state", "content", "tokens", "features", "numeric", "group")
    former = [] if inherits is None else [f"{inherits}.group"]
    return [*settings.fields, *(f"{settings.prefix}.{name}" for name in ours), *former]


def plan(pages: Iterable[Sequence[Hit]], settings: Settings, max_chars: int) -> Iterator[DocumentUpdate]:
    """Fingerprint page by page."""
    for page in pages:
        found = fingerprint_sources([hit.source for hit in page], settings, max_chars)
        yield from map(DocumentUpdate, page, found)


def is_current(plan: DocumentUpdate, settings: Settings) -> bool:
    """Whether the stored fingerprint fits the text, as far as scheme, state, hash and mark of numbers tell."""
    stored = stored_fields(plan.hit.source, settings.prefix)
    if not stored:
        return False
    try:
        there = decode(stored)
    except CorruptFingerprint:
        return False
    wanted = plan.fingerprint
    known = (there.scheme, there.state, there.content, there.numeric)
    same = known == (wanted.scheme, wanted.state, wanted.content, wanted.numeric)
    return same and group_of(stored) is not None


def update(plan: DocumentUpdate, settings: Settings, at: str, *, current: bool, inherits: str | None = None) -> Action:
    """The partial update that stores the fingerprint, refused by the server if the document changed since.

    A document that was not ``current`` waits for ``group`` (similarity and principal null) but keeps its
    group id till then; a new one takes the id that it has under the prefix that it ``inherits`` from, or founds a group
    of its own, since ``collapse`` would merge those without any.
    """
    hit = plan.hit
    fields = encode(plan.fingerprint, at)
    if current:
        del fields["similarity"]
    else:
        group = group_of(stored_fields(hit.source, settings.prefix))
        if group is None and inherits is not None:
            group = group_of(stored_fields(hit.source, inherits))
        fields["group"] = group or own_group(hit.index, hit.id)
        fields["principal"] = None
    return Action(
        op="update",
        index=hit.index,
        id=hit.id,
        body={"doc": {settings.prefix: fields}},
        routing=hit.routing,
        seq_no=hit.seq_no,
        primary_term=hit.primary_term,
    )
