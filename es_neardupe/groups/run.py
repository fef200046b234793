"""One run of ``group``: from where it begins to what is to be written, and the writing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from es_neardupe.groups.build import Linked, bearers, entries, groupings, link
from es_neardupe.groups.history import Turn
from es_neardupe.groups.neighbourhood import affected
from es_neardupe.groups.registry import Entry, Registry, Totals
from es_neardupe.groups.rules import RunRules
from es_neardupe.groups.what_changed import Start
from es_neardupe.groups.write import changes, write_groups
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.lease import Lease
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.progress import Progress
from es_neardupe.records import Grouping
from es_neardupe.server.bulk import Tally, chunked
from es_neardupe.server.client import Client
from es_neardupe.server.search import refresh
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.evidence import Evidence, EvidenceReport, evidence_of, write_evidence
from es_neardupe.verification.known_pairs import PairMemory
from es_neardupe.verification.verified_pairs import Verified, verified_pairs

__all__ = ["Found", "Run"]


@dataclass(frozen=True)
class Found:
    """What a run wants to be so."""

    linked: Linked
    groupings: dict[int, Grouping]
    """Of every row that is looked at."""
    writes: dict[int, Grouping]
    """Of those that bear another one."""
    entries: dict[str, Entry]
    """The groups of two or more documents that were looked at."""
    told: list[Entry]
    """What the registry does not say yet."""
    rest: Totals
    """All other groups."""
    at: str


@dataclass(frozen=True)
class Run:
    """The steps of a run, with what all of them need."""

    index: Index
    wanted: MatchCriterion
    rules: RunRules
    keep_evidence: bool
    progress: Progress

    @cached_property
    def registry(self) -> Registry:
        """The registry of the target."""
        return Registry(self.index)

    @cached_property
    def evidence(self) -> Evidence | None:
        """What earlier runs have verified, where it is kept."""
        return evidence_of(self.index, self.wanted) if self.keep_evidence else None

    @property
    def memory(self) -> PairMemory:
        """The pairs that need not be compared again."""
        return self.evidence.memory if self.evidence else PairMemory()

    def find(self, start: Start) -> Found:
        """From where the run begins to what is to be written."""
        linked = link(self.rules.group.linkage, *self._verified(start), self.wanted, self.progress)
        before = self._known(start, linked)
        living = {id: entry.created for id, entry in before.items() if entry.ended is None}
        wanted = groupings(
            linked,
            created=lambda id: living.get(id, ""),
            taken=lambda ids: () if start.whole else self._borne_elsewhere(ids, linked),
        )
        found = entries(linked, wanted, rules=self.rules, progress=self.progress)
        before |= self.registry.entries(found.keys() - before.keys())
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        return Found(
            linked=linked,
            groupings=wanted,
            writes=changes(linked.found.corpus, wanted),
            entries=found,
            told=Turn(before, found, bearers(linked, wanted), at).entries(),
            rest=Totals() if start.whole else self.registry.totals(without=before),
            at=at,
        )

    def _verified(self, start: Start) -> tuple[Verified, NDArray[np.bool_]]:
        """The verified pairs of the whole index or of the affected part, and which rows get a grouping."""
        if not start.whole:
            return affected(
                self.index,
                self.wanted,
                self.rules.group,
                start.seeds,
                memory=self.memory,
                learn=self.evidence.read_about if self.evidence else None,
                progress=self.progress,
            )
        if self.evidence:
            self.evidence.read_all(self.progress)
        found = verified_pairs(
            self.index,
            self.wanted.measure,
            copies=self.wanted.copies_fit,
            progress=self.progress,
            rules=self.rules.group,
            memory=self.evidence.memory if self.evidence else None,
        )
        return found, np.ones(len(found.corpus), np.bool_)

    def _known(self, start: Start, linked: Linked) -> dict[str, Entry]:
        """The registry's entries of all groups that the run can change."""
        if start.whole:
            return {entry.group: entry for entry in self.registry.living()}
        ids = {linked.found.corpus.group_ids[row] for row in np.flatnonzero(linked.inside).tolist()}
        return self.registry.entries({id for id in ids if id is not None} | start.broken)

    def _borne_elsewhere(self, ids: Sequence[str], linked: Linked) -> Iterator[str]:
        """Those of new ids that a document outside of the run bears."""
        references = linked.found.corpus.references
        inside = {references[row][:2] for row in np.flatnonzero(linked.inside).tolist()}
        name = self.index.fields.group
        for chunk in chunked(ids, 1000):
            body = {"query": queries.all_of({"terms": {name: chunk}}), "_source": [name]}
            for page in self.index.client.pages(self.index.path, body):
                for hit in page:
                    group = group_of(stored_fields(hit.source, self.index.settings.prefix))
                    if group is not None and hit.address not in inside:
                        yield group

    def keep(self, found: Found, start: Start, *, batch: int, workers: int) -> EvidenceReport | None:
        """Write the evidence, before anything else: a later run would not ask for these pairs again."""
        if self.evidence is None:
            return None
        return write_evidence(
            self.index,
            self.wanted,
            self.evidence,
            found.linked.found,
            whole=start.whole,
            batch=batch,
            workers=workers,
            progress=self.progress,
        )

    def write(self, found: Found, lease: Lease, *, gaps: bool = False, batch: int, workers: int) -> Tally:
        """The registry first, then the documents: what a killed run wanted stands where the next one looks.

        A run that left something to write, be it ``gaps`` in the evidence, has not come to its end: the next one looks
        at all documents.
        """
        lease.check()
        self.registry.note_begun(found.at)
        self.registry.write(found.told)
        lease.check()
        tally = self.write_groups(self.index.client, found, batch=batch, workers=workers)
        refresh(self.index.client, self.index.path)
        if not (gaps or tally.counts["refused"] or tally.counts["unsettled"]):
            self.registry.note_ended(self.rules, found.at, evidence=self.keep_evidence)
        return tally

    def write_groups(self, client: Client, found: Found, *, batch: int, workers: int) -> Tally:
        """The groupings of the documents, which a dry run gives to a client that sends nothing."""
        corpus, prefix = found.linked.found.corpus, self.index.settings.prefix
        return write_groups(client, corpus, found.writes, prefix, batch=batch, workers=workers)
