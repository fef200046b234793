"""Change feed: the documents of an index that were written since they were last processed, whoever wrote them.

Each shard of an index numbers its writes, and a document has the number of its last write (``_seq_no``). A run notes
which numbers it has processed; the next one reads the documents with other numbers. Two kinds of writes are noted:

- all up to the *global checkpoint* of the shard when the run began. Writes beyond it may not have reached every copy,
  so after a failover another write can get the same number. The checkpoints are read first, then the index is
  refreshed, then it is searched: so a search finds every write up to them.
- the run's own writes: the server answers each with its number. A document has the same shard for all its writes, so
  the shard is known from reading it. Writes of others in between are not noted, and so the next run finds them.

What was processed stays processed as long as the history of the index is the same, so runs at the same time only add to
what the others have noted.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, TypeAdapter, ValidationError

from es_neardupe.errors import Conflict, Forbidden, RequestError
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import HiddenIndex, StoredDocument, ensure, find, read, store
from es_neardupe.records import Hit, Outcome
from es_neardupe.server.client import path, to_json
from es_neardupe.server.search import refresh

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["ChangeFeed", "Consumer", "SeqNos"]

Ranges = NDArray[np.int64]
"""First and last number of each range; shape (n, 2). Ascending, with at least one number between two ranges."""

_MAX_RANGES = 64
"""Maximum number of ranges that are noted per shard. Numbers of dropped ranges are processed again."""

_TRIES = 10
"""Maximum number of attempts to store the progress while other runs store theirs."""


class Consumer(str, Enum):
    """What is processed; each notes its own progress."""

    TEXTS = "texts"
    """Fingerprints of texts, by ``enrich``."""
    GROUPS = "groups"
    """Groups of fingerprints, by ``group``."""


class SeqNos:
    """A set of sequence numbers of one shard, as ranges."""

    def __init__(self, ranges: ArrayLike = ()) -> None:
        """``ranges``: first and last number of each, in any order; they may overlap."""
        self.ranges: Ranges = _merged(np.array(ranges, np.int64).reshape(-1, 2))

    @classmethod
    def of(cls, numbers: Sequence[int]) -> SeqNos:
        """The set of these numbers."""
        column = np.array(numbers, np.int64)
        return cls(np.stack((column, column), axis=1))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The ranges, as first and last number of each."""
        return [(first, last) for first, last in self.ranges.tolist()]

    @property
    def last(self) -> int:
        """The greatest number; -1 for an empty set."""
        return int(self.ranges[-1, 1]) if len(self.ranges) else -1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeqNos) and np.array_equal(self.ranges, other.ranges)

    __hash__ = None  # type: ignore[assignment]  # as for other objects that hold arrays

    def __or__(self, other: SeqNos) -> SeqNos:
        return SeqNos(np.concatenate((self.ranges, other.ranges)))

    def __sub__(self, other: SeqNos) -> SeqNos:
        return (self.missing(self.last) | other).missing(self.last)

    def has(self, number: int) -> bool:
        """Whether a number is in the set."""
        place = int(np.searchsorted(self.ranges[:, 0], number, side="right")) - 1
        return place >= 0 and number <= int(self.ranges[place, 1])

    def up_to(self, last: int) -> SeqNos:
        """The numbers that are not greater than ``last``."""
        kept = self.ranges[self.ranges[:, 0] <= last]
        return SeqNos(np.minimum(kept, last))

    def longest(self, number: int) -> SeqNos:
        """The numbers in the longest ranges, at most this number of ranges."""
        lengths = self.ranges[:, 1] - self.ranges[:, 0]
        return SeqNos(self.ranges[np.argsort(-lengths, kind="stable")[:number]])

    def missing(self, last: int) -> SeqNos:
        """The numbers from 0 to ``last`` that are not in the set."""
        inside = self.up_to(last).ranges
        firsts = np.concatenate(([0], inside[:, 1] + 1))
        lasts = np.concatenate((inside[:, 0] - 1, [last]))
        return SeqNos(np.stack((firsts, lasts), axis=1)[firsts <= lasts])


def _merged(ranges: Ranges) -> Ranges:
    """The same numbers as ascending ranges that neither overlap nor adjoin."""
    if not len(ranges):
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    lasts = np.maximum.accumulate(ranges[:, 1])
    begins = np.concatenate(([True], ranges[1:, 0] > lasts[:-1] + 1))
    ends = np.concatenate((begins[1:], [True]))
    return np.stack((ranges[begins, 0], lasts[ends]), axis=1)


_Shard = tuple[str, int]
"""Concrete index and number of a shard."""


class ChangeFeed:
    """The documents that one consumer has not processed, and what a run of it processes.

    Open it before anything is searched: it reads the checkpoints and then refreshes the index.
    """

    def __init__(self, index: Index, consumer: Consumer) -> None:
        """``index``: an opened index."""
        self._index = index
        self._consumer = consumer
        self._own: dict[_Shard, list[int]] = defaultdict(list)
        self._left: dict[_Shard, list[int]] = defaultdict(list)
        self.reason: str | None = None
        """Why changes cannot be noticed; None if they can."""
        self._checkpoints: dict[str, list[int]] = {}
        self._processed: dict[str, dict[int, SeqNos]] = {}
        try:
            self._checkpoints = _checkpoints(index)
            self._processed = _read(index, consumer)
        except Forbidden as error:
            self.reason = f"this user may not read the sequence numbers ({error.reason or 'forbidden'})"
        except RequestError as error:
            self.reason = f"the sequence numbers cannot be read ({error.reason or error})"
        refresh(index.client, index.path)
        self.unknown: dict[str, str] = {}
        """Concrete index -> why its former changes are unknown; later ones are noticed."""
        if self.reason is None:
            for name, uuid in index.target.uuids.items():
                if (why := self._why_unknown(name, uuid)) is not None:
                    self.unknown[name] = why
                    self._processed.pop(uuid, None)

    def _why_unknown(self, name: str, uuid: str) -> str | None:
        if (before := self._processed.get(uuid)) is None:
            return "not processed before"
        now = self._checkpoints[name]
        if any(shard >= len(now) or done.last > now[shard] for shard, done in before.items()):
            return "restored to an earlier state"
        return None

    @property
    def shards(self) -> range:
        """The numbers of shards to search one after the other: in each index, the shards with this number."""
        return range(max((len(one) for one in self._checkpoints.values()), default=1))

    def changed(self, shard: int) -> queries.JSON | None:
        """Query for the documents in shards with this number that were written up to the checkpoints and not processed;
        None if there were no such writes. Documents of `unknown` indices do not match."""
        clauses = []
        for name, uuid in self._index.target.uuids.items():
            if name in self.unknown or shard >= len(self._checkpoints.get(name, [])):
                continue
            done = self._processed.get(uuid, {}).get(shard, SeqNos())
            missing = done.missing(self._checkpoints[name][shard])
            if missing.pairs:
                ranges = [{"range": {"_seq_no": {"gte": first, "lte": last}}} for first, last in missing.pairs]
                any_range = {"bool": {"should": ranges, "minimum_should_match": 1}}
                clauses.append(queries.all_of({"term": {"_index": name}}, any_range))
        return {"bool": {"should": clauses, "minimum_should_match": 1}} if clauses else None

    def has_processed(self, hit: Hit) -> bool:
        """Whether the version of a document was processed before this run."""
        if hit.shard is None or hit.seq_no is None:
            return False
        done = self._processed.get(self._index.target.uuids.get(hit.index, ""), {}).get(hit.shard)
        return done is not None and done.has(hit.seq_no)

    def note(self, outcome: Outcome) -> None:
        """Note a write of this run, whose result needs no processing."""
        action = outcome.action
        if outcome.done and action.shard is not None and outcome.seq_no is not None:
            self._own[action.index, action.shard].append(outcome.seq_no)

    def leave(self, hit: Hit) -> None:
        """Note a document that was read, and must be read again by the next run."""
        if hit.shard is not None and hit.seq_no is not None:
            self._left[hit.index, hit.shard].append(hit.seq_no)

    def store(self) -> None:
        """Note everything up to the checkpoints, and the own writes, as processed, except what is left to the next run.
        Does nothing if changes cannot be noticed. Raises `RequestError` if the user may not store it."""
        if self.reason is not None:
            return
        name, now = ensure(self._index, HiddenIndex.GROUPS), _checkpoints(self._index)
        for _ in range(_TRIES):
            before = read(self._index.client, name, _FEED)
            with suppress(Conflict):  # another run has noted something in between
                store(self._index.client, name, _FEED, self._document(before, now), before)
                return
        raise Conflict(f"Other runs keep writing document {_FEED} of index {name}: try again.", status=409)

    def _document(self, before: StoredDocument | None, now: Mapping[str, list[int]]) -> queries.JSON:
        """The document to store. Own writes beyond the checkpoints of ``now`` are left to the next run."""
        noted, scheme = _noted(before), self._index.scheme_id
        consumers = {consumer: dict(noted.get(scheme, {}).get(consumer, {})) for consumer in Consumer}
        processed: _Noted = {}
        for name, uuid in self._index.target.uuids.items():
            known = {} if name in self.unknown else consumers[self._consumer].get(uuid, {})
            shards = processed.setdefault(uuid, {})
            for shard, checkpoint in enumerate(self._checkpoints[name]):
                own = SeqNos.of(self._own[name, shard]).up_to(now[name][shard])
                done = SeqNos([(0, checkpoint)]) | SeqNos(known.get(shard, ())) | own
                left = done - SeqNos.of(self._left[name, shard])
                shards[shard] = left.longest(_MAX_RANGES).pairs
        consumers[self._consumer] = processed
        value = {scheme: {consumer.value: some for consumer, some in consumers.items()}}
        return {"kind": "feed", "value": json.loads(to_json(value))}


_FEED = "feed"
"""Id of the document in the registry."""

_FILTER = "timed_out,_shards,indices.*.shards.*.routing.primary,indices.*.shards.*.seq_no.global_checkpoint"


def _checkpoints(index: Index) -> dict[str, list[int]]:
    """Concrete index -> the global checkpoint of each of its shards, as its primary knows it; -1 for an empty shard.

    Raises `RequestError` if sequence numbers cannot be read.
    """
    answer = index.client.request(
        "GET", path(index.path, "_stats"), params={"level": "shards", "filter_path": _FILTER, "expand_wildcards": "all"}
    )
    found: dict[str, list[int]] = {}
    for name in index.target.uuids:
        shards = answer.get("indices", {}).get(name, {}).get("shards", {})
        numbers: dict[int, int] = {
            int(shard): copy["seq_no"]["global_checkpoint"]
            for shard, copies in shards.items()
            for copy in copies
            if copy.get("routing", {}).get("primary") and "global_checkpoint" in copy.get("seq_no", {})
        }
        if not numbers or sorted(numbers) != list(range(len(numbers))):
            raise RequestError(f"the statistics of index {name} lack the checkpoints of a primary shard", status=200)
        found[name] = [numbers[shard] for shard in range(len(numbers))]
    return found


_Noted = dict[str, dict[Annotated[int, Field(ge=0)], list[tuple[int, int]]]]
"""Uuid of an index -> number of a shard -> ranges of processed sequence numbers."""

_NOTED: TypeAdapter[dict[str, dict[Consumer, _Noted]]] = TypeAdapter(dict[str, dict[Consumer, _Noted]])
"""By scheme, and by consumer."""


def _noted(stored: StoredDocument | None) -> dict[str, dict[Consumer, _Noted]]:
    """What was noted; nothing if it cannot be read: then everything is noted anew."""
    try:
        return _NOTED.validate_python({} if stored is None else stored.source.get("value"))
    except ValidationError:
        return {}


def _read(index: Index, consumer: Consumer) -> dict[str, dict[int, SeqNos]]:
    """What was noted for a consumer: uuid of an index -> number of a shard -> what was processed there."""
    name = find(index, HiddenIndex.GROUPS)
    stored = None if name is None else read(index.client, name, _FEED)
    noted = _noted(stored).get(index.scheme_id, {}).get(consumer, {})
    return {uuid: {shard: SeqNos(ranges) for shard, ranges in shards.items()} for uuid, shards in noted.items()}
