"""Who may do what on the secured server of the tests. Passwords are no secrets here: it lives for one session."""

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
"""The index that rights are about; its hidden indices are ``secured-news-neardupe-*``."""

CLEANED = "secured-clean"
"""Another, which is made and cleaned."""

ALIAS = "secured-alias"
"""An alias of `NEWS`."""

WORKED = "secured-roles"
"""The index that the roles of docs/roles.md are about here."""

_PAGE = Path(__file__).parents[2] / "docs" / "roles.md"


def documented() -> dict[str, Any]:
    """The roles that docs/roles.md shows for Elasticsearch, by name, with their index as it is named there."""
    shown = re.findall(r"^PUT /_security/role/(\S+)\n(.*?)^```$", _PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return {name: json.loads(body) for name, body in shown}


def less() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Name -> (role, the privilege and where it lacks, the role without it), for each privilege of each role."""
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
"""One that nobody but the administrator may write."""

KEPT = "secured-kept"
"""One with its keys beside it, for the roles of docs/roles.md as they are then."""


def ours_beside(index: str) -> list[str]:
    """Our hidden indices beside one with keys in its documents: registry and evidence, then those of a migration."""
    return [f"{index}-{prefix}-{kind}" for prefix in ("neardupe", "neardupe_next") for kind in ("groups", "pairs")]


def names_beside(index: str) -> RoleNames:
    """The same, by what they are."""
    return RoleNames(index, *ours_beside(index))


KEPT_NAMES = dataclasses.replace(
    names_beside(KEPT), sidecars=(f"{KEPT}-neardupe-sidecar",), coming_sidecars=(f"{KEPT}-neardupe_next-sidecar",)
)


def on_kept() -> dict[str, dict[str, Any]]:
    """Name of a user -> the role, for each role that has commands where keys are beside."""
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
    # What docs/connecting.md says that running needs.
    "runner": _role(
        {"names": [NEWS], "privileges": [*_LOOK, "index", "maintenance"]},
        {"names": [f"{NEWS}-neardupe-groups"], "privileges": [*_LOOK, "create_index", "index", "maintenance"]},
        {"names": [f"{NEWS}-neardupe-pairs"], "privileges": [*_LOOK, "create_index", "index", "maintenance", "delete"]},
    ),
    # Sees the public documents, and nothing of ours beside the index.
    "public": _role({"names": [NEWS], "privileges": _LOOK, "query": _PUBLIC}),
    # The same by a pattern, which also matches the hidden indices: the query hides all their documents.
    "public-pattern": _role({"names": ["secured-*"], "privileges": _LOOK, "query": _PUBLIC}),
    # May write what it sees: half of the documents.
    "half-runner": _role(
        {"names": [NEWS], "privileges": [*_LOOK, "index", "maintenance"], "query": _PUBLIC},
        {"names": [f"{NEWS}-neardupe-groups"], "privileges": [*_LOOK, "create_index", "index", "maintenance"]},
    ),
    # A pattern that matches the hidden indices, and a query that hides nothing in them: they have no such field.
    "not-secret": _role({"names": ["secured-*"], "privileges": _LOOK, "query": _NOT_SECRET}),
    # Sees all documents, but not their texts.
    "few-fields": _role({"names": [NEWS], "privileges": _LOOK, "field_security": {"grant": ["public", "neardupe.*"]}}),
    # What load and clean need, and what init --create does.
    "cleaner": _role(
        {"names": [CLEANED], "privileges": [*_LOOK, "index", "maintenance"]},
        {"names": [f"{CLEANED}-neardupe-*"], "privileges": ["view_index_metadata", "delete_index"]},
    ),
    "maker": _role({"names": [CLEANED], "privileges": ["manage"]}),
    # Knows that there is a registry, but may not read it; and the other way round.
    "unread": _role({"names": [f"{NEWS}-neardupe-groups"], "privileges": ["view_index_metadata"]}),
    "auditor": _role({"names": [f"{NEWS}-neardupe-groups"], "privileges": ["read"]}),
    "companions": _role({"names": [f"{NEWS}-neardupe-*"], "privileges": _LOOK}),
    "looker": _role({"names": [NEWS], "privileges": _LOOK}),
    # May look at an index and nothing more; all that is ours is beside it.
    "beside": _role(
        {"names": [BESIDE], "privileges": _LOOK},
        {"names": [f"{BESIDE}-neardupe-*"], "privileges": [*_LOOK, "create_index", "index", "delete", "maintenance"]},
        {"names": [f"{BESIDE}-neardupe-*"], "privileges": ["delete_index"]},
    ),
    "nobody": _role({"names": ["elsewhere"], "privileges": ["read"]}),
    # Rights on an alias, and on none of the indices behind it.
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
"""What OpenSearch may hide of `WORKED` from a user who has all rights on it."""


def limited_roles() -> dict[str, dict[str, Any]]:
    """The roles of the users of `LIMITS`."""
    indices = [WORKED, *ours_beside(WORKED)]
    roles = {name: opensearch_role(dict.fromkeys(indices, ACTIONS)) for name in LIMITS}
    for name, limit in LIMITS.items():
        roles[name]["index_permissions"][0] |= limit
    return roles


def opensearch_users() -> tuple[list[User], dict[str, Any]]:
    """The users of the secured OpenSearch, and the roles as it takes them: one for each of ours, on `WORKED` and, with
    keys beside it, on `KEPT`."""
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
