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

__all__ = ["RunScope", "choose_scope"]

_MAX_WAITING = 0.25
"""If more than this share of the documents waits, reading all keys once costs less than queries for neighbours."""


@dataclass(frozen=True, slots=True)
class RunScope:
    """The documents that a run starts from."""

    whole: bool
    """Whether the run processes all documents."""
    reason: str
    """Why it processes all of them, or how many it starts from."""
    documents: int
    """Documents with a fingerprint of the index's scheme."""
    settled: bool
    """Whether the last run had the same rules and finished."""
    seeds: tuple[dict[str, Any], ...] = ()
    """Queries for the documents that an incremental run starts from."""
    broken: frozenset[str] = frozenset()
    """Ids of groups whose documents differ from the registry."""


def choose_scope(
    index: Index,
    registry: Registry,
    last: LastRun | None,
    rules: RunRules,
    *,
    evidence: bool,
    only_words: bool,
    check: bool,
    rebuild: bool,
) -> RunScope:
    """Choose between the whole index and a part of it. ``check`` compares all groups with the registry.

    ``only_words``: whether the measure depends on nothing but the words that fingerprints are made from. If it also
    uses other fields, their changes are not noticed, so each run processes the whole index.
    """
    fields, scheme = index.fields, index.scheme_id
    fingerprinted, ungrouped = queries.fingerprinted(fields, scheme), queries.ungrouped(fields, scheme)
    found = counts(index.client, index.path, documents=fingerprinted, waiting=ungrouped)
    documents, waiting = found["documents"], found["waiting"]
    different = _differences(last, rules, evidence)
    settled = last is not None and last.finished and last.rules == rules and not different
    reason = _why_whole(last, different, waiting, documents, rebuild)
    if reason is None and not only_words:
        reason = "the measure uses more than the words that keys are made from"
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
    """Why the run must process all documents; None if a part is enough."""
    if rebuild:
        return "rebuild requested"
    if last is None:
        return "the first run"
    if not last.finished:
        return "the last run did not finish"
    if different:
        return f"the last run had other settings: {', '.join(different)}"
    if waiting > _MAX_WAITING * documents:
        return f"{waiting:,} of {documents:,} documents are new or changed"
    return None


def _differences(last: LastRun | None, rules: RunRules, evidence: bool) -> list[str]:
    """The settings of the last run that differ from this one. A run without evidence after one with evidence makes the
    same groups, so that is no difference."""
    if last is None or last.rules is None:
        return []
    before, now = last.rules.deciding, rules.deciding
    different = [f"{name} {before[name]}" for name in sorted(now) if before[name] != now[name]]
    return different + ["evidence False"] * (evidence and not last.evidence)


def _broken(index: Index, registry: Registry) -> frozenset[str]:
    """The groups whose size or principal differs between documents and registry, or that only one of them has."""
    stored = {
        one.group: (one.size, one.members[0].address if one.principal is not None else None)
        for one in read_groups(index)
    }
    registered = {record.group: (record.size, record.principal) for record in registry.living()}
    return frozenset(id for id in stored.keys() | registered.keys() if stored.get(id) != registered.get(id))
