"""The switch of a migration: the registry goes along, and documents get their new fields under the old prefix."""

from __future__ import annotations

from collections.abc import Iterator

from es_neardupe import queries
from es_neardupe.asking import count, refresh
from es_neardupe.bulk import chunked, write
from es_neardupe.clients import Client
from es_neardupe.companions import Companion, companion_name, ensure, exists
from es_neardupe.errors import RequestError
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Hit
from es_neardupe.rehearsal import Rehearsal
from es_neardupe.sidecar import Names
from es_neardupe.sidecar.entries import successors
from es_neardupe.stages.takeover import takeovers
from es_neardupe.tally import Tally

__all__ = ["hand_over", "inherit_groups", "rehearse_switch", "switch_documents"]

_ROUNDS = 5


def inherit_groups(client: Client, old: Target, new: Target) -> None:
    """Let the new registry know the groups that there are, before the first run of `group` writes it: what becomes of
    them is told in their history."""
    source, target = (companion_name(one, Companion.GROUPS) for one in (old, new))
    if exists(client, target) and any(True for page in _of_kind(client, target, "run") for _ in page):
        return
    ensure(client, new, Companion.GROUPS)
    hits = (hit for page in _of_kind(client, source, "group") for hit in page)
    _write_all(client, (Action("index", target, hit.id, hit.source) for hit in hits), target)


def hand_over(client: Client, new: Target, after: Target, at: str) -> None:
    """Put registry and evidence of the new keys in the place of the former ones; done twice, it does the same.

    Groups that only the former registry knows came after the new one was made, and have ended.
    """
    for kind in Companion:
        source, target = companion_name(new, kind), companion_name(after, kind)
        if not exists(client, source):
            continue
        ensure(client, after, kind)
        refresh(client, source)
        refresh(client, target)
        _write_all(client, _superseded(client, source, target, at), target)
        hits = (hit for hit in _every(client, source) if hit.source.get("kind") != "lease")
        _write_all(client, (Action("index", target, hit.id, hit.source) for hit in hits), target)


def _superseded(client: Client, source: str, target: str, at: str) -> Iterator[Action]:
    """What becomes of documents of ``target`` that ``source`` does not have."""
    for chunk in chunked(_every(client, target), 500):
        there = fetch(client, [(source, hit.id, None) for hit in chunk], ["kind"])
        for hit, known in zip(chunk, there, strict=True):
            kind = hit.source.get("kind")
            if known is not None or kind == "lease":
                continue
            if kind != "group":
                yield Action("delete", target, hit.id, {})
            elif hit.source.get("ended") is None:
                events = [*hit.source["history"]["events"], {"at": at, "event": "dissolved", "group": None}]
                ended = {"ended": at, "updated": at, "history": {"events": events}}
                yield Action("index", target, hit.id, {**hit.source, **ended})


def _of_kind(client: Client, name: str, kind: str) -> Iterator[list[Hit]]:
    if exists(client, name):
        refresh(client, name)
        yield from client.pages(name, {"query": {"term": {"kind": kind}}}, page_size=1000)


def _every(client: Client, name: str) -> Iterator[Hit]:
    for page in client.pages(name, {"query": {"match_all": {}}}, page_size=1000):
        yield from page


def _write_all(client: Client, actions: Iterator[Action], name: str) -> None:
    """Write to an index of ours. Raises `RequestError` if anything is refused."""
    for outcome in write(client, actions, workers=1):
        if not (outcome.done or outcome.gone):
            raise RequestError(
                f"Our index {name} refused a document: {outcome.reason}",
                status=outcome.status,
                type=outcome.type,
                reason=outcome.reason,
            )
    refresh(client, name)


def switch_documents(
    client: Client, new: Target, after: Target, *, batch: int, workers: int, progress: Progress
) -> tuple[Tally, int]:
    """Give every document the new fields under the old prefix too, until a pass finds none without.

    What was done, and how many are left: changed again and again, or refused. Users' searches find a group id in each
    document at every moment. Where keys are beside an index, entries get their successors.
    """
    tally, left = Tally(), 0
    for _ in range(_ROUNDS):
        left = 0
        actions = _switched(client, new, after, batch, progress)
        for outcome in write(client, actions, batch=batch, workers=workers):
            left += not (outcome.done or outcome.gone)
            if not outcome.conflict:
                tally.add(outcome)
        if not left:
            break
    _refresh(client, new, after)
    return tally, left


def rehearse_switch(rehearsal: Rehearsal, new: Target, after: Target, *, batch: int) -> None:
    """Show a dry run the first requests of `switch_documents`."""
    for _ in write(rehearsal, _switched(rehearsal, new, after, batch, silent), batch=batch, workers=1):
        if rehearsal.full:
            break


def _switched(client: Client, new: Target, after: Target, batch: int, progress: Progress) -> Iterator[Action]:
    """The writes of one pass."""
    _refresh(client, new, after)
    sources, query = [new.settings.prefix, after.settings.prefix], queries.processed(new.fields)
    where, parts = (new.path, sources) if new.beside is None else (Names(new).path, True)
    pages = client.pages(where, {"query": query, "_source": parts}, page_size=max(batch, 100))
    hits = tracked((hit for page in pages for hit in page), progress, "switching", count(client, where, query))
    return takeovers(hits, *sources) if new.beside is None else successors(client, new, after, hits)


def _refresh(client: Client, new: Target, after: Target) -> None:
    """Of what the switch reads and writes."""
    for name in [new.path] if new.beside is None else [Names(one).path for one in (new, after)]:
        refresh(client, name)
