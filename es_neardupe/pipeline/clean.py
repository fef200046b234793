"""Take our fields out of the documents again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from es_neardupe import schema
from es_neardupe.asking import count, refresh
from es_neardupe.blocks import check_writable
from es_neardupe.bulk import write
from es_neardupe.clients import Client, path
from es_neardupe.companions import Companion, companion_name, exists, remove
from es_neardupe.errors import RequestError
from es_neardupe.indices import Target, mappings_of, remove_settings, stored_settings
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Hit
from es_neardupe.rights import check_sees_all
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.sidecar import View, opened
from es_neardupe.tally import Tally

__all__ = ["CleanReport", "clean"]

_ROUNDS = 5


@dataclass(frozen=True)
class CleanReport:
    """``documents = cleaned + deleted + left``. The mapping stays: no server can remove a field from one."""

    index: str
    documents: int
    """With fields of ours when the run began."""
    cleaned: int
    deleted: int
    left: int
    """Changed again and again while the run went on, or refused: run it again."""
    removed: tuple[str, ...]
    """Hidden indices of ours that were deleted: the registry of groups, the evidence of pairs, the keys beside."""
    refusals: tuple[str, ...]
    dry_run: bool
    seconds: float = field(compare=False)


def clean(
    client: Client,
    index: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    workers: int = 2,
    batch: int = 500,
    dry_run: bool = False,
    progress: Progress = silent,
) -> CleanReport:
    """Remove our object field from every document, our hidden indices, and our settings from the mapping's ``_meta``.

    A server with scripts removes the field itself. One without gets each document back without the field, refused if
    it changed meanwhile, and past any ingest pipeline. Keys beside an index go with the index that they are in; of the
    documents, only group ids are removed then, where such were written. Afterwards ``init`` may choose other settings.
    """
    started = time.monotonic()
    if _is_clean(client, index, prefix):
        return CleanReport(index, 0, 0, 0, 0, (), (), dry_run, time.monotonic() - started)
    client, target = opened(client, index, prefix)
    check_sees_all(client, target, "cleaning")
    if not dry_run:
        check_writable(client, index)
    work = _Cleaning(client.plain if isinstance(client, View) else client, target, batch, workers, progress)
    work.run(dry_run)
    beside = () if target.beside is None else target.beside.names
    companions = [name for kind in Companion if exists(client, name := companion_name(target, kind))]
    if not dry_run and not work.left:
        remove(client, target)
        for name in beside:  # last: while they stand, a run that was killed can be gone on with
            client.request("DELETE", path(name))
        for name, mapping in mappings_of(client, index).items() if not beside else ():
            remove_settings(client, name, mapping, prefix)
    return CleanReport(
        index=index,
        documents=work.total,
        cleaned=work.total if dry_run else work.tally.counts["written"],
        deleted=work.tally.counts["deleted"],
        left=0 if dry_run else work.left,
        removed=() if work.left and not dry_run else (*companions, *beside),
        refusals=work.tally.refusals,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
    )


class _Cleaning:
    """Takes our object field out of the documents that have it."""

    def __init__(self, client: Client, target: Target, batch: int, workers: int, progress: Progress) -> None:
        self._client, self._target = client, target
        self._batch, self._workers, self._progress = batch, workers, progress
        self.tally = Tally()
        self.total = self.left = 0

    def run(self, dry_run: bool) -> None:
        """Several times, as documents may change under our hands. Nothing where we never wrote into them."""
        if self._target.beside is not None and not self._target.beside.write_group:
            return
        refresh(self._client, self._target.path)
        query = {"exists": {"field": self._target.settings.prefix}}
        self.total = self.left = count(self._client, self._target.path, query)
        cleaned = _by_script if _has_scripts(self._client) else _by_index
        for _ in range(0 if dry_run else _ROUNDS):
            if not self.left:
                break
            body = {"query": query, "_source": cleaned is _by_index}
            pages = self._client.pages(self._target.path, body, page_size=self._batch)
            hits = tracked((hit for page in pages for hit in page), self._progress, "cleaning", self.left)
            actions = cleaned(hits, self._target.settings.prefix)
            for outcome in write(self._client, actions, batch=self._batch, workers=self._workers):
                if not outcome.conflict:
                    self.tally.add(outcome)
            refresh(self._client, self._target.path)
            self.left = count(self._client, self._target.path, query)


def _is_clean(client: Client, index: str, prefix: str) -> bool:
    """Whether a run before this one has removed all there was: our mapping is there, our settings are not."""
    return all(
        stored_settings(mapping, prefix) is None and not schema.missing(mapping.get("properties", {}), prefix)
        for mapping in mappings_of(client, index).values()
    )


def _has_scripts(client: Client) -> bool:
    """Whether the server runs painless for us."""
    try:
        client.request("POST", path("_scripts", "painless", "_execute"), body={"script": {"source": "true"}})
    except RequestError:
        return False
    return True


def _by_script(hits: Iterable[Hit], prefix: str) -> Iterator[Action]:
    script = {"source": "ctx._source.remove(params.name)", "lang": "painless", "params": {"name": prefix}}
    for hit in hits:
        yield _action(hit, "update", {"script": script})


def _by_index(hits: Iterable[Hit], prefix: str) -> Iterator[Action]:
    for hit in hits:
        source = {name: value for name, value in hit.source.items() if name != prefix}
        yield _action(hit, "index", source, pipeline="_none")


def _action(hit: Hit, op: str, body: dict[str, Any], pipeline: str | None = None) -> Action:
    return Action(
        op=op,
        index=hit.index,
        id=hit.id,
        body=body,
        routing=hit.routing,
        seq_no=hit.seq_no,
        primary_term=hit.primary_term,
        pipeline=pipeline,
    )
