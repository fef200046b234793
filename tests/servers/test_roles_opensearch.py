"""The roles of docs/roles.md for OpenSearch are enough for their commands: on a real OpenSearch with security."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
import role_tools
from docs_pages import DOCS, section, table
from role_tools import (
    HIDDEN_INDICES,
    As,
    lacking_is_named,
    with_keys_beside,
    works,
)
from secured import Secured
from secured_opensearch import ACTIONS, PASSWORD, VERSION, opensearch_roles
from secured_users import LIMITS, WORKED, names_beside
from server_tools import theirs, versions
from starlette.testclient import TestClient

from es_neardupe import NearDupe
from es_neardupe.commands.doctor.roles import ROLES
from es_neardupe.serve.application import asgi
from es_neardupe.server.client import Client


def test_the_page_shows_them() -> None:
    page = (DOCS / "roles.md").read_text("utf-8")
    shown = re.findall(r"^PUT /_plugins/_security/api/roles/(\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert {name: json.loads(body) for name, body in shown} == opensearch_roles(names_beside("news"))
    found = section("roles.md", "OpenSearch")
    rows = [[f"`{name}`", ", ".join(f"`{one}`" for one in some)] for name, some in ACTIONS.items()]
    assert table(found) == rows
    assert f"OpenSearch {VERSION.rpartition('.')[0]}" in found


@pytest.fixture(scope="module")
def secured(secured_opensearch_server: Secured) -> Secured:
    """The server of the fixtures below."""
    return secured_opensearch_server


admin, worked, restored, run_as = role_tools.admin, role_tools.worked, role_tools.restored, role_tools.run_as


LACKING = {
    ("stranger", "stats"): "grant the cluster privilege 'monitor' (on OpenSearch 'cluster_monitor').",
    ("neardupe-read", "enrich"): "neardupe-read lacks the permission 'indices:admin/refresh'",
    ("neardupe-read", "init --prefix other"): "neardupe-read lacks the permission 'indices:admin/mapping/put'",
    ("neardupe-enrich", "group --evidence"): f"{WORKED}-neardupe-pairs",
    ("neardupe-read", "groups --history"): f"{WORKED}-neardupe-groups",
    ("neardupe-init", "similar"): "neardupe-init lacks the permission 'indices:data/read/search'",
}
"""(user, command) -> text that the error line contains."""


def test_less_is_refused_in_one_line_that_names_what_lacks(run_as: As) -> None:
    lacking_is_named(run_as, LACKING)


@pytest.mark.parametrize("user", LIMITS)
def test_who_sees_a_part_is_refused_before_anything_is_written(user: str, run_as: As, admin: Client) -> None:
    """Hidden fields would be lost if documents were written back as a whole."""

    def written() -> Any:
        registry = versions(admin, HIDDEN_INDICES["groups"]).items()
        notes = {address: version for address, version in registry if not address[1].startswith("lease")}
        return theirs(admin, WORKED), versions(admin, WORKED), notes

    before = written()
    for name in ("enrich", "group", "watch", "migrate", "clean"):
        run = run_as(user, name)
        assert (run.code, run.out) == (1, ""), (name, run.err)
        found = f"sees only a part of the documents or fields of {WORKED}, and .* needs all of them|has no field 'text'"
        assert re.search(found, run.err), (name, run.err)
    assert "only a part" in run.err  # of `clean`, which reads no text
    assert written() == before


def test_doctor_says_that_opensearch_has_no_api_for_privileges(run_as: As) -> None:
    run = run_as("neardupe-read", "doctor")
    assert "OpenSearch has no API for this" in " ".join(run.out.split())


@pytest.mark.long
def test_a_role_is_enough_where_keys_are_beside(run_as: As, admin: Client) -> None:
    with_keys_beside(run_as, admin, 99)


def test_serve_sends_the_login_of_each_request(worked: Secured, admin: Client) -> None:
    """Instead of that of its own connection, which may do everything."""
    app = asgi(NearDupe(WORKED, admin), auth_proxy=True)
    site = TestClient(app, base_url="http://127.0.0.1")

    def status(address: str, name: str, password: str = PASSWORD) -> int:
        word = base64.b64encode(f"{name}:{password}".encode()).decode()
        answer = site.get(address, headers={"Authorization": f"Basic {word}"})
        return int(answer.status_code)

    assert status("/api/stats", "neardupe-read") == 200
    assert status("/api/decisions", "neardupe-read") == 403
    assert status("/api/stats", "stranger") == 403
    assert status("/api/stats", "neardupe-read", "wrong") == 401
    assert status("/compare?a=d0&b=d1", "admin") == 200
    assert status("/compare?a=d0&b=d1", "sees-some-documents") == 404  # d0 is hidden


@pytest.mark.usefixtures("restored")
def test_a_role_is_enough_for_its_commands(run_as: As) -> None:
    for role in ROLES:
        for name in role.commands:
            run = run_as(role.name, name)
            assert works(run) or (name == "doctor" and run.out), (name, run.err)


@pytest.mark.usefixtures("restored")
def test_an_index_beside_that_a_user_may_not_see(secured_opensearch_server: Secured, admin: Client, run_as: As) -> None:
    """A request for an index that does not exist is rejected for users without privileges on its name: treated as
    missing."""
    with secured_opensearch_server.client("neardupe-init") as client:
        NearDupe(WORKED, admin).clean()
        assert "sidecar" not in {one.name for one in NearDupe(WORKED, client).doctor()}
