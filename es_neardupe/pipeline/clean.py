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
from es_neardupe.errors import BeingMigrated, RequestError
from es_neardupe.indices import mappings_of, open_target, remove_settings, stored_settings
from es_neardupe.migrations import is_switching, phase_of, replaced_prefix
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Hit
from es_neardupe.rights import check_sees_all
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.tally import Tally
from es_neardupe.tuning import mend

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
    """Hidden indices of ours that were deleted: the registry of groups, the evidence of pairs."""
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
    it changed meanwhile, and past any ingest pipeline. Afterwards ``init`` may choose other settings.
    """
    started = time.monotonic()
    if _is_clean(client, index, prefix):
        return CleanReport(index, 0, 0, 0, 0, (), (), dry_run, time.monotonic() - started)
    _check_migration(client, index, prefix)
    target = open_target(client, index, prefix)
    check_sees_all(client, target, "cleaning")
    if not dry_run:
        check_writable(client, index)
        mend(client, mappings_of(client, index))
    refresh(client, target.path)
    query = {"exists": {"field": prefix}}
    total = left = count(client, target.path, query)
    tally = Tally()
    cleaned = _by_script if _has_scripts(client) else _by_index
    for _ in range(0 if dry_run else _ROUNDS):
        if not left:
            break
        body = {"query": query, "_source": cleaned is _by_index}
        hits = (hit for page in client.pages(target.path, body, page_size=batch) for hit in page)
        actions = cleaned(tracked(hits, progress, "cleaning", left), prefix)
        for outcome in write(client, actions, batch=batch, workers=workers):
            if not outcome.conflict:
                tally.add(outcome)
        refresh(client, target.path)
        left = count(client, target.path, query)
    removed = [name for kind in Companion if exists(client, name := companion_name(target, kind))]
    if not dry_run and not left:
        remove(client, target)
        for name, mapping in mappings_of(client, index).items():
            remove_settings(client, name, mapping, prefix)
    return CleanReport(
        index=index,
        documents=total,
        cleaned=total if dry_run else tally.counts["written"],
        deleted=tally.counts["deleted"],
        left=0 if dry_run else left,
        removed=() if left and not dry_run else tuple(removed),
        refusals=tally.refusals,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
    )


def _check_migration(client: Client, index: str, prefix: str) -> None:
    """Raises `BeingMigrated` for fields that a migration needs."""
    mappings = mappings_of(client, index).values()
    if phase_of(mappings, prefix) is not None or is_switching(mappings, replaced_prefix(prefix)):
        raise BeingMigrated(
            f"Index {index} is on its way to other keys: run `es-neardupe migrate {index}` to its end first, or, "
            f"before the switch, give up with `--abort`."
        )


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
