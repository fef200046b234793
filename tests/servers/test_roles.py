"""The roles of docs/roles.md are enough for their commands, and for no others: on a real Elasticsearch."""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import every_command
import pytest
import role_tools
import typer
from docs_pages import section, table
from role_tools import (
    COMING,
    HIDDEN_INDICES,
    TEXTS,
    As,
    decide,
    delete_worked,
    lacking_is_named,
    make_worked,
    with_keys_beside,
    works,
)
from secured import Secured
from secured_users import ALIAS, KEPT_NAMES, WORKED, documented, less, names_beside
from server_tools import change, put

from es_neardupe import NearDupe, Settings
from es_neardupe.cli.app import app
from es_neardupe.commands.doctor.roles import ROLES, Role
from es_neardupe.errors import Forbidden
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

SELDOM = {"neardupe-evidence-less-2-delete"} | {f"neardupe-migrate-less-{place}-delete" for place in (1, 2, 4)}
OPTIONAL = {name for name in less() if name.endswith("-monitor") or name.startswith("neardupe-enrich-less-1-")}
"""Privileges needed only if the former registry, or an earlier run, left entries that the new groups do not have."""

WITHOUT_INDEX = {"bands", "demo", "help", "version"}

IN_WORDS = {"fold", "mcp", "pipeline", "serve"}
"""Commands that need privileges on the pipelines of the cluster, or run others: docs/roles.md names them in words."""


def names() -> list[str]:
    """All commands, and those of them with an option that needs more privileges."""
    return [command for role in ROLES for command in role.commands]


def test_every_command_has_a_role() -> None:
    known = {name for name in every_command.names() if " " not in name}
    assert {name.partition(" ")[0] for name in names()} == known - WITHOUT_INDEX - IN_WORDS
    assert all(f"- `{name}`" in section("roles.md", "Roles") for name in IN_WORDS)
    assert len(names()) == len(set(names()))


def test_the_page_shows_the_roles_of_the_program() -> None:
    shown = documented()
    assert list(shown) == [role.name for role in ROLES]
    for role in ROLES:
        assert shown[role.name] == role.body(role.privileges(names_beside("news")))
    beside = {role.name: role.sidecars for role in ROLES if role.commands_for(KEPT_NAMES)}
    rows = table(section("roles.md", "Sidecar"))
    assert rows == [[f"`{name}`", ", ".join(f"`{one}`" for one in some)] for name, some in beside.items()]
    rows = table(section("roles.md", "Roles"))
    assert rows == [[f"`{role.name}`", ", ".join(f"`{one}`" for one in role.commands)] for role in ROLES]


def test_commands_are_those_of_the_program() -> None:
    program: Any = typer.main.get_command(app)
    commands = program.commands
    for name in names():
        word, _, option = name.partition(" ")
        assert not option or option in {one for parameter in commands[word].params for one in parameter.opts}


@pytest.fixture(scope="module")
def secured(secured_server: Secured) -> Secured:
    """The server of the fixtures below."""
    return secured_server


admin, worked, restored, run_as = role_tools.admin, role_tools.worked, role_tools.restored, role_tools.run_as


INCLUDED = {"manage": ("view_index_metadata", "maintenance", "create_index", "delete_index", "monitor")}
"""Privileges of Elasticsearch that include others."""

LACKING = {
    ("stranger", "stats"): f"stranger lacks the index privilege 'view_index_metadata' on {WORKED}",
    ("stranger", "init"): f"lacks the index privilege 'view_index_metadata' on {WORKED}",
    ("neardupe-read", "enrich"): f"neardupe-read lacks the index privilege 'maintenance' on {WORKED}",
    ("neardupe-read", "load"): "privilege",
    ("neardupe-read", "init --prefix other"): f"lacks the index privilege 'manage' on {WORKED}",
    ("neardupe-read", "clean"): f"lacks the index privilege 'view_index_metadata' on {HIDDEN_INDICES['groups']}",
    ("neardupe-analyse", "clean"): "lacks the index privilege 'delete_index' on the hidden indices "
    f"{', '.join(HIDDEN_INDICES.values())}",
    ("neardupe-read", "audit"): f"lacks the index privilege 'view_index_metadata' on {HIDDEN_INDICES['groups']}",
    ("neardupe-read", "what-if"): f"on {HIDDEN_INDICES['groups']}",
    ("neardupe-read", "groups --history"): f"on {HIDDEN_INDICES['groups']}",
    ("neardupe-enrich", "group --evidence"): f"on {HIDDEN_INDICES['pairs']}",
    ("neardupe-group", "group --evidence"): f"on {HIDDEN_INDICES['pairs']}",
    ("neardupe-enrich", "enrich --tune"): "grant the privilege `manage` on it",
    ("neardupe-group", "migrate"): "grant the privilege `manage` on it",
    ("neardupe-init", "migrate"): "lacks the index privilege",
    ("neardupe-init", "similar"): "neardupe-init lacks the index privilege 'read' on",
}
"""(user, command) -> text that the error line contains."""


def test_less_is_refused_in_one_line_that_names_what_lacks(run_as: As, worked: Secured) -> None:
    lacking_is_named(run_as, LACKING)
    lacks_at_the_end = f"lacks the index privilege 'delete_index' on the hidden indices {', '.join(COMING)}"
    with worked.client("neardupe-group") as client, pytest.raises(Forbidden, match=lacks_at_the_end):
        NearDupe(WORKED, client).migrate(threshold=0.7)


def test_doctor_says_beforehand(worked: Secured) -> None:
    """A command is reported as possible exactly if the user has the role for it; missing everyday privileges are
    errors."""
    for role in ROLES:
        if "read" not in role.index:
            continue  # may not even read
        with worked.client(role.name) as client:
            checks = [one for one in NearDupe(WORKED, client).doctor() if one.name == "privileges"]
        assert len(checks) == len(ROLES)
        for other, check in zip(ROLES, checks, strict=True):
            names = names_beside(WORKED)
            required, optional = other.required(names), other.optional_privileges(names)
            refused = lacks(role, required)
            lacking = refused or lacks(role, optional)  # optional ones are named only if no other is missing
            does = "may not run" if refused else "may run"
            assert check.message.startswith(f"{role.name} {does} {', '.join(other.commands)}")
            level = "error" if refused else "warning" if lacking else "ok"
            assert check.level == (level if other.everyday else "ok")
            assert ("without noticing changed texts" in check.message) == bool(lacking and not refused)
            assert check.message.endswith(f"lacks {' and '.join(lacking)}" if lacking else other.commands[-1])


def lacks(role: Role, needed: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The privileges that the role lacks, as `doctor` names them."""
    has = role.privileges(names_beside(WORKED))
    found = []
    for name, some in needed.items():
        granted = {one for privilege in has.get(name, ()) for one in (privilege, *INCLUDED.get(privilege, ()))}
        if lacking := [one for one in some if one not in granted]:
            found.append(f"{', '.join(lacking)} on {name}")
    return found


def test_rights_on_an_alias_alone(worked: Secured, admin: Client) -> None:
    """Requests name the indices behind an alias, so privileges on the alias alone are not enough, and the error names
    them."""
    admin.request("PUT", path(WORKED, "_alias", ALIAS))
    with worked.client("alias-user") as client, pytest.raises(Forbidden, match=f"on {WORKED}"):
        NearDupe(ALIAS, client).stats()


def test_client_certificates_log_in(worked: Secured) -> None:
    """Authentication by TLS alone, without a password, with the privileges of the user that the certificate names."""
    pem = worked.certificates["neardupe-read"]
    certificate: dict[str, Any] = {"client_cert": str(pem.cert), "client_key": str(pem.key)}
    ways: list[dict[str, Any]] = [{"ca_certs": str(worked.ca_file)}, {"cert_fingerprint": worked.tls.of_authority}]
    for trust in ways:
        client = connect(ConnectionSettings(worked.url, **certificate, **trust))
        assert NearDupe(WORKED, client).stats().scope.documents == len(TEXTS)
        with pytest.raises(Forbidden, match="neardupe-read lacks"):
            NearDupe(WORKED, client).enrich(all=True)
        client.close()


@pytest.mark.long
@pytest.mark.parametrize("user", sorted(less().keys() - SELDOM - OPTIONAL))
def test_no_privilege_can_be_left_out(user: str, run_as: As, admin: Client) -> None:
    """Without any one of them, a command of the role is rejected."""
    name, lacks, _ = less()[user]
    (role,) = [one for one in ROLES if one.name == name]
    put(admin, WORKED, {user: {"text": f"{TEXTS['d0']} {user}", "url": f"/{user}", "date": "2024-01-01"}})
    if "enrich" not in role.commands:  # so that there is something to write
        NearDupe(WORKED, admin).enrich()
    decide(admin, WORKED)
    if "create_index" in lacks:
        kind = lacks.rpartition("-")[2]  # of the index that `enrich` has made, too
        admin.request("DELETE", path(HIDDEN_INDICES[kind]), params={"ignore_unavailable": True})
    commands = ["init --prefix other"] if role.commands == ("init",) else role.commands
    runs = [run_as(user, one) for one in commands]
    if name == "neardupe-migrate":  # it may have stopped at any point
        delete_worked(admin)
        make_worked(admin)
    else:
        NearDupe(WORKED, admin).init(Settings(("text",), sample_mod=4))
        NearDupe(WORKED, admin).enrich()
        NearDupe(WORKED, admin).group(evidence=True)
    assert [run.err for run in runs if run.code == 1 and ("lacks" in run.err or "privilege" in run.err)], lacks


@pytest.mark.parametrize("user", ["neardupe-enrich-less-0-monitor", "neardupe-enrich-less-1-index"])
def test_without_optional_privileges_enrich_reports_that_it_notices_no_changes(
    user: str, run_as: As, admin: Client
) -> None:
    """And what is missing; a user who has them notices the change."""
    NearDupe(WORKED, admin).enrich()
    admin.request("DELETE", path(HIDDEN_INDICES["groups"], "_doc", "feed"))
    change(admin, WORKED, "d1", {"text": f"{TEXTS['d1']} {user}"})
    run = run_as(user, "enrich --json")
    assert run.code == 0
    assert (run.json["scope"]["read"], run.json["writes"]["written"]) == (run.json["scope"]["documents"], 1)
    (reason,) = run.json["scope"]["reread"].values()
    assert reason.startswith(f"{user} lacks the index privilege '{user.rpartition('-')[2]}' on {WORKED}")
    assert reason in " ".join(run.err.split())
    change(admin, WORKED, "d2", {"text": f"{TEXTS['d2']} {user}"})
    assert run_as("neardupe-enrich", "enrich --check").code == 0
    change(admin, WORKED, "d3", {"text": f"{TEXTS['d3']} {user}"})
    assert run_as("neardupe-enrich", "enrich --json").json["writes"]["written"] == 1
    for id in ("d1", "d2", "d3"):
        change(admin, WORKED, id, {"text": TEXTS[id]})
    NearDupe(WORKED, admin).enrich()
    NearDupe(WORKED, admin).group(evidence=True)


@pytest.mark.parametrize("maximum", [1, pytest.param(99, marks=pytest.mark.long)])
def test_a_role_is_enough_where_keys_are_beside(maximum: int, run_as: As, admin: Client) -> None:
    with_keys_beside(run_as, admin, maximum)


@pytest.mark.usefixtures("restored")
def test_a_role_is_enough_for_its_commands(
    run_as: As, worked: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No command shows the password, at any log level."""
    caplog.set_level(logging.DEBUG)
    for role in ROLES:
        login = f"{role.name}:{worked.users[role.name].password}"
        secrets = (worked.users[role.name].password, base64.b64encode(login.encode()).decode())
        for name in role.commands:
            caplog.clear()
            (tmp_path / "page.html").unlink(missing_ok=True)
            run = run_as(role.name, name)
            assert "lacks" not in run.err, (name, run.err)
            assert works(run) or name == "doctor", (name, run.err)
            assert (tmp_path / "page.html").exists() == (name in ("compare", "duplicates"))
            files = [file.read_text("utf-8", "replace") for file in tmp_path.rglob("*") if file.is_file()]
            assert "HTTPS connection" in caplog.text  # urllib3 does log
            assert [one for one in secrets if one in "".join((run.out, run.err, caplog.text, *files))] == []
