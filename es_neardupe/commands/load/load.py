"""Index the documents of files, fingerprinted from the first moment."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import partial
from typing import Any

from es_neardupe import options
from es_neardupe.commands.enrich.ingest import first_fields
from es_neardupe.commands.load.files import FileRecord, Problem, check_paths, read_records
from es_neardupe.commands.report_parts import FingerprintWrites, LoadScope, one_line
from es_neardupe.errors import InputError
from es_neardupe.index.document_text import has_any
from es_neardupe.index.index import Index, opened_inline
from es_neardupe.index.mapping import relation_in
from es_neardupe.index.target import IndexTarget
from es_neardupe.index.tuning import tunable
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Address, Outcome
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import Client, to_json
from es_neardupe.server.dry_run import DryRunClient, ShownRequest
from es_neardupe.server.fetch import fetch
from es_neardupe.server.search import refresh

__all__ = ["LoadReport", "load", "load_records"]

_CHUNK = 256


@dataclass(frozen=True)
class LoadReport:
    """What became of the lines of the files; see `LoadScope`."""

    index: str
    scheme: str
    scope: LoadScope
    writes: FingerprintWrites
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """The first writes of a dry run, if they were asked for."""
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with the values they have again."""

    def __repr__(self) -> str:
        return one_line(self, index=self.index, read=self.scope.read, written=self.writes.written, dry_run=self.dry_run)


@tunable
def load(
    index: Index,
    paths: Sequence[str],
    *,
    id_field: options.IdField = None,
    text_field: options.TextField = None,
    routing_field: options.RoutingField = None,
    replace: options.Replace = False,
    strict: options.Strict = False,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    tune: options.Tune = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
    on_problem: Callable[[Problem], None] = lambda problem: None,
    progress: Progress = silent,
) -> LoadReport:
    """Index JSON lines, CSV files or folders of texts into an initialised index.

    ``text_field`` is the field of the files that goes into the index's first text field, ``routing_field`` the one by
    whose value a document is routed (it stays in the document, but for ``_routing``). A document whose
    id is there already is left alone, or overwritten with ``replace``: loading twice changes nothing. A bad line
    is passed to ``on_problem`` and counted; with ``strict`` it raises `InputError`. ``tune``: see `tunable`. A dry run
    can ``show_requests``, the first so many.
    """
    check_paths(paths)
    index = opened_inline(index, "load", writes=True)
    records = read_records(paths, text_field=text_field or index.settings.fields[0], id_field=id_field)
    return load_records(
        index,
        records,
        text_field=text_field,
        routing_field=routing_field,
        replace=replace,
        strict=strict,
        workers=workers,
        batch=batch,
        max_chars=max_chars,
        dry_run=dry_run,
        show_requests=show_requests,
        on_problem=on_problem,
        progress=progress,
    )


def load_records(
    index: Index,
    records: Iterable[FileRecord | Problem],
    *,
    text_field: str | None = None,
    routing_field: str | None = None,
    replace: bool = False,
    strict: bool = False,
    workers: int = 2,
    batch: int = 500,
    max_chars: int = DEFAULT_MAX_CHARS,
    dry_run: bool = False,
    show_requests: int = 0,
    on_problem: Callable[[Problem], None] = lambda problem: None,
    progress: Progress = silent,
) -> LoadReport:
    """As `load`, from records that were read already."""
    started = time.monotonic()
    rehearsal = DryRunClient(index.client, show_requests, dry_run=dry_run)
    _check_single(index.target)
    if not dry_run:
        index.storage.check_writable()
    prefix = index.settings.prefix
    tally, states, numeric = BulkCounts(), Counter[str](), 0
    counts = tally.counts

    def report_problem(problem: Problem, kind: str) -> None:
        if strict:
            raise InputError(f"{problem.place}: {problem.why}.")
        counts[kind] += 1
        on_problem(problem)

    routed = (_routed(record, routing_field) for record in tracked(records, progress, "loading", None))
    usable = _usable(routed, index.target, text_field, report_problem)
    actions = _actions(usable, index.target, "index" if replace else "create", max_chars)
    if show_requests:
        actions = (one.action for one in write(rehearsal, actions, batch=batch, workers=1))
    send = partial(_pretend, fields=[index.fields.scheme]) if dry_run else partial(write, batch=batch, workers=workers)
    for outcome in _settled(index.client, send(index.client, actions)):
        if outcome.conflict:
            counts["existing"] += 1
            continue
        tally.add(outcome)
        if outcome.done:
            fields = outcome.action.body[prefix]
            states[fields["state"]] += 1
            numeric += "numeric" in fields
    if not dry_run:
        refresh(index.client, index.path)
    return LoadReport(
        index=index.name,
        scheme=index.scheme_id,
        scope=LoadScope(
            read=sum(counts.values()),
            bad=counts["bad"],
            duplicates=counts["duplicates"],
            existing=counts["existing"],
        ),
        writes=FingerprintWrites(
            written=counts["written"],
            deleted=counts["deleted"],
            refused=counts["refused"],
            refusals=tally.refusals,
            states=dict(states),
            numeric=numeric,
        ),
        dry_run=dry_run,
        seconds=time.monotonic() - started,
        requests=rehearsal.shown,
        tuned=None,
    )


def _settled(client: Client, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The same outcomes, but a conflict with a write of our own, whose answer was lost, is that write."""
    for outcome in outcomes:
        if outcome.conflict and outcome.repeated:
            (hit,) = fetch(client, [outcome.action.reference], ["*"])
            if hit is not None and hit.source == json.loads(to_json(outcome.action.body)):
                yield changed(outcome, status=201)
                continue
        yield outcome


def _pretend(client: Client, actions: Iterable[Action], *, fields: Sequence[str]) -> Iterator[Outcome]:
    """The outcomes of a dry run: what would be created conflicts with what is there. ``fields``: what to read of it."""
    for chunk in chunked(actions, _CHUNK):
        present = fetch(client, [action.reference for action in chunk], fields)
        for action, hit in zip(chunk, present, strict=True):
            yield Outcome(action, 200 if action.op == "index" or hit is None else 409)


def _check_single(target: IndexTarget) -> None:
    if target.rollover_alias is not None and target.rollover_alias.data_stream:
        raise InputError(
            f"{target.name} is a data stream: an id that one of its older indices has would be loaded twice. Index "
            f"into it with your own code (NearDupe.fingerprinted adds the keys), or let enrich add them afterwards."
        )
    if len(target.indices) > 1:
        raise InputError(f"{target.name} stands for {len(target.indices)} indices: name the one to load into.")


def _usable(
    records: Iterable[FileRecord | Problem],
    target: IndexTarget,
    text_field: str | None,
    report_problem: Callable[[Problem, str], None],
) -> Iterator[FileRecord]:
    """The records that can be indexed, each with an id and with its text where the index expects it."""
    seen: set[str] = set()
    for record in records:
        found = record if isinstance(record, Problem) else _prepared(record, target, text_field)
        if isinstance(found, Problem):
            report_problem(found, "bad")
        elif found.id in seen:
            report_problem(Problem(found.place, f"the id {found.id!r} stood in the files before"), "duplicates")
        else:
            seen.add(str(found.id))
            yield found


def _routed(record: FileRecord | Problem, field: str | None) -> FileRecord | Problem:
    """The record with the routing that one of its fields names."""
    if field is None or isinstance(record, Problem):
        return record
    value = record.source.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return Problem(record.place, f"no text or whole number in {field!r} to take the routing from")
    source = {name: one for name, one in record.source.items() if name != "_routing"}
    return changed(record, source=source, routing=str(value))


def _prepared(record: FileRecord, target: IndexTarget, text_field: str | None) -> FileRecord | Problem:
    fields = target.settings.fields
    source = dict(record.source)
    for name, relations in target.skipped_relations.items():
        if (relation := relation_in(source, name)) in relations:
            return Problem(record.place, f"its {name} is {relation!r}, which this index leaves alone (init --relation)")
    if text_field is not None and text_field != fields[0]:
        if text_field not in source:
            return Problem(record.place, f"no field {text_field!r} to take the text from")
        if not _put(source, fields[0], source.pop(text_field)):
            return Problem(record.place, f"the text of {text_field!r} cannot go to {fields[0]!r}: something is there")
    if not has_any(source, fields):
        return Problem(record.place, f"no field {fields[0]!r}: name the one that holds the text with `text_field`")
    if record.id is None and record.place.startswith("stdin:"):
        return Problem(record.place, "no field 'id': name the one that holds the id with `id_field`")
    return changed(record, id=record.id or record.place, source=source)


def _put(source: dict[str, Any], name: str, value: Any) -> bool:
    """Put a value where a dotted name says; False if something else is in the way, which would be lost."""
    if has_any(source, [name]):
        return False
    *parents, leaf = name.split(".")
    for parent in parents:
        inner = source.get(parent)
        if inner is not None and not isinstance(inner, dict):
            return False
        source[parent] = dict(inner or {})
        source = source[parent]
    source[leaf] = value
    return True


def _actions(records: Iterable[FileRecord], target: IndexTarget, op: str, max_chars: int) -> Iterator[Action]:
    (index,) = target.indices
    for chunk in chunked(records, _CHUNK):
        sources = [record.source for record in chunk]
        addresses = [Address(index, str(record.id)) for record in chunk]
        routings = [record.routing for record in chunk]
        ours = first_fields(sources, addresses, target.settings, max_chars)
        for address, routing, source, fields in zip(addresses, routings, sources, ours, strict=True):
            body = {**source, target.settings.prefix: fields}
            yield Action(op=op, index=index, id=address[1], body=body, routing=routing)
