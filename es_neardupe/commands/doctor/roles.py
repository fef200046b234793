"""Roles: the minimum privileges of each command on Elasticsearch, as listed in docs/roles.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CLUSTER = ("monitor",)
"""Cluster privileges of every command, which reads product and version of the server."""

_LOOK = ("read", "view_index_metadata")
_RUN = (*_LOOK, "index", "maintenance")
_MANAGE = ("read", "index", "manage")
_OWN = ("create_index", *_RUN)
_NOTICE = ("monitor",)
_DELETE = ("view_index_metadata", "delete_index")

INLINE_ONLY = frozenset({"load", "load --tune"})
"""Commands that cannot be used with a sidecar index."""


@dataclass(frozen=True)
class RoleNames:
    """Names of the indices that privileges are granted on."""

    index: str
    groups: str
    """The registry, `HiddenIndex.GROUPS`."""
    pairs: str
    """The evidence, `HiddenIndex.PAIRS`."""
    coming_groups: str
    """``coming_...``: the same under the second prefix, which a migration uses."""
    coming_pairs: str
    decisions: str
    """The decisions of reviewers, `HiddenIndex.DECISIONS`."""
    sidecars: Sequence[str] = ()
    """The sidecar indices; empty if keys are stored in the documents."""
    coming_sidecars: Sequence[str] = ()
    writes: bool = False
    """With sidecar indices: whether group ids are written into the documents."""


@dataclass(frozen=True)
class Role:
    """Privileges on an index and its hidden indices, and the commands for which they are sufficient."""

    name: str
    commands: tuple[str, ...]
    """As typed on the command line, with the option for which the command needs more privileges."""
    index: tuple[str, ...]
    groups: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    coming_groups: tuple[str, ...] = ()
    coming_pairs: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    sidecars: tuple[str, ...] = _LOOK
    """Privileges on the sidecar indices. The index itself is then only read."""
    coming_sidecars: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    """Further privileges on the index, and in ``optional_groups`` on the registry: without them, the commands notice no
    changed texts. A sidecar needs none."""
    optional_groups: tuple[str, ...] = ()
    everyday: bool = False
    """Whether most users of an index need it; the other roles are for occasional tasks."""

    def commands_for(self, names: RoleNames) -> tuple[str, ...]:
        """The commands that can be used on an index: without sidecar indices all, else all but `INLINE_ONLY`."""
        return tuple(one for one in self.commands if not (names.sidecars and one in INLINE_ONLY))

    def privileges(self, names: RoleNames) -> dict[str, tuple[str, ...]]:
        """Index -> the privileges on it, with the optional ones."""
        required, optional = self.required(names), self.optional_privileges(names)
        return {
            name: (*required.get(name, ()), *optional.get(name, ())) for name in dict.fromkeys((*required, *optional))
        }

    def optional_privileges(self, names: RoleNames) -> dict[str, tuple[str, ...]]:
        """Index -> the optional privileges on it."""
        by_index = {} if names.sidecars else {names.index: self.optional, names.groups: self.optional_groups}
        return {name: some for name, some in by_index.items() if some}

    def required(self, names: RoleNames) -> dict[str, tuple[str, ...]]:
        """Index -> the privileges on it that the commands cannot do without."""
        by_index = {
            names.index: _LOOK if names.sidecars and not names.writes else self.index,
            names.groups: self.groups,
            names.pairs: self.pairs,
            names.coming_groups: self.coming_groups,
            names.coming_pairs: self.coming_pairs,
            names.decisions: self.decisions,
            **dict.fromkeys(names.sidecars, self.sidecars),
            **dict.fromkeys(names.coming_sidecars, self.coming_sidecars),
        }
        return {name: some for name, some in by_index.items() if some}

    def body(self, privileges: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """The role in the form of the Elasticsearch API."""
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
            "documents",
            "moved",
            "duplicates",
            "compare",
            "shingles",
            "distribution",
            "stats",
            "doctor",
        ),
        _LOOK,
        everyday=True,
    ),
    Role(
        "neardupe-analyse",
        (
            "audit",
            "what-if",
            "groups --history",
            "groups --suggest-keep",
            "pairs --ignore-common",
            "contained --ignore-common",
        ),
        _LOOK,
        _LOOK,
        _LOOK,
        decisions=_LOOK,
    ),
    Role(
        "neardupe-enrich",
        ("load", "enrich"),
        _RUN,
        sidecars=(*_RUN, "delete"),
        optional=_NOTICE,
        optional_groups=("create_index", *_LOOK, "index"),
        everyday=True,
    ),
    Role(
        "neardupe-group",
        ("group", "watch"),
        _RUN,
        _OWN,
        decisions=_RUN,
        sidecars=(*_RUN, "delete"),
        optional=_NOTICE,
        everyday=True,
    ),
    Role(
        "neardupe-evidence",
        ("group --evidence",),
        _RUN,
        _OWN,
        (*_OWN, "delete"),
        decisions=_RUN,
        sidecars=_RUN,
        optional=_NOTICE,
    ),
    Role("neardupe-clean", ("clean",), _RUN, _DELETE, _DELETE, decisions=("read", *_DELETE), sidecars=_DELETE),
    Role("neardupe-init", ("init",), ("manage",), sidecars=("create_index", "view_index_metadata")),
    Role(
        "neardupe-tune",
        ("load --tune", "enrich --tune", "group --tune"),
        _MANAGE,
        _OWN,
        decisions=_RUN,
        sidecars=(*_MANAGE, "delete"),
    ),
    Role(
        "neardupe-migrate",
        ("migrate",),
        _MANAGE,
        (*_OWN, "delete"),
        (*_OWN, "delete"),
        (*_OWN, "delete_index"),
        (*_OWN, "delete", "delete_index"),
        decisions=_RUN,
        sidecars=(*_MANAGE, "delete"),
        coming_sidecars=(*_MANAGE, "delete"),
    ),
)
"""No role depends on another one."""
