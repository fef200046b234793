"""Steps of ``similar``: the probe, its candidates and their comparison, and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from es_neardupe.commands.similar.report import SimilarHit
from es_neardupe.errors import CorruptFingerprint, NeardupeError, SettingsError
from es_neardupe.groups.rules import rules_of
from es_neardupe.index import queries
from es_neardupe.index.document_text import are_small, prepared_text
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import ShownFields
from es_neardupe.index.stored_fields import decode, group_of, stored_fields
from es_neardupe.keys.text import contents
from es_neardupe.records import Address, Fingerprint, Hit, Reference
from es_neardupe.server.client import JSON
from es_neardupe.server.request_sizes import RequestSize, is_too_large
from es_neardupe.server.responses import hit_of
from es_neardupe.similarity.facts.agreement import facts_apart
from es_neardupe.similarity.facts.differing import Fact
from es_neardupe.similarity.facts.symbols import signs_of
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens
from es_neardupe.similarity.features import named_fields
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.current_texts import compared_with, current_hits
from es_neardupe.verification.probe import Probe, read_probe
from es_neardupe.wording import option

ROUNDS = 10
"""Maximum number of copies of a text that are tried until one is found that was not changed or deleted."""


def compared_probe(index: Index, id: str | Address | None, text: str | None, match: MatchCriterion) -> Probe:
    """A text, or a document with all fields that are compared. Raises `SettingsError` if fields of a text are to be
    compared, and as `read_probe`."""
    names = named_fields(match.measure.sources)
    if id is None and names:
        raise SettingsError(_no_field(names[0]))
    return read_probe(index, id, text, match.measure.fields(index.settings.fields), unique=True)


def documents_allowed(
    index: Index,
    within: Sequence[str],
    across: str | None,
    document: str | Address | None,
    query: Mapping[str, Any] | None,
) -> Mapping[str, Any] | None:
    """The documents of a query that have the same values as a document in the fields ``within``, and no value in common
    with it in the field ``across``, as searches see it. Raises `SettingsError` for a field that cannot be compared, and
    for a text, which has no field."""
    rules = rules_of(index, within=within, across=across)
    fields = {column.field: column for column in (*rules.within, rules.across) if column is not None}
    if not fields:
        return query
    if document is None:
        raise SettingsError(_no_field(next(iter(fields))))
    address = document if isinstance(document, Address) else Address("", document)
    only = {"term": {"_index": address.index}} if address.index else None
    body = {
        "query": queries.all_of({"ids": {"values": [address.id]}}, only),
        "_source": False,
        "docvalue_fields": rules.columns,
        "size": 1,
    }
    found: JSON = next((hit.get("fields", {}) for hit in index.plain_documents.search(body)["hits"]["hits"]), {})
    values = {name: list(dict.fromkeys(found.get(name, ()))) for name in fields}  # in the order of the field
    same = [queries.with_values(column.request, values[column.field]) for column in rules.within]
    common = [] if rules.across is None else values[rules.across.field]
    apart = [queries.with_value(rules.across.request, one) for one in common if rules.across is not None]
    return {"bool": {"filter": [queries.matching(query), *same], "must_not": apart}}


def _no_field(name: str) -> str:
    return f"A text has no field {name!r}: compare a document of the index by its {option('id')}."


def with_stored_keys(
    index: Index, id: str | Address | None, query: Mapping[str, Any] | None, texts: Sequence[str], maximum: int
) -> tuple[Probe, Fingerprint, list[Hit]] | None:
    """A document as searches see it, and those that share its stored keys, by one request. None if its fingerprint is
    not that of its text, or if that takes more: by its address, in several indices, with a routing, or with many
    documents."""
    if (
        not isinstance(id, str)
        or len(index.target.indices) > 1
        or index.target.sidecar is not None
        or index.settings.scheme.agree > 1
    ):
        return None
    address = Address(index.target.indices[0], id)
    size = RequestSize.of_documents(index.client, maximum + 1)
    fields = index.fields
    read = _source(index, [fields.scheme, fields.state, fields.tokens, fields.features, *texts])
    body = queries.with_stored_keys(fields, address, size=size.number, scope=query, source=read)
    try:
        answer = size.ask(partial(index.documents.search, body))
    except NeardupeError:  # the other way reports it
        return None
    if answer is None or answer["hits"]["total"]["value"] > len(answer["hits"]["hits"]):
        return None
    own = [raw for raw in answer["hits"]["hits"] if raw["_id"] == id]
    if len(own) != 1 or "_routing" in own[0] or queries.UNCHANGED not in own[0].get("matched_queries", ()):
        return None
    probe = Probe.of_document(index, address, own[0]["_source"])
    fingerprint = _stored_fingerprint(index, probe)
    if fingerprint is None:
        return None
    return probe, fingerprint, [hit_of(raw) for raw in answer["hits"]["hits"] if raw["_id"] != id]


def _stored_fingerprint(index: Index, probe: Probe) -> Fingerprint | None:
    """The fingerprint that is stored in a document; None if it is not that of its text."""
    try:
        stored = decode(stored_fields(probe.source, index.settings.prefix))
    except CorruptFingerprint:
        return None
    return (
        stored
        if (stored.scheme, [stored.content])
        == (index.scheme_id, contents([index.settings.scheme.preparation.text(probe.values)]))
        else None
    )


def _source(index: Index, texts: Sequence[str]) -> bool | list[str]:
    """The fields to read of a document and its candidates; True, all of them, is faster for small documents."""
    if index.target.sidecar is None and are_small(index):
        return True
    fields = index.fields
    return [fields.group, fields.content, fields.principal, fields.bands, *texts]


def _keys(index: Index, source: Mapping[str, Any]) -> set[str]:
    """The stored band keys of a document."""
    bands = stored_fields(source, index.settings.prefix).get("bands")
    return {bands} if isinstance(bands, str) else set(bands or ())


@dataclass(frozen=True)
class _Candidate:
    reference: Reference
    shared: int
    content: str | None
    copies: int
    """Other documents with the same keys and content hash that are not candidates of their own."""
    hit: Hit | None = None
    """The document, if it was read by the search that found it."""


@dataclass(frozen=True)
class Lookup:
    """Finds documents that share keys with the probe."""

    index: Index
    fingerprint: Fingerprint
    match: MatchCriterion
    texts: Sequence[str]
    """Fields to read of candidates."""

    def candidates(self, scope: Mapping[str, Any], maximum: int) -> tuple[list[_Candidate], int]:
        """The candidates of a scope with the most shared keys, and the number of all documents that share keys.

        If all of them fit into one answer with their texts, whatever their size, one search reads them.
        """
        maximum = min(maximum, self.index.target.max_result_window)
        size = RequestSize.of_documents(self.index.client, maximum)
        body = self._with_texts(scope, size.number)
        try:
            answer = size.ask(partial(self.index.documents.search, body))
        except NeardupeError as error:
            if not is_too_large(error):
                raise
            answer = None
        if answer is not None and answer["hits"]["total"]["value"] <= len(answer["hits"]["hits"]):
            return self.at_once([hit_of(hit) for hit in answer["hits"]["hits"]])
        return self._listed(scope, maximum)

    def _body(self, scope: Mapping[str, Any], size: int, **options: Any) -> JSON:
        index, agree = self.index, self.index.settings.scheme.agree
        return queries.candidates(index.fields, self.fingerprint.bands, size=size, agree=agree, scope=scope, **options)

    def _with_texts(self, scope: Mapping[str, Any], size: int) -> JSON:
        """A search that reads the texts too."""
        fields, bands = self.index.fields, self.fingerprint.bands
        if self.index.settings.scheme.agree > 1:
            read = [fields.group, fields.content, fields.principal, fields.bands, *self.texts]
            return self._body(scope, size, more=read)
        return queries.few_candidates(fields, bands, size=size, scope=scope, source=_source(self.index, self.texts))

    def _shared(self, hit: Hit) -> int:
        """The number of keys that a document shares."""
        return len(_keys(self.index, hit.source).intersection(self.fingerprint.bands))

    def at_once(self, hits: Sequence[Hit]) -> tuple[list[_Candidate], int]:
        """All documents that share keys, with their texts."""
        prefix = self.index.settings.prefix
        copies: dict[tuple[object, object], list[Hit]] = {}
        for hit in hits:
            content = stored_fields(hit.source, prefix).get("content")
            known = self.match.measure.copies_are_equal and isinstance(content, str)
            copies.setdefault((content, self._signs(hit)) if known else (None, hit.address), []).append(hit)
        found = []
        for (content, _), some in copies.items():
            first = next((one for one in some if stored_fields(one.source, prefix).get("principal") is True), some[0])
            same = content if isinstance(content, str) else None
            found.append(_Candidate(first.reference, self._shared(first), same, len(some) - 1, first))
        return found, len(hits)

    def _signs(self, hit: Hit) -> str:
        """What distinguishes documents with the same content hash: their signs, if these decide."""
        return signs_of(prepared_text(hit.source, self.index.settings)) if self.match.signs_decide else ""

    def _listed(self, scope: Mapping[str, Any], maximum: int) -> tuple[list[_Candidate], int]:
        """The documents that share most keys, without their texts."""
        index, fold = self.index, self.match.one_for_all_copies
        body = self._body(scope, maximum, fold=fold)
        answer = index.documents.search(body)["hits"]
        hits, total = answer["hits"], int(answer["total"]["value"])
        content = [stored_fields(hit["_source"], index.settings.prefix).get("content") for hit in hits]
        known = [one for one in content if isinstance(one, str)]
        copies = self._copies(body["query"], known) if fold and known and total > len(hits) else {}
        found = [
            _Candidate(
                (hit["_index"], hit["_id"], hit.get("_routing")), round(hit["_score"]), one, copies.get(one or "", 0)
            )
            for hit, one in zip(hits, content, strict=True)
        ]
        return found, total

    def read(self, candidates: Sequence[_Candidate]) -> Iterator[Sequence[Hit]]:
        """The candidates with their texts, in portions that fit into memory, without those that were deleted."""
        if read := [one.hit for one in candidates if one.hit is not None]:
            yield read
        if unread := [one.reference for one in candidates if one.hit is None]:
            yield from current_hits(self.index.client, unread, self.texts)

    def _copies(self, query: Mapping[str, Any], contents: Sequence[str]) -> dict[str, int]:
        """Content hash -> the number of documents that have it, except one."""
        answer = self.index.documents.search(queries.copies(self.index.fields, query, contents))
        return {one["key"]: one["doc_count"] - 1 for one in answer["aggregations"]["copies"]["buckets"]}


@dataclass
class CandidateHits:
    """The candidates that were compared."""

    index: Index
    match: MatchCriterion
    probe: Probe
    shown: ShownFields
    hits: list[SimilarHit] = field(default_factory=list)
    texts: int = 0
    documents: int = 0
    """Documents that were compared, or are exact copies of one that was."""
    related: list[SimilarHit] = field(default_factory=list)
    """Those that are similar enough, but differ in facts that decide."""

    def add(self, candidates: Sequence[_Candidate], read: Iterable[Sequence[Hit]]) -> list[_Candidate]:
        """Compare the probe with the text of each candidate, as ``read``. Candidates that were deleted are no hits.

        Returns the candidates with copies that were changed or deleted: another copy has to take their place.
        """
        index, match = self.index, self.match
        by_address = {one.reference[:2]: one for one in candidates}
        lost = {address: one for address, one in by_address.items() if one.copies}
        for hit, similarity in compared_with(index, match.measure, self.probe.source, read):
            one, copies = by_address[hit.address], 0
            if one.copies and contents([prepared_text(hit.source, index.settings)]) == [one.content]:
                copies = one.copies
                del lost[hit.address]
            if match.min <= similarity <= match.max:
                facts = self._facts_apart(hit)
                group = group_of(stored_fields(hit.source, index.settings.prefix))
                found = SimilarHit(
                    index=hit.index,
                    id=hit.id,
                    similarity=similarity,
                    shared_bands=one.shared,
                    group=group,
                    copies=copies,
                    measure=match.measure.label,
                    fields=self.shown.of(hit.source),
                    facts=facts,
                )
                (self.related if facts else self.hits).append(found)
            self.documents += copies
        self.texts += len(candidates)
        self.documents += len(candidates)
        return list(lost.values())

    def _facts_apart(self, hit: Hit) -> tuple[Fact, ...]:
        """The facts that decide and differ between the probe and a candidate."""
        if not self.match.facts:
            return ()
        text, other = (prepared_text(source, self.index.settings) for source in (self.probe.source, hit.source))
        if text == other:
            return ()
        return tuple(facts_apart(self._probe_facts, fact_tokens(other), self.match.facts))

    @cached_property
    def _probe_facts(self) -> FactTokens:
        return fact_tokens(prepared_text(self.probe.source, self.index.settings))
