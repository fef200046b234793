"""In how many groups facts differ, or texts overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from es_neardupe.columns import RowLists
from es_neardupe.display_text import beginning
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import U64, Flags, Numbers, Positions
from es_neardupe.keys.shingles import window_hashes
from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.differing import Fact, differing_facts, in_words
from es_neardupe.similarity.facts.kinds import FACTS, FIGURES
from es_neardupe.similarity.facts.symbols import signs_of
from es_neardupe.similarity.facts.tokens import fact_tokens
from es_neardupe.verification.boilerplate import evenly_spread
from es_neardupe.verification.current_texts import CurrentDocuments
from es_neardupe.verification.verify import Verified

_GROUPS = 1000
"""Maximum number of groups in the sample."""

_MEMBERS = 20
"""Texts of a group that are compared with that of the principal."""

_WORDS, _SHARE, _MOST = 25_000, 1 / 250, 1_000_000
"""Words of all texts of the sample: so many, or this share of those that the run has read, but at most the last
number. One core finds the facts of 250,000 words a second."""

_EXAMPLE = 80
"""Characters of the example, at most."""

_CUTS = 2
"""Words at the edges of an overlap, which a cut may have divided."""

_PASSAGE = 5
"""Words of a passage that is the same in two texts not by chance."""


@dataclass(frozen=True, kw_only=True)
class GroupFacts:
    """Groups that a run processed, and those of a sample of them whose texts differ in facts from that of the
    principal: ``figures, names, negations <= differ <= examined <= groups``."""

    groups: int
    """Groups with different texts."""
    examined: int
    """Of these, the ones in the sample, which are all if they are few and short."""
    pairs: int
    """Texts in the groups examined that were compared with that of the principal."""
    pairs_left_out: int
    """Other texts in these groups."""
    overlapping: int
    """Of the ``pairs``: the end of one text is the beginning of the other, as in windows of one document, and what
    else they have differs."""
    differ: int
    """Groups examined in which figures, names or negations differ."""
    figures: int
    """Those in which amounts, numbers, dates, units or codes differ."""
    names: int
    negations: int
    copies: int
    """Texts of groups of the run with exact copies, which were compared with each other: a sample of its own."""
    copies_differ: int
    """Those whose copies differ in figures, names or negations: in signs alone, such as ``$5`` and ``€5``."""
    example: str | None
    """A fact that differs in one of the groups examined, such as ``amount: $5 / $6``; None if none differs."""


def facts_in_groups(index: Index, verified: Verified, principal: Numbers, grouped: Flags) -> GroupFacts:
    """Compare the facts of a sample of groups, by the current texts. The sample depends on the groups alone.

    ``principal``: that of each class, itself if it is alone; ``grouped``: classes with documents in a group of the run;
    both of shape (k,).
    """
    groups, leaders = _groups(verified, principal, grouped)
    chosen = dict(_sample(verified, groups, leaders))
    members = (member for some in chosen.values() for member in some)
    texts = _Texts(index, verified, np.array([*(leaders[number] for number in chosen), *members], np.intp))
    examined = pairs = left_out = overlapping = 0
    differing = list[set[FactKind]]()
    example = None
    for number, some in chosen.items():
        found = [one for member in some if (one := texts.facts(int(leaders[number]), member)) is not None]
        if found:  # otherwise the texts were changed meanwhile
            examined, pairs = examined + 1, pairs + len(found)
            left_out += int(groups.sizes[number]) - len(found)
            overlapping += sum(texts.overlap(int(leaders[number]), member) for member in some)
            facts = [fact for one in found for fact in one]
            differing.append({kind for fact in facts for kind in fact.kinds})
            example = example or next((one for one in facts if not FACTS.isdisjoint(one.kinds)), None)
    return GroupFacts(
        groups=len(groups),
        examined=examined,
        pairs=pairs,
        pairs_left_out=left_out,
        overlapping=overlapping,
        differ=sum(not FACTS.isdisjoint(kinds) for kinds in differing),
        figures=sum(not FIGURES.isdisjoint(kinds) for kinds in differing),
        names=sum(FactKind.NAME in kinds for kinds in differing),
        negations=sum(FactKind.NEGATION in kinds for kinds in differing),
        **_facts_of_copies(index, verified, grouped),
        example=None if example is None else beginning(in_words([example]), _EXAMPLE),
    )


def _facts_of_copies(index: Index, verified: Verified, grouped: Flags) -> dict[str, int]:
    """The numbers of a sample of texts with copies. Exact copies have equal words, so facts differ in signs alone."""
    with_copies = np.flatnonzero(grouped & (verified.classes.sizes > 1))

    def copies(number: int) -> Positions:
        return evenly_spread(verified.classes[number], _MEMBERS)

    chosen = [copies(number) for number in _sampled(verified, with_copies, copies)]
    documents = CurrentDocuments.of_corpus(index.client, index.settings, verified.corpus)
    texts = dict(documents.texts(np.concatenate(chosen))) if chosen else {}
    compared = [some for rows in chosen if len(some := [texts[row] for row in rows.tolist() if row in texts]) > 1]
    return {"copies": len(compared), "copies_differ": sum(map(_differ_in_signs, compared))}


def _differ_in_signs(copies: Sequence[str]) -> bool:
    first, *others = {signs_of(text): text for text in copies}.values()
    tokens = fact_tokens(first) if others else None
    return tokens is not None and any(
        not FACTS.isdisjoint(fact.kinds) for one in others for fact in differing_facts(tokens, fact_tokens(one))
    )


def _groups(verified: Verified, principal: Numbers, grouped: Flags) -> tuple[RowLists, Positions]:
    """The classes of each group with another text than its principal, and the principals."""
    content, first = verified.corpus.content, verified.classes.first
    members = np.flatnonzero(grouped & grouped[principal] & (principal != np.arange(len(principal), dtype=np.int32)))
    members = members[content[first[members]] != content[first[principal[members]]]]
    members = members[np.argsort(principal[members], kind="stable")]
    leaders, starts = np.unique(principal[members], return_index=True)
    return RowLists(members, np.append(starts, len(members))), leaders


def _sample(verified: Verified, groups: RowLists, leaders: Positions) -> Iterator[tuple[int, list[int]]]:
    """Groups, each with the classes to compare with its principal, as many as the limits allow."""

    def members(number: int) -> Positions:
        return evenly_spread(groups[number], _MEMBERS)

    def rows(number: int) -> Positions:
        return verified.classes.first_of([leaders[number], *members(number)])

    for number in _sampled(verified, np.arange(len(groups)), rows):
        yield number, members(number).tolist()


def _sampled(verified: Verified, numbers: Positions, rows: Callable[[int], Positions]) -> Iterator[int]:
    """Random ones of some numbers, the same in each run, as many as the limits allow. ``rows``: those whose texts are
    read for a number."""
    sizes, words = verified.corpus.tokens, 0
    limit = min(max(_WORDS, int(sizes.sum() * _SHARE)), _MOST)
    for number in np.random.default_rng(0).permutation(numbers)[:_GROUPS].tolist():
        if words + (size := int(sizes[rows(number)].sum())) <= limit:
            words += size
            yield number


class _Texts:
    """The words and facts of the current texts of classes, found once for each text."""

    def __init__(self, index: Index, verified: Verified, classes: Positions) -> None:
        rows = verified.verifier.first_rows(classes)
        # documents of its own: one that is changed from now on is still one of the groups that were formed
        documents = CurrentDocuments.of_corpus(index.client, index.settings, verified.corpus)
        class_of = dict(zip(rows.tolist(), classes.tolist(), strict=True))
        self._tokens = {class_of[row]: fact_tokens(text) for row, text in documents.texts(rows[rows >= 0])}

    def facts(self, one: int, other: int) -> list[Fact] | None:
        """The facts that differ; None if a text was changed or deleted."""
        if one not in self._tokens or other not in self._tokens:
            return None
        return differing_facts(self._tokens[one], self._tokens[other])

    def overlap(self, one: int, other: int) -> bool:
        """Whether the end of one text is the beginning of the other; False if one was changed or deleted."""
        if one not in self._tokens or other not in self._tokens:
            return False
        first, second = self._tokens[one].keys, self._tokens[other].keys
        return overlap(first, second)


def overlap(one: U64, other: U64) -> bool:
    """Whether the end of one of two texts, given by the hashes of their words, is the beginning of the other."""
    return _continues(one, other) or _continues(other, one)


def _continues(first: U64, second: U64) -> bool:
    """Whether half of the shorter of two texts or more is the end of the first and the beginning of the second, and
    more than a word of each is not. The two words at the cuts count as common: they may be parts of words. Between
    them are three words or more. If the rest of the texts is the same too, two parts have changed places."""
    shortest = min(len(first), len(second))
    first, second = first[:-1], second[1:]
    if not len(first) or not len(second):
        return False
    starts = np.flatnonzero(first == second[0])
    common = len(first) - starts
    possible = (starts > 1) & (common < len(second) - 1) & (common > _CUTS) & (2 * (common + _CUTS) >= shortest)
    return any(
        np.array_equal(first[start:], second[: len(first) - start])
        and not _are_alike(first[:start], second[len(first) - start :])
        for start in starts[possible]
    )


def _are_alike(one: U64, other: U64) -> bool:
    """Whether half of the passages of the shorter of two texts are in the other."""
    shorter, longer = sorted((window_hashes(words, _PASSAGE) for words in (one, other)), key=len)
    return len(shorter) > 0 and 2 * int(np.isin(shorter, longer).sum()) >= len(shorter)
