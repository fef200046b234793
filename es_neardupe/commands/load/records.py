"""Loading of records that were read from files: their ids, routing, texts and keys, and the report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from es_neardupe.candidates.detection import unsuited_lengths, unsuited_texts
from es_neardupe.candidates.unprepared import beginning_of, unprepared_texts
from es_neardupe.commands.load.report import LoadReport, LoadScope
from es_neardupe.commands.load.skipped import SkippedRecords
from es_neardupe.display_text import beginning
from es_neardupe.errors import InputError
from es_neardupe.incoming.matches import ScreenReport
from es_neardupe.incoming.screen import Screen
from es_neardupe.incoming.writes import ChooseGroups, Incoming, Piece, first_fields, of_their_own
from es_neardupe.index.document_text import fingerprint_sources, has_any, values_of
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import dotted_names, foreign_value, relation_in
from es_neardupe.index.on_server.ingest_pipeline import is_ours
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.index.target import Definitions, IndexTarget
from es_neardupe.index.updates import GroupIdsInUse
from es_neardupe.keys.prepare.preparation import Text
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.readers.files import FileRecord, Problem
from es_neardupe.readers.streams import Reading
from es_neardupe.records import Action, Address, Outcome
from es_neardupe.report_parts import FingerprintWrites
from es_neardupe.server.bulk import TOO_LARGE, BulkCounts, chunked, larger_than_accepted, write
from es_neardupe.server.client import Client
from es_neardupe.server.dry_run import DryRunClient
from es_neardupe.server.failures import Failure
from es_neardupe.server.numbers import document_json, loads
from es_neardupe.server.request_sizes import size_of
from es_neardupe.server.search import fetch
from es_neardupe.verification.criterion import match_criterion
from es_neardupe.verification.match_rules import MatchRules
from es_neardupe.wording import option

_FIRST = 200
"""Documents whose texts show whether they should be prepared."""
_TIMES = 10
"""How many times a record is compared, if each time the document that it matches is then not written."""
_NO_MATCH = "it matches a document of the same files, which was not written: load it again"
_CHUNK = 256
_CHUNK_SIZE = 2**24
"""Total size of the records at which a chunk is complete, so that large ones are not collected in memory."""


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How records become documents; see `load`."""

    text_field: str | None = None
    routing_field: str | None = None
    replace: bool = False
    max_chars: int = DEFAULT_MAX_CHARS
    on_match: str | None = None
    min: float | None = None
    report: ScreenReport | None = None


@dataclass(frozen=True, kw_only=True)
class LoadRun:
    """How a run of `load` behaves."""

    strict: bool = False
    workers: int = 2
    batch: int = 500
    dry_run: bool = False
    show_requests: int = 0
    on_problem: Callable[[Problem], None] = lambda problem: None
    progress: Progress = silent
    reading: Reading = field(default_factory=Reading)
    """Counts the empty lines of the files."""


def load_records(
    index: Index,
    records: Iterable[FileRecord | Problem],
    how: LoadOptions = LoadOptions(),
    run: LoadRun = LoadRun(),
) -> LoadReport:
    """As `load`, for records that were already read and an index that was `opened`."""
    started = time.monotonic()
    dry_client = DryRunClient(index.client, run.show_requests, dry_run=run.dry_run)
    _check_single(index.target)
    if not run.dry_run:
        index.storage.check_writable()
    feed = ChangeFeed(index, Consumer.TEXTS, stores=not run.dry_run)
    feed.begin(feed.never_written)
    tally, states, numeric, skipped, lengths = BulkCounts(), Counter[str](), 0, Counter[str](), Counter[int]()
    counts = tally.counts

    def report_problem(problem: Problem, kind: str) -> None:
        if run.strict and not problem.skipped:
            raise InputError(f"{problem.place}: {problem.why}.")
        if problem.skipped:
            skipped[problem.skipped] += 1
        else:
            counts[kind] += 1
        run.on_problem(problem)

    def report_too_large(record: FileRecord, why: str) -> None:
        reason = f"{TOO_LARGE}: {record.place}: {why}"
        tally.leave(Failure("refused", index.target.indices[0], str(record.id), record.routing, reason))
        run.on_problem(Problem(record.place, why))

    routed = (_routed(record, how.routing_field) for record in tracked(records, run.progress, "loading", None))
    usable = _sendable(_usable(routed, index.target, how.text_field, report_problem), index.client, report_too_large)
    first: list[Text] = []
    compared = None if how.on_match is None else _compared(index, how.on_match, how, run)
    choose_groups = of_their_own(GroupIdsInUse(index).among) if compared is None else compared.screen.choose_groups

    def send_all(records: Iterable[FileRecord]) -> Iterator[Outcome]:
        return _send(index, _actions(records, index.target, how, choose_groups, compared), run, dry_client)

    for outcome in _again(send_all, _keep_first(usable, index.settings.fields, first), compared, tally):
        if outcome.conflict:
            counts["existing"] += 1
            continue
        if outcome.dropped:
            counts["dropped"] += 1
            continue
        tally.add(outcome)
        if outcome.done:
            fields = outcome.action.body[index.settings.prefix]
            states[fields["state"]] += 1
            lengths[fields["tokens"]] += 1
            numeric += "numeric" in fields
    pipelines = _other_pipelines(index)  # after the last request: one can have been set during the run
    if not run.dry_run:
        index.documents.refresh()
        if not pipelines:  # the keys are those of the stored texts
            feed.store_all_written(counts["written"])
    screened = None if compared is None else compared.screen.report.counts
    matching = 0 if screened is None else screened.skipped
    return LoadReport(
        index=index.name,
        scheme=index.scheme_id,
        scope=LoadScope(
            read=counts.total() - counts["whole"] + matching,  # a part of "written"
            bad=counts["bad"],
            duplicates=counts["duplicates"],
            existing=counts["existing"],
            matching=matching,
            dropped=counts["dropped"],
            skipped_links=skipped["link"],
            skipped_files=skipped["file"],
            empty_lines=run.reading.empty_lines,
        ),
        writes=FingerprintWrites.of(tally, whole=0, states=dict(states), numeric=numeric),
        unprepared=unprepared_texts(first, index.settings.scheme),
        dry_run=run.dry_run,
        seconds=time.monotonic() - started,
        requests=dry_client.shown,
        unsuited=unsuited_lengths(index.settings, lengths) if run.dry_run and lengths else unsuited_texts(index),
        screened=screened,
        pipelines=pipelines,
    )


def _other_pipelines(index: Index) -> tuple[str, ...]:
    """The ingest pipelines that process new documents of the index, since it was opened or by now, and can change their
    texts: not those that make keys."""
    states = [*index.target.states.values(), *Definitions(index.server, index.path).states().values()]
    names = {name for state in states for name in (state.default_pipeline, state.final_pipeline) if name is not None}
    return tuple(sorted(name for name in names if not is_ours(name)))


class _Compared(NamedTuple):
    """The comparison of records, and those that were skipped because of others."""

    screen: Screen
    skipped: SkippedRecords

    def begin(self, piece: Piece, groups: Sequence[object]) -> None:
        """Note which documents of a piece are sent, and which are skipped."""
        named = [(one, one.address, group) for one, group in zip(piece, groups, strict=True) if one.address is not None]
        sent = [(*address, one.routing) for one, address, group in named if group is not None]
        self.skipped.send(id for index, id, routing in sent if self.screen.remembers((index, id, routing)))
        for one, address, group in named:
            if group is None:
                self.skipped.skip(FileRecord(address.id, address.id, one.source, one.routing, size_of(one.source)))

    def end(self, outcome: Outcome) -> None:
        """Note the outcome of a document that was sent."""
        written = outcome.done and not outcome.dropped
        self.skipped.settle(outcome.action.id, written=written)
        if not written:
            self.screen.not_written(outcome.action.reference)


def _compared(index: Index, on_match: str, how: LoadOptions, run: LoadRun) -> _Compared:
    criterion = match_criterion(index, MatchRules.of(index.settings).having({"min": how.min}))
    skipped = SkippedRecords(how.report or ScreenReport())
    return _Compared(Screen(index, criterion, on_match, skipped.report, refreshes=not run.dry_run), skipped)


def _again(
    send_all: Callable[[Iterable[FileRecord]], Iterator[Outcome]],
    records: Iterable[FileRecord],
    compared: _Compared | None,
    tally: BulkCounts,
) -> Iterator[Outcome]:
    """The outcomes of all records. Those that were skipped because of a document that was then not written are compared
    again, and `failed` after several times."""
    if compared is None:
        yield from send_all(records)
        return
    skipped = compared.skipped
    for _ in range(_TIMES):
        for outcome in send_all(records):
            compared.end(outcome)
            yield outcome
        if not (records := skipped.take()):
            break
    index = compared.screen.index.target.indices[0]
    left = [Failure("failed", index, str(one.id), one.routing, _NO_MATCH) for one in (*skipped.left, *records)]
    tally.add_failed(left, [_NO_MATCH] if left else [])


def _send(index: Index, actions: Iterator[Action | None], run: LoadRun, dry_client: DryRunClient) -> Iterator[Outcome]:
    """The outcomes of the actions; None: those so far are sent first."""
    send = partial(write, batch=run.batch, workers=run.workers, versions=True)
    if run.dry_run:
        send = partial(_pretend, fields=[index.fields.scheme])
    for part in _parts(actions):
        given: Iterable[Action] = part
        if run.show_requests:
            given = (outcome.action for outcome in write(dry_client, part, batch=run.batch, workers=1))
        if run.dry_run:
            given = _without_documents(given, index.settings.prefix)
        yield from _resolved(index.client, send(index.client, given))


def _parts(actions: Iterator[Action | None]) -> Iterator[Iterator[Action]]:
    """The actions up to each None."""
    for is_action, part in groupby(actions, lambda one: one is not None):
        if is_action:
            yield (one for one in part if one is not None)


def _resolved(client: Client, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The outcomes. A conflict counts as success if an earlier attempt wrote the document and its answer was lost."""
    for outcome in outcomes:
        if outcome.conflict and outcome.repeated:
            (hit,) = fetch(client, [outcome.action.reference], True)
            if hit is not None and hit.source == loads(document_json(outcome.action.body)):
                yield changed(outcome, status=201)
                continue
        yield outcome


def _without_documents(actions: Iterable[Action], prefix: str) -> Iterator[Action]:
    """The actions with only the fields that a dry run counts, so that no documents are collected in memory."""
    return (changed(action, body={prefix: action.body[prefix]}) for action in actions)


def _pretend(client: Client, actions: Iterable[Action], *, fields: Sequence[str]) -> Iterator[Outcome]:
    """The outcomes of a dry run: creating an existing document conflicts. ``fields``: fields to read of it."""
    for chunk in chunked(actions, _CHUNK):
        existing = fetch(client, [action.reference for action in chunk], fields, batch=_CHUNK)
        for action, hit in zip(chunk, existing, strict=True):
            yield Outcome(action, 200 if action.op == "index" or hit is None else 409)


def _check_single(target: IndexTarget) -> None:
    """Raises `InputError` unless the name is one index, or an alias of one."""
    if target.rollover_alias is not None and target.rollover_alias.data_stream:
        raise InputError(
            f"{target.name} is a data stream: a document whose id is in one of its older indices would be loaded "
            f"twice. Index into it with your own code (NearDupe.fingerprinted adds the keys), or run enrich afterwards."
        )
    if len(target.indices) > 1:
        raise InputError(f"{target.name} resolves to {len(target.indices)} indices: name the one to load into.")


def _usable(
    records: Iterable[FileRecord | Problem],
    target: IndexTarget,
    text_field: str | None,
    report_problem: Callable[[Problem, str], None],
) -> Iterator[FileRecord]:
    """The records that can be indexed, each with an id, and with its text in the field that the index expects."""
    seen: set[str] = set()
    for record in records:
        prepared = record
        if not isinstance(record, Problem):
            prepared = _of_keys(record, target.settings) or _prepared(record, target, text_field)
        if isinstance(prepared, Problem):
            report_problem(prepared, "bad")
        elif prepared.id in seen:
            report_problem(Problem(prepared.place, f"duplicate id {prepared.id!r}"), "duplicates")
        else:
            seen.add(str(prepared.id))
            yield prepared


def _sendable(
    records: Iterable[FileRecord], client: Client, report_too_large: Callable[[FileRecord, str], None]
) -> Iterator[FileRecord]:
    """The records without those whose texts alone are larger than the server accepts: they get no keys."""
    for record in records:
        characters = sum(len(value) for value in record.source.values() if isinstance(value, str))
        if why := larger_than_accepted(client, characters):
            report_too_large(record, why)
        else:
            yield record


def _keep_first(records: Iterable[FileRecord], fields: Sequence[str], first: list[Text]) -> Iterator[FileRecord]:
    """The records, the texts of the first of which are appended to ``first``."""
    for record in records:
        if len(first) < _FIRST:
            first.append(beginning_of(values_of(record.source, fields)))
        yield record


def _routed(record: FileRecord | Problem, field: str | None) -> FileRecord | Problem:
    """The record with the routing from one of its fields."""
    if field is None or isinstance(record, Problem):
        return record
    value = record.source.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return Problem(record.place, f"no text or whole number in the routing field {field!r}")
    source = {name: one for name, one in record.source.items() if name != "_routing"}
    return changed(record, source=source, routing=str(value))


def _prepared(record: FileRecord, target: IndexTarget, text_field: str | None) -> FileRecord | Problem:
    """The record with an id, and with its text in the field that the index expects."""
    fields = target.settings.fields
    source = dict(record.source)
    for name, relations in target.skipped_relations.items():
        if (relation := relation_in(source, name)) in relations:
            return Problem(record.place, f"{name} is {relation!r}, which this index does not process (init --relation)")
    if text_field is not None and text_field != fields[0]:
        if text_field not in source:
            return Problem(record.place, f"no text field {text_field!r} ({_names(source)})")
        if not _put(source, fields[0], source.pop(text_field)):
            return Problem(record.place, f"{text_field!r} cannot be moved to {fields[0]!r}: another value is there")
    if not has_any(source, fields):
        wanted = f"no field {fields[0]!r}: name the one that holds the text with {option('text_field')}"
        return Problem(record.place, f"{wanted} ({_names(source)})")
    if record.id is None and not record.place_is_id:
        return Problem(record.place, f"no field 'id': name the one that holds the id with {option('id_field')}")
    return changed(record, id=record.id or record.place, source=source)


def _of_keys(record: FileRecord, settings: Settings) -> Problem | None:
    """The problem of a field that has the name of the keys, but is not an object with those of another index, which are
    made again: it would be lost, or, with a dot in its name, be a second value of one of them."""
    dotted = dotted_names(record.source, settings.prefix)
    if (name := dotted[0] if dotted else foreign_value(record.source, settings)) is None:
        return None
    return Problem(record.place, f"{name!r} is a name of the fields for keys: rename it, or load under another prefix")


def _names(source: Mapping[str, Any]) -> str:
    """The names of the fields of a document, for a message about a missing one."""
    return f"has {beginning(', '.join(map(repr, source))) or 'none'}"


def _put(source: dict[str, Any], name: str, value: Any) -> bool:
    """Set a field by its dotted name; False if another value is there, which would be lost."""
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


def _actions(
    records: Iterable[FileRecord],
    target: IndexTarget,
    how: LoadOptions,
    choose_groups: ChooseGroups,
    compared: _Compared | None,
) -> Iterator[Action | None]:
    """The actions that index the records with their fingerprints; None: those so far should be sent first."""
    (index,) = target.indices
    op = "index" if how.replace else "create"

    def incoming(chunk: Sequence[FileRecord]) -> Iterator[Incoming]:
        fingerprints = fingerprint_sources([record.source for record in chunk], target.settings, how.max_chars)
        for record, fingerprint in zip(chunk, fingerprints, strict=True):
            source, address = record.source, Address(index, str(record.id))
            yield Incoming(source, op, address, record.routing, source, fingerprint, changes_text=True)

    for piece, groups in choose_groups(list(incoming(chunk)) for chunk in _chunks(records)):
        at = timestamp()
        if compared is not None:
            compared.begin(piece, groups)
        for one, group in zip(piece, groups, strict=True):
            if one.address is not None and one.fingerprint is not None and group is not None:
                added = target.settings.in_document(first_fields(one.fingerprint, group, at))
                body = {**one.source, **added}
                yield Action(op=op, index=index, id=one.address.id, body=body, routing=one.routing, whole=True)
        if compared is not None and compared.skipped.full:
            yield None


def _chunks(records: Iterable[FileRecord]) -> Iterator[list[FileRecord]]:
    """Lists of the records, of limited number and size."""
    chunk: list[FileRecord] = []
    size = 0
    for record in records:
        chunk.append(record)
        size += record.size
        if len(chunk) == _CHUNK or size > _CHUNK_SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
