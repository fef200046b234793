"""Records that `load` skips, because their documents match others of the same run, until these are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from es_neardupe.incoming.matches import MatchedAction, ScreenReport
from es_neardupe.readers.files import FileRecord

_MAX_BYTES = 64_000_000
"""Size of the records that are kept in memory, of each kind: those that wait, and those to look at again."""
_OTHER_MATCH = 250
"""Approximate size of one of the other matches of a document."""


class _Skipped(NamedTuple):
    record: FileRecord
    matched: MatchedAction

    @property
    def size(self) -> int:
        return self.record.size + _OTHER_MATCH * len(self.matched.match.others)


class SkippedRecords:
    """A record is skipped once a document that it matches is in the index. It waits while the documents that it matches
    are being sent; if none of them is written, it is compared again."""

    def __init__(self, report: ScreenReport) -> None:
        """``report``: receives each match, that of a skipped record once the record no longer waits."""
        self._given = report
        self.report = ScreenReport(self._note)
        """The report for the comparison of the records."""
        self.report.counts = report.counts
        self.again: list[FileRecord] = []
        """Records to look at again."""
        self.left: list[FileRecord] = []
        """Records to look at again that are too many to be kept, without their documents."""
        self._matched: dict[str, MatchedAction] = {}
        self._sending: set[str] = set()
        self._not_written: set[str] = set()
        self._waiting: dict[str, list[_Skipped]] = {}
        self._waiting_bytes = self._again_bytes = 0

    @property
    def full(self) -> bool:
        """Whether so many records wait that what they wait for should be sent."""
        return self._waiting_bytes > _MAX_BYTES

    def _note(self, matched: MatchedAction) -> None:
        if matched.done == "skipped":
            self._matched[matched.id] = matched
        else:
            self._given.note(matched)

    def send(self, ids: Iterable[str]) -> None:
        """Note new documents, or new versions of documents, that are about to be sent."""
        self._sending.update(ids)

    def skip(self, record: FileRecord) -> None:
        """Note a record whose comparison was just reported, and which is not sent."""
        self._place(_Skipped(record, self._matched.pop(str(record.id))))

    def settle(self, id: str, *, written: bool) -> None:
        """Note the outcome of a document that was sent."""
        self._sending.discard(id)
        if not written:
            self._not_written.add(id)
        for one in self._waiting.pop(id, ()):
            self._waiting_bytes -= one.size
            self._place(one)

    def take(self) -> list[FileRecord]:
        """The records to look at again, which are forgotten here."""
        taken, self.again, self._again_bytes = self.again, [], 0
        self._not_written.clear()
        return taken

    def _place(self, one: _Skipped) -> None:
        match = one.matched.match
        ids = [match.id, *(other.id for other in match.others)]
        if any(id not in self._sending and id not in self._not_written for id in ids):
            self._given.note(one.matched)
            return
        if (sending := next((id for id in ids if id in self._sending), None)) is not None:
            self._waiting.setdefault(sending, []).append(one)
            self._waiting_bytes += one.size
            return
        self.report.counts.take_back(one.matched)
        if self._again_bytes > _MAX_BYTES:
            self.left.append(replace(one.record, source={}))
        else:
            self.again.append(one.record)
            self._again_bytes += one.size
