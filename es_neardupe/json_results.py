"""JSON forms of results, as documented in ``docs/json.md``: the same on the command line and over HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from es_neardupe.server.failures import Failures

if TYPE_CHECKING:
    from es_neardupe.commands.similar.report import SimilarHit, SimilarReport
    from es_neardupe.groups.read import Group
    from es_neardupe.groups.reviewed import TitledPage


def plain(value: Any) -> Any:
    """Records as JSON types. Fields whose names begin with _ are omitted, and properties that a record names in
    ``JSON_PROPERTIES`` come first; infinite numbers and NaN become None, and failures the list of the first hundred."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        shown = (f.name for f in fields(value) if not f.name.startswith("_"))
        return {name: plain(getattr(value, name)) for name in (*getattr(value, "JSON_PROPERTIES", ()), *shown)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Failures):
        value = value.first
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def by_measure(measure: str, similarity: float) -> dict[str, Any]:
    """The similarity of a pair: ``resemblance``, or the name of another measure and its value."""
    if measure == "resemblance":
        return {"resemblance": similarity}
    return {"measure": measure, "similarity": similarity}


def similar_json(found: SimilarReport) -> dict[str, Any]:
    """The result of `similar`."""
    return {one.name: getattr(found, one.name) for one in fields(found) if not one.name.startswith("_")} | {
        "hits": [_hit_json(hit) for hit in found.hits],
        "related": [_hit_json(hit) | {"facts": hit.facts} for hit in found.related],
    }


def _hit_json(hit: SimilarHit) -> dict[str, Any]:
    return (
        {"index": hit.index, "id": hit.id}
        | by_measure(hit.measure, hit.similarity)
        | {"shared_bands": hit.shared_bands, "group": hit.group, "copies": hit.copies, "fields": hit.fields}
    )


def group_json(group: Group) -> dict[str, Any]:
    """One line of the result of `groups`."""
    line = {name: value for name, value in plain(group).items() if name not in ("known", "other_facts")}
    line |= {"other_facts": True} if group.other_facts else {}
    if group.known is not None and group.known.weakest is not None:
        line |= {"diameter": group.known.diameter, "weakest": group.known.weakest}
    return line


def groups_json(found: TitledPage) -> dict[str, Any]:
    """A page of groups, each with the fields to show of its principal."""
    listed = []
    for one in found.page.groups:
        line = {name: value for name, value in plain(one).items() if name not in ("settings", "history", "ended")}
        listed.append(line | {"fields": found.fields.get(one.principal, {})})
    return {"total": found.page.total, "all_found": found.all_found, "groups": listed, "after": found.after}
