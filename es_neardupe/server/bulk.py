"""Bulk writes: actions in, outcomes out, with several bulk requests in flight.

Rejected items (429, 503) are sent again with backoff and jitter, without the other items of their request. A document
that is larger than the server accepts is not sent. A request that is too large (413) is split. So is one that is still
rejected (429) after all retries, if the server accepts a small write: then it is not overloaded, and an action that it
rejects alone is an outcome. Conflicts and missing documents are outcomes, which the caller handles. A block on the
index or a missing privilege ends the run: retries would not help, and the documents already written stay valid.

A write with the version of the owner of a document (`Action.version`) names no sequence number. A server remembers a
deletion for a while only (``index.gc_deletes``), and accepts such a write of an earlier version afterwards: it would
bring back the document, or replace a new one with a lower version. So these documents are read directly before each
request is sent, also before it is sent again, and those that were changed or deleted are outcomes and not sent.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

import orjson

from es_neardupe.errors import Blocked, Conflict, Forbidden, IncompleteAnswer, NotFound, RequestError
from es_neardupe.log_events import log_event
from es_neardupe.records import Action, Address, Outcome, Reference
from es_neardupe.server.client import Client, Params, path, to_json
from es_neardupe.server.failures import KEPT_CHANGING, Failure, Failures
from es_neardupe.server.numbers import document_json
from es_neardupe.server.pacing import PART_RETRIES, with_retries
from es_neardupe.server.request_sizes import request_limit
from es_neardupe.server.search import fetch
from es_neardupe.wording import command, counted, option

_Item = TypeVar("_Item")

MAX_BYTES = 8_000_000
"""Size in bytes at which a bulk request is sent, whatever the number of its actions, with the documents that it
updates: the server holds them in its heap."""

_FIRST_SHARE = 4
"""Divisor of the size of the first request, so that the server has work early; each next one is twice as large."""

_FRESH = 10.0
"""Maximum number of seconds for reading the versions of the documents of a request."""

MIN_GC_DELETES = 30.0
"""Minimum number of seconds for which an index must remember deletions: several times as long as `_FRESH`, since a
request takes time too."""

_FILTER = "errors,items.*.status,items.*.error.type,items.*.error.reason"
_VERSIONS = ",items.*._seq_no,items.*._primary_term"
_RESULTS = ",items.*.result"
"""What shows that a pipeline has dropped a document."""
_WHOLE = ("index", "create")
_OVERLOADED = 429
_UNAVAILABLE = 503
_REJECTED = (_OVERLOADED, _UNAVAILABLE)
_TOO_LARGE = 413
TOO_LARGE = "request_too_large"
"""The type of the error of a document that is too large for a request, whether it was sent or not."""
_CREATED, _MISSING, _CONFLICT = 201, 404, 409
_NO_MASTER = _UNAVAILABLE
"""Status of a block that ends when the cluster has a master again. An administrator must remove any other block."""


def chunked(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Lists of up to ``size`` items each, in order."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def write(
    client: Client, actions: Iterable[Action], *, batch: int = 500, workers: int = 2, versions: bool = False
) -> Iterator[Outcome]:
    """Send the actions in bulk requests of ``batch`` actions, up to ``workers`` requests at a time. Yields one outcome
    for each action, with the new version of the document if ``versions`` is true.

    ``actions`` is consumed in the calling thread while the workers wait for the server, so producing them takes no
    extra time. No document may appear twice in a batch. Raises `Blocked`, `Forbidden`, and the errors of `Client.bulk`.
    """
    most = 2 * workers  # some requests wait, so that no worker does
    with ThreadPoolExecutor(max_workers=workers) as pool:
        under_way: deque[Future[list[Outcome]]] = deque()
        sizes: deque[int] = deque()
        try:
            for lines, chunk in _requests(actions, partial(client.pace.maximum, batch)):
                client.pace.wait(len(chunk))
                sizes.append(sum(map(len, lines)))
                under_way.append(pool.submit(_fitting, client, lines, chunk, versions))
                while len(under_way) > most or sum(sizes) > most * MAX_BYTES:
                    sizes.popleft()
                    yield from under_way.popleft().result()
            while under_way:
                yield from under_way.popleft().result()
        finally:
            for future in under_way:
                future.cancel()


def pretend(actions: Iterable[Action]) -> Iterator[Outcome]:
    """The outcomes of a dry run: every action succeeds."""
    return (Outcome(action, 200) for action in actions)


def _requests(actions: Iterable[Action], full: Callable[[], int]) -> Iterator[tuple[list[bytes], list[Action]]]:
    """Group the actions into requests by number and by size; each action with its encoded lines. ``full`` returns the
    number of actions that a request may have now."""
    lines: list[bytes] = []
    chunk: list[Action] = []
    size, maximum = 0, -(-full() // _FIRST_SHARE)
    for action in actions:
        encoded = _encode(action)
        added = len(encoded) + action.document_bytes
        if chunk and (len(chunk) == maximum or size + added > MAX_BYTES):
            yield lines, chunk
            lines, chunk, size, maximum = [], [], 0, min(2 * maximum, full())
        lines.append(encoded)
        chunk.append(action)
        size += added
    if chunk:
        yield lines, chunk


def larger_than_accepted(client: Client, size: int) -> str:
    """Why the server would reject a request with one document of so many bytes; empty if it may accept it.

    Smaller requests than those with many documents can have are sent without a question.
    """
    if size <= MAX_BYTES or size <= (limit := request_limit(client)):
        return ""
    return f"larger than the {limit:,} bytes that the server accepts in a request (http.max_content_length)"


def _encode(action: Action) -> bytes:
    """The two lines of an action; a deletion has only one."""
    meta: dict[str, Any] = {"_index": action.index, "_id": action.id}
    if action.routing is not None:
        meta["routing"] = action.routing
    if action.version is not None:
        meta["version"], meta["version_type"] = action.version, "external_gte"
    elif action.seq_no is not None:
        meta["if_seq_no"], meta["if_primary_term"] = action.seq_no, action.primary_term
    if action.pipeline is not None:
        meta["pipeline"] = action.pipeline
    head = {action.op: meta}
    if action.op == "delete":
        return to_json(head) + b"\n"
    if action.whole:
        return b"%b\n%b\n" % (to_json(head), document_json(action.body))
    if action.op == "update":  # these bodies have no NaN, which orjson would write as null
        with suppress(orjson.JSONEncodeError):  # a lone surrogate in an id, say
            return b"%b\n%b\n" % (orjson.dumps(head), orjson.dumps(action.body))
    return b"%b\n%b\n" % (to_json(head), to_json(action.body))


def _fitting(client: Client, lines: Sequence[bytes], actions: Sequence[Action], versions: bool) -> list[Outcome]:
    """One bulk request, or several if the server, or a gateway in front of it, accepts only smaller ones. An action
    that it rejects alone is an outcome."""
    outcomes: list[Outcome | None] = [None] * len(actions)
    if len(actions) == 1 and (why := larger_than_accepted(client, len(lines[0]))):
        return [Outcome(actions[0], _TOO_LARGE, TOO_LARGE, f"document {actions[0].id!r} is {why}")]
    try:
        _send(client, lines, actions, versions, outcomes)
    except RequestError as error:
        left = [k for k, outcome in enumerate(outcomes) if outcome is None or _rejected(outcome)]
        first, half = left[0], len(left) // 2
        unavailable = any(outcome is not None and outcome.status == _UNAVAILABLE for outcome in outcomes)
        if unavailable or not _because_of_content(client, error, actions[first]):
            raise
        if len(left) == 1:
            outcomes[first] = outcomes[first] or _too_large(actions[first], len(lines[first]), error)
        else:
            for part in (left[:half], left[half:]):
                found = _fitting(client, [lines[k] for k in part], [actions[k] for k in part], versions)
                for k, outcome in zip(part, found, strict=True):
                    outcomes[k] = outcome
    return [outcome for outcome in outcomes if outcome is not None]


def _because_of_content(client: Client, error: RequestError, action: Action) -> bool:
    """Whether a request was rejected because of its content, not because the server is overloaded or unavailable."""
    if isinstance(error, Blocked):
        return False
    return error.status == _TOO_LARGE or (error.status == _OVERLOADED and _accepts(client, action))


def _too_large(action: Action, size: int, error: RequestError) -> Outcome:
    reason = error.reason or f"document {action.id!r}: a request of {size:,} bytes is larger than the server allows"
    return Outcome(action, error.status, error.type or TOO_LARGE, reason)


def _accepts(client: Client, action: Action) -> bool:
    """Whether the shard of this action accepts a write that changes nothing: an update of a document that does not
    exist. A server that is overloaded rejects it like any other write."""
    head = {"update": {"_index": action.index, "_id": uuid4().hex, "routing": action.routing or action.id}}
    try:
        answer = client.bulk(to_json(head) + b'\n{"doc":{}}\n', params={"filter_path": _FILTER})
    except RequestError as error:
        if error.status in _REJECTED:
            return False
        raise
    ((result,),) = (item.values() for item in _items(client, answer, 1))
    return bool(result["status"] == _MISSING)


def _send(
    client: Client,
    lines: Sequence[bytes],
    actions: Sequence[Action],
    versions: bool,
    outcomes: list[Outcome | None],
) -> None:
    """One bulk request, repeated for the items that the server rejected. Puts the outcomes of all items that were
    answered into ``outcomes``, even if an error is raised."""
    waiting = list(range(len(actions)))
    lost = 0
    filter_path = _FILTER
    if versions or any(action.version is not None for action in actions):
        filter_path += _VERSIONS + _RESULTS * any(action.op in _WHOLE for action in actions)

    def once() -> None:
        nonlocal waiting, lost
        unchanged = _Unchanged(client, [actions[k] for k in waiting if actions[k].version is not None])
        body = b"".join(lines[k] for k in waiting)
        try:
            with client.pace.turn(len(waiting)):
                answer = client.bulk(body, params={"filter_path": filter_path}, before=unchanged)
        except _Changed as changed:
            lost += unchanged.sent
            for k in waiting:
                if (status := changed.statuses.get(actions[k].address)) is not None:
                    outcomes[k] = Outcome(actions[k], status, repeated=lost > 0)
            if waiting := [k for k in waiting if actions[k].address not in changed.statuses]:
                once()
            return
        items = _items(client, answer, len(waiting))
        lost += answer.get("sent", 1) - 1
        for k, item in zip(waiting, items, strict=True):
            outcome = _outcome(actions[k], item, repeated=lost > 0)
            is_back = actions[k].version is not None and outcome.status == _CREATED
            outcomes[k] = _deleted_again(client, outcome) if is_back else outcome
        waiting = [k for k in waiting if _rejected(outcomes[k])]
        if waiting:
            client.pace.rejected()
            log_event(logging.WARNING, "items_refused", items=len(waiting), of=len(actions))
            raise _ItemsRejected
        client.pace.accepted()

    with_retries(once, PART_RETRIES, lambda error: isinstance(error, _ItemsRejected))


class _Unchanged:
    """Called directly before a request is sent: reads the documents whose owner sets their versions, and raises
    `_Changed` if some are not as they were read for the write."""

    def __init__(self, client: Client, actions: Sequence[Action]) -> None:
        self._client, self._actions = client, actions
        self.sent = 0
        """How often the request was sent."""

    def __call__(self) -> None:
        if self._actions:
            started = time.monotonic()
            found = fetch(self._client, [action.reference for action in self._actions], False)
            statuses = {
                action.address: _MISSING if hit is None else _CONFLICT
                for action, hit in zip(self._actions, found, strict=True)
                if hit is None or (hit.seq_no, hit.primary_term) != (action.seq_no, action.primary_term)
            }
            if time.monotonic() > started + _FRESH:
                raise _ItemsRejected
            if statuses:
                raise _Changed(statuses)
        self.sent += 1


class _Changed(Exception):
    def __init__(self, statuses: Mapping[Address, int]) -> None:
        super().__init__()
        self.statuses = statuses
        """Documents that were changed or deleted, each with the status of its write."""


def _deleted_again(client: Client, created: Outcome) -> Outcome:
    """The outcome of a write that has brought back a document, which its owner had deleted while the request waited in
    the server for longer than it remembers deletions. It is deleted, unless its owner has written it since."""
    action = created.action
    params: Params = {"if_seq_no": created.seq_no or 0, "if_primary_term": created.primary_term or 0}
    if action.routing is not None:
        params = {**params, "routing": action.routing}
    with suppress(Conflict, NotFound):
        client.request("DELETE", path(action.index, "_doc", action.id), params=params)
    return Outcome(action, _MISSING)


def _items(client: Client, answer: Any, number: int) -> list[dict[str, Any]]:
    """The item of the answer for each action. Raises `IncompleteAnswer`."""
    items: list[dict[str, Any]] = answer.get("items", []) if isinstance(answer, dict) else []
    if len(items) != number:
        raise IncompleteAnswer(
            f"{client.url} answered {len(items)} of {counted(number, 'write')}: the outcome of the others is unknown. "
            "Run the same command again: it continues where it stopped."
        )
    return items


class _ItemsRejected(RequestError):
    def __init__(self) -> None:
        super().__init__(
            "The server keeps rejecting writes because it is overloaded. Run the same command again later, "
            f"with fewer {option('workers')}: it continues where it stopped.",
            status=429,
        )


def _rejected(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.status in _REJECTED


def _outcome(action: Action, item: dict[str, Any], *, repeated: bool) -> Outcome:
    """Read one item of the answer. Raises the errors that end a run."""
    (result,) = item.values()
    error = result.get("error", {})
    version = result.get("_seq_no"), result.get("_primary_term")
    answer = result["status"], error.get("type", ""), error.get("reason", "")
    dropped = action.op in _WHOLE and result.get("result") == "noop"
    outcome = Outcome(action, *answer, repeated, *version, dropped)
    if outcome.type == "cluster_block_exception" and outcome.status != _NO_MASTER:
        raise Blocked(
            f"Index {action.index} is blocked for writing ({outcome.reason}). Remove the block "
            f"(`{command('doctor', action.index)}` shows how), then run the same command again: it continues where "
            f"it stopped.",
            status=outcome.status,
            type=outcome.type,
            reason=outcome.reason,
        )
    if outcome.type == "security_exception":
        raise Forbidden(
            f"This user may not write to index {action.index} ({outcome.reason}). Ask an administrator to grant the "
            f"privilege `{'delete' if action.op == 'delete' else 'index'}` on it, for all documents and fields.",
            status=outcome.status,
            type=outcome.type,
            reason=outcome.reason,
        )
    return outcome


_MAX_REASONS = 5
_COUNTED = {"refused": "refused", "failed": "failed", "conflict": "conflicts"}
"""Kind of a failure -> the count of such documents."""


class BulkCounts:
    """Counts of outcomes by kind, the reasons of rejections, and the documents that were left."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """``written``, and of these ``whole``; ``deleted``, ``refused``, ``failed``, ``conflicts``, and further counts
        of the caller."""
        self.failures: tuple[str, ...] = ()
        """Reasons why documents ``failed``."""
        self.left = Failures()
        """The documents that were ``refused`` or ``failed``, and ``conflicts``."""
        self._reasons: Counter[str] = Counter()

    def add(self, outcome: Outcome, index: str | None = None) -> None:
        """Count an outcome. Callers handle conflicts. ``index``: that of the document, if its keys are in another
        one."""
        if outcome.done:
            self.counts["written"] += 1
            self.counts["whole"] += outcome.action.whole
        elif outcome.gone:
            self.counts["deleted"] += 1
        else:
            self.leave(Failure.refused(outcome, index))

    def leave(self, failure: Failure) -> None:
        """Count a document that is left, by the kind of its failure."""
        self.counts[_COUNTED[failure.kind]] += 1
        self.left.add(failure)
        if failure.kind == "refused":
            self._reasons[failure.reason] += 1

    def add_failed(self, documents: Iterable[Failure], reasons: Iterable[str]) -> None:
        """Count documents for which no action was sent as ``failed``, with some of the reasons."""
        for failure in documents:
            self.leave(failure)
        self.failures = (*self.failures, *reasons)[:_MAX_REASONS]

    def add_conflicts(self, documents: Iterable[Reference], reason: str = KEPT_CHANGING) -> None:
        """Count documents that were given up, because another client changed them, as ``conflicts``."""
        for reference in documents:
            self.leave(Failure.conflict(reference, reason))

    def add_all(self, other: BulkCounts) -> None:
        """Add the counts of another part of the work."""
        self.counts.update(other.counts)
        self.failures = (*self.failures, *other.failures)[:_MAX_REASONS]
        self.left.extend(other.left)
        self._reasons.update(other._reasons)

    @property
    def refusals(self) -> tuple[str, ...]:
        """The most frequent reasons, as the server gave them."""
        return tuple(reason for reason, _ in self._reasons.most_common(_MAX_REASONS))
