"""Whether the facts of two texts agree, as a measure: pairs are read and compared as by any other one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from es_neardupe.keys.arrays import Floats, Positions
from es_neardupe.options import FactKind
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity.facts.differing import Fact, differing_facts, facts_agree
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens
from es_neardupe.similarity.features import Document
from es_neardupe.similarity.measure import Measure, Prepared

_REPORTED = 100
"""Pairs after which the progress is reported."""


@dataclass(frozen=True)
class FactsAgree(Measure):
    """1 for two texts of which no facts of the chosen kinds differ, else 0. A prepared text is its bytes: its words and
    facts are found when it is compared."""

    kinds: frozenset[FactKind] = frozenset()

    @property
    def at_once(self) -> bool:
        """There is no table of features."""
        return False

    def prepare(self, texts: Sequence[str], documents: Sequence[Document] | None = None) -> list[Prepared]:
        """The length of each text in bytes, and the bytes."""
        return [_packed(text.encode("utf-8", "surrogatepass")) for text in texts]

    def scores(
        self, prepared: Sequence[Prepared], left: Positions, right: Positions, progress: Progress = silent
    ) -> Floats:
        """Whether the facts of each pair agree."""
        found = np.empty(len(left))
        tokens: dict[int, FactTokens] = {}
        for pair, both in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            if np.array_equal(prepared[both[0]], prepared[both[1]]):
                found[pair] = 1
                continue
            for place in both:
                if place not in tokens:
                    tokens[place] = fact_tokens(_text(prepared[place]))
            found[pair] = facts_agree(tokens[both[0]], tokens[both[1]], self.kinds)
            if pair % _REPORTED == 0:
                progress("", pair, len(left))
        return found


def facts_apart(a: FactTokens, b: FactTokens, kinds: frozenset[FactKind]) -> list[Fact]:
    """The facts of these kinds that differ."""
    return [fact for fact in differing_facts(a, b) if not kinds.isdisjoint(fact.kinds)]


def _packed(text: bytes) -> Prepared:
    padded = len(text).to_bytes(8, "little") + text + bytes(-len(text) % 8)
    return np.frombuffer(padded, np.uint64)


def _text(prepared: Prepared) -> str:
    return prepared[1:].tobytes()[: int(prepared[0])].decode("utf-8", "surrogatepass")
