"""Give every document of an index its fingerprint, in place."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from es_neardupe import documents, queries
from es_neardupe.bulk import chunked, write
from es_neardupe.clients import Client
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target, count, open_target, refresh, search
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Hit, Outcome, Reference
from es_neardupe.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX, Settings
from es_neardupe.stages.renewal import Plan, is_current, plan, source_of, update

__all__ = ["EnrichReport", "enrich"]

_ROUNDS = 10
"""How often a document that somebody keeps changing is read and written again."""

_PAGE_CHARS = 8_000_000
"""Characters of text aimed at in one page of reading."""


@dataclass(frozen=True)
class EnrichReport:
    """What a run did: ``read = written + unchanged + deleted + conflicts + refused``."""

    index: str
    scheme: str
    documents: int
    """In scope when the run began."""
    current: int
    """Of these, had a fingerprint of this scheme already."""
    read: int
    written: int
    unchanged: int
    """Read, and the stored fingerprint fits the text."""
    deleted: int
    """Deleted while the run went on."""
    conflicts: int
    """Changed again and again while the run went on: the next run takes them."""
    refused: int
    """Updates that the server refused; ``refusals`` says why."""
    states: Mapping[str, int]
    """Documents written, by state."""
    refusals: tuple[str, ...]
    dry_run: bool
    seconds: float = field(compare=False)


def enrich(
    client: Client,
    index: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    query: Mapping[str, Any] | None = None,
    check: bool = False,
    since: tuple[str, str] | None = None,
    all: bool = False,
    workers: int = 2,
    batch: int = 500,
    max_chars: int = DEFAULT_MAX_CHARS,
    dry_run: bool = False,
    progress: Progress = silent,
) -> EnrichReport:
    """Fingerprint the documents that have no fingerprint of the index's scheme.

    ``check`` also reads the others and renews those whose text no longer fits; ``since=(field, date)`` limits that
    reading to documents whose date field is at or after the date. ``all`` writes every document anew. ``query``
    is a scope in the server's query DSL. Nothing but our own fields changes; a run that was killed is resumed by
    starting it again.
    """
    started = time.monotonic()
    target = open_target(client, index, prefix)
    refresh(client, target.path)
    documents_in_scope = count(client, target.path, queries.matching(query))
    fingerprinted = queries.fingerprinted(target.fields, target.scheme_id)
    current = count(client, target.path, queries.all_of(query, fingerprinted))
    selection = _selection(target, query, check, since, all)
    expected = count(client, target.path, selection)

    tally = _Tally(target.settings, rewrite=all)
    plans = tracked(
        plan(_pages(client, target, selection), target.settings, max_chars),
        progress,
        "fingerprinting",
        expected,
    )
    updates = tally.updates(plans)
    if dry_run:
        tally.pretend(updates)
    else:
        lost = tally.settle(write(client, updates, batch=batch, workers=workers))
        for _ in range(_ROUNDS):
            if not lost:
                break
            again = plan(_present(client, target, lost, tally), target.settings, max_chars)
            lost = tally.settle(write(client, tally.updates(again, renew=False), batch=batch, workers=workers))
        tally.counts["conflicts"] = len(lost)
        refresh(client, target.path)
    return EnrichReport(
        index=index,
        scheme=target.scheme_id,
        documents=documents_in_scope,
        current=current,
        **{name: tally.counts[name] for name in ("read", "written", "unchanged", "deleted", "conflicts", "refused")},
        states=dict(tally.states),
        refusals=tuple(reason for reason, _ in tally.refusals.most_common(5)),
        dry_run=dry_run,
        seconds=time.monotonic() - started,
    )


def _selection(
    target: Target, query: Mapping[str, Any] | None, check: bool, since: tuple[str, str] | None, all: bool
) -> dict[str, Any]:
    """Which documents have to be read at all."""
    stale = queries.stale(target.fields, target.scheme_id, query)
    if since is not None:
        recent = queries.all_of(query, queries.since(*since))
        return {"bool": {"should": [stale, recent], "minimum_should_match": 1}}
    return queries.matching(query) if check or all else stale


def _pages(client: Client, target: Target, selection: Mapping[str, Any]) -> Iterator[list[Hit]]:
    """Read the selection in pages of about `_PAGE_CHARS` characters of text, judged by its first documents."""
    body = {"query": dict(selection), "_source": source_of(target.settings)}
    sample = search(client, target.path, {**body, "size": 20})["hits"]["hits"]
    chars = sum(len(str(hit.get("_source", ""))) for hit in sample) + 1
    page_size = max(10, min(1000, _PAGE_CHARS * (len(sample) or 1) // chars))
    return client.pages(target.path, body, page_size=page_size)


def _present(client: Client, target: Target, lost: Iterable[Reference], tally: _Tally) -> Iterator[list[Hit]]:
    """The documents that changed under our hands, as they are now."""
    for chunk in chunked(lost, 100):
        found = list(fetch(client, chunk, source_of(target.settings)))
        tally.counts["deleted"] += found.count(None)
        yield [hit for hit in found if hit is not None]


class _Tally:
    """Counts what becomes of every document that was read."""

    def __init__(self, settings: Settings, *, rewrite: bool) -> None:
        self.settings = settings
        self.rewrite = rewrite
        self.at = documents.timestamp()
        self.counts: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()

    def updates(self, plans: Iterable[Plan], *, renew: bool = True) -> Iterator[Action]:
        """The updates that are needed. ``renew=False``: documents read again, counted as read before.

        Such a document can be current already: by a write of ours whose answer was lost, or by another run.
        """
        for one in plans:
            self.counts["read"] += renew
            current = is_current(one, self.settings)
            if current and not (self.rewrite and renew):
                self.counts["unchanged"] += 1
            else:
                yield update(one, self.settings, self.at, current=current)

    def pretend(self, updates: Iterable[Action]) -> None:
        """Count what would be written."""
        for action in updates:
            self._written(action)

    def settle(self, outcomes: Iterable[Outcome]) -> list[Reference]:
        """Count outcomes; returns the documents that were changed by somebody before our write."""
        lost: list[Reference] = []
        for outcome in outcomes:
            action = outcome.action
            if outcome.done:
                self._written(action)
            elif outcome.conflict:
                lost.append((action.index, action.id, action.routing))
            elif outcome.gone:
                self.counts["deleted"] += 1
            else:
                self.counts["refused"] += 1
                self.refusals[f"{outcome.type}: {outcome.reason}"] += 1
        return lost

    def _written(self, action: Action) -> None:
        self.counts["written"] += 1
        self.states[action.body["doc"][self.settings.prefix]["state"]] += 1
