"""Index in memory whose groups are written step by step, so that a test can stop anywhere."""

from __future__ import annotations

import random
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
from unit_tools import columns

from es_neardupe.groups.build import LinkedClasses, new_groupings
from es_neardupe.groups.linked_pairs import LinkedPairs
from es_neardupe.index.stored_fields import own_group
from es_neardupe.records import Address, FingerprintColumns, Grouping, Groupings, TextClasses


class World:
    """An index of documents without texts: the similar pairs are given, and stored data is written step by step."""

    def __init__(self, dice: random.Random) -> None:
        size = dice.randint(1, 9)
        self.registered: dict[str, Address] = {}
        """Id and principal of the groups in the registry."""
        self.stored: list[Grouping | str | None] = [None] * size
        self.classes = _cut(list(range(size)), dice)
        order = list(range(len(self.classes)))
        self.principal = [dice.choice(order[: number + 1]) for number in order]
        for number in order:  # the principal of a member is its own principal
            if self.principal[self.principal[number]] != self.principal[number]:
                self.principal[number] = number
        self.similarity = [
            1.0 if one == number else dice.randint(80, 99) / 100 for number, one in enumerate(self.principal)
        ]
        away = [row for row in range(size) if dice.random() < 0.08]
        self.changed, self.gone = set(away[::2]), set(away[1::2])

    def corpus(self) -> FingerprintColumns:
        ids = [one.group if isinstance(one, Grouping) else one or "" for one in self.stored]
        groupings = [one if isinstance(one, Grouping) else None for one in self.stored]
        return columns(
            len(self.stored),
            group_ids=np.array([id.encode() for id in ids], "S16"),
            leading=np.array([-1 if one is None else one.principal for one in groupings], np.int8),
            similarity=np.array([np.nan if one is None else one.similarity for one in groupings]),
        )

    def register(self, groupings: Groupings) -> None:
        """Write the registry, as a run does before it writes documents."""
        groups = {one.group for one in groupings.values() if not one.principal}
        principals = {one.group: Address("i", f"d{row}") for row, one in groupings.items() if one.principal}
        self.registered = {id: principals[id] for id in sorted(groups)}

    def wanted(self) -> Groupings:
        classes = TextClasses.of(self.classes)
        rows = np.arange(len(self.stored))
        changed, away = np.isin(rows, list(self.changed)), np.isin(rows, list(self.changed | self.gone))
        documents = SimpleNamespace(changed=changed & ~np.isin(rows, list(self.gone)), changed_or_deleted=away)
        verifier: Any = SimpleNamespace(classes=classes, documents=documents)
        inside = np.ones(len(self.stored), np.bool_)
        verified: Any = SimpleNamespace(corpus=self.corpus(), classes=classes, verifier=verifier, inside=inside)
        return new_groupings(
            LinkedClasses(
                verified,
                np.zeros(0, np.bool_),
                np.array(self.principal, np.intp),
                np.array(self.similarity, np.float64),
                LinkedPairs(),
            ),
            created=lambda id: "2026" if id in self.registered else "",
            leaders=self.registered,
        )


def _cut(rows: list[int], dice: random.Random) -> list[list[int]]:
    dice.shuffle(rows)
    cuts = sorted({0, len(rows), *(dice.randint(0, len(rows)) for _ in rows)})
    return [sorted(rows[a:b]) for a, b in zip(cuts, cuts[1:])]  # noqa: B905, RUF007


def worlds(number: int) -> Iterable[tuple[World, random.Random]]:
    """Half of them were grouped before by other similarities; half contain arbitrary earlier data."""
    for seed in range(number):
        dice = random.Random(seed)
        world = World(dice)
        size = len(world.stored)
        if seed % 2:
            before = World(dice)
            while len(before.stored) != size:
                before = World(dice)
            before.changed = before.gone = set()
            for row, grouping in before.wanted().items():
                world.stored[row] = dice.choice([grouping, grouping, grouping, grouping.group, None])
        else:
            pool = ["A", "B", *(own_group("i", f"d{row}") for row in range(3)), own_group("i", "d0", 1)]
            for row in range(size):
                grouping = Grouping(dice.choice(pool), dice.random() < 0.4, dice.choice([1.0, 0.9]))
                world.stored[row] = dice.choice([grouping, grouping, grouping.group, None])
        yield world, dice
