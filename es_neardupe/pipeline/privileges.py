"""Which commands a user may run on an index, and what is missing for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.clients import Client, path
from es_neardupe.errors import RequestError
from es_neardupe.records import Product
from es_neardupe.roles import CLUSTER, ROLES, Names, Role

__all__ = ["Check", "Level", "privilege_checks"]

Level = str
"""``ok``, ``warning`` or ``error``."""


@dataclass(frozen=True)
class Check:
    """One line of the result of `doctor`; ``message`` names the way out where the level is not ok."""

    name: str
    level: Level
    message: str


def privilege_checks(client: Client, names: Names) -> Iterator[Check]:
    """A check for each role: whether this user may run its commands on an index, with ours beside it. What is lacking
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
