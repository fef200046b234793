"""The registry: what is known of each group beyond its documents, in a hidden index beside the user's.

It is told before the documents are: a run that is killed finds on its return what it wanted to write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.errors import RequestError, SettingsError
from es_neardupe.groups.rules import RunRules, decode_rules, encode_rules
from es_neardupe.index.hidden_indices import HiddenIndex, StoredDocument, ensure, exists, hidden_index_name, read, store
from es_neardupe.index.index import Index
from es_neardupe.index.queries import MAX_TERMS
from es_neardupe.records import Action, Address, one_line
from es_neardupe.server.bulk import chunked, write
from es_neardupe.server.fetch import fetch
from es_neardupe.server.search import refresh, refresh_if_allowed, search
from es_neardupe.verification.criterion import MatchOptions

__all__ = ["GroupEvent", "GroupRecord", "LastRun", "Registry", "Totals", "remembered"]

_RUN = "run"


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """A turn in the life of a group."""

    at: str
    event: str
    """``founded``, ``merged with``, ``merged into``, ``split from``, ``split into`` or ``dissolved``."""
    group: str | None = None
    """The other group."""


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group as the registry has it. Figures are those of the last run that touched it."""

    group: str
    created: str
    updated: str
    ended: str | None
    size: int
    """Documents."""
    texts: int
    """Distinct texts among them."""
    principal: Address
    min_similarity: float
    """The least similarity to the principal."""
    mean_similarity: float
    """Of the other members, to the principal."""
    pairs_below: int
    """Pairs of members that are below the threshold among themselves."""
    pairs_not_compared: int
    """Pairs of members that nobody compared, because the group is too large for it."""
    diameter: int | None
    """With linkage chain: the most steps between two members. None otherwise, and for very large groups."""
    weakest: float | None
    """With linkage chain: the similarity of the weakest bridge that holds the group together."""
    settings: RunRules | None
    """None: written by another version."""
    history: tuple[GroupEvent, ...] = ()

    def __repr__(self) -> str:
        return one_line(
            self,
            group=self.group,
            ended=self.ended,
            size=self.size,
            principal=self.principal.id,
            min_similarity=self.min_similarity,
            history=len(self.history),
        )

    def same(self, other: GroupRecord) -> bool:
        """Whether both say the same but for the date of writing."""
        return replace(self, updated=other.updated) == other


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of ``group``."""

    finished: bool
    """Whether it came to its end."""
    evidence: bool
    """Whether it kept evidence."""
    rules: RunRules | None
    """Of the last run that came to its end; None if none did."""


def remembered(last: LastRun | None) -> tuple[MatchOptions, GroupRules]:
    """The rules of the next run, as far as no others are given: those of the last finished one, else the defaults."""
    return (last.rules.match, last.rules.group) if last is not None and last.rules else (MatchOptions(), DEFAULT_RULES)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over groups of the registry."""

    groups: int = 0
    documents: int = 0
    largest: int = 0
    min_similarity: float | None = None


class Registry:
    """The registry of one target. Reading from one that does not exist yet finds nothing."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.name = hidden_index_name(index.target, HiddenIndex.GROUPS)

    def last_run(self) -> LastRun | None:
        """How the index was grouped last; None if it never was. Raises `SettingsError` for rules that cannot be read,
        so that nobody groups by others unnoticed."""
        stored = read(self._index.client, self.name, _RUN)
        if stored is None:
            return None
        try:
            return _decode_run(stored.source)
        except ValueError as error:
            raise SettingsError(
                f"The rules of the last run, in {self.name}, cannot be read ({error}). To group by the defaults, and "
                f"by the options that you add, run `es-neardupe group {self._index.name} --default-rules`."
            ) from error

    def note_begun(self, at: str) -> None:
        """Say that a run has begun; the rules of the last one that ended stay. Raises `Conflict` if another run said
        so meanwhile."""
        stored = read(self._index.client, self.name, _RUN)
        try:
            last = None if stored is None else _decode_run(stored.source)
        except ValueError:
            last = None
        self._note(stored, LastRun(finished=False, evidence=False, rules=last.rules if last else None), at)

    def note_ended(self, rules: RunRules, at: str, *, evidence: bool) -> None:
        """Say that a run has come to its end: the next one has its rules. Raises as `note_begun`."""
        stored = read(self._index.client, self.name, _RUN)
        self._note(stored, LastRun(finished=True, evidence=evidence, rules=rules), at)

    def hand_over_rules(self, rules: RunRules, at: str) -> None:
        """Let the next run have the rules of another registry, and look at all documents; does nothing if it would
        have them anyway."""
        last = self.last_run()
        if last is None or remembered(last) != (rules.match, rules.group):
            stored = read(self._index.client, self.name, _RUN)
            self._note(stored, LastRun(finished=False, evidence=False, rules=rules), at)

    def _note(self, before: StoredDocument | None, run: LastRun, at: str) -> None:
        ensure(self._index, HiddenIndex.GROUPS)
        settings = None if run.rules is None else encode_rules(run.rules)
        value = {"finished": run.finished, "evidence": run.evidence, "at": at}
        store(self._index.client, self.name, _RUN, {"kind": "run", "settings": settings, "value": value}, before)

    def entries(self, ids: Collection[str]) -> dict[str, GroupRecord]:
        """The groups of these ids that are known, ended ones too."""
        if not ids or not exists(self._index.client, self.name):
            return {}
        references = ((self.name, id, None) for id in sorted(ids))
        hits = (hit for hit in fetch(self._index.client, references, ["*"]) if hit is not None)
        return {entry.group: entry for hit in hits if (entry := _entry(hit.id, hit.source)) is not None}

    def living(self) -> Iterator[GroupRecord]:
        """All groups that have not ended; those too that a run wrote just before it was killed."""
        if exists(self._index.client, self.name):
            refresh_if_allowed(self._index.client, self.name)
            for page in self._index.client.pages(self.name, {"query": _living(())}, page_size=2000):
                found = (_entry(hit.id, hit.source) for hit in page)
                yield from (entry for entry in found if entry is not None)

    def led_by(self, id: str) -> GroupRecord | None:
        """Of the groups whose principal has this id, in whichever index, the one that was touched last."""
        if not exists(self._index.client, self.name):
            return None
        wanted = {"bool": {"filter": [{"term": {"kind": "group"}}, {"term": {"principal.id": id}}]}}
        body = {"size": 1, "query": wanted, "sort": [{"updated": "desc"}]}
        hits = search(self._index.client, self.name, body)["hits"]["hits"]
        return _entry(hits[0]["_id"], hits[0]["_source"]) if hits else None

    def totals(self, without: Iterable[str] = ()) -> Totals:
        """Sums over the groups that have not ended, leaving some out."""
        if not exists(self._index.client, self.name):
            return Totals()
        sums = {
            "documents": {"sum": {"field": "size"}},
            "largest": {"max": {"field": "size"}},
            "least": {"min": {"field": "min_similarity"}},
        }
        body = {"size": 0, "track_total_hits": True, "query": _living(sorted(without)), "aggs": sums}
        answer = search(self._index.client, self.name, body)
        values = {name: answer["aggregations"][name]["value"] for name in sums}
        return Totals(
            groups=int(answer["hits"]["total"]["value"]),
            documents=int(values["documents"] or 0),
            largest=int(values["largest"] or 0),
            min_similarity=values["least"],
        )

    def write(self, entries: Iterable[GroupRecord]) -> None:
        """Store entries in the place of what is there, in the given order. Raises `RequestError` if one is refused."""
        name = ensure(self._index, HiddenIndex.GROUPS)
        actions = (Action("index", name, one.group, _source(one)) for one in entries)
        for outcome in write(self._index.client, actions, workers=1):
            if not outcome.done:
                raise RequestError(
                    f"The registry {name} refused an entry: {outcome.reason}",
                    status=outcome.status,
                    type=outcome.type,
                    reason=outcome.reason,
                )
        refresh(self._index.client, name)


def _living(without: Iterable[str]) -> dict[str, Any]:
    left_out = [{"terms": {"group": chunk}} for chunk in chunked(without, MAX_TERMS)]
    return {
        "bool": {
            "filter": [{"term": {"kind": "group"}}],
            "must_not": [{"exists": {"field": "ended"}}, *left_out],
        }
    }


def _source(entry: GroupRecord) -> dict[str, Any]:
    index, id = entry.principal
    history = [{"at": one.at, "event": one.event, "group": one.group} for one in entry.history]
    return {
        "kind": "group",
        **{name: getattr(entry, name) for name in _PLAIN},
        "principal": {"index": index, "id": id},
        "settings": None if entry.settings is None else encode_rules(entry.settings),
        "history": {"events": history},
    }


def _entry(id: str, source: Mapping[str, Any]) -> GroupRecord | None:
    """Read what `_source` wrote; None for anything else, which the next run that touches the group writes over."""
    try:
        principal, history = source["principal"], source["history"]["events"]
        parts = {
            **{name: source.get(name) for name in _PLAIN},
            "principal": (principal["index"], principal["id"]),
            "settings": _settings(source.get("settings")),
            "history": history,
        }
        entry = _ENTRIES.validate_python(parts)
    except (KeyError, TypeError, ValueError):  # pydantic's ValidationError is such
        return None
    return entry if source.get("kind") == "group" and entry.group == id else None


def _settings(stored: object) -> RunRules | None:
    try:
        return decode_rules(stored)
    except ValueError:
        return None


def _decode_run(source: Mapping[str, Any]) -> LastRun:
    """Read what `Registry` noted of a run. Raises `ValueError` for anything else."""
    settings, value = source.get("settings"), source.get("value")
    run = value if isinstance(value, Mapping) else {}
    finished, evidence = run.get("finished"), run.get("evidence")
    if not isinstance(finished, bool) or not isinstance(evidence, bool) or (finished and settings is None):
        raise ValueError("values that no run stores")
    return LastRun(finished, evidence, None if settings is None else decode_rules(settings))


_ENTRIES = TypeAdapter(GroupRecord)
_PLAIN = (
    "group",
    "created",
    "updated",
    "ended",
    "size",
    "texts",
    "min_similarity",
    "mean_similarity",
    "pairs_below",
    "pairs_not_compared",
    "diameter",
    "weakest",
)
