"""Comparison of two groupings by the group ids of the documents: groups kept, split, merged. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from es_neardupe.candidates.pair_arrays import components
from es_neardupe.records import Address

KINDS = ("unchanged", "grown", "shrunk", "exchanged", "split", "merged", "mixed", "new", "gone")
"""Kinds of parts. Every group of two or more documents, before and after, is in exactly one part."""

Part = tuple[tuple[str, ...], tuple[str, ...]]
"""Ids of groups before and after that share documents, directly or through other groups of the part; sorted."""


@dataclass(frozen=True)
class GroupChange:
    """The parts of one kind."""

    kind: str
    before: int
    """Groups before."""
    after: int
    """Groups after."""
    documents: int
    """Documents in these groups, before or after."""


@dataclass(frozen=True)
class GroupChangeExample:
    """One part that changes."""

    kind: str
    before: Mapping[str, int]
    """Group id -> documents."""
    after: Mapping[str, int]
    documents: tuple[Address, ...] = ()
    """Some of the documents."""


@dataclass(frozen=True)
class GroupChanges:
    """Comparison of two groupings of the same documents. The sums over ``kinds`` are ``before`` and ``after``."""

    documents: int
    """Documents with a group id in both."""
    moved: int
    """Of these, documents whose id has changed."""
    before: int
    """Groups of two or more documents before."""
    after: int
    kinds: tuple[GroupChange, ...]
    examples: tuple[GroupChangeExample, ...]
    """The largest parts of each kind that changes, two at most."""


_EXAMPLES = 2


def compare_groups(overlaps: Mapping[tuple[str, str], int]) -> GroupChanges:
    """Compare two groupings. ``overlaps``: (id before, id after) -> number of documents."""
    before, after = _sizes(overlaps, 0), _sizes(overlaps, 1)
    counted = {kind: [0, 0, 0] for kind in KINDS}
    examples: dict[str, list[tuple[int, Part]]] = defaultdict(list)
    for kind, part, documents in changed_parts(overlaps):
        for place, number in enumerate((len(part[0]), len(part[1]), documents)):
            counted[kind][place] += number
        if kind != "unchanged":
            examples[kind] = sorted([*examples[kind], (-documents, part)])[:_EXAMPLES]
    kinds = tuple(GroupChange(kind, *counted[kind]) for kind in KINDS)
    return GroupChanges(
        documents=sum(overlaps.values()),
        moved=sum(number for (old, new), number in overlaps.items() if old != new),
        before=sum(one.before for one in kinds),
        after=sum(one.after for one in kinds),
        kinds=kinds,
        examples=tuple(
            GroupChangeExample(kind, {id: before[id] for id in part[0]}, {id: after[id] for id in part[1]})
            for kind in KINDS
            for _, part in examples[kind]
        ),
    )


def changed_parts(overlaps: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, Part, int]]:
    """Every part as (kind, part, documents in its groups, each counted once)."""
    before, after = _sizes(overlaps, 0), _sizes(overlaps, 1)
    names = [
        *((0, id) for id, size in before.items() if size > 1),
        *((1, id) for id, size in after.items() if size > 1),
    ]
    if not names:
        return
    number = {name: place for place, name in enumerate(names)}
    ends = [(number.get((0, old)), number.get((1, new))) for old, new in overlaps]
    edges = np.array([pair for pair in ends if None not in pair], np.intp).reshape(-1, 2)
    labels = components(len(names), *edges.T).tolist()
    parts: dict[int, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for (side, id), label in zip(names, labels, strict=True):
        parts[label][side].append(id)
    documents: dict[int, int] = defaultdict(int)
    for (old, new), size in zip(ends, overlaps.values(), strict=True):
        if (place := new if old is None else old) is not None:
            documents[labels[place]] += size
    for label, (olds, news) in parts.items():
        part = (tuple(sorted(olds)), tuple(sorted(news)))
        yield _kind(part, before, after, overlaps), part, documents[label]


def _sizes(overlaps: Mapping[tuple[str, str], int], side: int) -> dict[str, int]:
    sizes: dict[str, int] = defaultdict(int)
    for ids, documents in overlaps.items():
        sizes[ids[side]] += documents
    return sizes


def _kind(
    part: Part, before: Mapping[str, int], after: Mapping[str, int], overlaps: Mapping[tuple[str, str], int]
) -> str:
    olds, news = part
    if not olds or not news:
        return "gone" if olds else "new"
    if len(olds) > 1 or len(news) > 1:
        return "mixed" if len(olds) > 1 and len(news) > 1 else "merged" if len(olds) > 1 else "split"
    (old,), (new,) = olds, news
    lost, gained = (sizes - overlaps[old, new] for sizes in (before[old], after[new]))
    return {(False, False): "unchanged", (False, True): "grown", (True, False): "shrunk"}.get(
        (lost > 0, gained > 0), "exchanged"
    )
