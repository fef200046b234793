"""Change feed: the documents of an index that were written since they were last processed, whoever wrote them.

Each shard of an index numbers its writes, and a document has the number of its last write (``_seq_no``). A run stores
which numbers it has processed; the next one reads the documents with other numbers. Two kinds of writes are stored:

- all up to the *global checkpoint* of the shard when the run began. Writes beyond it may not have reached every copy,
  so after a failover another write can get the same number. The checkpoints are read first, then the index is
  refreshed, then it is searched: so a search finds every write up to them.
- the run's own writes: the server answers each with its number. A document has the same shard for all its writes, so
  the shard is known from reading it. Writes of others in between are not stored, and so the next run finds them.

A deletion has a number too, and so has a write that replaces a whole document, which leaves its group then. ``enrich``
also stores the numbers of writes that have done neither: its own, those of new documents, and those that have changed a
text, but not the group id. If these are all, no group has lost a document.

What was processed stays processed as long as the history of a shard is the same. So runs at the same time only add to
what the others have stored.
"""

from __future__ import annotations

import json
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple

from es_neardupe.errors import Conflict, IncompleteAnswer, NameTaken, RequestError
from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore, StoredDocument
from es_neardupe.index.storage.seq_nos import SeqNos
from es_neardupe.index.target import check_same_settings
from es_neardupe.records import Action, Hit, Outcome
from es_neardupe.server.client import JSON, Params, path, to_json
from es_neardupe.server.responses import lacking
from es_neardupe.server.search import refresh, search
from es_neardupe.stored_json import StoredJson

_MAX_RANGES = 64
"""Maximum number of ranges that are stored per shard. Documents with numbers of dropped ranges are read again."""

_MAX_CLAUSES = 500
"""Maximum number of ranges in a query. If there are more, they are merged, and more documents are read."""

_SAVE_EVERY = 60.0
"""Seconds after which a run stores its own writes, so that a killed run reads few of them again."""

_TRIES = 10
"""Maximum number of attempts to store the progress while other runs store theirs."""


class Consumer(str, Enum):
    """What is processed; the progress of each is stored separately."""

    TEXTS = "texts"
    """Fingerprints of texts, by ``enrich``."""
    GROUPS = "groups"
    """Groups of fingerprints, by ``group``."""


_Shard = tuple[str, int]
"""Concrete index and number of a shard."""


class FeedNotes(NamedTuple):
    """Numbers of writes by shard, noted by a process: 8 bytes each."""

    done: Mapping[_Shard, array[int]]
    left: Mapping[_Shard, array[int]]
    kept: Mapping[_Shard, array[int]]


class _ShardState(NamedTuple):
    """State of a primary shard."""

    history: str
    """Id of the history of its writes. It changes when a snapshot is restored, and when a copy is chosen that lacks
    writes: then a number can be that of another write than before."""
    checkpoint: int
    """The global checkpoint: every copy has all writes up to this number. -1 for an empty shard. After a failover it
    can be lower for a moment."""
    last: int
    """The greatest number of a write."""


ShardStates = Mapping[str, list[_ShardState]]
"""Concrete index -> the states of its shards."""


class ChangeFeed:
    """The documents that a consumer has not processed, and the progress of one run of it.

    Open it before anything is searched: it reads the checkpoints and then refreshes the index. Raises
    `IncompleteAnswer` while shards are missing.
    """

    def __init__(
        self, index: IndexHandle, consumer: Consumer, *, stores: bool = True, opened_with: ChangeFeed | None = None
    ) -> None:
        """``index``: an opened index. ``stores``: false for a dry run, which stores no progress. ``opened_with``: the
        feed of another consumer in the same run; nothing is read again."""
        self._index = index
        self._progress: _StoredProgress = _StoredProgress(index) if opened_with is None else opened_with._progress
        self._stores = stores
        self._consumer = consumer
        self._done: dict[_Shard, array[int]] = defaultdict(lambda: array("q"))
        self._left: dict[_Shard, array[int]] = defaultdict(lambda: array("q"))
        self._kept: dict[_Shard, array[int]] = defaultdict(lambda: array("q"))
        self._written: dict[_Shard, tuple[int, int]] = {}
        """First and last number of a shard's writes, of a run that does not note single ones."""
        self._saved = time.monotonic()
        self._states: ShardStates = {}
        self._processed: dict[_Shard, SeqNos] = {}
        self._kept_before: dict[_Shard, SeqNos] = {}
        self.reason: str | None = None
        """Why changes cannot be noticed, or progress cannot be stored; None without an obstacle."""
        self.unknown: dict[str, str] = {}
        """Concrete index -> why its changes before this run are unknown; later ones are noticed."""
        if opened_with is None:
            try:
                self._states = _shard_states(index)
                self._progress.read()
            except (RequestError, NameTaken) as error:
                self.reason = _words(error)
            refresh(index.client, index.path)
        else:
            self._states, self.reason = opened_with._states, opened_with.reason
        found = self._progress.stored.get(index.scheme_id, {})
        for name, states in self._states.items() if self.reason is None else ():
            uuid = index.target.uuids[name]
            shards = found.get(consumer, {}).get(uuid)
            if (why := _why_unknown(shards, states)) is not None:
                self.unknown[name] = why
            for shard, one in (shards or {}).items() if why is None else ():
                self._processed[name, shard] = SeqNos(one.ranges)
            for shard, one in found.get(Consumer.TEXTS, {}).get(uuid, {}).items():
                if shard < len(states) and one.history == states[shard].history:
                    self._kept_before[name, shard] = SeqNos(one.kept)
        self._superseded: Set[str] = set(self.unknown)
        """Indices of which nothing that is stored is used."""

    @property
    def shards(self) -> Sequence[int | None]:
        """The numbers of shards to read one after the other: in each index, the shard with this number. Only None, all
        shards together, if changes cannot be noticed."""
        return [None] if self.reason is not None else range(max(map(len, self._states.values()), default=0))

    def changed(self, shard: int | None) -> JSON | None:
        """Query for documents in shards with this number that were written up to the checkpoints and are not processed;
        None if there were no such writes. It can match others too. Documents of `unknown` indices do not match."""
        missing = {
            name: self._missing(name, shard)
            for name, states in self._states.items()
            if shard is not None and shard < len(states) and name not in self.unknown
        }
        maximum = max(1, _MAX_CLAUSES // max(1, len(missing)))
        clauses = [
            queries.all_of({"term": {"_index": name}}, _any_of([_within(*pair) for pair in some.fewer(maximum).pairs]))
            for name, some in missing.items()
            if some.pairs
        ]
        return _any_of(clauses) if clauses else None

    def later(self, shard: int | None) -> JSON | None:
        """Query for documents in shards with this number that were written after the checkpoints; None if changes
        cannot be noticed."""
        clauses = [
            queries.all_of({"term": {"_index": name}}, {"range": {"_seq_no": {"gt": states[shard].checkpoint}}})
            for name, states in self._states.items()
            if shard is not None and shard < len(states)
        ]
        return _any_of(clauses) if clauses else None

    def _missing(self, name: str, shard: int) -> SeqNos:
        return self._processed.get((name, shard), SeqNos()).missing(self._states[name][shard].checkpoint)

    def unknown_changes(self) -> dict[str, str]:
        """Concrete index with fingerprints -> why it is unknown which of its documents have changed."""
        index, reason = self._index, self.reason
        unknown = self.unknown if reason is None else dict.fromkeys(index.target.indices, reason)
        if not unknown:
            return {}
        by_index = {"terms": {"field": "_index", "size": len(index.target.indices)}}
        query = queries.fingerprinted(index.fields, index.scheme_id)
        found = search(index.client, index.path, {"size": 0, "query": query, "aggs": {"indices": by_index}})
        names = [bucket["key"] for bucket in found["aggregations"]["indices"]["buckets"]]
        return {name: unknown[name] for name in names if name in unknown}

    @property
    def all_kept(self) -> bool:
        """Whether each write up to the checkpoints that is not processed is known to have taken no document out of its
        group."""
        return self.reason is None and not any(
            (self._missing(name, shard) - self._kept_before.get((name, shard), SeqNos())).pairs
            for name, states in self._states.items()
            for shard in range(len(states))
        )

    def has_processed(self, hit: Hit) -> bool:
        """Whether the version of a document was processed before this run."""
        return (
            hit.shard is not None
            and hit.seq_no is not None
            and (done := self._processed.get((hit.index, hit.shard))) is not None
            and done.has(hit.seq_no)
        )

    def has_changed(self, hit: Hit) -> bool:
        """Whether a document was written since it was last processed; False if this is unknown."""
        known = self.reason is None and hit.shard is not None and hit.index not in self.unknown
        return known and not self.has_processed(hit)

    def note_read(self, hit: Hit) -> None:
        """Note a version of a document that was read, and needs no further processing."""
        self._note(hit.index, hit.shard, hit.seq_no)

    def note_written(self, outcome: Outcome) -> None:
        """Note a write of this run whose result needs no processing: it was made from the version that it replaced."""
        if outcome.done:
            name, shard = outcome.action.index, outcome.action.shard
            self._note(name, shard, outcome.seq_no)
            self._note_kept(name, shard, outcome.seq_no)

    def note_rewritten(self, outcome: Outcome) -> None:
        """Note a write of a run of another consumer, which keeps what this one has processed. It is only noted if the
        version that it replaced was processed, so that no change of others is hidden."""
        action = outcome.action
        if self.has_processed(Hit(action.index, action.id, None, action.seq_no, None, {}, shard=action.shard)):
            self.note_written(outcome)

    def _note(self, name: str, shard: int | None, number: int | None) -> None:
        if shard is not None and number is not None and number >= 0:
            self._done[name, shard].append(number)

    def note_kept(self, hit: Hit) -> None:
        """Note a version of a document that is new, or in the group in which it was before."""
        self._note_kept(hit.index, hit.shard, hit.seq_no)

    def _note_kept(self, name: str, shard: int | None, number: int | None) -> None:
        """(In the first run, nobody asks.)"""
        if shard is not None and number is not None and (name, shard) in self._processed:
            self._kept[name, shard].append(number)

    def leave(self, document: Hit | Action) -> None:
        """Note a document that was read, and must be read again by the next run."""
        if document.shard is not None and document.seq_no is not None:
            self._left[document.index, document.shard].append(document.seq_no)

    @property
    def notes(self) -> FeedNotes:
        """The noted documents, for `add` of another process."""
        return FeedNotes(dict(self._done), dict(self._left), dict(self._kept))

    def add(self, notes: FeedNotes) -> None:
        """Add the documents that another process has noted."""
        each = ((self._done, notes.done), (self._left, notes.left), (self._kept, notes.kept))
        for own, others in each:
            for shard, numbers in others.items():
                own[shard].extend(numbers)

    def states_now(self) -> ShardStates | None:
        """The states of the shards now; None if changes cannot be noticed."""
        return None if self.reason is not None else _shard_states(self._index)

    def others_have_written(self, now: ShardStates | None) -> bool:
        """Whether other clients have written or deleted documents between the opening of the feed and ``now``, or
        perhaps have. For a run that notes nothing but its own writes, and all of them."""
        return now is None or any(
            current.last - state.last != len(self._done[name, shard])
            for name, states in self._states.items()
            for shard, (state, current) in enumerate(zip(states, now[name], strict=True))
        )

    @property
    def never_written(self) -> Set[str]:
        """The concrete indices that no document was ever written to."""
        return {name for name, states in self._states.items() if all(state.last < 0 for state in states)}

    def begin(self, names: Set[str]) -> None:
        """Store that changes of those of these indices that are `unknown` are noticed from now on, even if this run is
        killed: none of their documents so far has a fingerprint that could be out of date."""
        if started := names & self.unknown.keys():
            self._store(started, self._states)

    def store_all_written(self, number: int) -> None:
        """Store the writes of a run that does not know their shards, if there were no others since the feed was opened:
        ``number`` writes in all. Otherwise nothing is stored, and the next run reads the documents that were
        written."""
        if self.reason is not None or not self._stores:
            return
        with suppress(RequestError):
            now = _shard_states(self._index)
            written = {
                (name, shard): (state.last + 1, current.last)
                for name, states in self._states.items()
                for shard, (state, current) in enumerate(zip(states, now[name], strict=False))
            }
            if sum(last + 1 - first for first, last in written.values()) == number:
                self._written = {shard: pair for shard, pair in written.items() if pair[0] <= pair[1]}
                self.store(whole=False, now=now)

    def save(self) -> None:
        """Store the noted documents, if this was not done in the last minute. Does nothing while shards are missing."""
        if time.monotonic() - self._saved >= _SAVE_EVERY:
            with suppress(IncompleteAnswer):
                self._store(set())

    def store(
        self,
        *,
        whole: bool,
        skipped: Set[str] = frozenset(),
        now: ShardStates | None = None,
        also: ChangeFeed | None = None,
    ) -> None:
        """Store the noted documents as processed. ``whole``: all documents that `changed` matches were processed too,
        except those that were left, and in `unknown` indices all documents, except in ``skipped`` ones. ``now``: the
        states of the shards after the writes of the run, if they are known. ``also``: a feed that was opened with this
        one, whose noted documents are stored too. Sets `reason` if this is not possible. Does nothing while shards are
        missing: the next run reads the documents again. Raises `Conflict` if the settings of the index were removed or
        replaced since it was opened."""
        with suppress(IncompleteAnswer):
            self._store(set(self._states) - skipped if whole else set(), now, also)

    def _store(
        self, up_to_checkpoint: Set[str], now: ShardStates | None = None, also: ChangeFeed | None = None
    ) -> None:
        """Add the noted documents to what is stored, and all documents up to the checkpoints of some indices."""
        if self.reason is not None or not self._stores or self._is_stored(up_to_checkpoint):
            return
        check_same_settings(self._index.server, self._index.target)  # other settings may have the same scheme
        try:
            states = now or _shard_states(self._index)

            def added(before: _AllProgress) -> _AllProgress:
                value = self._value(before, states, up_to_checkpoint)
                return value if also is None else also._value(value, states, set())

            if self._progress.write(added):
                self._superseded -= up_to_checkpoint
                self._saved = time.monotonic()
            else:
                self.reason = f"other runs kept writing document {_FEED} of index {self._progress.name}"
        except (RequestError, NameTaken) as error:
            self.reason = _words(error)

    def _is_stored(self, up_to_checkpoint: Set[str]) -> bool:
        """Whether the run has noted nothing, and all documents up to the checkpoints of some indices were processed
        before it."""
        noted = any(chain(self._done.values(), self._left.values(), self._kept.values(), self._written))
        before = self._progress.stored
        return not noted and self._value(before, self._states, up_to_checkpoint) == before

    def _value(self, before: _AllProgress, now: ShardStates, whole: Set[str]) -> _AllProgress:
        """What is stored, with the progress of this run: the noted documents, and all up to the checkpoints of the
        ``whole`` indices. Noted documents beyond the checkpoints of ``now`` are left to the next run."""
        stored = before.get(self._index.scheme_id, {})
        known, processed = stored.get(self._consumer, {}), _Stored()
        for name, uuid in self._index.target.uuids.items():
            shards = {} if name in self._superseded else known.get(uuid, {})
            if not shards and name not in whole:
                continue  # it is unknown what was processed before
            processed[uuid] = {}
            for shard, (state, current) in enumerate(zip(self._states[name], now[name], strict=False)):
                if state.history != current.history:
                    continue  # restored during this run
                done = SeqNos.of(self._done[name, shard])
                if (name, shard) in self._written:
                    done |= SeqNos([self._written[name, shard]])
                done = done.up_to(current.checkpoint)
                kept = SeqNos.of(self._kept[name, shard]).up_to(current.checkpoint)
                if shard in shards and shards[shard].history == state.history:
                    done |= SeqNos(shards[shard].ranges)
                    kept |= SeqNos(shards[shard].kept)
                if name in whole:
                    done |= SeqNos([(0, state.checkpoint)]) - SeqNos.of(self._left[name, shard])
                processed[uuid][shard] = _Progress(
                    state.history, done.longest(_MAX_RANGES).pairs, kept.latest(_MAX_RANGES).pairs
                )
        return {self._index.scheme_id: {**stored, self._consumer: processed}}


def _why_unknown(stored: Mapping[int, _Progress] | None, states: Sequence[_ShardState]) -> str | None:
    """Why the changes of an index since its progress was stored are unknown; None if they are known."""
    if stored is None:
        return "it was not processed before"
    if stored.keys() != set(range(len(states))):
        return "its stored progress is incomplete"
    ranges = ((SeqNos(one.ranges), one.history, states[shard]) for shard, one in stored.items())
    if any(history != state.history or done.last > state.last for done, history, state in ranges):
        return "it was restored to an earlier state"
    return None


def _words(error: Exception) -> str:
    """The reason of an error, for a message."""
    reason = getattr(error, "reason", "")
    return (lacking(reason) or reason or str(error)).rstrip(".")


def _any_of(clauses: Sequence[JSON]) -> JSON:
    return {"bool": {"should": list(clauses), "minimum_should_match": 1}}


def _within(first: int, last: int) -> JSON:
    return {"range": {"_seq_no": {"gte": first, "lte": last}}}


_STATS: Params = {
    "level": "shards",
    "filter_path": "timed_out,_shards,"
    + ",".join(f"indices.*.shards.*.{one}" for one in ("routing.primary", "seq_no", "commit.user_data.history_uuid")),
}


def _shard_states(index: IndexHandle) -> ShardStates:
    """The states of the shards of an index, as their primaries know them.

    Raises `RequestError` if the server does not report them.
    """
    try:
        indices = index.client.request("GET", path(index.path, "_stats"), params=_STATS).get("indices", {})
    except RequestError as error:
        if (server := index.client.server).is_serverless:
            reason = f"{server} does not report sequence numbers"
            raise RequestError(f"{reason}.", status=error.status, reason=reason) from error
        raise
    found: dict[str, list[_ShardState]] = {}
    for name, state in index.target.states.items():
        shards = indices.get(name, {}).get("shards", {})
        if not state.sequence_numbers:
            raise RequestError(f"sequence numbers of index {name} are disabled", status=200)
        primaries = {int(shard): one for shard, copies in shards.items() for one in copies if one["routing"]["primary"]}
        try:
            found[name] = [_state(primaries[shard]) for shard in range(state.shards)]
        except KeyError:
            raise RequestError(f"the server does not report the sequence numbers of index {name}", status=200) from None
    return found


def _state(copy: Mapping[str, Any]) -> _ShardState:
    numbers = copy["seq_no"]
    history = copy["commit"]["user_data"]["history_uuid"]
    return _ShardState(history, numbers["global_checkpoint"], numbers["max_seq_no"])


_FEED = "feed"
"""Id of the document in the registry."""


@dataclass(frozen=True)
class _Progress:
    """What was processed of a shard."""

    history: str
    ranges: list[tuple[int, int]]
    """Ranges of sequence numbers."""
    kept: list[tuple[int, int]]
    """Ranges of numbers of writes that took no document out of its group, the last ones of them."""

    def __post_init__(self) -> None:
        """Raises `ValueError` for ranges that no run stores."""
        if not all(0 <= first <= last < 2**62 for first, last in (*self.ranges, *self.kept)):
            raise ValueError("no ranges of sequence numbers")


_Stored = dict[str, dict[int, _Progress]]
"""Uuid of an index -> number of a shard -> progress."""

_AllProgress = dict[str, dict[Consumer, _Stored]]
"""By scheme, and by consumer."""

_FORM: StoredJson[_AllProgress] = StoredJson(_AllProgress)


class _StoredProgress:
    """The document in the registry with the progress of all consumers."""

    def __init__(self, index: IndexHandle) -> None:
        self._registry = HiddenStore(index, HiddenIndex.GROUPS)
        self.name = self._registry.name
        self._document: StoredDocument | None = None
        """As it was read or written last."""

    def read(self) -> None:
        """Read what is stored now. Raises `NameTaken` if another index has the name of the registry."""
        self._document = self._registry.read(_FEED) if self._registry.exists() else None

    @property
    def stored(self) -> _AllProgress:
        """What was stored; nothing if it cannot be read: then progress begins anew."""
        try:
            return {} if self._document is None else _FORM.read(self._document.source.get("value"))
        except ValueError:
            return {}

    def write(self, added: Callable[[_AllProgress], _AllProgress]) -> bool:
        """Replace what is stored by ``added`` of it; False if other runs keep writing it."""
        self._registry.create()
        for _ in range(_TRIES):
            value = json.loads(to_json(_FORM.written(added(self.stored))))
            with suppress(Conflict):  # another run has stored something since it was read
                self._document = self._registry.put(_FEED, {"kind": "feed", "value": value}, self._document)
                return True
            self.read()
        return False
