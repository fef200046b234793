"""Users of the secured test servers, and their roles. Passwords are not secret: each server lives for one session."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from secured import User
from secured_opensearch import ACTIONS, PASSWORD, opensearch_role, opensearch_roles

from es_neardupe.commands.doctor.roles import ROLES as DOCUMENTED
from es_neardupe.commands.doctor.roles import RoleNames

NEWS = "secured-news"
"""The index that privileges are about; its hidden indices are ``secured-news-neardupe-*``."""

CLEANED = "secured-clean"
"""Another index, which is created and cleaned."""

ALIAS = "secured-alias"
"""An alias of `NEWS`."""

WORKED = "secured-roles"
"""The index that the roles of docs/roles.md are tested on."""

_PAGE = Path(__file__).parents[2] / "docs" / "roles.md"


def documented() -> dict[str, Any]:
    """The roles that docs/roles.md shows for Elasticsearch, by name, with their index as it is named there."""
    shown = re.findall(r"^PUT /_security/role/(\S+)\n(.*?)^```$", _PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return {name: json.loads(body) for name, body in shown}


def less() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Name -> (role, the missing privilege and its place, the role without it), for each privilege of each role."""
    found: dict[str, tuple[str, str, dict[str, Any]]] = {}
    for name, role in documented().items():
        for place, grant in enumerate(role["indices"]):
            for privilege in grant["privileges"]:
                left = json.loads(json.dumps(role))
                left["indices"][place]["privileges"].remove(privilege)
                left["indices"] = [one for one in left["indices"] if one["privileges"]]
                found[f"{name}-less-{place}-{privilege}"] = (name, f"{privilege} on {grant['names'][0]}", left)
    return found


def _on(index: str, role: dict[str, Any]) -> dict[str, Any]:
    """The same role for another index than ``news``."""
    renamed: dict[str, Any] = json.loads(json.dumps(role).replace('"news', f'"{index}'))
    return renamed


BESIDE = "secured-beside"
"""An index that only the administrator can write."""

KEPT = "secured-kept"
"""An index with a sidecar, to test the roles of docs/roles.md in that form."""


def ours_beside(index: str) -> list[str]:
    """The hidden indices of an index with inline keys: registry and evidence, those of a migration, and decisions."""
    kinds = [f"{prefix}-{kind}" for prefix in ("neardupe", "neardupe_next") for kind in ("groups", "pairs")]
    return [f"{index}-{kind}" for kind in (*kinds, "neardupe-decisions")]


def names_beside(index: str) -> RoleNames:
    """The same names as `RoleNames`."""
    groups, pairs, coming_groups, coming_pairs, decisions = ours_beside(index)
    return RoleNames(index, groups, pairs, coming_groups, coming_pairs, decisions)


KEPT_NAMES = dataclasses.replace(
    names_beside(KEPT), sidecars=(f"{KEPT}-neardupe-sidecar",), coming_sidecars=(f"{KEPT}-neardupe_next-sidecar",)
)


def on_kept() -> dict[str, dict[str, Any]]:
    """Name of a user -> the role, for each role that has commands with a sidecar."""
    return {
        f"{role.name}-beside": role.body(role.privileges(KEPT_NAMES))
        for role in DOCUMENTED
        if role.commands_for(KEPT_NAMES)
    }


_PUBLIC = '{"term": {"public": true}}'
_NOT_SECRET = '{"bool": {"must_not": [{"term": {"public": false}}]}}'
_LOOK = ["read", "view_index_metadata"]


def _role(*indices: dict[str, Any]) -> dict[str, Any]:
    return {"cluster": ["monitor"], "indices": list(indices)}


ROLES: dict[str, Any] = {
    # The privileges that runs need according to docs/connecting.md.
    "runner": _role(
        {"names": [NEWS], "privileges": [*_LOOK, "index", "maintenance"]},
        {"names": [f"{NEWS}-neardupe-groups"], "privileges": [*_LOOK, "create_index", "index", "maintenance"]},
        {"names": [f"{NEWS}-neardupe-pairs"], "privileges": [*_LOOK, "create_index", "index", "maintenance", "delete"]},
        {"names": [f"{NEWS}-neardupe-decisions"], "privileges": [*_LOOK, "index", "maintenance"]},
    ),
    # Sees the public documents, and none of the hidden indices.
    "public": _role({"names": [NEWS], "privileges": _LOOK, "query": _PUBLIC}),
    # The same by a pattern, which also matches the hidden indices: the query hides everything in them.
    "public-pattern": _role({"names": ["secured-*"], "privileges": _LOOK, "query": _PUBLIC}),
    # May write the documents that it sees: half of them.
    "half-runner": _role(
        {"names": [NEWS], "privileges": [*_LOOK, "index", "maintenance"], "query": _PUBLIC},
        {"names": [f"{NEWS}-neardupe-groups"], "privileges": [*_LOOK, "create_index", "index", "maintenance"]},
        {"names": [f"{NEWS}-neardupe-decisions"], "privileges": [*_LOOK, "index", "maintenance"]},
    ),
    # A pattern that also matches the hidden indices, and a query that hides nothing of them: they have no such field.
    "not-secret": _role({"names": ["secured-*"], "privileges": _LOOK, "query": _NOT_SECRET}),
    # Sees all documents, but not their texts.
    "few-fields": _role({"names": [NEWS], "privileges": _LOOK, "field_security": {"grant": ["public", "neardupe.*"]}}),
    # The privileges that load and clean need, and init --create.
    "cleaner": _role(
        {"names": [CLEANED], "privileges": [*_LOOK, "index", "maintenance"]},
        {"names": [f"{CLEANED}-neardupe-*"], "privileges": ["view_index_metadata", "delete_index"]},
    ),
    "maker": _role({"names": [CLEANED], "privileges": ["manage"]}),
    # Sees that there is a registry, but may not read it; and one who may.
    "unread": _role({"names": [f"{NEWS}-neardupe-groups"], "privileges": ["view_index_metadata"]}),
    "auditor": _role({"names": [f"{NEWS}-neardupe-groups", f"{NEWS}-neardupe-decisions"], "privileges": _LOOK}),
    "companions": _role({"names": [f"{NEWS}-neardupe-*"], "privileges": _LOOK}),
    "looker": _role({"names": [NEWS], "privileges": _LOOK}),
    # May read an index and nothing more; its keys and groups are in a sidecar.
    "beside": _role(
        {"names": [BESIDE], "privileges": _LOOK},
        {"names": [f"{BESIDE}-neardupe-*"], "privileges": [*_LOOK, "create_index", "index", "delete", "maintenance"]},
        {"names": [f"{BESIDE}-neardupe-*"], "privileges": ["delete_index"]},
    ),
    "nobody": _role({"names": ["elsewhere"], "privileges": ["read"]}),
    # Privileges on an alias, and on none of the indices behind it.
    "alias": _role({"names": [ALIAS], "privileges": ["all"]}),
    **{name: _on(WORKED, role) for name, role in documented().items()},
    **{name: _on(WORKED, role) for name, (_, _, role) in less().items()},
    **on_kept(),
}


LIMITS: dict[str, dict[str, Any]] = {
    "sees-some-documents": {"dls": json.dumps({"term": {"url": "/d1"}})},
    "sees-some-fields": {"fls": ["url", "date", "neardupe*"]},
    "sees-some-masked": {"masked_fields": ["text"]},
}
"""Ways in which OpenSearch can hide parts of `WORKED` from a user with all privileges on it."""


def limited_roles() -> dict[str, dict[str, Any]]:
    """The roles of the users of `LIMITS`."""
    indices = [WORKED, *ours_beside(WORKED)]
    roles = {name: opensearch_role(dict.fromkeys(indices, ACTIONS)) for name in LIMITS}
    for name, limit in LIMITS.items():
        roles[name]["index_permissions"][0] |= limit
    return roles


def opensearch_users() -> tuple[list[User], dict[str, Any]]:
    """The users of the secured OpenSearch, and their roles in its form: one for each documented role, on `WORKED` and,
    with a sidecar, on `KEPT`."""
    beside = {f"{name}-beside": role for name, role in opensearch_roles(KEPT_NAMES).items()}
    roles = opensearch_roles(names_beside(WORKED)) | beside | limited_roles()
    users = [User(name, PASSWORD, (name,)) for name in roles]
    return [User("admin", PASSWORD, ("all_access",)), User("stranger", PASSWORD, ()), *users], roles


USERS = (
    User("admin", "admin-password", ("superuser",)),
    User("runner", "runner-password", ("runner",)),
    User("reader", "reader-password", ("public",)),
    User("pattern-reader", "pattern-password", ("public-pattern",)),
    User("registry-reader", "registry-password", ("public", "companions")),
    User("half-runner", "half-password", ("half-runner",)),
    User("loose-reader", "loose-password", ("not-secret",)),
    User("few-fields", "fields-password", ("few-fields",)),
    User("cleaner", "cleaner-password", ("cleaner",)),
    User("maker", "maker-password", ("maker",)),
    User("unread", "unread-password", ("looker", "unread")),
    User("auditor", "auditor-password", ("looker", "auditor")),
    User("looker", "looker-password", ("looker",)),
    User("beside", "beside-password", ("beside",)),
    User("stranger", "stranger-password", ("nobody",)),
    User("alias-user", "alias-password", ("alias",)),
    *(User(name, f"{name}-password", (name,)) for name in (*documented(), *less(), *on_kept())),
)
