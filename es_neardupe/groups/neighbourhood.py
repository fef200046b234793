"""Affected documents: those that a change can move between groups, with all their candidates, for incremental runs.

Documents are reached over matches and over common groups, from those that wait for ``group`` (or that ``--check``
found). Nothing else can get another group: the result on them is that of a run over the whole index.

With star linkage less is needed. Texts are taken in order, so one that joins an earlier principal moves no other: the
neighbours of the documents in its group need not be known, as long as each of these stays where it is. The neighbours
of those that would move are read too, and so on until no other document moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.fingerprints import read_corpus, requested
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.groups.linkage import star
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.options import Linkage
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address, FingerprintColumns, Hit
from es_neardupe.server.bulk import chunked
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.evidence import Evidence
from es_neardupe.verification.verify import PairMemory, Verified, verified_pairs

__all__ = ["affected_pairs"]

_PAGE = 10_000
"""A query of so many terms costs the server more than the documents that it finds: it is asked once if that will do."""


def affected_pairs(
    index: Index,
    wanted: MatchCriterion,
    rules: GroupRules,
    seeds: Iterable[dict[str, Any]],
    *,
    evidence: Evidence | None = None,
    progress: Progress = silent,
) -> Verified:
    """The verified pairs around the documents that the queries ``seeds`` match; ``inside`` are the affected rows.

    The other rows only share a key with an affected one: no pair between two of them counts. Pairs that are known from
    ``evidence`` are not compared.
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
            np.array([reference[:2] in some for reference in corpus.references], np.bool_)
            for some in (area.inside, area.moving)
        )
        if evidence is not None:
            evidence.read_about(corpus, inside)
        found = verified_pairs(
            index,
            wanted.measure,
            corpus,
            copies=wanted.copies_fit,
            rules=rules,
            memory=memory,
            progress=progress,
            inside=inside,
            earlier=earlier,
        )
        earlier = found.verifier
        if (new := _reached(found, moving, wanted) & ~inside).any():
            area.inside |= _addresses(corpus, new)
        elif (new := _moved(found, wanted, progress) & ~moving).any():
            area.moving |= _addresses(corpus, new)
        else:
            return replace(found, corpus=area.counted(corpus))


def _addresses(corpus: FingerprintColumns, rows: NDArray[np.bool_]) -> set[Address]:
    return {corpus.references[row][:2] for row in np.flatnonzero(rows).tolist()}


def _moved(found: Verified, wanted: MatchCriterion, progress: Progress) -> NDArray[np.bool_]:
    """The rows inside that a star of them gives another principal than they have. All of them if a text is not as it
    was fingerprinted: then the order of principals is another one."""
    corpus, classes, candidates, inside = found.corpus, found.classes, found.candidates, found.inside
    matches = found.confirmed(wanted.matches, progress)
    if found.verifier.documents.changed_or_deleted.any():
        return inside
    principal = star(len(classes), candidates.left[matches], candidates.right[matches])
    class_of = np.full(len(inside), -1, np.intp)
    for number, rows in enumerate(classes.members):
        class_of[rows] = number
    known = {row: corpus.groupings[row] for row in np.flatnonzero(inside & (class_of >= 0)).tolist()}
    leading = {one.group: class_of[row] for row, one in known.items() if one is not None and one.principal}
    moved = np.zeros(len(inside), np.bool_)
    for row, one in known.items():
        moved[row] = one is None or leading.get(one.group) != principal[class_of[row]]
    return moved


def _reached(found: Verified, moving: NDArray[np.bool_], wanted: MatchCriterion) -> NDArray[np.bool_]:
    """The rows that match a moving one, and all copies of those inside."""
    matches = wanted.matches(found.similarity)
    left, right = found.candidates.left[matches], found.candidates.right[matches]
    touched = found.classes.touching(moving)
    of_classes = found.classes.touching(found.inside)
    of_classes[right[touched[left]]] = True
    of_classes[left[touched[right]]] = True
    reached = np.zeros(len(moving), np.bool_)
    for number in np.flatnonzero(of_classes).tolist():
        reached[found.classes.members[number]] = True
    return reached


class _Neighbourhood:
    """What was read so far, and which of it is affected."""

    def __init__(self, index: Index, rules: GroupRules) -> None:
        self._index = index
        self._body = requested(index.fields, rules)
        self._stays = rules.linkage is Linkage.STAR
        self._asked: dict[str, set[str]] = {"bands": set(), "group": set()}
        self._gathered: set[Address] = set()
        self._widened: set[Address] = set()
        self.hits: dict[Address, Hit] = {}
        self.inside: set[Address] = set()
        self.moving: set[Address] = set()
        """Those inside whose neighbours count: all of them, unless a star lets the others stay where they are."""

    def read(self, query: dict[str, Any]) -> Iterator[Hit]:
        """The documents with a fingerprint of the scheme that a query matches; noted as they come."""
        fields = self._index.target.fields
        whole = queries.all_of(queries.fingerprinted(fields, self._index.target.scheme_id), query)
        for page in self._index.client.pages(self._index.target.path, {"query": whole, **self._body}, page_size=_PAGE):
            for hit in page:
                self.hits[hit.address] = hit
                yield hit

    def widen(self, progress: Progress) -> None:
        """Read whatever shares a group with an affected document, which makes it one, or a key with a moving one.

        A query of many documents' keys cannot ask for several of one document: where a scheme wants more, what shares
        one is read, and the join decides.
        """
        while new := self.inside - self._gathered:
            self._gathered |= new
            progress("reading the neighbourhood", len(self._gathered), None)
            self.inside.update(hit.address for hit in self._asking("group", new, _group_ids))
        if not self._stays:
            self.moving |= self.inside
        for _ in self._asking("bands", self.moving - self._widened, _keys):
            pass
        self._widened |= self.moving

    def counted(self, corpus: FingerprintColumns) -> FingerprintColumns:
        """The corpus with states and unreadable documents of the affected ones alone."""
        corrupt = [address for address in corpus.corrupt if address in self.inside]
        states = dict.fromkeys(corpus.states, 0)
        for address in self.inside.difference(corrupt):
            states[stored_fields(self.hits[address].source, self._index.target.settings.prefix)["state"]] += 1
        return replace(corpus, states=states, corrupt=corrupt)

    def _asking(self, name: str, new: set[Address], values: Callable[[dict[str, Any]], list[str]]) -> Iterator[Hit]:
        """Documents with any value that the new ones have in a field of ours, each value asked for once."""
        prefix = self._index.target.settings.prefix
        stored = (dict(stored_fields(self.hits[address].source, prefix)) for address in new)
        terms = {value for one in stored for value in values(one)} - self._asked[name]
        self._asked[name] |= terms
        for chunk in chunked(sorted(terms), queries.MAX_TERMS):
            yield from self.read({"terms": {f"{prefix}.{name}": chunk}})


def _group_ids(stored: dict[str, Any]) -> list[str]:
    group = group_of(stored)
    return [] if group is None else [group]


def _keys(stored: dict[str, Any]) -> list[str]:
    keys = stored.get("bands") or []
    return [key for key in ([keys] if isinstance(keys, str) else keys) if isinstance(key, str)]
