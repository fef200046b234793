"""Scope of a run of ``group``: all documents, or those that are new, changed, or in a broken group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.groups.read import read_groups
from es_neardupe.groups.registry import LastRun, Registry
from es_neardupe.groups.rules import RunRules
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import counts

__all__ = ["RunScope", "start_of"]

_MAX_WAITING = 0.25
"""Share of waiting documents from which on reading all keys once costs less than asking for neighbours."""


@dataclass(frozen=True, slots=True)
class RunScope:
    """What a run begins with."""

    whole: bool
    reason: str
    documents: int
    """With a fingerprint of the scheme."""
    settled: bool
    """Whether the last run had the same rules and came to its end."""
    seeds: tuple[dict[str, Any], ...] = ()
    """Queries for the documents that an incremental run starts from."""
    broken: frozenset[str] = frozenset()
    """Groups that are not as the registry has them."""


def start_of(
    index: Index,
    registry: Registry,
    last: LastRun | None,
    rules: RunRules,
    *,
    evidence: bool,
    by_words: bool,
    check: bool,
    rebuild: bool,
) -> RunScope:
    """Decide between the whole index and a part of it; ``check`` compares all groups with the registry.

    ``by_words``: whether the measure looks at nothing but the words that a fingerprint is made from. Where it looks
    at other fields too, changes of these go unnoticed, so each run covers the whole index.
    """
    fields, scheme = index.fields, index.scheme_id
    fingerprinted, ungrouped = queries.fingerprinted(fields, scheme), queries.ungrouped(fields, scheme)
    found = counts(index.client, index.path, documents=fingerprinted, waiting=ungrouped)
    documents, waiting = found["documents"], found["waiting"]
    different = _differences(last, rules, evidence)
    settled = last is not None and last.finished and last.rules == rules and not different
    reason = _why_whole(last, different, waiting, documents, rebuild)
    if reason is None and not by_words:
        reason = "the measure looks at more than the words that keys are made from"
    if reason is not None:
        return RunScope(True, reason, documents, settled)
    broken = _broken(index, registry) if check else frozenset()
    chunks = chunked(sorted(broken), queries.MAX_TERMS)
    seeds = (ungrouped, *({"terms": {fields.group: chunk}} for chunk in chunks))
    reason = f"{waiting:,} new or changed documents"
    if check:
        reason += f", {len(broken):,} groups that lost documents"
    return RunScope(False, reason, documents, settled, seeds, broken)


def _why_whole(
    last: LastRun | None, different: Sequence[str], waiting: int, documents: int, rebuild: bool
) -> str | None:
    """Why all documents have to be looked at; None if a part is enough."""
    if rebuild:
        return "asked for"
    if last is None:
        return "the first run"
    if not last.finished:
        return "the last run did not come to its end"
    if different:
        return f"the last run had other settings: {', '.join(different)}"
    if waiting > _MAX_WAITING * documents:
        return f"{waiting:,} of {documents:,} documents are new or changed"
    return None


def _differences(last: LastRun | None, rules: RunRules, evidence: bool) -> list[str]:
    """What was otherwise in the last run; to keep evidence no longer makes no difference to the groups."""
    if last is None or last.rules is None:
        return []
    before, now = last.rules.deciding, rules.deciding
    different = [f"{name} {before[name]}" for name in sorted(now) if before[name] != now[name]]
    return different + ["evidence False"] * (evidence and not last.evidence)


def _broken(index: Index, registry: Registry) -> frozenset[str]:
    """The groups whose size or principal is another than the registry says, or that only one of the two knows."""
    there = {
        one.group: (one.size, one.members[0].address if one.principal is not None else None)
        for one in read_groups(index)
    }
    told = {entry.group: (entry.size, entry.principal) for entry in registry.living()}
    return frozenset(id for id in there.keys() | told.keys() if there.get(id) != told.get(id))
