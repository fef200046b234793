"""Fields that store fingerprints, from documents as they were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import decode, encode, group_of, own_group, stored_fields
from es_neardupe.records import Fingerprint, Hit

__all__ = ["FingerprintedDocument", "fingerprint_documents", "fingerprint_fields", "is_current"]


@dataclass(frozen=True, slots=True)
class FingerprintedDocument:
    """A document and the fingerprint of its current text."""

    hit: Hit
    fingerprint: Fingerprint


def fingerprint_documents(
    pages: Iterable[Sequence[Hit]], settings: Settings, max_chars: int
) -> Iterator[FingerprintedDocument]:
    """The documents of all pages with their fingerprints."""
    for page in pages:
        fingerprints = fingerprint_sources([hit.source for hit in page], settings, max_chars)
        yield from map(FingerprintedDocument, page, fingerprints)


def is_current(document: FingerprintedDocument, settings: Settings) -> bool:
    """Whether the document has a group id and a fingerprint with the scheme, state, content hash and ``numeric`` flag
    of its current text."""
    stored = stored_fields(document.hit.source, settings.prefix)
    if not stored:
        return False
    try:
        before = decode(stored)
    except CorruptFingerprint:
        return False
    now = document.fingerprint
    same = (before.scheme, before.state, before.content) == (now.scheme, now.state, now.content)
    return same and before.numeric == now.numeric and group_of(stored) is not None


def fingerprint_fields(
    document: FingerprintedDocument, settings: Settings, at: str, *, current: bool, inherits: str | None = None
) -> dict[str, Any]:
    """The fields that store the fingerprint, for an update of the document.

    A document that was not ``current`` waits for ``group``: similarity and principal become null, but it keeps its
    group id. A document without an id takes the one that it has under the prefix ``inherits``, or gets a group of its
    own, since ``collapse`` would merge all documents without an id.
    """
    hit = document.hit
    fields = encode(document.fingerprint, at)
    if current:
        del fields["similarity"]
    else:
        group = group_of(stored_fields(hit.source, settings.prefix))
        if group is None and inherits is not None:
            group = group_of(stored_fields(hit.source, inherits))
        fields["group"] = group or own_group(hit.index, hit.id)
        fields["principal"] = None
    return fields
