"""Comparison of writes, piece by piece, with the documents of an index, and their groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from es_neardupe.errors import IncompleteAnswer, RequestError, SettingsError
from es_neardupe.incoming.matches import Match, MatchedAction, OtherMatch, ScreenReport, WhatToDo
from es_neardupe.incoming.piece import NO_FIELDS, ComparedFields, ComparedPiece, in_background, stored_candidate
from es_neardupe.incoming.recent_documents import RecentDocuments
from es_neardupe.incoming.stored_buckets import StoredBuckets
from es_neardupe.incoming.texts_by_key import Candidate
from es_neardupe.incoming.writes import Incoming, Piece, own_groups
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.target import IndexTarget
from es_neardupe.index.updates import GroupIdsInUse, waiting
from es_neardupe.options import OnMatch
from es_neardupe.records import Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.wording import option

_BLOCK = 256
"""Documents of which one request counts those that searches see."""


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
        self.index = index
        self.criterion = criterion
        self.report = report
        self.fields = fields
        self.max_candidates = max_candidates
        self._choose = on_match if callable(on_match) else _what_to_do(on_match)
        self._marks = callable(on_match) or self._choose is OnMatch.MARK
        self._refreshes = refreshes
        self._recent = RecentDocuments(index.settings.scheme.permutations, fold=criterion.one_for_all_copies)
        self._buckets: StoredBuckets | None = None
        self._not_written: list[Reference] = []
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

    def remembers(self, reference: Reference) -> bool:
        """Whether the document of a write is compared with later ones, instead of its version in the index."""
        return reference in self._recent

    def not_written(self, reference: Reference) -> None:
        """A document that was yielded was not written: pieces that begin later do not match it."""
        self._not_written.append(reference)

    def _begin(self, writes: Piece | None) -> ComparedPiece | None:
        """Choose the writes of a piece to compare, and send the first requests for them. None if there is no piece."""
        if writes is None:
            return None
        self._forget()
        if self._buckets is None or (self._buckets.expired and not self._renewed(self._buckets)):
            settings, fold = self.index.settings, self.criterion.one_for_all_copies
            candidate = partial(stored_candidate, prefix=settings.prefix, fields=self.fields)
            self._buckets = StoredBuckets(settings.scheme, settings.prefix, candidate, fold=fold)
        piece = ComparedPiece(
            self.index,
            self.criterion,
            self._recent,
            self._buckets,
            writes,
            maximum=self.max_candidates,
            fields=self.fields,
        )
        references = [self._reference(one) for one in writes]
        for place, reference in enumerate(references):
            piece.places.setdefault(reference, []).append(place)
        piece.last = {reference: place for place, reference in enumerate(references) if writes[place].changes_text}
        piece.documents = self._with_keys(piece, references)
        piece.own_groups = in_background(lambda: own_groups(writes, self._groups_in_use))
        piece.existing = in_background(lambda: self._existing([one.reference for one in piece.documents.values()]))
        piece.found = in_background(lambda: piece.find(list(piece.documents.values())))
        return piece

    def _renewed(self, buckets: StoredBuckets) -> bool:
        """Whether the documents of the buckets are still those of the index. Then they are kept."""
        if not buckets.renewable or len(buckets.keys) > queries.MAX_TERMS:
            return False
        try:
            found = self.index.documents.search(queries.sequence_numbers(self.index.fields, sorted(buckets.keys)))
        except (IncompleteAnswer, RequestError):  # not all servers add up sequence numbers
            return False
        values = [found["aggregations"][name]["value"] for name in ("sum", "max")]
        if (found["hits"]["total"]["value"], *values) != buckets.seq_nos:
            return False
        buckets.renew()
        return True

    def _groups(self, piece: ComparedPiece) -> list[Mapping[str, Any] | None]:
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
                for other in piece.places[document.reference]:
                    if piece.writes[other].is_whole:
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

    def _with_keys(self, piece: ComparedPiece, references: Sequence[Reference | None]) -> dict[int, Candidate]:
        """The documents of the index that have keys, by their places: of each, the last version. Counts all others."""
        counts = self.report.counts
        found: dict[int, Candidate] = {}
        for place, (one, reference) in enumerate(zip(piece.writes, references, strict=True)):
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
                found[place] = Candidate(
                    reference, keys.bands, keys.content, keys.tokens, None, None, keys.signature, one.source
                )
                self.fields.set_values(found[place], one.source)
        return found

    def _without_known(self, piece: ComparedPiece, existing: set[Reference]) -> dict[int, Candidate]:
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
        """Forget the documents that were not written. If still too many are remembered, forget those that searches see;
        if that is not enough, the oldest."""
        for reference in self._not_written:
            self._recent.discard(reference)
        self._not_written.clear()
        if not self._recent.full:
            return
        self._buckets = None  # which lack the documents that only searches will find
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
