"""Lost and found: where the document that was at an address can be found now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from es_neardupe import options
from es_neardupe.candidates.detection import detection_of
from es_neardupe.commands.moved.answer import Moved, NewPlace, in_order, with_replaced
from es_neardupe.commands.moved.deleted_documents import DeletedDocument, DeletedDocuments
from es_neardupe.commands.moved.documents import AddressSearch, LastDocument
from es_neardupe.commands.moved.fields import AddressFields, address_fields
from es_neardupe.errors import SettingsError
from es_neardupe.index.document_text import text_of
from es_neardupe.index.index import Index, opened
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.text import contents
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Address, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import count
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.criterion import check_min
from es_neardupe.verification.current_texts import compared_with

__all__ = ["moved", "moved_all"]

_BATCH = 64
"""Addresses looked up before the first of them is answered."""

_WORKERS = 4

_LONGEST_TERM = 32_766
"""Bytes of the longest value that servers index; they refuse to look for a longer one."""

_TOO_LONG = "address longer than the index keeps"


def moved(
    index: Index,
    address: str,
    *,
    url_field: options.UrlField = None,
    date_field: options.DateField = None,
    min: options.Minimum = None,
    earlier: options.Earlier = False,
    max_candidates: options.CandidatesByKeys = 1000,
) -> Moved:
    """Where the document that was at an address, or that has this as its id, can be found now.

    That is: documents of other addresses, not older, whose resemblance to it is at least ``min`` (default: the
    threshold of the index). ``earlier``: older ones too. Of a document that is gone, what evidence and the last
    grouping know by its id is used. Raises `SettingsError` for fields that cannot be what they should be.
    """
    (found,) = moved_all(
        index,
        [address],
        url_field=url_field,
        date_field=date_field,
        min=min,
        earlier=earlier,
        max_candidates=max_candidates,
    )
    return found


def moved_all(
    index: Index,
    addresses: Iterable[str],
    *,
    url_field: options.UrlField = None,
    date_field: options.DateField = None,
    min: options.Minimum = None,
    earlier: options.Earlier = False,
    max_candidates: options.CandidatesByKeys = 1000,
) -> Iterator[Moved]:
    """As `moved`, for any number of addresses, in their order; a few of them are held at a time.

    Raises what `moved` does, when the first answer is asked for.
    """
    if max_candidates < 1:
        raise SettingsError("`max_candidates` must be 1 or more.")
    index = opened(index, texts=True)
    fields = address_fields(index, url_field, date_field)
    minimum = check_min(index.settings.threshold if min is None else min)
    finder = _Finder(index, fields, minimum=minimum, earlier=earlier, maximum=max_candidates)
    with ThreadPoolExecutor(_WORKERS) as pool:
        for batch in chunked(addresses, _BATCH):
            yield from pool.map(finder.find, batch)


class _Finder:
    """Looks up one address after the other."""

    def __init__(self, index: Index, fields: AddressFields, *, minimum: float, earlier: bool, maximum: int) -> None:
        self._index = index
        self._fields = fields
        self._minimum = minimum
        self._earlier = earlier
        self._maximum = maximum
        self._measure = Measure(shingle=index.settings.shingle)
        self._documents = AddressSearch(index, fields)
        self._unprocessed = count(index.client, index.path, index.target.stale())
        self._traces = DeletedDocuments(index, self._documents.asked)

    def find(self, address: str) -> Moved:
        """All that is known of one address. Raises `SettingsError` for an empty one."""
        if not address:
            raise SettingsError("An address is empty: name one, or the id of a document.")
        if len(address.encode("utf-8", "surrogatepass")) > _LONGEST_TERM:
            return self._answer(address, _TOO_LONG)
        document = self._documents.last(address)
        if document is not None:
            found = self._by_text(address, document)
            return found if found.best else self._by_text_before(found, document) or found
        trace = self._traces.of(address)
        if trace is not None:
            return self._by_trace(address, trace)
        return self._answer(address, self._why_unknown(address))

    def _why_unknown(self, address: str) -> str:
        longest = self._fields.longest
        if longest is not None and len(address) > longest:
            return _TOO_LONG
        return "unknown address, and evidence may not be read" if self._traces.forbidden else "unknown address"

    def _by_text(self, address: str, document: LastDocument) -> Moved:
        """Compare the text with those of its group, and of all that share a key with it."""
        known = self._answer(address, None, document.address, document.basis)
        known = replace(known, date=document.date, versions=document.versions)
        text = text_of(document.source, self._index.target.settings.fields)
        (made,) = fingerprints([text], self._index.target.settings.scheme, max_chars=DEFAULT_MAX_CHARS)
        if not made.bands:
            return replace(known, reason=f"its text is {made.state.value}")
        own = group_of(stored_fields(document.source, self._index.target.settings.prefix))
        away = sorted({address, *document.addresses})
        hits, total = self._documents.others(made.bands, own, away, document.address, maximum=self._maximum)
        described = {(hit["_index"], hit["_id"]): hit for hit in hits}
        references: list[Reference] = [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in hits]
        places, less_similar = [], 0
        for hit, similarity in compared_with(
            self._index, self._measure, document.source, references, more=[self._index.target.fields.group]
        ):
            if similarity >= self._minimum:
                (new, *_), date = self._documents.read(described[hit.address]["fields"])
                places.append(NewPlace(new, date, similarity, None, *hit.address, "texts", "resemblance", None))
            else:
                stored = stored_fields(hit.source, self._index.target.settings.prefix)
                less_similar += own is not None and stored.get("group") == own
        known = replace(
            known,
            less_similar=less_similar,
            candidates=total,
            not_compared=total - len(hits),
            detection=detection_of(self._measure, self._minimum, self._index.target.settings.scheme),
        )
        return self._placed(known, places)

    def _by_text_before(self, found: Moved, document: LastDocument) -> Moved | None:
        """Where the text is now that the document had before it was written over, as far as evidence knows."""
        text = text_of(document.source, self._index.target.settings.fields)
        (content,) = contents([text])
        trace = self._traces.before(document.address[1], content)
        if trace is None:
            return None
        before = self._by_trace(found.address, trace)
        return replace(before, versions=found.versions) if before.places else None

    def _by_trace(self, address: str, trace: DeletedDocument) -> Moved:
        """What was found out while the document was there."""
        places = []
        for one in trace.known:
            named, date = self._documents.read(one.hit.source)
            others = [name for name in named if name != address]
            if others and one.similarity >= self._minimum:
                places.append(
                    NewPlace(others[0], date, one.similarity, None, *one.hit.address, trace.basis, one.measure, one.at)
                )
        known = self._answer(address, None, Address(trace.index, trace.id), trace.basis)
        return self._placed(replace(known, changed=trace.changed, candidates=len(trace.known)), places)

    def _placed(self, known: Moved, places: Sequence[NewPlace]) -> Moved:
        """The places in their order, without those that are too old."""
        older = [known.date is not None and one.older_than(known.date) for one in places]
        wanted = [one for one, old in zip(places, older, strict=True) if self._earlier or not old]
        shown = in_order(with_replaced(self._index, self._fields, wanted))
        found = replace(known, places=tuple(shown), earlier=len(places) - len(wanted))
        return found if found.best else replace(found, reason=_why_not(found))

    def _answer(self, address: str, reason: str | None, at: Address | None = None, basis: str | None = None) -> Moved:
        index, id = at or (None, None)
        return Moved(
            address=address,
            reason=reason,
            index=index,
            id=id,
            date=None,
            versions=0,
            basis=basis,
            places=(),
            earlier=0,
            less_similar=0,
            changed=0,
            candidates=0,
            not_compared=0,
            unprocessed=self._unprocessed,
            url_field=self._fields.address,
            date_field=self._fields.date,
            min=self._minimum,
            detection=None,
        )


def _why_not(found: Moved) -> str:
    if found.places:
        return "no longer there"
    return "only earlier copies" if found.earlier else "no copy found"
