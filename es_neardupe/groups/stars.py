"""Star groups: each member matches the principal of its group, as few texts as possible are alone although they match,
and as few matching pairs as possible are in different groups.

The groups of a *cluster*, a connected component of the matches, depend on nothing outside of it:

1. *Centres*. In the order of the number of matches, the most first, a text that matches no centre so far becomes one.
2. *Members*. Each other text joins the most similar centre that it matches.
3. *Exchange*. Centres are exchanged for other texts while that raises the value of the cluster (`exchange`).
4. *Other facts*. A member leaves its group if it has other facts than one that is nearer to the centre (`_kept_apart`).
5. *Principal*. The first text in the order of principals that matches all others of its group, as the centre does.

Ties go to the first text in the order of principals, which is that of the numbers of the texts. Similarities are whole
numbers, so that no sum depends on the order. So the groups depend only on the matches, and on which texts are in
several documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from es_neardupe.candidates.pair_arrays import blocks, components
from es_neardupe.compiled import compiled
from es_neardupe.keys.arrays import I32, Flags, Floats, Ints, Numbers, Positions
from es_neardupe.options import MeasureName

kernel = compiled("groups._stars")
"""The exchange in C: `_stars.c`."""

UNIT = 10**9
"""A similarity of 1."""

KEPT, BELOW, ALONE = 4, -1, -120
"""What a cluster is worth: for each matching pair in one group, for each other pair in one group, and for each document
that is alone, as much as 30 matching pairs. Of equal values, the higher sum of similarities to the centres counts."""

ROUNDS = 8
"""Maximum number of times that each text of a cluster is tried."""

WORK = 300_000_000
"""Maximum sum of the squared numbers of matches of the texts of a cluster whose centres are exchanged."""

_PORTION = 1_000_000
"""Matches of the clusters whose centres are exchanged at a time."""


class Matches(NamedTuple):
    """Matching pairs of classes; each has shape (m,)."""

    left: Numbers
    right: Numbers
    similarity: Floats


Pairs = tuple[Numbers, Numbers]
"""Pairs of classes; each side has shape (m,)."""


def star(matches: Matches, documents: Numbers, measure: str, apart: Pairs | None = None) -> Numbers:
    """The principal of each class, itself if it is alone; shape (k,).

    Classes are numbered in the order of principals; ``left < right``. ``documents``: the number of each class; shape
    (k,). ``measure``: the name of that of the matches. By containment, a short text matches many long ones that have
    nothing in common: then centres are chosen in the order of principals, and not exchanged. ``apart``: pairs that do
    not match because of other facts, and so are in no group together.
    """
    left, right, _ = matches
    number = _counted(len(documents), left, right)
    by_matches = measure != MeasureName.CONTAINMENT
    centre = _joined(matches, _centres(left, right, number, by_matches=by_matches))
    if by_matches:
        _exchange_all(matches, documents, number, centre)
    if apart is not None:
        _keep_apart(matches, apart, centre)
    return _principals(left, right, centre)


def _counted(size: int, left: Numbers, right: Numbers) -> I32:
    """The number of matches of each class; shape (k,)."""
    number = np.zeros(size, np.int32)
    for some in blocks(len(left)):
        for side in (left, right):
            np.add.at(number, side[some], 1)
    return number


def rounded(similarity: Floats) -> I32:
    """Similarities as whole numbers."""
    return np.rint(similarity * UNIT).astype(np.int32)


def _centres(left: Numbers, right: Numbers, number: I32, *, by_matches: bool) -> Flags:
    """Which classes become centres; shape (k,). ``number`` of matches of each class."""
    order = np.flatnonzero(number).astype(np.int32)
    if by_matches:
        order = order[np.argsort(-number[order], kind="stable")]
    size = len(order)
    rank = np.empty(len(number), np.int32)
    rank[order] = np.arange(size, dtype=np.int32)
    codes = np.empty(len(left), np.int64)  # the earlier class, then the later one
    for some in blocks(len(left)):
        one, other = rank[left[some]], rank[right[some]]
        codes[some] = np.minimum(one, other).astype(np.int64) * size + np.maximum(one, other)
    codes.sort()
    free = np.ones(size, np.bool_)
    chosen = np.ones(len(number), np.bool_)
    for some in _whole_rows(codes, size):
        first, later = np.divmod(codes[some], size)
        bounds = np.flatnonzero(np.diff(first, prepend=-1, append=size)).tolist()
        for start, end in pairwise(bounds):
            if free[first[start]]:
                free[later[start:end]] = False
    chosen[order] = free
    return chosen


def _whole_rows(codes: Ints, size: int) -> Iterator[slice]:
    """Parts of ascending codes, cut only where the earlier class changes."""
    start = 0
    for some in blocks(len(codes)):
        if some.stop >= len(codes):
            yield slice(start, len(codes))
            return
        end = int(np.searchsorted(codes, codes[some.stop] // size * size))
        if end > start:
            yield slice(start, end)
            start = end


def _joined(matches: Matches, chosen: Flags) -> I32:
    """The most similar centre of each class, of which some are ``chosen`` as centres; shape (k,)."""
    size = len(chosen)
    centre = np.arange(size, dtype=np.int32)
    nearest = np.full(size, -1, np.int32)
    for some in blocks(len(matches.left)):
        left, right, similarity = matches.left[some], matches.right[some], matches.similarity[some]
        for one, other in ((left, right), (right, left)):
            pairs = np.flatnonzero(chosen[other] & ~chosen[one])
            text, to, value = one[pairs], other[pairs], rounded(similarity[pairs])
            order = np.lexsort((to, -value, text))
            order = order[np.flatnonzero(np.diff(text[order], prepend=-1))]
            text, to, value = text[order], to[order], value[order]
            nearer = (value > nearest[text]) | ((value == nearest[text]) & (to < centre[text]))
            centre[text[nearer]], nearest[text[nearer]] = to[nearer], value[nearer]
    return centre


def _principals(left: Numbers, right: Numbers, centre: I32) -> I32:
    """The first class of each group that matches all others, as its ``centre`` does, for each class; shape (k,)."""
    size = len(centre)
    inside, others = np.zeros((2, size), np.int32)
    for some in blocks(len(left)):
        within = centre[left[some]] == centre[right[some]]
        for side in (left, right):
            np.add.at(inside, side[some][within], 1)
    np.add.at(others, centre, 1)
    others -= 1
    able = np.flatnonzero(inside == others[centre]).astype(np.int32)[::-1]
    first = np.empty(size, np.int32)
    first[centre[able]] = able  # the lowest number is assigned last
    return first[centre]


def _keep_apart(matches: Matches, apart: Pairs, centre: I32) -> None:
    """Divide the groups of pairs that are ``apart``. Changes ``centre``.

    The members of such pairs come back to their group one by one, those most similar to the centre first, unless a text
    that they are apart from is in it. Each of the others, in the order of principals, joins the most similar centre
    that it matches and whose group has no such text; without one, it becomes a centre.
    """
    inside = np.flatnonzero(centre[apart[0]] == centre[apart[1]])
    if not len(inside):
        return
    leaving = np.unique(np.concatenate([side[inside] for side in apart]))
    others = _neighbours(leaving, *apart)
    near = _neighbours(leaving, *matches)
    former = centre[leaving].tolist()
    centre[leaving] = -1

    def is_free(text: int, group: int) -> bool:
        return not any(centre[other] == group for other, _ in others[text])

    def to_centre(entry: tuple[int, int]) -> int:
        text, group = entry
        return next(value for other, value in near[text] if other == group)

    waiting = []
    for text, group in sorted(zip(leaving.tolist(), former, strict=True), key=lambda one: (-to_centre(one), one[0])):
        if is_free(text, group):
            centre[text] = group
        else:
            waiting.append(text)
    for text in sorted(waiting):
        groups = sorted((-value, other) for other, value in near[text] if centre[other] == other)
        centre[text] = next((group for _, group in groups if is_free(text, group)), text)


def _neighbours(
    texts: Numbers, left: Numbers, right: Numbers, similarity: Floats | None = None
) -> dict[int, list[tuple[int, int]]]:
    """The other text of each pair of some texts, with their similarity as a whole number, or 0."""
    found: dict[int, list[tuple[int, int]]] = {text: [] for text in texts.tolist()}
    for some in blocks(len(left)):
        values = np.zeros(some.stop - some.start, np.int32) if similarity is None else rounded(similarity[some])
        for one, other in ((left[some], right[some]), (right[some], left[some])):
            chosen = np.flatnonzero(np.isin(one, texts))
            for text, to, value in zip(
                one[chosen].tolist(), other[chosen].tolist(), values[chosen].tolist(), strict=True
            ):
                found[text].append((to, value))
    return found


def _exchange_all(matches: Matches, documents: Numbers, number: I32, centre: I32) -> None:
    """Exchange the centres of each cluster of several groups, unless it is too dense. Changes ``centre``."""
    left, right, similarity = matches
    cluster = components(len(documents), left, right)
    linked = np.flatnonzero(number)
    of = cluster[linked]
    clusters = int(of.max(initial=-1)) + 1
    groups = np.bincount(of[centre[linked] == linked], minlength=clusters)
    work = np.bincount(of, number[linked].astype(np.float64) ** 2, minlength=clusters)
    chosen = (groups > 1) & (work <= WORK)
    classes = linked[chosen[of]].astype(np.int32)
    if not len(classes):
        return
    classes = classes[np.argsort(cluster[classes], kind="stable")]
    starts = np.flatnonzero(np.diff(cluster[classes], prepend=-1, append=clusters))
    place = np.empty(len(documents), np.int32)
    place[classes] = np.arange(len(classes), dtype=np.int32)
    pairs = np.flatnonzero(chosen[cluster[left]])
    pairs = pairs[np.argsort(cluster[left[pairs]], kind="stable")]
    ends = np.cumsum(number[classes], dtype=np.int64)[starts[1:] - 1] // 2  # pairs of the clusters so far
    cuts = np.flatnonzero(np.diff(ends // _PORTION, append=-1)) + 1
    for first, last in pairwise([0, *cuts.tolist()]):
        begin, end = int(starts[first]), int(starts[last])
        some = pairs[int(ends[first - 1]) if first else 0 : int(ends[last - 1])]
        one, other = place[left[some]] - begin, place[right[some]] - begin
        graph = Graph.of(end - begin, one, other, rounded(similarity[some]))
        members = classes[begin:end]
        now = place[centre[members]] - begin
        exchange(starts[first : last + 1] - begin, graph, documents[members].astype(np.int32), now)
        centre[members] = members[now]


@dataclass(frozen=True, slots=True)
class Graph:
    """The matches of each of n texts, the most similar first, and of equal ones in the order of principals."""

    bounds: Ints
    """int64[n + 1]: the matches of text v are those from ``bounds[v]`` to ``bounds[v + 1]``."""
    near: I32
    similarity: I32

    @classmethod
    def of(cls, size: int, left: I32, right: I32, similarity: I32) -> Graph:
        """The graph of some pairs, each given once."""
        text, near = np.concatenate((left, right)), np.concatenate((right, left))
        both = np.concatenate((similarity, similarity))
        order = np.lexsort((near, -both, text))
        bounds = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(text, minlength=size), out=bounds[1:])
        return cls(bounds, near[order], both[order])


def exchange(starts: Positions, graph: Graph, documents: I32, centre: I32) -> None:
    """Exchange the centres of clusters while their value rises. Changes ``centre``, of each text.

    The texts of cluster k are those from ``starts[k]`` to ``starts[k + 1]``, in the order of principals. In a round,
    for each text the first of these moves is made that raises the value: a centre stops being one; a text becomes one
    in place of its own centre, of all centres that it matches, or of none. Centres without members that it matches
    stop, too. After each move, each text is with the most similar centre that it matches.
    """
    if kernel is not None:
        given = np.ascontiguousarray(starts, np.int64), graph.bounds, graph.near, graph.similarity, documents
        kernel.exchange(*given, centre, KEPT, BELOW, ALONE, ROUNDS)
        return
    groups = _Groups(graph, documents, centre)
    for start, end in pairwise(starts.tolist()):
        for _ in range(ROUNDS):
            if not sum([groups.improve(text) for text in range(start, end)]):
                break
    centre[:] = groups.centre


class _Groups:
    """The groups of clusters while centres are exchanged."""

    def __init__(self, graph: Graph, documents: I32, centre: I32) -> None:
        self.centre = centre.tolist()
        near, similarity = graph.near.tolist(), graph.similarity.tolist()
        self._near = [
            dict(zip(near[first:last], similarity[first:last], strict=True))
            for first, last in pairwise(graph.bounds.tolist())
        ]
        """The matches of each text, the most similar first, with their similarity."""
        self._documents = documents.tolist()
        self._members: dict[int, set[int]] = {}
        self._sizes = dict.fromkeys(self.centre, 0)
        for text, one in enumerate(self.centre):
            self._members.setdefault(one, set()).add(text)
            self._sizes[one] += self._documents[text]

    def improve(self, text: int) -> bool:
        """Make the first move that raises the value."""
        if text in self._members:
            return self._move(None, [text])
        near = [one for one in self._near[text] if one in self._members]
        alone = [one for one in near if len(self._members[one]) == 1]
        own = [one for one in near if one == self.centre[text] or len(self._members[one]) == 1]
        return self._move(text, own) or (len(own) < len(near) and self._move(text, near)) or self._move(text, alone)

    def _move(self, new: int | None, out: Sequence[int]) -> bool:
        """Make a text a centre and others none, if each text still matches a centre and the value rises."""
        moved = {text: -1 for one in out for text in self._members[one]}
        if new is not None:
            moved[new] = new
            for text, value in self._near[new].items():
                now = self.centre[text]
                if now != text and text not in moved and (-value, new) < (-self._near[text][now], now):
                    moved[text] = new
        centres = (self._members.keys() - set(out)) | ({new} - {None})
        for text, to in moved.items():
            if to < 0:
                found = next((one for one in self._near[text] if one in centres), None)
                if found is None:
                    return False
                moved[text] = found
        if new is not None:
            self._members[new], self._sizes[new] = set(), 0
        before = {text: self.centre[text] for text in moved}
        gain, nearer = 0, 0
        for text, to in moved.items():
            nearer += self._near[text].get(to, 0) - self._near[text].get(before[text], 0)
            gain += self._put(text, to)
        kept = (gain, nearer) > (0, 0)
        if not kept:
            for text, to in before.items():
                self._put(text, to)
        for one in out if kept else [new]:
            if one is not None:
                del self._members[one], self._sizes[one]
        return kept

    def _put(self, text: int, to: int) -> int:
        """Move a text to the group of another centre. Returns what the value of the cluster grows by."""
        old = self.centre[text]
        mine, its, near = self._members[old], self._members[to], self._near[text].keys()
        if mine is its:
            return 0
        more, fewer = len(near & its), len(near & mine)
        gain = KEPT * (more - fewer) + BELOW * (len(its) - more - (len(mine) - 1 - fewer))
        gain -= ALONE * ((self._sizes[old] == 1) + (self._sizes[to] == 1))
        mine.discard(text)
        its.add(text)
        self._sizes[old] -= self._documents[text]
        self._sizes[to] += self._documents[text]
        self.centre[text] = to
        return gain + ALONE * ((self._sizes[old] == 1) + (self._sizes[to] == 1))
