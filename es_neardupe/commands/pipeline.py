"""``pipeline``: documents get their keys from the server when they are indexed, by an ingest pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from es_neardupe import options
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.index import Index, opened, opened_inline
from es_neardupe.index.on_server import ingest_pipeline as ingest
from es_neardupe.index.on_server.ingest_pipeline import IndexPipelines, OwnPipelines
from es_neardupe.options import PipelineAction
from es_neardupe.records import one_line
from es_neardupe.server.client import Client
from es_neardupe.server.dry_run import DryRunClient, ShownRequest
from es_neardupe.wording import command, option


@dataclass(frozen=True, kw_only=True)
class PipelineReport:
    """Result of `pipeline`."""

    index: str
    action: str
    scheme: str
    pipeline: str
    """The name of the pipeline that makes the keys of the index."""
    state: str
    """``none``, ``stored`` (no index names it), ``default`` or ``final`` (all indices name it), ``partly`` (some do),
    ``outdated`` (a pipeline of this program with an older scheme or other fields) or ``missing`` (an index names a
    pipeline that does not exist); after the action."""
    pipelines: Mapping[str, IndexPipelines]
    """Concrete index -> its pipelines after the action."""
    texts: int
    """Texts whose keys were compared with those of Python, by ``install`` and ``check``."""
    different: int
    """Texts with other keys."""
    difference: str | None
    """The first of them."""
    changed: tuple[str, ...]
    """Concrete indices whose settings were changed; in a dry run: would be changed."""
    deleted: tuple[str, ...]
    """Pipelines that were deleted."""
    kept: Mapping[str, tuple[str, ...]]
    """Pipelines that were not deleted -> what else uses them."""
    dry_run: bool
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``."""

    def __repr__(self) -> str:
        return one_line(self, index=self.index, action=self.action, state=self.state, dry_run=self.dry_run)


def pipeline(
    index: Index,
    action: str = "show",
    *,
    default: options.DefaultPipeline = False,
    final: options.FinalPipeline = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
) -> PipelineReport:
    """Show, install, check or remove the ingest pipeline with which the server makes the keys of new documents.

    ``install`` stores it, after it has compared the keys that it makes with those of Python. With ``default`` or
    ``final`` it also sets it as the default or the final pipeline of the index; otherwise an index keeps the role that
    an outdated pipeline of this program has, or another pipeline can call it. ``check`` compares the keys of the stored
    pipeline. ``remove`` changes the settings of the index, then deletes the pipeline, unless something else uses it.
    Each can be repeated. A dry run returns its first ``show_requests`` write requests.

    Raises `IndexUnusable`, `UnsupportedServer` or `SettingsError` if the pipeline cannot be used: nothing is written.

    >>> news.pipeline(action="install").state
    'stored'
    >>> news.pipeline(action="remove").state
    'none'
    """
    try:
        wanted = PipelineAction(action)
    except ValueError:
        raise SettingsError(f"Unknown action {action!r}: choose {', '.join(PipelineAction)}.") from None
    if (default or final) and wanted is not PipelineAction.INSTALL:
        raise SettingsError(f"{option('default')} and {option('final')} are options of the action install.")
    if default and final:
        raise SettingsError(f"{option('default')} and {option('final')} are given: omit one of them.")
    dry_client = DryRunClient(index.plain, show_requests, dry_run=dry_run)
    writer = dry_client if dry_run else index.plain
    installs = wanted is PipelineAction.INSTALL
    index = opened_inline(index, "`pipeline install`", writes=True) if installs else opened(index)
    own = OwnPipelines(index)
    done = _Done(own.of_indices)
    if installs:
        done = _install(own, writer, default=default, final=final)
    elif wanted is PipelineAction.CHECK:
        done = _check(own)
    elif wanted is PipelineAction.REMOVE:
        done = _remove(own, writer)
    return PipelineReport(
        index=index.name,
        action=wanted.value,
        scheme=index.scheme_id,
        pipeline=own.name,
        state=own.state(done.pipelines, added=done.stored, removed=done.deleted),
        pipelines=done.pipelines,
        texts=done.texts,
        different=len(done.different),
        difference=str(done.different[0]) if done.different else None,
        changed=done.changed,
        deleted=done.deleted,
        kept=done.kept,
        dry_run=dry_run,
        requests=dry_client.shown,
    )


@dataclass(frozen=True)
class _Done:
    """The result of an action."""

    pipelines: Mapping[str, IndexPipelines]
    texts: int = 0
    different: tuple[ingest.Difference, ...] = ()
    changed: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _install(own: OwnPipelines, writer: Client, *, default: bool, final: bool) -> _Done:
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
    return _Done(after, texts, (), changed, (own.name,), deleted, kept)


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


def _check(own: OwnPipelines) -> _Done:
    if own.name not in own.stored:
        return _Done(own.of_indices)
    ingest.check_ingest_nodes(own.client)
    ingest.check_painless(own.client)
    texts, body = ingest.check_texts(), own.stored[own.name]
    different = ingest.differences(own.index, own.index.settings, body, texts)
    return _Done(own.of_indices, len(texts), tuple(different))


def _remove(own: OwnPipelines, writer: Client) -> _Done:
    names = own.names
    changed = own.unset(writer)
    kept = ingest.delete_unused(writer, names, changed)
    after = {index: one.without(names) for index, one in own.of_indices.items()}
    deleted = tuple(sorted(names & own.stored.keys() - kept.keys()))
    return _Done(after, 0, (), changed, (), deleted, kept)
