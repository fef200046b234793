"""Advice which documents of groups to keep, and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from es_neardupe.candidates.who_may_meet import Policy
from es_neardupe.columns import References
from es_neardupe.errors import Forbidden
from es_neardupe.groups.decisions import Decision, Decisions, Verdict
from es_neardupe.groups.read import Group
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import content_of, count_of, group_of, stored_fields
from es_neardupe.keys.arrays import Bytes, Ints
from es_neardupe.keys.text import packed_hashes
from es_neardupe.records import Address, Hit, Reference, one_line
from es_neardupe.similarity.facts.agreement import FactsAgree
from es_neardupe.tables import Cell, Table, Tabular
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.current_texts import CurrentDocuments, PairComparer

TERMS = 1000


@dataclass(frozen=True)
class Redundant:
    """A document that need not be kept, with the version that was compared."""

    index: str
    id: str
    routing: str | None
    similarity: float | None
    """Exact similarity to the document to keep; None in an index that holds only groups of `duplicates`, whose texts
    are not compared."""
    seq_no: int | None
    primary_term: int | None

    @property
    def delete(self) -> dict[str, Any]:
        """The line of a bulk request that deletes this version, and no later one."""
        version = {"if_seq_no": self.seq_no, "if_primary_term": self.primary_term}
        routed = {} if self.routing is None else {"routing": self.routing}
        return {"delete": {"_index": self.index, "_id": self.id, **routed, **version}}


@dataclass(frozen=True)
class KeepAdvice:
    """Suggestion which document of a group to keep. The members of the group are this one, the ``redundant`` ones, and
    those that were left out."""

    group: str
    policy: str
    keep: Address
    """The first document by the policy whose text is the one that was grouped."""
    redundant: tuple[Redundant, ...]
    """The others that match it, in the order of the policy."""
    changed: int
    """Documents left out because their text is not the one that was grouped, or because they were deleted."""
    less_similar: int
    """Documents left out because they do not match the document to keep, or differ from it in facts that decide: other
    documents of the group, or decisions, hold them in it."""
    is_principal: bool
    """Whether the document to keep is the principal."""
    reviewer: str | None = None
    """Who decided to keep it; None: the policy did, because no reviewer has decided, or they disagree."""

    def __repr__(self) -> str:
        return one_line(
            self,
            group=self.group,
            policy=self.policy,
            keep=self.keep.id,
            redundant=len(self.redundant),
            is_principal=self.is_principal,
        )


class SuggestKeepReport(list[KeepAdvice], Tabular):
    """Suggestions for groups, largest first."""

    def table(self) -> Table:
        """A row for each redundant document."""
        columns: dict[str, type] = {"group": str, "policy": str, "keep_index": str, "keep_id": str}
        columns |= {"is_principal": bool, "reviewer": str, "changed": int, "less_similar": int}
        columns |= {"redundant_index": str, "redundant_id": str, "redundant_routing": str}
        columns |= {"redundant_similarity": float, "redundant_seq_no": int, "redundant_primary_term": int}
        rows = ((*_head(one), *astuple(other)) for one in self for other in one.redundant)
        return Table(columns, rows)


def _head(one: KeepAdvice) -> tuple[Cell, ...]:
    return one.group, one.policy, *one.keep, one.is_principal, one.reviewer, one.changed, one.less_similar


def advice(index: Index, policy: Policy, criterion: MatchCriterion | None, groups: list[Group]) -> list[KeepAdvice]:
    """Which documents of the groups to keep."""
    members: dict[str, list[Hit]] = {one.group: [] for one in groups}
    fields = index.fields
    body = {
        "query": queries.all_of({"terms": {fields.group: sorted(members)}}),
        "_source": [fields.group, fields.tokens, fields.content],
        "docvalue_fields": [policy.column.request] if policy.column else [],
    }
    for page in index.documents.pages(body):
        for hit in page:
            stored = stored_fields(hit.source, index.settings.prefix)
            members.get(group_of(stored) or "", []).append(hit)
    every = [hit.reference for hits in members.values() for hit in hits]
    # Before the texts are read: a version that is replaced afterwards cannot be deleted by this advice.
    current = zip(every, index.plain_documents.fetch(every, False), strict=True)
    versions = {reference: (hit.seq_no, hit.primary_term) for reference, hit in current if hit is not None}
    ordered = {
        one: [hit for hit in hits if hit.reference in versions]
        for one in members
        if len(hits := _ordered(members[one], policy, index.settings.prefix)) > 1
    }
    everyone = [hit for hits in ordered.values() for hit in hits]
    kept, texts = _kept(index, everyone), None if criterion is None else _CurrentTexts(index, criterion, everyone)
    principals = {one.group: one.members[0].address for one in groups if one.principal is not None}
    found: dict[str, KeepAdvice] = {}
    waiting = [one for one, hits in ordered.items() if hits]
    while waiting:
        unchanged = {one: [hit for hit in ordered[one] if not (texts and texts.has_changed(hit))] for one in waiting}
        chosen = {one: (*_to_keep(hits, kept), hits) for one, hits in unchanged.items() if hits}
        if texts is not None:
            texts.compare([(keep, hit) for keep, _, hits in chosen.values() for hit in hits if hit is not keep])
        waiting = [one for one, (keep, *_) in chosen.items() if texts and texts.has_changed(keep)]
        for one in chosen.keys() - set(waiting):
            keep, author, hits = chosen[one]
            others = [hit for hit in hits if hit is not keep and not (texts and texts.has_changed(hit))]
            redundant = tuple(
                Redundant(*hit.reference, similarity, *versions[hit.reference])
                for hit in others
                if (similarity := None if texts is None else texts.matching(keep, hit)) is not None or texts is None
            )
            found[one] = KeepAdvice(
                one,
                policy.name,
                keep.address,
                redundant,
                changed=len(members[one]) - len(others) - 1,
                less_similar=len(others) - len(redundant),
                is_principal=keep.address == principals.get(one),
                reviewer=author,
            )
    return [found[one] for one in ordered if one in found]


def _to_keep(hits: Sequence[Hit], kept: Mapping[Address, Decision]) -> tuple[Hit, str | None]:
    """The document to keep, and the reviewer who decided so; without one decision, the first."""
    decided = {hit.address: kept[hit.address] for hit in hits if hit.address in kept}
    if len({decision.contents for decision in decided.values()}) != 1:
        return hits[0], None
    seen = {address for decision in decided.values() for address in decision.documents}
    keep = next((address for address in decided if address in seen), next(iter(decided)))
    return next(hit for hit in hits if hit.address == keep), decided[keep].author or None


@dataclass(frozen=True)
class _StoredContents:
    """What is stored about the texts of n documents; see `CurrentDocuments`."""

    references: References
    content: Bytes
    tokens: Ints


class _CurrentTexts:
    """Compares documents by their current texts."""

    def __init__(self, index: Index, criterion: MatchCriterion, hits: Sequence[Hit]) -> None:
        stored = [stored_fields(hit.source, index.settings.prefix) for hit in hits]
        contents = _StoredContents(
            References.of(hit.reference for hit in hits),
            packed_hashes([content_of(one) for one in stored]),
            np.array([count_of(one, "tokens") for one in stored], np.int64),
        )
        self._criterion = criterion
        self._rows = {hit.reference: row for row, hit in enumerate(hits)}
        self._documents = CurrentDocuments.of_corpus(index.client, index.settings, contents)
        self._comparer = PairComparer(self._documents, {"comparing documents of groups": criterion.measure})
        self._facts = PairComparer(self._documents, {"comparing facts": FactsAgree(kinds=criterion.facts)})
        self._matching: dict[tuple[Reference, Reference], float | None] = {}

    def compare(self, pairs: Sequence[tuple[Hit, Hit]]) -> None:
        """Compare these pairs."""
        left, right = (np.array([self._rows[pair[k].reference] for pair in pairs], np.int32) for k in (0, 1))
        similarity = self._comparer.compare(left, right).similarity[0]
        matches = self._criterion.matches(similarity)
        if self._criterion.facts:
            matches[matches] = self._facts.compare(left[matches], right[matches]).similarity[0] != 0
        self._matching.update(
            ((a.reference, b.reference), value if is_match else None)
            for (a, b), value, is_match in zip(pairs, similarity.tolist(), matches.tolist(), strict=True)
        )

    def has_changed(self, hit: Hit) -> bool:
        """Whether a document was found with another text, or deleted."""
        return bool(self._documents.changed_or_deleted[self._rows[hit.reference]])

    def matching(self, keep: Hit, other: Hit) -> float | None:
        """The similarity of a compared pair; None if it does not match."""
        return self._matching[keep.reference, other.reference]


def _kept(index: Index, hits: Sequence[Hit]) -> dict[Address, Decision]:
    """The documents whose text a reviewer decided to keep, with the first such decision. None for a user who may not
    read decisions."""
    contents = ((hit.address, stored_fields(hit.source, index.settings.prefix).get("content")) for hit in hits)
    stored = {address: content for address, content in contents if isinstance(content, str)}
    try:
        found = Decisions(index).about(set(stored.values()))
    except Forbidden:
        return {}
    keep = {one.contents[0]: one for one in reversed(found) if one.verdict is Verdict.KEEP}
    return {address: keep[content] for address, content in stored.items() if content in keep}


def _ordered(hits: list[Hit], policy: Policy, prefix: str) -> list[Hit]:
    """In the order in which principals are chosen: by the policy, then the longest, then by id."""
    places = policy.ranks(policy.deciding(hit.source) for hit in hits).tolist()
    keys = [
        (place, -count_of(stored_fields(hit.source, prefix), "tokens"), hit.id, hit.index)
        for place, hit in zip(places, hits, strict=True)
    ]
    return [hits[k] for k in sorted(range(len(hits)), key=keys.__getitem__)]
