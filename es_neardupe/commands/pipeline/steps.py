"""Steps of ``pipeline``: the ingest pipeline of an index, its checks and roles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from es_neardupe.errors import IndexUnusable
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.on_server import ingest_pipeline as ingest
from es_neardupe.index.on_server.ingest_pipeline import IndexPipelines, OwnPipelines
from es_neardupe.server.client import Client
from es_neardupe.wording import command


@dataclass(frozen=True)
class Done:
    """The result of an action."""

    pipelines: Mapping[str, IndexPipelines]
    texts: int = 0
    different: tuple[ingest.OtherFields, ...] = ()
    changed: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def install(own: OwnPipelines, writer: Client, *, default: bool, final: bool) -> Done:
    """Check the keys that the pipeline makes, store it, and set its role."""
    index, outdated = own.index, own.names - {own.name}
    _check_index(index)
    after = {one: _role(own, one, pipelines, default, final) for one, pipelines in own.of_indices.items()}
    texts = ingest.check_keys(index, index.settings)
    own.store(writer)
    changed = tuple(one for one in after if after[one] != own.of_indices[one])
    for one in changed:
        ingest.set_pipelines(writer, one, own.of_indices[one], after[one])
    kept = ingest.delete_unused(writer, outdated, changed)
    deleted = tuple(sorted(outdated & own.stored.keys() - kept.keys()))
    return Done(after, texts, (), changed, (own.name,), deleted, kept)


def _check_index(index: IndexHandle) -> None:
    """Raises `IndexUnusable` for an index for whose documents a pipeline would make wrong keys."""
    name, target = index.name, index.target
    if len(target.indices) > 1 and target.rollover_alias is None:
        raise IndexUnusable(
            f"{name} resolves to {len(target.indices)} indices, none of which is its only write index: install the "
            f"pipeline for each of them by its own name."
        )
    if target.skipped_relations:
        raise IndexUnusable(
            f"Documents of {name} have a join field, and a pipeline would also make keys of children: make the keys "
            f"with `{command('enrich', name)}`."
        )


def _role(own: OwnPipelines, concrete: str, before: IndexPipelines, default: bool, final: bool) -> IndexPipelines:
    """The pipelines of a concrete index with the new one. Raises `IndexUnusable` if its place is taken."""
    ours = {own.name, *own.names}
    places = dict[str, str | None]()
    for place, present, asked in (("default", before.default, default), ("final", before.final, final)):
        if asked and present is not None and present not in ours:
            call = json.dumps({"pipeline": {"name": own.name}})
            raise IndexUnusable(
                f"Index {concrete} has the {place} pipeline {present} already, which is not replaced: run "
                f"`{command('pipeline', own.index.name)} install` without --{place}, then add the processor {call} to "
                f"{present}."
            )
        moved = present in ours and (default or final)
        kept = None if moved else own.name if present in ours else present
        places[place] = own.name if asked else kept
    return IndexPipelines(**places)


def check(own: OwnPipelines) -> Done:
    """Check the keys that the stored pipeline makes."""
    if own.name not in own.stored:
        return Done(own.of_indices)
    ingest.check_ingest_nodes(own.client)
    ingest.check_painless(own.client)
    texts, body = ingest.check_texts(), own.stored[own.name]
    different = ingest.differences(own.index, own.index.settings, body, texts)
    return Done(own.of_indices, len(texts), tuple(different))


def remove(own: OwnPipelines, writer: Client) -> Done:
    """Delete the pipeline, unless something else uses it."""
    names = own.names
    changed = own.unset(writer)
    kept = ingest.delete_unused(writer, names, changed)
    after = {index: one.without(names) for index, one in own.of_indices.items()}
    deleted = tuple(sorted(names & own.stored.keys() - kept.keys()))
    return Done(after, 0, (), changed, (), deleted, kept)
