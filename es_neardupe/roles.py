"""The least rights that each command needs on Elasticsearch, as roles: those that docs/roles.md shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["CLUSTER", "ROLES", "Role"]

CLUSTER = ("monitor",)
"""What every command needs of the cluster: product and version are asked from it."""

_LOOK = ("read", "view_index_metadata")
_RUN = (*_LOOK, "index", "maintenance")


@dataclass(frozen=True)
class Role:
    """Privileges on the user's index and on our hidden ones beside it, and the commands that they suffice for."""

    name: str
    commands: tuple[str, ...]
    """As they are typed, with the option that needs more than the command without it."""
    index: tuple[str, ...]
    groups: tuple[str, ...] = ()
    """On the registry, `companions.Companion.GROUPS`."""
    pairs: tuple[str, ...] = ()
    """On the evidence, `companions.Companion.PAIRS`."""
    beside: tuple[str, ...] = _LOOK
    """On our index with the keys, where these are not in the user's (``init --sidecar``), which is only read then."""
    everyday: bool = False
    """Whether who works on an index is likely to need it; the others are for single occasions."""

    def privileges(
        self, index: str, groups: str, pairs: str, beside: Sequence[str] = (), *, writes: bool = False
    ) -> dict[str, tuple[str, ...]]:
        """Index -> the privileges on it; ``beside``: the indices that the keys are in instead of the user's, into
        which group ids are written all the same if it ``writes``."""
        wanted = {index: _LOOK if beside and not writes else self.index, groups: self.groups, pairs: self.pairs}
        wanted |= dict.fromkeys(beside, self.beside)
        return {name: some for name, some in wanted.items() if some}

    def body(self, privileges: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """The role as the API of Elasticsearch takes it."""
        indices = [{"names": [name], "privileges": list(some)} for name, some in privileges.items()]
        return {"cluster": list(CLUSTER), "indices": indices}


ROLES = (
    Role(
        "neardupe-read",
        (
            "similar",
            "contained",
            "search",
            "groups",
            "pairs",
            "moved",
            "duplicates",
            "compare",
            "distribution",
            "stats",
            "doctor",
        ),
        _LOOK,
        everyday=True,
    ),
    Role(
        "neardupe-analyse",
        ("audit", "what-if", "groups --history", "groups --suggest-keep", "pairs --ignore-common"),
        _LOOK,
        _LOOK,
        _LOOK,
    ),
    Role("neardupe-enrich", ("load", "enrich"), _RUN, beside=(*_RUN, "delete"), everyday=True),
    Role("neardupe-group", ("group", "watch"), _RUN, ("create_index", *_RUN), beside=(*_RUN, "delete"), everyday=True),
    Role(
        "neardupe-evidence",
        ("group --evidence",),
        _RUN,
        ("create_index", *_RUN),
        ("create_index", *_RUN, "delete"),
        beside=_RUN,
    ),
    Role(
        "neardupe-clean",
        ("clean",),
        _RUN,
        ("view_index_metadata", "delete_index"),
        ("view_index_metadata", "delete_index"),
        beside=("view_index_metadata", "delete_index"),
    ),
    Role("neardupe-init", ("init",), ("manage",), beside=("create_index", "view_index_metadata")),
)
"""Each role stands for itself: whoever has it needs no other one for its commands."""
