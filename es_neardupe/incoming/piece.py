"""Comparison of the new documents of one piece of writes with those that share keys with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from es_neardupe.candidates.who_may_meet import ReadField
from es_neardupe.groups.rules import rules_of
from es_neardupe.incoming import nearest
from es_neardupe.incoming.nearest import equal_slots
from es_neardupe.incoming.recent_documents import RecentDocuments
from es_neardupe.incoming.stored_buckets import MAXIMUM, StoredBuckets
from es_neardupe.incoming.texts_by_key import Candidate, MayMatch, Nearest, TextsByKey, preference
from es_neardupe.incoming.writes import Piece
from es_neardupe.index import mapping, queries
from es_neardupe.index.document_text import TextFields, prepared_text, values_of
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import count_of, group_of, signature_of, stored_fields
from es_neardupe.keys.arrays import I32, Ints
from es_neardupe.keys.text import contents
from es_neardupe.records import Hit, Reference
from es_neardupe.server.client import JSON
from es_neardupe.server.responses import hit_of
from es_neardupe.similarity.facts.differing import facts_agree
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.current_texts import current_sources, similarities

_Result = TypeVar("_Result")

_PAGE = 2000
"""Maximum number of documents found by one search for a piece. If more share keys, all of them are read at once; if
they are too many for this, each document of the piece has its own search."""

_LARGE_PAGE = 5000
"""Maximum number of documents that are read at a time: only a part of each is."""

_FIRST = 10
"""Number of texts that are compared first if more share keys with a document than may be compared."""

_THREADS = ThreadPoolExecutor(4, "screened")
"""Threads that send the first requests for a piece; they are started when they are needed."""

_SEARCHES = ThreadPoolExecutor(4, "screened-searches")
"""Threads for searches that one of these waits for."""


@dataclass(frozen=True)
class ComparedFields:
    """The fields of the rules ``within`` and ``across``: the name of each in the index, and that in documents, where a
    multi-field has the values of its field."""

    within: Mapping[str, str]
    across: Mapping[str, str]
    """One at most."""

    @classmethod
    def of(cls, index: Index, within: Sequence[str], across: str | None) -> ComparedFields:
        """The fields of these names. Raises `SettingsError` if one cannot be compared."""
        rules = rules_of(index, within=within, across=across)
        types = (kinds for one in index.target.mappings.values() for kinds in mapping.field_types(one["properties"]))
        kinds = dict(types)

        def named(field: ReadField) -> tuple[str, str]:
            name = field.field
            return name, name.rpartition(".")[0] if kinds.get(name) == "multi-field" else name

        return cls(dict(map(named, rules.within)), dict(map(named, [rules.across] if rules.across else [])))

    @cached_property
    def in_source(self) -> list[str]:
        """Their names in documents."""
        return [*self.within.values(), *self.across.values()]

    def set_values(self, document: Candidate, source: Mapping[str, Any]) -> None:
        """Read the values of a document."""
        if not self.in_source:
            return
        document.within = tuple(frozenset(values_of(source, [name])) for name in self.within.values())
        document.across = frozenset(values_of(source, list(self.across.values())))

    def scope(self, document: Candidate) -> Mapping[str, Any] | None:
        """The documents that may have the same values as one, and have none in common with it."""
        scope: Mapping[str, Any] | None = None
        for name, values in zip(self.within, document.within, strict=True):
            scope = queries.all_of(scope, *({"term": {name: one}} for one in sorted(values)))
        for name in self.across:
            scope = queries.without_values(scope, name, document.across)
        return scope


NO_FIELDS = ComparedFields({}, {})


class ComparedPiece:
    """The new documents of a piece, the documents that share keys with them, and the similarities of these pairs."""

    own_groups: Future[list[Mapping[str, Any]]]
    existing: Future[set[Reference]]
    found: Future[None]

    def __init__(
        self,
        index: Index,
        criterion: MatchCriterion,
        recent: RecentDocuments,
        buckets: StoredBuckets,
        writes: Piece,
        *,
        maximum: int,
        fields: ComparedFields,
    ) -> None:
        self.writes = writes
        self.places: dict[Reference | None, list[int]] = {}
        """The places of the writes of each document; None for documents of other indices, and without an id."""
        self.last: dict[Reference | None, int] = {}
        """The place of the last write that changes the text of a document."""
        self.documents: dict[int, Candidate] = {}
        """The documents with keys, by their places."""
        self.index = index
        self.criterion = criterion
        self.fields = fields
        self.maximum = maximum
        self.not_compared = Counter[Candidate]()
        """Of each document, the number of those that share keys with it and were not compared."""
        self._recent = recent
        self._buckets = buckets
        self._left: Ints | None = None
        """The number of documents of each text of the buckets that the run has not replaced."""
        self._numbers: dict[Candidate, I32] = {}
        """The numbers of the keys of each new document that texts of the buckets have."""
        self._stored: dict[Reference, Candidate] = {}
        self._most_shared: dict[Candidate, list[Candidate]] = {}
        """Of new documents that share keys with very many, the stored ones that share most."""
        self._candidates: dict[Candidate, list[list[Candidate]]] = {}
        """Of each new document, the candidates with the most similar signatures first; of each content, principals
        first."""
        self._near: dict[Candidate, list[Nearest]] = {}
        """Of each new document, the nearest texts of earlier writes, and of the stored documents that are not in the
        buckets."""
        self._left_out = Counter[Candidate]()
        """Of each new document, the number of documents with its keys that a search has left out."""
        self._similarity: dict[tuple[Candidate, Candidate], float] = {}
        self._lost: set[Candidate] = set()
        """First candidates with copies that were changed or deleted since they got their keys."""
        self._leaders: dict[str, Candidate | None] = {}
        self._facts: dict[Candidate, FactTokens] = {}

    # -- candidates

    def find(self, documents: Sequence[Candidate]) -> None:
        """Search the documents that share keys with new ones, except those of the buckets that have a signature."""
        self._find(documents)
        for one in self._buckets.unsigned:
            if one.reference not in self._stored:
                self._insert(one.unread())

    def _find(self, documents: Sequence[Candidate]) -> None:
        keys = sorted({key for one in documents for key in one.bands} - self._buckets.keys)
        if not keys:
            return
        if len(keys) > queries.MAX_TERMS and len(documents) > 1:
            half = len(documents) // 2
            self._find(documents[:half])
            self._find(documents[half:])
            return
        size = min(_PAGE, self.index.target.max_result_window)
        others = queries.without_values(None, self.index.fields.bands, self._buckets.frequent)
        body = queries.few_candidates(self.index.fields, keys, size=size, scope=others, source=self._source())
        found = self._search(body)
        if found["total"]["value"] <= len(found["hits"]):
            self._add(hit for hit in map(hit_of, found["hits"]) if hit.reference not in self._buckets)
        elif len(self._buckets) + found["total"]["value"] <= MAXIMUM:
            self._read(body["query"], keys)
        else:
            self._buckets.expire()
            searches = [in_background(partial(self._find_most_shared, one), _SEARCHES) for one in documents]
            for one, searched in zip(documents, searches, strict=True):
                hits, unread = searched.result()
                self._most_shared[one] = self._add(map(hit_of, hits))
                self.not_compared[one] += unread

    def _read(self, query: Mapping[str, Any], keys: Sequence[str]) -> None:
        """Read all documents of a search for keys into the buckets."""
        fields, documents = self.index.fields, self.index.documents
        source = [fields.scheme if name == fields.bands else name for name in self._source()]
        size = min(_LARGE_PAGE, self.index.target.max_result_window)
        unsigned = self._buckets.add(documents.pages({"query": query, "_source": source}, page_size=size), keys)
        hits = documents.fetch(unsigned, self._source())
        self._buckets.unsigned += [self._stored_candidate(hit) for hit in hits if hit is not None]

    def _find_most_shared(self, document: Candidate) -> tuple[list[Mapping[str, Any]], int]:
        """Search the documents that share most keys with one; of those with the same content, only one. Returns the
        hits, and the number of all other documents that share keys."""
        index, fold = self.index, self.criterion.one_for_all_copies
        body = self._sharing_most(document, self.maximum, self._source())
        found = self._search(body)
        hits, unread = found["hits"], found["total"]["value"] - len(found["hits"])
        stored = (stored_fields(hit["_source"], index.settings.prefix).get("content") for hit in hits)
        known = sorted({one for one in stored if isinstance(one, str)})
        if fold and known and unread:
            counted = index.documents.search(queries.copies(index.fields, body["query"], known))
            unread -= sum(one["doc_count"] - 1 for one in counted["aggregations"]["copies"]["buckets"])
        return hits, max(0, unread)

    def _sharing_most(self, document: Candidate, size: int, source: Sequence[str]) -> JSON:
        return queries.candidates(
            self.index.fields,
            document.bands,
            size=min(size, self.index.target.max_result_window),
            agree=self.index.settings.scheme.agree,
            scope=self.fields.scope(document),
            fold=self.criterion.one_for_all_copies,
            more=source,
        )

    def _source(self) -> list[str]:
        fields, more = self.index.fields, self.fields.in_source
        known = (fields.bands, fields.content, fields.tokens, fields.group, fields.principal, fields.signature)
        return [*known, *more]

    def _search(self, body: Mapping[str, Any]) -> Any:
        return self.index.documents.search(body)["hits"]

    def _stored_candidate(self, hit: Hit) -> Candidate:
        return stored_candidate(hit, self.index.settings.prefix, self.fields)

    def _add(self, hits: Iterable[Hit]) -> list[Candidate]:
        """Candidates of stored documents."""
        added = []
        for hit in hits:
            if hit.reference not in self._stored:
                self._insert(self._stored_candidate(hit))
            added.append(self._stored[hit.reference])
        return added

    def _insert(self, document: Candidate) -> None:
        self._stored[document.reference] = document
        if document.principal and document.group is not None:
            self._leaders[document.group] = document

    def _of_this_piece(self, one: Candidate) -> Candidate:
        """The same document, unless it is one of the buckets, whose text is read again for each piece."""
        if one.reference in self._recent:
            return one
        if one.reference not in self._stored:
            self._stored[one.reference] = one.unread()
        return self._stored[one.reference]

    # -- comparison

    @cached_property
    def _found(self) -> TextsByKey:
        """The stored documents that the run has not replaced, but for those of the buckets."""
        return self._texts(sorted(self._current(self._stored.values()), key=preference))

    def _current(self, stored: Iterable[Candidate]) -> list[Candidate]:
        """Those of some stored documents that the run has not replaced, without deleted ones that are new again."""
        return [one for one in self._recent.current(stored) if one.exists and one.reference not in self._new]

    @cached_property
    def _new(self) -> set[Reference]:
        """The new documents. Searches may still see one that was deleted before."""
        return {one.reference for one in self.documents.values()} - self.existing.result()

    def _texts(self, documents: Sequence[Candidate]) -> TextsByKey:
        fold = self.criterion.one_for_all_copies
        return TextsByKey(self.index.settings.scheme.permutations, documents, fold=fold)

    def choose_candidates(self, document: Candidate) -> None:
        """Choose the candidates of a new document: those that are stored, and those that the run wrote before."""
        found = self._found
        if document in self._most_shared:
            found = self._texts(self._current(self._most_shared[document]))
        ask = document, self.index.settings.scheme.agree, 2 * self.maximum, self._allowed(document)
        self._near[document] = [self._recent.nearest(*ask), found.nearest(*ask)]
        self._left_out[document] = self.not_compared[document]
        number = min(_FIRST, self.maximum)
        near = self._nearest_in_buckets(document, number)
        if near.number + sum(one.number for one in self._near[document]) <= self.maximum:
            number = self.maximum
            near = self._nearest_in_buckets(document, number) if near.number else near
        self._choose_most_similar(document, number, near)

    def _choose_most_similar(self, document: Candidate, number: int, stored: Nearest) -> None:
        """Choose so many texts as candidates of a new document: those with the most similar signatures. ``stored``: as
        many of the buckets."""
        near = [stored, *self._near[document]]
        texts, sizes = [text for one in near for text in one.texts], [size for one in near for size in one.sizes]
        equal = np.concatenate([one.equal_slots for one in near])
        best = np.argsort(-equal, kind="stable")[:number].tolist()
        chosen = self._may_match(document, (one for place in best for one in texts[place]))
        self._candidates[document] = self._by_text(map(self._of_this_piece, chosen))
        left = sum(sizes) + sum(one.others for one in near) - sum(sizes[place] for place in best)
        self.not_compared[document] = self._left_out[document] + left

    def _by_text(self, documents: Iterable[Candidate]) -> list[list[Candidate]]:
        """The documents with each text, principals first."""
        fold, documents = self.criterion.one_for_all_copies, list(documents)
        texts = [one.content if fold and one.content else one for one in documents]
        if len(set(texts)) == len(texts):
            return [[one] for one in documents]
        found = dict[object, list[Candidate]]()
        for text, one in zip(texts, documents, strict=True):
            found.setdefault(text, []).append(one)
        return [sorted(some, key=preference) if len(some) > 1 else some for some in found.values()]

    def _may_match(self, document: Candidate, others: Iterable[Candidate]) -> list[Candidate]:
        """Those of some documents that the run has not replaced, and whose values allow a match. A document does not
        match an earlier version of its own."""
        current = [one for one in self._recent.current(others) if one.reference != document.reference]
        return [one for one in current if one.may_match(document)] if self.fields.in_source else current

    def _nearest_in_buckets(self, document: Candidate, number: int) -> Nearest:
        """The texts of the buckets with the most similar signatures."""
        if self._left is None:
            self._left = self._buckets.sizes({*self._recent.references, *self._new})
            self._numbers = self._buckets.numbers(list(self.documents.values()))
        keys, agree = self._numbers[document], self.index.settings.scheme.agree
        allowed = self._allowed(document)
        return self._buckets.nearest((keys, document.signature), agree, self._left, number, allowed)

    def _allowed(self, document: Candidate) -> MayMatch | None:
        """How to choose those of some documents that count for a new one; None if all of a text do."""
        return partial(self._may_match, document) if self.fields.in_source else None

    def compare(self) -> None:
        """Compare each new document with its candidates. Of those that share keys with very many, only those without a
        match are compared with more texts than the first."""
        self._compare_candidates(self._candidates)
        for number in (self.maximum, 2 * self.maximum):
            unmatched = [one for one in self._candidates if self.not_compared[one] and not self._has_match(one)]
            for document in unmatched:
                self._choose_most_similar(document, number, self._nearest_in_buckets(document, number))
            self._compare_candidates(unmatched)
        self._look_further()

    def _compare_candidates(self, documents: Iterable[Candidate]) -> None:
        """Compare new documents with their candidates: of those with the same content, one that is unchanged."""
        pairs = [(document, copies) for document in documents for copies in self._candidates[document]]
        self._compare((document, copies[0]) for document, copies in pairs)
        self._lost |= self._changed({copies[0] for _, copies in pairs if len(copies) > 1})
        self._compare((document, one) for document, copies in pairs if copies[0] in self._lost for one in copies)

    def _look_further(self) -> None:
        """Compare documents that had a search of their own and no match with more of the stored ones that share most
        keys, those whose signatures are most similar: in a large family, hundreds share as many keys."""
        further = dict[Candidate, list[Candidate]]()
        for document in self._most_shared.keys() & self._candidates.keys():
            if self.not_compared[document] and not self._has_match(document):
                nearest = self._nearest(document)
                further[document] = self._may_match(document, nearest)
                self.not_compared[document] = max(0, self.not_compared[document] - len(further[document]))
        self._compare((document, one) for document, some in further.items() for one in some)
        for document, some in further.items():
            self._candidates[document] += ([one] for one in some)

    def _nearest(self, document: Candidate) -> list[Candidate]:
        """Stored documents that share most keys with one, without those that were compared: those whose signatures
        agree in most slots."""
        found = self._search(self._sharing_most(document, nearest.MOST, self._source()))["hits"]
        known = {one.reference for copies in self._candidates[document] for one in copies}
        others = [one for one in self._add(map(hit_of, found)) if one.reference not in known]
        equal = equal_slots(document.signature, [one.signature for one in others])
        return [others[place] for place in np.argsort(-equal, kind="stable")[: self.maximum].tolist()]

    def _changed(self, candidates: Iterable[Candidate]) -> set[Candidate]:
        """Those that were changed or deleted since they got their keys."""
        read = [one for one in candidates if one.source is not None or not one.exists]
        found = contents([prepared_text(one.source or {}, self.index.settings) for one in read])
        return {one for one, content in zip(read, found, strict=True) if content != one.content}

    def _compare(self, pairs: Iterable[tuple[Candidate, Candidate]]) -> None:
        measure, fields = self.criterion.measure, TextFields.of(self.index.settings)
        fold = self.criterion.one_for_all_copies
        waiting = list[tuple[Candidate, Candidate]]()
        for pair in pairs:
            if pair in self._similarity:
                continue
            if fold and pair[0].content == pair[1].content:
                self._similarity[pair] = 1.0
            else:
                waiting.append(pair)
        if not waiting:
            return
        unread = list(dict.fromkeys(one for _, one in waiting if one.source is None and one.exists))
        sources = current_sources(
            self.index.client,
            [one.reference for one in unread],
            [one.tokens for one in unread],
            measure.fields(fields.names),
        )
        for one, source in zip(unread, sources, strict=True):
            one.source, one.exists = source, source is not None
        places = {one: place for place, one in enumerate(dict.fromkeys(chain.from_iterable(waiting)))}
        left, right = np.array([(places[one], places[other]) for one, other in waiting], np.intp).T
        compared = similarities(measure, [one.source or {} for one in places], fields, left, right)
        self._similarity.update(zip(waiting, compared.tolist(), strict=True))

    def matches(self, document: Candidate) -> list[tuple[Candidate, float]]:
        """The matches of a new document that are, or will be, in the index, with their similarity, most similar
        first."""
        return sorted(self._matches(document), key=lambda pair: (-pair[1], *preference(pair[0])))

    def _has_match(self, document: Candidate) -> bool:
        return next(self._matches(document), None) is not None

    def _matches(self, document: Candidate) -> Iterator[tuple[Candidate, float]]:
        """The matches of a new document: of each text, one."""
        for copies in self._candidates[document]:
            common = 0.0 if copies[0] in self._lost else self._similarity[document, copies[0]]
            for one in copies:
                similarity = self._similarity.get((document, one), common)
                similar = one.exists and similarity >= self.criterion.min
                if similar and self._facts_agree(document, self._read_copy(copies, one)):
                    yield one, similarity
                    break

    def _read_copy(self, copies: Sequence[Candidate], one: Candidate) -> Candidate:
        """The one of some copies that was read, for one of them: the first, unless it was changed."""
        return one if copies[0] in self._lost else copies[0]

    def _facts_agree(self, *pair: Candidate) -> bool:
        """Whether no facts that decide differ between two documents."""
        kinds = self.criterion.facts
        if not kinds:
            return True
        for one in pair:
            if one not in self._facts:
                self._facts[one] = fact_tokens(prepared_text(one.source or {}, self.index.settings))
        return facts_agree(self._facts[pair[0]], self._facts[pair[1]], kinds)

    # -- groups

    def group_to_join(self, document: Candidate, matches: Sequence[tuple[Candidate, float]]) -> str | None:
        """The group of the most similar match whose principal is similar to the document too; None if there is none."""
        for one, _ in matches:
            leader = one if one.principal else self._leader(one.group)
            if one.group is None or leader is None or leader is document:
                continue
            if not leader.may_match(document):
                continue
            self._compare([(document, leader)])
            similar = leader.exists and self._similarity[document, leader] >= self.criterion.min
            if similar and self._facts_agree(document, leader):
                return one.group
        return None

    def _leader(self, group: str | None) -> Candidate | None:
        """The principal of a group."""
        if group is None:
            return None
        if (recent := self._recent.leader(group)) is not None:
            return recent
        if group not in self._leaders and (known := self._buckets.leader(group)) is not None:
            self._leaders[group] = self._of_this_piece(known)
        if group not in self._leaders:
            body = {"size": 1, "query": queries.groups_by_id(self.index.fields, [group]), "_source": self._source()}
            self._add(map(hit_of, self._search(body)["hits"]))
        stored = self._leaders.setdefault(group, None)
        return None if stored is None or self._recent.replaces(stored) else stored


def in_background(work: Callable[[], _Result], threads: ThreadPoolExecutor = _THREADS) -> Future[_Result]:
    """The result to come of work that another thread does, in the context of this one."""
    return threads.submit(copy_context().run, work)


def stored_candidate(hit: Hit, prefix: str, fields: ComparedFields) -> Candidate:
    """A document as a search found it; without keys if they were not requested."""
    stored = stored_fields(hit.source, prefix)
    bands, content, principal = stored.get("bands"), stored.get("content"), stored.get("principal")
    found = Candidate(
        hit.reference,
        [bands] if isinstance(bands, str) else list(bands or ()),
        content if isinstance(content, str) else None,
        count_of(stored, "tokens"),
        group_of(stored),
        principal if isinstance(principal, bool) else None,
        signature_of(stored),
    )
    fields.set_values(found, hit.source)
    return found
