"""Affected documents of an incremental run: those that a change can move between groups, with all their candidates.

They are reached through matches and common groups, from the documents that wait for ``group`` (or that ``--check``
found). No other document can get another group, so the result is that of a run over the whole index.

Star linkage needs fewer documents. Texts are linked in order, so a text that joins an earlier principal moves no other
text, and the neighbours of the other members of that group are not needed, as long as no member moves. The neighbours
of members that would move are read too, until no further document moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from es_neardupe.candidates.fingerprints import read_corpus, requested
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.groups.linkage import star
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.keys.arrays import Flags
from es_neardupe.options import Linkage
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address, FingerprintColumns, Hit
from es_neardupe.server.bulk import chunked
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.evidence import Evidence
from es_neardupe.verification.verify import AffectedRows, PairMemory, Verified, verified_pairs

__all__ = ["affected_pairs"]

_PAGE = 10_000
"""A query with many terms costs the server more than the documents that it finds: large pages avoid repeating it."""


def affected_pairs(
    index: Index,
    criterion: MatchCriterion,
    rules: GroupRules,
    seeds: Iterable[dict[str, Any]],
    *,
    evidence: Evidence | None = None,
    progress: Progress = silent,
) -> Verified:
    """The verified pairs of the documents that the queries ``seeds`` match, and of all others that they affect.

    Rows ``inside`` are affected. The other rows only share a key with an affected one: pairs between two of them are
    ignored. Pairs known from ``evidence`` are not compared.
    """
    memory = PairMemory() if evidence is None else evidence.memory
    area = _Neighbourhood(index, rules)
    for query in seeds:
        area.inside.update(hit.address for hit in area.read(query))
    area.moving |= area.inside
    earlier = None
    while True:
        area.widen(progress)
        corpus = read_corpus([list(area.hits.values())], index.settings.prefix, index.settings.scheme.bands, rules)
        inside, moving = (
            np.array([reference[:2] in addresses for reference in corpus.references], np.bool_)
            for addresses in (area.inside, area.moving)
        )
        if evidence is not None:
            evidence.read_about(corpus, inside)
        verified = verified_pairs(
            index,
            criterion.measure,
            corpus,
            copies=criterion.copies_match,
            rules=rules,
            memory=memory,
            affected=AffectedRows(inside, earlier),
            progress=progress,
        )
        earlier = verified.verifier
        if (new := _reached(verified, moving, criterion) & ~inside).any():
            area.inside |= _addresses(corpus, new)
        elif (new := _moved(verified, criterion, progress) & ~moving).any():
            area.moving |= _addresses(corpus, new)
        else:
            return replace(verified, corpus=area.counted(corpus))


def _addresses(corpus: FingerprintColumns, rows: Flags) -> set[Address]:
    return {corpus.references[row][:2] for row in np.flatnonzero(rows).tolist()}


def _moved(verified: Verified, criterion: MatchCriterion, progress: Progress) -> Flags:
    """The rows inside that star linkage would give another principal. All of them if a text has changed since it was
    fingerprinted, which changes the order of principals."""
    corpus, classes, candidates, inside = verified.corpus, verified.classes, verified.candidates, verified.inside
    matches = verified.confirmed(criterion.matches, progress)
    if verified.verifier.documents.changed_or_deleted.any():
        return inside
    principal = star(len(classes), candidates.left[matches], candidates.right[matches])
    class_of = np.full(len(inside), -1, np.intp)
    for number, rows in enumerate(classes.members):
        class_of[rows] = number
    stored = {row: corpus.groupings[row] for row in np.flatnonzero(inside & (class_of >= 0)).tolist()}
    leading = {one.group: class_of[row] for row, one in stored.items() if one is not None and one.principal}
    moved = np.zeros(len(inside), np.bool_)
    for row, one in stored.items():
        moved[row] = one is None or leading.get(one.group) != principal[class_of[row]]
    return moved


def _reached(verified: Verified, moving: Flags, criterion: MatchCriterion) -> Flags:
    """The rows that match a moving row, and all copies of rows inside."""
    matches = criterion.matches(verified.similarity)
    left, right = verified.candidates.left[matches], verified.candidates.right[matches]
    moving_classes = verified.classes.touching(moving)
    reached_classes = verified.classes.touching(verified.inside)
    reached_classes[right[moving_classes[left]]] = True
    reached_classes[left[moving_classes[right]]] = True
    reached = np.zeros(len(moving), np.bool_)
    for number in np.flatnonzero(reached_classes).tolist():
        reached[verified.classes.members[number]] = True
    return reached


class _Neighbourhood:
    """The documents read so far, and which of them are affected."""

    def __init__(self, index: Index, rules: GroupRules) -> None:
        self._index = index
        self._body = requested(index.fields, rules)
        self._star = rules.linkage is Linkage.STAR
        self._queried: dict[str, set[str]] = {"bands": set(), "group": set()}
        self._gathered: set[Address] = set()
        self._widened: set[Address] = set()
        self.hits: dict[Address, Hit] = {}
        self.inside: set[Address] = set()
        self.moving: set[Address] = set()
        """Documents inside whose neighbours are needed: all of them, except with star linkage."""

    def read(self, query: dict[str, Any]) -> Iterator[Hit]:
        """The documents with a fingerprint of the scheme that a query matches. Adds them to ``hits``."""
        fields = self._index.target.fields
        fingerprinted = queries.all_of(queries.fingerprinted(fields, self._index.target.scheme_id), query)
        body = {"query": fingerprinted, **self._body}
        for page in self._index.client.pages(self._index.target.path, body, page_size=_PAGE):
            for hit in page:
                self.hits[hit.address] = hit
                yield hit

    def widen(self, progress: Progress) -> None:
        """Read all documents that share a group with an affected one, and so are affected too, or a key with a moving
        one.

        A query for the keys of many documents cannot require several keys of one of them. If the scheme does, documents
        that share one key are read, and the join decides.
        """
        while new := self.inside - self._gathered:
            self._gathered |= new
            progress("reading the neighbourhood", len(self._gathered), None)
            self.inside.update(hit.address for hit in self._sharing("group", new, _group_ids))
        if not self._star:
            self.moving |= self.inside
        for _ in self._sharing("bands", self.moving - self._widened, _keys):
            pass
        self._widened |= self.moving

    def counted(self, corpus: FingerprintColumns) -> FingerprintColumns:
        """The corpus with the states and corrupt fingerprints of affected documents only."""
        corrupt = [address for address in corpus.corrupt if address in self.inside]
        states = dict.fromkeys(corpus.states, 0)
        for address in self.inside.difference(corrupt):
            states[stored_fields(self.hits[address].source, self._index.target.settings.prefix)["state"]] += 1
        return replace(corpus, states=states, corrupt=corrupt)

    def _sharing(self, name: str, new: set[Address], values: Callable[[dict[str, Any]], list[str]]) -> Iterator[Hit]:
        """Documents with a value that one of the new documents has in a ``neardupe`` field; each value is queried
        once."""
        prefix = self._index.target.settings.prefix
        stored = (dict(stored_fields(self.hits[address].source, prefix)) for address in new)
        terms = {value for one in stored for value in values(one)} - self._queried[name]
        self._queried[name] |= terms
        for chunk in chunked(sorted(terms), queries.MAX_TERMS):
            yield from self.read({"terms": {f"{prefix}.{name}": chunk}})


def _group_ids(stored: dict[str, Any]) -> list[str]:
    group = group_of(stored)
    return [] if group is None else [group]


def _keys(stored: dict[str, Any]) -> list[str]:
    keys = stored.get("bands") or []
    return [key for key in ([keys] if isinstance(keys, str) else keys) if isinstance(key, str)]
