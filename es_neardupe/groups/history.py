"""History of groups: the registry's entries after a run, from those before it and the groups that it found. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from es_neardupe.groups.registry import GroupEvent, GroupRecord

__all__ = ["GroupHistoryUpdate"]


@dataclass(frozen=True)
class GroupHistoryUpdate:
    """One run's change of groups.

    ``before`` are the entries of all ids that the documents bear or get. ``wanted`` are the groups of two or more
    documents, with no history; ``bearers`` says of each wanted id (also of documents that are alone) how many of its
    documents bear which id now.
    """

    before: Mapping[str, GroupRecord]
    wanted: Mapping[str, GroupRecord]
    bearers: Mapping[str, Counter[str]]
    at: str

    def entries(self) -> list[GroupRecord]:
        """The entries to write, of known groups, of new ones, and of those that ended; none that is there already.

        Written in this order as far as it goes, and asked again, the rest comes out: an event is told once.
        """
        known = [self._kept(id) for id in self.wanted if id in self._living]
        new = [self._founded(id) for id in self.wanted if id not in self._living]
        ended = [self._ended(id) for id in sorted(self._living - self.wanted.keys())]
        return [
            one
            for one in (*known, *new, *ended)
            if one.group not in self.before or not one.same(self.before[one.group])
        ]

    @cached_property
    def _living(self) -> set[str]:
        return {id for id, entry in self.before.items() if entry.ended is None}

    @cached_property
    def _into(self) -> dict[str, str]:
        """Where most bearers of each living id are now (ties: the least id)."""
        maximum: dict[str, tuple[int, str]] = {}
        for id in sorted(self.bearers):
            for stored, number in self.bearers[id].items():
                if stored in self._living and number > maximum.get(stored, (0, ""))[0]:
                    maximum[stored] = (number, id)
        return {stored: id for stored, (_, id) in maximum.items()}

    @cached_property
    def _parts(self) -> dict[str, list[str]]:
        """The new groups that came out of each group that lives on."""
        parts = defaultdict(list)
        for id in sorted(self.wanted.keys() - self._living):
            for stored in self._others(id):
                if stored in self.wanted:
                    parts[stored].append(id)
        return parts

    def _others(self, id: str) -> list[str]:
        """The other living groups that documents of this one come from."""
        return sorted(stored for stored in self.bearers[id] if stored != id and stored in self._living)

    def _merged(self, id: str) -> Iterator[GroupEvent]:
        for stored in self._others(id):
            if stored not in self.wanted and self._into[stored] == id:
                yield GroupEvent(self.at, "merged with", stored)

    def _kept(self, id: str) -> GroupRecord:
        before = self.before[id]
        events = [*self._merged(id), *(GroupEvent(self.at, "split into", part) for part in self._parts.get(id, ()))]
        new = (event for event in events if not self._told(before, event))
        return replace(self.wanted[id], created=before.created, updated=self.at, history=(*before.history, *new))

    def _founded(self, id: str) -> GroupRecord:
        """A new group, or one that comes back."""
        before = self.before.get(id)
        origins = [GroupEvent(self.at, "split from", stored) for stored in self._others(id) if stored in self.wanted]
        events = (*(origins or [GroupEvent(self.at, "founded")]), *self._merged(id))
        history = before.history if before else ()
        created = before.created if before else self.at
        return replace(self.wanted[id], created=created, updated=self.at, history=(*history, *events))

    def _ended(self, id: str) -> GroupRecord:
        into = self._into.get(id)
        event = GroupEvent(self.at, "merged into", into) if into in self.wanted else GroupEvent(self.at, "dissolved")
        before = self.before[id]
        return replace(before, updated=self.at, ended=self.at, history=(*before.history, event))

    def _told(self, before: GroupRecord, event: GroupEvent) -> bool:
        """Whether a run that was killed before it wrote the other group has told this already."""
        other = self.before.get(event.group or "")
        return any(
            (one.event, one.group) == (event.event, event.group) and (other is None or other.updated <= one.at)
            for one in before.history
        )
