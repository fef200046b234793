"""``shingles``: every step from one text to its keys, and whether these are the stored ones. A file needs no server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from es_neardupe.errors import InputError

if TYPE_CHECKING:
    from es_neardupe.commands.shingles.report import ShinglesReport
    from es_neardupe.index.index import Index
    from es_neardupe.keys.scheme import Scheme
    from es_neardupe.records import Address


def shingles(index: Index, id: str | Address | None = None, *, text: str | None = None) -> ShinglesReport:
    """Every step from the current text of a document, or from any text, to its keys, by the scheme of the index.

    For a document the report also says whether its stored keys are these. Raises `NotFound` for an unknown id,
    `InputError` for a document without readable text and for a text that is too long for keys.

    >>> report = news.shingles("1001")
    >>> report.state.value, report.features, report.stored.equal
    ('signed', 86, True)
    """
    from es_neardupe.commands.shingles.steps import STORED, compared, fingerprint_of, report
    from es_neardupe.index.document_text import given_text, read_values
    from es_neardupe.index.index import opened
    from es_neardupe.index.stored_fields import stored_fields
    from es_neardupe.verification.current_texts import current_source
    from es_neardupe.verification.probe import check_probe

    check_probe(id, text)
    index = opened(index, texts=True)
    settings = index.settings
    if id is None:
        return shingles_of(given_text(text or ""), settings.scheme)
    names = [f"{settings.prefix}.{name}" for name in STORED]
    address, source = current_source(index, id, [*settings.fields, *names])
    try:
        values = read_values(source, settings.fields)
        fingerprint = fingerprint_of(values, settings.scheme)
    except InputError as error:
        raise InputError(f"Document {address.id!r} of index {address.index} cannot get keys: {error}") from error
    stored = compared(stored_fields(source, settings.prefix), fingerprint)
    return replace(report(values, fingerprint, settings.scheme, address.id), index=address.index, stored=stored)


def shingles_of(text: str, scheme: Scheme, *, name: str = "text") -> ShinglesReport:
    """Every step from a text to its keys. Raises `InputError` for a text that is too long for keys."""
    from es_neardupe.commands.shingles.steps import fingerprint_of, report

    return report(text, fingerprint_of(text, scheme), scheme, name)
