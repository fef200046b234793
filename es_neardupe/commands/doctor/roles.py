"""The least rights that each command needs on Elasticsearch, as roles: those that docs/roles.md shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import RequestError
from es_neardupe.records import Product
from es_neardupe.server.client import Client, path

__all__ = ["CLUSTER", "INLINE_ONLY", "ROLES", "Check", "Level", "Role", "RoleNames", "privilege_checks"]


CLUSTER = ("monitor",)
"""What every command needs of the cluster: product and version are asked from it."""

_LOOK = ("read", "view_index_metadata")
_RUN = (*_LOOK, "index", "maintenance")
_MANAGE = ("read", "index", "manage")
_OWN = ("create_index", *_RUN)
_DELETE = ("view_index_metadata", "delete_index")

INLINE_ONLY = frozenset({"load", "load --tune"})
"""What is refused with a sidecar index."""


@dataclass(frozen=True)
class RoleNames:
    """The indices that privileges are about."""

    index: str
    groups: str
    """The registry, `HiddenIndex.GROUPS`."""
    pairs: str
    """The evidence, `HiddenIndex.PAIRS`."""
    coming_groups: str
    """The same two under the prefix of the keys that a migration makes."""
    coming_pairs: str
    sidecars: Sequence[str] = ()
    """Those that the keys are in instead of the user's (``init --sidecar``)."""
    coming_sidecars: Sequence[str] = ()
    """The same for the keys that a migration makes."""
    writes: bool = False
    """Whether group ids are written into the user's index even so."""


@dataclass(frozen=True)
class Role:
    """Privileges on the user's index and on our hidden ones, and the commands that they suffice for."""

    name: str
    commands: tuple[str, ...]
    """As they are typed, with the option that needs more than the command without it."""
    index: tuple[str, ...]
    groups: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    coming_groups: tuple[str, ...] = ()
    coming_pairs: tuple[str, ...] = ()
    sidecars: tuple[str, ...] = _LOOK
    """On our index with the keys, where these are not in the user's, which is only read then."""
    coming_sidecars: tuple[str, ...] = ()
    everyday: bool = False
    """Whether who works on an index is likely to need it; the others are for single occasions."""

    def commands_for(self, names: RoleNames) -> tuple[str, ...]:
        """Those of its commands that there are for an index: some work only on keys that are in documents."""
        return tuple(one for one in self.commands if not (names.sidecars and one in INLINE_ONLY))

    def privileges(self, names: RoleNames) -> dict[str, tuple[str, ...]]:
        """Index -> the privileges on it."""
        wanted = {
            names.index: _LOOK if names.sidecars and not names.writes else self.index,
            names.groups: self.groups,
            names.pairs: self.pairs,
            names.coming_groups: self.coming_groups,
            names.coming_pairs: self.coming_pairs,
            **dict.fromkeys(names.sidecars, self.sidecars),
            **dict.fromkeys(names.coming_sidecars, self.coming_sidecars),
        }
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
    Role("neardupe-enrich", ("load", "enrich"), _RUN, sidecars=(*_RUN, "delete"), everyday=True),
    Role("neardupe-group", ("group", "watch"), _RUN, _OWN, sidecars=(*_RUN, "delete"), everyday=True),
    Role("neardupe-evidence", ("group --evidence",), _RUN, _OWN, (*_OWN, "delete"), sidecars=_RUN),
    Role("neardupe-clean", ("clean",), _RUN, _DELETE, _DELETE, sidecars=_DELETE),
    Role("neardupe-init", ("init",), ("manage",), sidecars=("create_index", "view_index_metadata")),
    Role(
        "neardupe-tune", ("load --tune", "enrich --tune", "group --tune"), _MANAGE, _OWN, sidecars=(*_MANAGE, "delete")
    ),
    Role(
        "neardupe-migrate",
        ("migrate",),
        _MANAGE,
        (*_OWN, "delete"),
        (*_OWN, "delete"),
        (*_OWN, "delete_index"),
        (*_OWN, "delete", "delete_index"),
        sidecars=(*_MANAGE, "delete"),
        coming_sidecars=(*_MANAGE, "delete"),
    ),
)
"""Each role stands for itself: whoever has it needs no other one for its commands."""


Level = str
"""``ok``, ``warning`` or ``error``."""


@dataclass(frozen=True)
class Check:
    """One line of the result of `doctor`; ``message`` names the way out where the level is not ok."""

    name: str
    level: Level
    message: str


def privilege_checks(client: Client, names: RoleNames) -> Iterator[Check]:
    """A check for each role: whether this user may run its commands on an index and on our hidden ones. What is lacking
    for single occasions only (`Role.everyday`) is told, but is no error."""
    if client.server.product is not Product.ELASTICSEARCH:
        yield Check("privileges", "ok", "not checked: OpenSearch does not tell; a refused request will name what lacks")
        return
    wanted = [(role, role.privileges(names)) for role in ROLES if role.commands_for(names)]
    answer = _asked(client, [privileges for _, privileges in wanted])
    if answer is None:
        yield Check("privileges", "ok", "not checked: this server has no security, or it is turned off")
        return
    for role, privileges in wanted:
        yield _check(role, role.commands_for(names), privileges, answer)


def _asked(client: Client, wanted: list[dict[str, tuple[str, ...]]]) -> Mapping[str, Any] | None:
    """What the user has of all that the roles name; None where there is no security."""
    names = {name: sorted({one for some in wanted for one in some.get(name, ())}) for some in wanted for name in some}
    body = {
        "cluster": list(CLUSTER),
        "index": [{"names": [name], "privileges": privileges} for name, privileges in names.items()],
    }
    try:
        answer: Mapping[str, Any] = client.request("POST", path("_security", "user", "_has_privileges"), body=body)
    except RequestError:
        return None
    return answer


def _check(
    role: Role, possible: Sequence[str], wanted: Mapping[str, tuple[str, ...]], answer: Mapping[str, Any]
) -> Check:
    commands, user = ", ".join(possible), answer["username"]
    lacking = [f"{name} of the cluster" for name in CLUSTER if not answer["cluster"][name]]
    for index, privileges in wanted.items():
        if missing := [one for one in privileges if not answer["index"][index][one]]:
            lacking.append(f"{', '.join(missing)} on {index}")
    if not lacking:
        return Check("privileges", "ok", f"{user} may run {commands}")
    level = "error" if role.everyday else "ok"
    return Check("privileges", level, f"{user} may not run {commands}: lacks {' and '.join(lacking)}")
