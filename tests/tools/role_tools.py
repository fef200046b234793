"""Commands run by users of a secured server, each with the privileges of one role."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from conftest import Cli, Run
from secured import Secured
from secured_users import KEPT, KEPT_NAMES, WORKED
from server_tools import TEXT, delete_all, exists, family, make_index, put, theirs

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.doctor.roles import ROLES
from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.server.client import Client, path

HIDDEN_INDICES = {kind: f"{WORKED}-neardupe-{kind}" for kind in ("groups", "pairs", "decisions")}
COMING = [f"{WORKED}-neardupe_next-{kind}" for kind in ("groups", "pairs")]
TEXTS = {f"d{k}": text for k, text in enumerate(family("roles", 4, length=60))}
REQUEST = example("identical-titles").replace('"title"', '"text"')

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "init": ("--field", "text", "--sample-mod", "4"),
    "load": ("FILE",),
    "enrich": ("--all",),
    "enrich --json": (),
    "enrich --check": (),
    "group": ("--rebuild",),
    "group --evidence": ("--rebuild",),
    "watch": ("--once",),
    "similar": ("--id", "d0"),
    "contained": ("--id", "d0"),
    "search": ("*",),
    "documents": ("--by", "url"),
    "moved": ("/d0",),
    "duplicates": ("--request", "REQUEST", "--html", "PAGE"),
    "compare": ("d0", "d1", "--html", "PAGE"),
    "shingles": ("d0",),
    "groups --history": ("GROUP",),
    "pairs --ignore-common": ("0.5",),
    "contained --ignore-common": ("0.5", "--id", "d0"),
    "what-if": ("--min", "0.9"),
    "clean": ("--yes", "--decisions"),
    "migrate": ("--threshold", "0.7", "--evidence", "--tune", "--yes"),
}
"""Arguments of each command, in addition to the index."""


def _fill(admin: Client, index: str) -> None:
    make_index(admin, index, TEXT | {"url": {"type": "keyword"}, "date": {"type": "date"}})
    put(admin, index, {id: {"text": text, "url": f"/{id}", "date": "2024-01-01"} for id, text in TEXTS.items()})


def make_worked(admin: Client) -> None:
    _fill(admin, WORKED)
    NearDupe(WORKED, admin).init(Settings(("text",), sample_mod=4))
    NearDupe(WORKED, admin).enrich()
    NearDupe(WORKED, admin).group(evidence=True)
    decide(admin, WORKED)
    # one of an application, which the users may not read
    admin.request("PUT", path("_ingest", "pipeline", f"{WORKED}-theirs"), body={"processors": []})
    admin.request("PUT", path(WORKED, "_settings"), body={"index.default_pipeline": f"{WORKED}-theirs"})


def decide(admin: Client, index: str) -> None:
    """A decision that waits for `group`."""
    found = NearDupe(index, admin)
    found.withdraw([one.id for one in found.decisions()])
    found.decide("same", "d0", ["d1"], author="admin")


def delete_worked(admin: Client) -> None:
    delete_all(admin, WORKED)


As = Callable[..., Run]
"""Run a command, by the name that its role has for it, as a user: on `WORKED`, or on another index."""


def runner(server: Secured, admin: Client, cli: Cli, monkeypatch: pytest.MonkeyPatch, folder: Path) -> As:
    """A function that runs a command as one of the users of a server, with its `ARGUMENTS`."""
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(folder))
    files = {"FILE": folder / "more.jsonl", "REQUEST": folder / "request.json", "PAGE": folder / "page.html"}
    files["FILE"].write_text(json.dumps({"id": "more", "text": "another text of six words here"}), "utf-8")
    files["REQUEST"].write_text(REQUEST, "utf-8")

    def run(user: str, name: str, index: str = WORKED) -> Run:
        for variable, value in server.environment(user).items():
            monkeypatch.setenv(variable, value)
        word, *options = name.split()
        values = [str(files.get(one, one)) for one in ARGUMENTS.get(name, ARGUMENTS.get(word, ()))]
        if "GROUP" in values:
            values = [NearDupe(index, admin).groups()[0].group if one == "GROUP" else one for one in values]
        return cli(word, index, *options, *values)

    return run


@pytest.fixture(scope="module")
def admin(secured: Secured) -> Iterator[Client]:
    """A test file has a fixture ``secured``, its server, and assigns these fixtures to names of its own."""
    with secured.client("admin") as client:
        yield client


@pytest.fixture(scope="module")
def worked(secured: Secured, admin: Client) -> Iterator[Secured]:
    """An index that every command can be tried on, with its registry and evidence."""
    make_worked(admin)
    yield secured
    delete_worked(admin)


@pytest.fixture
def restored(worked: Secured, admin: Client) -> Iterator[None]:
    """The index is made again after the test."""
    yield
    delete_worked(admin)
    make_worked(admin)


@pytest.fixture
def run_as(worked: Secured, admin: Client, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> As:
    return runner(worked, admin, cli, monkeypatch, tmp_path)


def with_keys_beside(run: As, admin: Client, maximum: int) -> None:
    """The privilege to read the index is enough for every command with a sidecar, from `init` to `clean`. ``maximum``:
    number of commands of each role."""
    try:
        _fill(admin, KEPT)
        before = theirs(admin, KEPT)
        done = run("neardupe-init-beside", "init --sidecar", KEPT)
        assert done.code == 0, done.err
        NearDupe(KEPT, admin).enrich()
        NearDupe(KEPT, admin).group(evidence=True)
        decide(admin, KEPT)
        for role in sorted(ROLES, key=lambda one: one.name == "neardupe-clean"):
            for name in role.commands_for(KEPT_NAMES)[:maximum] if role.name != "neardupe-init" else ():
                done = run(f"{role.name}-beside", name, KEPT)
                assert "lacks" not in done.err, (name, done.err)
                assert works(done) or name == "doctor", (name, done.err)
        assert theirs(admin, KEPT) == before
        assert not [name for name in (*KEPT_NAMES.sidecars, *KEPT_NAMES.coming_sidecars) if exists(admin, name)]
    finally:
        delete_all(admin, KEPT)


def lacking_is_named(run: As, lacking: Mapping[tuple[str, str], str]) -> None:
    """Each (user, command) is rejected in one line that contains these words."""
    for (user, name), words in lacking.items():
        done = run(user, name)
        assert (done.code, done.out) == (1, ""), (user, name, done.err)
        (line,) = done.err.splitlines()
        assert line.startswith("error: "), (user, name, line)
        assert words in line, (user, name, line)


def works(run: Run) -> bool:
    """Whether the privileges were enough: the command succeeded, or failed for lack of documents, which is checked
    later."""
    return run.code == 0 or "too few" in run.err
