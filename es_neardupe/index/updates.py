"""Fields that store fingerprints, from documents as they were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.own_groups import InUse, alone, waiting
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import decode, encode, group_of, own_group, stored_fields
from es_neardupe.records import Fingerprint, Hit

__all__ = ["FingerprintedDocument", "fingerprint_documents", "fingerprint_fields", "is_current"]


@dataclass(frozen=True, slots=True)
class FingerprintedDocument:
    """A document and the fingerprint of its current text."""

    hit: Hit
    fingerprint: Fingerprint
    alone: bool = False
    """Whether the document is new, and can have a group of its own."""


def fingerprint_documents(
    pages: Iterable[Sequence[Hit]],
    settings: Settings,
    max_chars: int,
    *,
    inherits: str | None = None,
    in_use: InUse | None = None,
) -> Iterator[FingerprintedDocument]:
    """The documents of all pages with their fingerprints.

    ``inherits``: see `fingerprint_fields`. ``in_use``: returns the group ids that documents have already; None: every
    document is to wait for ``group``.
    """
    for page in pages:
        new = set[str]()
        if in_use is not None:
            new = {own_group(*hit.address) for hit in page if _group(hit, settings, inherits) is None}
            new -= set(in_use(sorted(new))) if new else set()
        fingerprints = fingerprint_sources([hit.source for hit in page], settings, max_chars)
        for hit, fingerprint in zip(page, fingerprints, strict=True):
            yield FingerprintedDocument(hit, fingerprint, bool(new) and own_group(*hit.address) in new)


def _group(hit: Hit, settings: Settings, inherits: str | None) -> str | None:
    """The group id that a document has, or inherits."""
    group = group_of(stored_fields(hit.source, settings.prefix))
    return group if group or inherits is None else group_of(stored_fields(hit.source, inherits))


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

    A new document gets a group of its own. Any other one that was not ``current`` waits for ``group``: similarity and
    principal become null, but it keeps its group id, or the one that it has under the prefix ``inherits``.
    """
    hit = document.hit
    fields = encode(document.fingerprint, at)
    if current:
        return fields
    own = own_group(*hit.address)
    return fields | (alone(own) if document.alone else waiting(_group(hit, settings, inherits) or own))
