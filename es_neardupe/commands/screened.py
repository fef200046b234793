"""``screened``: finds the near-duplicates of bulk actions before they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import eq
from typing import Any, TypeVar

import numpy as np

from es_neardupe import options
from es_neardupe.candidates.recent_documents import ByKey, Candidate, RecentDocuments, insert, sharing
from es_neardupe.candidates.who_may_meet import ReadField
from es_neardupe.commands.fingerprinted import Incoming, Piece, fingerprinted_actions, own_groups
from es_neardupe.errors import CorruptFingerprint, SettingsError
from es_neardupe.groups.rules import rules_of
from es_neardupe.index import mapping, queries
from es_neardupe.index.document_text import TextFields, prepared_text, values_of
from es_neardupe.index.index import Index, opened_inline
from es_neardupe.index.stored_fields import count_of, decode_signature, group_of, stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.index.updates import GroupIdsInUse, waiting
from es_neardupe.keys.text import contents
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.match_options import MATCH_DEFAULTS, MatchOptions
from es_neardupe.options import DEFAULT_MAX_CHARS, OnMatch
from es_neardupe.records import Hit, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.server.responses import hit_of
from es_neardupe.similarity.facts.agreement import facts_agree
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens
from es_neardupe.verification.criterion import MatchCriterion, MatchRules, match_criterion
from es_neardupe.verification.current_texts import current_sources, similarities
from es_neardupe.wording import option

_Result = TypeVar("_Result")

_PAGE = 2000
"""Maximum number of documents found by one search for a piece. If more share keys, each document has its own search."""

_BLOCK = 256
"""Documents of which one request counts those that searches see."""

_NEAREST = 1000
"""Maximum number of documents that share most keys with one without a match, whose stored signatures are compared."""

_KEPT = 100_000
"""Maximum number of matches that a report keeps."""

_THREADS = ThreadPoolExecutor(4, "screened")
"""Threads that send the first requests for a piece; they are started when they are needed."""

_SEARCHES = ThreadPoolExecutor(4, "screened-searches")
"""Threads for searches that one of these waits for."""


@dataclass(frozen=True)
class OtherMatch:
    """Another document that matches an action."""

    index: str
    id: str
    similarity: float


@dataclass(frozen=True)
class Match:
    """The document that is most similar to that of an action."""

    index: str
    id: str
    similarity: float
    measure: str
    copy: bool
    """Whether both texts have the same words, recognised by their content hashes."""
    group: str | None
    """The group that ``mark`` puts the document of the action into. None if it is not similar enough to the principal
    of any group, and with ``skip`` and ``pass``."""
    others: tuple[OtherMatch, ...] = ()
    """All other matches, most similar first. Of texts with the same words, only one is compared."""


@dataclass(frozen=True)
class MatchedAction:
    """An action whose document matches another one."""

    index: str
    id: str
    match: Match
    done: str
    """``marked``; ``apart``: to be marked, but not similar enough to the principal of any group; ``skipped``; or
    ``passed``."""


@dataclass
class ScreenCounts:
    """Actions by their outcome: ``actions`` is the sum of all up to ``other_actions``.

    ``screened = unique + marked + apart + skipped + passed``.
    """

    actions: int = 0
    screened: int = 0
    """New documents that were compared with all others that share keys."""
    known: int = 0
    """Documents that are in the index already, which are written as they are."""
    repeated: int = 0
    """Actions whose document is written again, or deleted, by a later action of the same piece of 256."""
    without_id: int = 0
    without_keys: int = 0
    """Documents that are empty or too large, or whose text is not a string."""
    other_indices: int = 0
    other_actions: int = 0
    """Updates, deletions, and documents with a relation whose documents get no keys."""
    unique: int = 0
    """Documents that match no other."""
    marked: int = 0
    apart: int = 0
    skipped: int = 0
    passed: int = 0
    copies: int = 0
    """Matches with the same words, recognised by their content hashes."""
    repeated_skipped: int = 0
    """``repeated`` actions that were not yielded either, because the last one with their id was skipped."""
    not_compared: int = 0
    """Documents that share keys with an action and were not compared: those beyond ``max_candidates``."""
    unsure: int = 0
    """Documents among ``unique`` that share keys with documents that were not compared: they may match one of these."""
    forgotten: int = 0
    """Documents that were no longer remembered before a search could see them: later actions may have missed them."""


class ScreenReport:
    """Counts and matches of `screened`; complete when the last action was yielded."""

    counts: ScreenCounts
    matches: list[MatchedAction]

    def __init__(self, note: Callable[[MatchedAction], None] | None = None) -> None:
        """``note`` is called with each match. By default, the first 100,000 are kept in ``matches``."""
        self.counts = ScreenCounts()
        self.matches = []
        self.note = self._keep if note is None else note

    def _keep(self, matched: MatchedAction) -> None:
        if len(self.matches) < _KEPT:
            self.matches.append(matched)

    def __repr__(self) -> str:
        counts = self.counts
        return f"ScreenReport(actions={counts.actions}, screened={counts.screened}, unique={counts.unique})"


WhatToDo = Callable[[Mapping[str, Any], Match], OnMatch | str]
"""Decides for one action and its match: ``mark``, ``skip`` or ``pass``."""


@with_defaults(first=MATCH_DEFAULTS, after="on_match")
def screened(
    index: Index,
    actions: Iterable[Mapping[str, Any]],
    *,
    on_match: OnMatch | str | WhatToDo = OnMatch.MARK,
    max_candidates: options.CandidatesByKeys = 100,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    report: ScreenReport | None = None,
    **given: Unpack[MatchOptions],
) -> Iterator[dict[str, Any]]:
    """Add the keys to your own bulk actions, as `fingerprinted`, and compare each new document with all documents of
    the index, and of earlier actions, that share keys with it: pass the result to the driver's ``helpers.bulk``.

    A match has an exact similarity of ``min`` (default: the threshold of the index) or more. ``on_match``: ``mark``
    writes the document into the group of its match, if it is also similar to the principal of that group, so that
    ``collapse`` folds it before ``group`` runs; ``skip`` does not yield the action; ``pass`` only reports the match. A
    function is called with each action that has a match and its `Match`, and returns one of these words.

    A document that is in the index already (same index, id and routing) is an update, and never a duplicate. Actions
    are read in pieces of 256; of several with the same id in a piece, the last one counts. Actions for other indices,
    updates, deletions, and documents without id or without keys are returned as by `fingerprinted`. ``report`` counts
    all of them, and keeps the matches.

    ``facts``: texts that differ in facts of these kinds do not match.

    ``within``: only documents with the same values of these fields match. ``across``: documents that have a common
    value in this field, such as chunks of one document, do not match; one without a value can match any other. Values
    are compared as they are written in the documents.

    Raises `SettingsError` for options that are unknown, contradict each other or do not apply to the measure.

    >>> report = ScreenReport()
    >>> copy = {"_id": "2001", "title": "Harbour bridge closed", "body": bridge}
    >>> list(news.screened([copy], on_match="skip", report=report))
    []
    >>> [(one.id, one.done, one.match.id, one.match.copy) for one in report.matches]
    [('2001', 'skipped', '1004', True)]
    """
    found = opened_inline(index, "screened", texts=True, writes=True)
    criterion = match_criterion(found, MatchRules.of(found.settings).having(given))
    screen = Screen(
        found,
        criterion,
        on_match,
        report or ScreenReport(),
        fields=ComparedFields.of(found, given["within"] or (), given["across"]),
        max_candidates=max_candidates,
    )
    yield from fingerprinted_actions(
        actions,
        found.settings,
        index=index.name,
        max_chars=max_chars,
        skipped_relations=found.target.skipped_relations,
        choose_groups=screen.choose_groups,
    )


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

    @property
    def in_source(self) -> list[str]:
        """Their names in documents."""
        return [*self.within.values(), *self.across.values()]

    def set_values(self, document: Candidate, source: Mapping[str, Any]) -> None:
        """Read the values of a document."""
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


class Screen:
    """Compares the documents of writes, piece by piece, with those of the index and of earlier pieces."""

    def __init__(
        self,
        index: Index,
        criterion: MatchCriterion,
        on_match: OnMatch | str | WhatToDo,
        report: ScreenReport,
        *,
        fields: ComparedFields = NO_FIELDS,
        max_candidates: int = 100,
        refreshes: bool = True,
    ) -> None:
        """``refreshes``: whether the index may be refreshed, so that searches see the documents of earlier pieces."""
        if max_candidates < 1:
            raise SettingsError(f"{option('max_candidates')} must be 1 or more.")
        self.index = index
        self.criterion = criterion
        self.report = report
        self.fields = fields
        self.max_candidates = max_candidates
        self._choose = on_match if callable(on_match) else _what_to_do(on_match)
        self._marks = callable(on_match) or self._choose is OnMatch.MARK
        self._refreshes = refreshes
        self._recent = RecentDocuments()
        self._concrete = _concrete_names(index.target)
        self._in_use = GroupIdsInUse(index)

    def choose_groups(self, pieces: Iterator[Piece]) -> Iterator[tuple[Piece, list[Mapping[str, Any] | None]]]:
        """Each piece with the group fields of its writes; see `ChooseGroups`.

        The requests for a piece are sent while the caller writes the one before, and the next one is read meanwhile.
        """
        current = self._begin(next(pieces, None))
        while current is not None:
            writes: Piece | None = None
            try:
                writes = next(pieces, None)
            finally:  # if the next piece cannot be read, this one is written before the error is raised
                groups = self._groups(current)
                following = self._begin(writes)
                yield current.writes, groups
            current = following

    def _begin(self, writes: Piece | None) -> _Piece | None:
        """Choose the writes of a piece to compare, and send the first requests for them. None if there is no piece."""
        if writes is None:
            return None
        self._forget()
        piece = _Piece(self.index, self.criterion, self._recent, self.max_candidates, writes, fields=self.fields)
        piece.references = [self._reference(one) for one in writes]
        piece.last = {
            reference: place for place, reference in enumerate(piece.references) if writes[place].changes_text
        }
        piece.documents = self._with_keys(piece)
        piece.own_groups = _in_background(lambda: own_groups(writes, self._groups_in_use))
        piece.existing = _in_background(lambda: self._existing([one.reference for one in piece.documents.values()]))
        piece.found = _in_background(lambda: piece.find(list(piece.documents.values())))
        return piece

    def _groups(self, piece: _Piece) -> list[Mapping[str, Any] | None]:
        """The group fields of each write of a piece; None for one that is skipped."""
        own, existing, _ = piece.own_groups.result(), piece.existing.result(), piece.found.result()
        for place, document in piece.documents.items():
            document.group, document.principal = own[place]["group"], own[place]["principal"]
        for reference, place in piece.last.items():
            if reference is not None and place not in piece.documents:
                self._recent.change(reference, deleted=piece.writes[place].op == "delete")
        new = self._without_known(piece, existing)
        for document in new.values():
            piece.choose_candidates(document)
            self._recent.add(document)
        piece.compare()
        piece.look_further()
        counts = self.report.counts
        counts.not_compared += sum(piece.not_compared.values())
        groups: list[Mapping[str, Any] | None] = list(own)
        for place, document in new.items():
            matches = piece.matches(document)
            if not matches:
                counts.unique += 1
                counts.unsure += piece.not_compared[document] > 0
                continue
            group = piece.group_to_join(document, matches) if self._marks else None
            done = self._decide(piece.writes[place].action, document, matches, group)
            if done == "skipped":
                self._recent.remove(document)
                for other, reference in enumerate(piece.references):
                    if reference == document.reference and piece.writes[other].is_whole:
                        groups[other] = None
                        counts.repeated_skipped += other != place
            elif done == "marked" and group is not None:
                groups[place] = waiting(group)
                self._recent.regroup(document, group)
                self._in_use.any = True
        return groups

    def _groups_in_use(self, ids: Sequence[str]) -> set[str]:
        return self._recent.groups_in_use(ids) | set(self._in_use.among(ids))

    def _reference(self, one: Incoming) -> Reference | None:
        """The reference of a document of this index; None for any other."""
        if one.address is None or (concrete := self._concrete.get(one.address.index)) is None:
            return None
        return concrete, one.address.id, one.routing

    def _with_keys(self, piece: _Piece) -> dict[int, Candidate]:
        """The documents of the index that have keys, by their places: of each, the last version. Counts all others."""
        counts = self.report.counts
        found: dict[int, Candidate] = {}
        for place, (one, reference) in enumerate(zip(piece.writes, piece.references, strict=True)):
            counts.actions += 1
            if not one.is_whole or one.fingerprint is None:
                counts.other_actions += 1
            elif one.address is None:
                counts.without_id += 1
            elif reference is None:
                counts.other_indices += 1
            elif piece.last[reference] != place:
                counts.repeated += 1
            elif not one.fingerprint.bands:
                counts.without_keys += 1
            else:
                keys = one.fingerprint
                found[place] = Candidate(reference, keys.bands, keys.content, keys.tokens, None, None, one.source)
                self.fields.set_values(found[place], one.source)
        return found

    def _without_known(self, piece: _Piece, existing: set[Reference]) -> dict[int, Candidate]:
        """The new documents. Remembers the new versions of existing ones."""
        counts = self.report.counts
        new: dict[int, Candidate] = {}
        for place, document in piece.documents.items():
            if document.reference not in existing:
                counts.screened += 1
                document.rewritten = document.reference in self._recent  # which has deleted it
                new[place] = document
                continue
            counts.known += 1
            if piece.writes[place].op != "create":  # the server refuses to create it again
                document.rewritten = True
                self._recent.add(document)
        return new

    def _existing(self, references: Sequence[Reference]) -> set[Reference]:
        """Those of the documents that are in the index, or that this run has written."""
        existing = {one for one in references if self._recent.exists(one)}
        unknown = [one for one in references if one not in self._recent]
        hits = self.index.documents.fetch(unknown, False)
        return existing | {one for one, hit in zip(unknown, hits, strict=True) if hit is not None}

    def _decide(
        self,
        action: Mapping[str, Any],
        document: Candidate,
        matches: Sequence[tuple[Candidate, float]],
        group: str | None,
    ) -> str:
        """Report the match of an action. Returns what is done."""
        (best, similarity), *others = matches
        measure = self.criterion.measure
        match = Match(
            index=best.reference[0],
            id=best.reference[1],
            similarity=similarity,
            measure=measure.label,
            copy=measure.copies_are_equal and best.content == document.content,
            group=group,
            others=tuple(OtherMatch(*one.reference[:2], value) for one, value in others),
        )
        chosen = self._choose if isinstance(self._choose, OnMatch) else _what_to_do(self._choose(action, match))
        done = {
            OnMatch.MARK: "apart" if group is None else "marked",
            OnMatch.SKIP: "skipped",
            OnMatch.PASS: "passed",
        }[chosen]
        counts = self.report.counts
        setattr(counts, done, getattr(counts, done) + 1)
        counts.copies += match.copy
        self.report.note(MatchedAction(*document.reference[:2], match, done))
        return done

    def _forget(self) -> None:
        """If too many documents are remembered, forget those that searches see; if that is not enough, the oldest."""
        if not self._recent.full:
            return
        if self._refreshes:
            self.index.documents.refresh_if_allowed()
        blocks = chunked(self._recent.documents, _BLOCK)
        self._recent.forget([one for block in blocks if self._are_visible(block) for one in block])
        if self._recent.full:
            self.report.counts.forgotten += self._recent.forget_oldest()

    def _are_visible(self, documents: Sequence[Candidate]) -> bool:
        """Whether searches see these versions of the documents."""
        field, found = self.index.fields.content, 0
        for concrete in {one.reference[0] for one in documents}:
            here = [one for one in documents if one.reference[0] == concrete]
            ids = [one.reference[1] for one in here if not one.rewritten]
            exact = {one.reference[1]: one.content or "" for one in here if one.rewritten}
            found += self.index.documents.count(queries.versions(concrete, ids, exact, field))
        return found == len(documents)


class _Piece:
    """The new documents of a piece, the documents that share keys with them, and the similarities of these pairs."""

    own_groups: Future[list[Mapping[str, Any]]]
    existing: Future[set[Reference]]
    found: Future[None]

    def __init__(
        self,
        index: Index,
        criterion: MatchCriterion,
        recent: RecentDocuments,
        maximum: int,
        writes: Piece,
        *,
        fields: ComparedFields,
    ) -> None:
        self.writes = writes
        self.references: list[Reference | None] = []
        """Of each write; None for documents of other indices, and without an id."""
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
        self._stored: dict[Reference, Candidate] = {}
        self._by_key: ByKey = {}
        self._most_shared: dict[Candidate, list[Candidate]] = {}
        """Of new documents that share keys with very many, the stored ones that share most."""
        self._candidates: dict[Candidate, list[list[Candidate]]] = {}
        """Of each new document, the candidates with most shared keys first; of each content, principals first."""
        self._similarity: dict[tuple[Candidate, Candidate], float] = {}
        self._lost: set[Candidate] = set()
        """First candidates with copies that were changed or deleted since they got their keys."""
        self._leaders: dict[str, Candidate | None] = {}
        self._facts: dict[Candidate, FactTokens] = {}

    # -- candidates

    def find(self, documents: Sequence[Candidate]) -> None:
        """Search the documents that share keys with new ones."""
        keys = sorted({key for one in documents for key in one.bands})
        if not keys:
            return
        if len(keys) > queries.MAX_TERMS and len(documents) > 1:
            half = len(documents) // 2
            self.find(documents[:half])
            self.find(documents[half:])
            return
        size = min(_PAGE, self.index.target.max_result_window)
        found = self._search(queries.few_candidates(self.index.fields, keys, size=size, source=self._source()))
        if found["total"]["value"] <= len(found["hits"]):
            self._add(found["hits"])
            return
        searches = [_in_background(partial(self._find_most_shared, one), _SEARCHES) for one in documents]
        for one, searched in zip(documents, searches, strict=True):
            hits, unread = searched.result()
            self._most_shared[one] = self._add(hits)
            self.not_compared[one] += unread

    def _find_most_shared(self, document: Candidate) -> tuple[list[Mapping[str, Any]], int]:
        """Search the documents that share most keys with one; of those with the same content, only one. Returns the
        hits, and the number of all other documents that share keys."""
        index, fold = self.index, self.criterion.measure.copies_are_equal
        body = self._sharing_most(document, self.maximum, self._source())
        found = self._search(body)
        hits, unread = found["hits"], found["total"]["value"] - len(found["hits"])
        stored = (stored_fields(hit["_source"], index.settings.prefix).get("content") for hit in hits)
        known = sorted({one for one in stored if isinstance(one, str)})
        if fold and known and unread:
            counted = index.documents.search(queries.copies(index.fields, body["query"], known))
            unread -= sum(one["doc_count"] - 1 for one in counted["aggregations"]["copies"]["buckets"])
        return hits, max(0, unread)

    def _sharing_most(self, document: Candidate, size: int, source: Sequence[str]) -> queries.JSON:
        return queries.candidates(
            self.index.fields,
            document.bands,
            size=min(size, self.index.target.max_result_window),
            agree=self.index.settings.scheme.agree,
            scope=self.fields.scope(document),
            fold=self.criterion.measure.copies_are_equal,
            more=source,
        )

    def _source(self) -> list[str]:
        fields, more = self.index.fields, self.fields.in_source
        return [fields.bands, fields.content, fields.tokens, fields.group, fields.principal, *more]

    def _search(self, body: Mapping[str, Any]) -> Any:
        return self.index.documents.search(body)["hits"]

    def _add(self, hits: Iterable[Mapping[str, Any]]) -> list[Candidate]:
        """Candidates of stored documents."""
        added = []
        for hit in map(hit_of, hits):
            if (one := self._stored.get(hit.reference)) is None:
                one = self._stored[hit.reference] = _stored_candidate(hit, self.index.settings.prefix)
                self.fields.set_values(one, hit.source)
                insert(self._by_key, one)
                if one.principal and one.group is not None:
                    self._leaders[one.group] = one
            added.append(one)
        return added

    # -- comparison

    def choose_candidates(self, document: Candidate) -> None:
        """Choose the candidates of a new document: those that are stored, and those that the run wrote before."""
        fold, agree = self.criterion.measure.copies_are_equal, self.index.settings.scheme.agree
        stored = self._by_key
        if document in self._most_shared:
            stored = {}
            for one in self._most_shared[document]:
                insert(stored, one)
        found, left_out = sharing(document, agree, self._recent.by_key, stored)
        self.not_compared[document] += left_out
        by_content: dict[object, list[Candidate]] = {}
        for one in found:
            content = one.content if fold and one.content else one
            if self._recent.replaces(one) or not one.may_match(document):
                continue
            if content in by_content:
                by_content[content].append(one)
            elif len(by_content) < self.maximum:
                by_content[content] = [one]
            else:
                self.not_compared[document] += 1
        self._candidates[document] = [sorted(copies, key=_preference) for copies in by_content.values()]

    def compare(self) -> None:
        """Compare each new document with its candidates: of those with the same content, one that is unchanged."""
        pairs = [(document, copies) for document, some in self._candidates.items() for copies in some]
        self._compare((document, copies[0]) for document, copies in pairs)
        self._lost = self._changed({copies[0] for _, copies in pairs if len(copies) > 1})
        self._compare((document, one) for document, copies in pairs if copies[0] in self._lost for one in copies)

    def look_further(self) -> None:
        """Compare documents without a match with more of the stored ones that share most keys, those whose signatures
        are most similar: in a large family, hundreds share as many keys."""
        further = dict[Candidate, list[Candidate]]()
        for place, document in self.documents.items():
            if self.not_compared[document] and document in self._candidates and not self.matches(document):
                fingerprint = self.writes[place].fingerprint
                nearest = [] if fingerprint is None else self._nearest(document, fingerprint.signature)
                allowed = (one for one in nearest if not self._recent.replaces(one) and one.may_match(document))
                further[document] = list(allowed)
                self.not_compared[document] = max(0, self.not_compared[document] - len(nearest))
        self._compare((document, one) for document, some in further.items() for one in some)
        for document, some in further.items():
            self._candidates[document] += ([one] for one in some)

    def _nearest(self, document: Candidate, signature: bytes) -> list[Candidate]:
        """Stored documents that share most keys with one, without those that were compared: those whose signatures
        agree in most slots."""
        body = self._sharing_most(document, _NEAREST, [*self._source(), self.index.fields.signature])
        known = {one.reference for copies in self._candidates[document] for one in copies}
        hits = [hit for hit in self._search(body)["hits"] if hit_of(hit).reference not in known]

        def agreeing(hit: Mapping[str, Any]) -> int:
            try:
                stored = decode_signature(stored_fields(hit["_source"], self.index.settings.prefix))
            except CorruptFingerprint:
                return 0
            return sum(map(eq, stored, signature))

        return self._add(sorted(hits, key=agreeing, reverse=True)[: self.maximum])

    def _changed(self, candidates: Iterable[Candidate]) -> set[Candidate]:
        """Those that were changed or deleted since they got their keys."""
        read = [one for one in candidates if one.source is not None or not one.exists]
        found = contents([prepared_text(one.source or {}, self.index.settings) for one in read])
        return {one for one, content in zip(read, found, strict=True) if content != one.content}

    def _compare(self, pairs: Iterable[tuple[Candidate, Candidate]]) -> None:
        measure, fields = self.criterion.measure, TextFields.of(self.index.settings)
        waiting = list[tuple[Candidate, Candidate]]()
        for pair in pairs:
            if pair in self._similarity:
                continue
            if measure.copies_are_equal and pair[0].content == pair[1].content:
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
        places: dict[Candidate, int] = {}
        for pair in waiting:
            for one in pair:
                places.setdefault(one, len(places))
        left, right = (np.array([places[pair[side]] for pair in waiting], np.intp) for side in (0, 1))
        compared = similarities(measure, [one.source or {} for one in places], fields, left, right)
        self._similarity.update(zip(waiting, compared.tolist(), strict=True))

    def matches(self, document: Candidate) -> list[tuple[Candidate, float]]:
        """The matches of a new document that are, or will be, in the index, with their similarity, most similar
        first."""
        found: list[tuple[Candidate, float]] = []
        for copies in self._candidates[document]:
            common = 0.0 if copies[0] in self._lost else self._similarity[document, copies[0]]
            values = ((one, self._similarity.get((document, one), common)) for one in copies if one.exists)
            similar = (pair for pair in values if pair[1] >= self.criterion.min)
            agreeing = (pair for pair in similar if self._facts_agree(document, self._read_copy(copies, pair[0])))
            found += islice(agreeing, 1)
        return sorted(found, key=lambda pair: (-pair[1], *_preference(pair[0])))

    def _read_copy(self, copies: Sequence[Candidate], one: Candidate) -> Candidate:
        """The one of some copies that was read, for one of them: the first, unless it was changed."""
        return one if copies[0] in self._lost else copies[0]

    def _facts_agree(self, *pair: Candidate) -> bool:
        """Whether no facts that decide differ between two documents."""
        kinds = self.criterion.facts
        if not kinds or pair[0].content == pair[1].content:
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
        if group not in self._leaders:
            body = {"size": 1, "query": queries.groups_by_id(self.index.fields, [group]), "_source": self._source()}
            self._add(self._search(body)["hits"])
        stored = self._leaders.setdefault(group, None)
        return None if stored is None or self._recent.replaces(stored) else stored


def _in_background(work: Callable[[], _Result], threads: ThreadPoolExecutor = _THREADS) -> Future[_Result]:
    return threads.submit(copy_context().run, work)


def _stored_candidate(hit: Hit, prefix: str) -> Candidate:
    """A document as a search found it."""
    stored = stored_fields(hit.source, prefix)
    bands, content, principal = stored.get("bands"), stored.get("content"), stored.get("principal")
    return Candidate(
        hit.reference,
        [bands] if isinstance(bands, str) else list(bands or ()),
        content if isinstance(content, str) else None,
        count_of(stored, "tokens"),
        group_of(stored),
        principal if isinstance(principal, bool) else None,
    )


def _preference(candidate: Candidate) -> tuple[bool, str, str]:
    """The order of equally similar candidates: principals first."""
    return not candidate.principal, *candidate.reference[:2]


def _what_to_do(word: object) -> OnMatch:
    try:
        return OnMatch(word)
    except ValueError:
        known = ", ".join(one.value for one in OnMatch)
        raise SettingsError(
            f"{option('on_match')} must be one of {known}, or a function that returns one, not {word!r}."
        ) from None


def _concrete_names(target: IndexTarget) -> dict[str, str]:
    """Index as it may be named in an action -> the concrete index that its documents are written to."""
    names = {index: index for index in target.indices}
    alias = target.rollover_alias
    if len(target.indices) == 1:
        names[target.name] = target.indices[0]
    elif alias is not None and alias.data_stream:
        names[target.name] = max(target.indices, key=lambda name: name.rpartition("-")[2])
    elif alias is not None:
        names[target.name] = alias.writes_to
    return names
