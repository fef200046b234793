"""Documents that a run left are named with the reason, in the report and in the file of ``--failures``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from server_tools import check_left, family, make_index, put

from es_neardupe import NearDupe, Settings
from es_neardupe.cli import connection
from es_neardupe.index.storage.sidecar.indices import sidecar_name
from es_neardupe.server.client import Client, ForwardingClient, path
from es_neardupe.server.failures import Failure

SETTINGS = Settings(("text",))
PROPERTIES = {"text": {"type": "text"}, "parts": {"type": "nested", "properties": {"n": {"type": "integer"}}}}
PARTS = [{"n": 1}, {"n": 2}, {"n": 3}]


def limit_parts(client: Client, index: str, number: int) -> None:
    """From now on, the server rejects updates of documents with more nested parts."""
    client.request("PUT", path(index, "_settings"), body={"index.mapping.nested_objects.limit": number})


def fill(client: Client, index: str) -> None:
    """Near-duplicates, of which ``d1`` and ``d4`` have parts, and ``d4`` has a routing."""
    make_index(client, index, PROPERTIES)
    texts = dict(zip(("d0", "d1", "d2", "d3", "d4"), family(index, 5), strict=True))
    put(
        client,
        index,
        {id: {"text": texts[id]} for id in ("d0", "d2", "d3")} | {"d1": {"text": texts["d1"], "parts": PARTS}},
    )
    put(client, index, {"d4": {"text": texts["d4"], "parts": PARTS}}, routing="r")


def named(failures: Iterable[Failure]) -> set[tuple[str, str, str, str | None]]:
    return {(one.kind, one.index, one.id, one.routing) for one in failures}


@pytest.mark.product("each")
def test_rejected_updates(server_cli: Cli, client: Client, index_name: str, tmp_path: Path) -> None:
    """Every command names the documents, and so does a file."""
    fill(client, index_name)
    one, file = NearDupe(index_name, client), tmp_path / "failures.jsonl"
    rejected = {("refused", index_name, "d1", None), ("refused", index_name, "d4", "r")}
    one.init(SETTINGS)
    limit_parts(client, index_name, 1)

    done = server_cli("enrich", index_name, "--failures", str(file), "--json")
    assert done.code == 1
    (report,) = done.lines
    left = report["writes"]["left_documents"]
    assert named(Failure(**line) for line in left) == rejected
    assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == left
    assert all("nested" in line["reason"] for line in left)
    assert f"'d4' of {index_name} (refused)" in done.err
    assert f"Wrote {file}" in done.err
    assert not one.enrich(dry_run=True).writes.left_documents

    limit_parts(client, index_name, 100)
    done = server_cli("enrich", index_name, "--failures", str(file))
    assert (done.code, file.read_text("utf-8")) == (0, "")
    assert "Documents left" not in done.err

    limit_parts(client, index_name, 1)
    grouped = one.group().writes
    assert named(grouped.left_documents) <= rejected
    assert grouped.refused > 0
    check_left(grouped)
    migrated = one.migrate(threshold=0.6, prepare=True).writes
    assert (named(migrated.left_documents), len(migrated.left_documents)) == (rejected, migrated.left)
    done = server_cli("migrate", index_name, "--yes", "--failures", str(file.with_suffix(".csv")))
    assert done.code == 1
    assert len(file.with_suffix(".csv").read_text("utf-8-sig").splitlines()) == 3
    one.migrate(abort=True)
    done = server_cli("watch", index_name, "--once", "--json", "--failures", str(file))
    written = done.lines[0]["writes"]
    assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == written["left_documents"]
    assert len(written["left_documents"]) == written["left"] > 0
    cleaned = one.clean().writes
    assert named(cleaned.left_documents) == rejected
    check_left(cleaned)


def test_rejected_group_ids(server_cli: Cli, client: Client, index_name: str) -> None:
    """The documents are named by their own index, not by the sidecar index."""
    fill(client, index_name)
    one = NearDupe(index_name, client)
    one.init(SETTINGS, sidecar=True, write_group=True)
    limit_parts(client, index_name, 1)
    writes = one.enrich().writes
    assert not writes.left
    assert writes.mirrored is not None
    assert named(writes.mirrored.left_documents) == {
        ("refused", index_name, "d1", None),
        ("refused", index_name, "d4", "r"),
    }
    check_left(writes)
    done = server_cli("enrich", index_name)
    assert done.code == 1
    assert "The server rejected: " in done.err
    assert "2 documents were rejected by the server: correct them or the index" in done.err


class Restless(ForwardingClient):
    """Another client writes all documents of an index before each bulk request."""

    def __init__(self, client: Client, index: str, ids: Iterable[str]) -> None:
        super().__init__(client)
        self._touched = [path(index, "_update", id) for id in ids]

    def bulk(self, body: bytes, **options: Any) -> Any:
        for one in self._touched:
            self.plain.request("POST", one, body={"doc": {}, "detect_noop": False})
        return self.plain.bulk(body, **options)


@pytest.mark.parametrize("sidecar", [False, True])
def test_documents_that_keep_changing(client: Client, index_name: str, sidecar: bool) -> None:
    texts = dict(zip(("d0", "d1"), family(index_name, 2), strict=True))
    make_index(client, index_name)
    one = NearDupe(index_name, client)
    one.init(SETTINGS, sidecar=sidecar)

    def fill() -> None:
        put(client, index_name, {id: {"text": text} for id, text in texts.items()})

    fill()
    one.enrich()
    touched = sidecar_name(index_name, "neardupe") if sidecar else index_name
    disturbed = NearDupe(index_name, Restless(client, touched, texts))
    every = {("conflict", index_name, id, None) for id in texts}

    commands: list[Callable[[], Any]] = [disturbed.enrich, disturbed.group]
    if not sidecar:
        commands.append(disturbed.clean)
    for command in commands:
        fill()
        if command != disturbed.enrich:
            one.enrich()
        writes = command().writes
        assert writes.conflicts > 0
        assert named(writes.left_documents) <= every
        check_left(writes)
    one.migrate(threshold=0.6, prepare=True)
    migrated = disturbed.migrate().writes
    assert (named(migrated.left_documents), migrated.left) == (every, 2)
    assert not one.migrate().writes.left_documents


LEFT = {
    "conflict": "{} changed meanwhile: run the same command again.",
    "refused": "{} were rejected by the server: correct them or the index, then run the same command again.",
    "failed": "{} were not written: resolve the reasons above, then run the same command again.",
}
"""Kind -> what a command says about the number of such documents."""
REASONS = {"refused": ["The server rejected"], "failed": ["Not written"]}
"""Kind -> how its reasons begin."""


@pytest.mark.parametrize("kind", LEFT)
def test_what_commands_say_about_documents_left(
    server_cli: Cli, client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Each command names the documents, the reasons, their number and what to do. Documents that changed are a failure
    only of a command that is not finished without them."""
    make_index(client, index_name, PROPERTIES | {"number": {"type": "double"}})
    ids = ("d0", "d1", "d2")
    lines = [
        f'{{"index": {{"_index": "{index_name}", "_id": "{id}"}}}}\n'
        f'{{"text": "{text}", "number": 0.12345678901234567890123, "parts": [{{}}, {{}}]}}\n'
        for id, text in zip(ids, family(index_name, 3), strict=True)
    ]
    client.bulk("".join(lines).encode(), params={"refresh": "true"})
    client.request("PUT", path("_ingest", "pipeline", f"{index_name}-final"), body={"processors": []})
    connected = connection.connect_to

    def disturb(on: bool) -> None:
        """Let the documents be left by the next command, or not."""
        if kind == "conflict":
            restless = (lambda **given: Restless(connected(**given), index_name, ids)) if on else connected
            monkeypatch.setattr(connection, "connect_to", restless)
        elif kind == "refused":
            limit_parts(client, index_name, 1 if on else 100)
        else:
            pipeline = f"{index_name}-final" if on else None
            client.request("PUT", path(index_name, "_settings"), body={"index.final_pipeline": pipeline})

    NearDupe(index_name, client).init(SETTINGS)
    for command in (["enrich"], ["group"], ["migrate", "--threshold", "0.6", "--yes"], ["clean", "--yes"]):
        disturb(True)
        done = server_cli(command[0], index_name, *command[1:])
        said = done.err.splitlines()
        named = ", ".join(f"{id!r} of {index_name} ({kind})" for id in ids if (command[0], id) != ("group", "d0"))
        assert f"Documents left: {named}." in said
        number = "2 documents" if command[0] == "group" else "3 documents"
        expected = LEFT[kind].format(number)
        if (kind, command[0]) == ("conflict", "group"):
            expected = f"{number} changed meanwhile: run enrich and group."
        assert [line for line in said if line.startswith(number)] == [expected]
        reasons = [line for line in said if line.startswith(("The server rejected: ", "Not written: "))]
        assert {line.partition(": ")[0] for line in reasons} == set(REASONS.get(kind, ()))
        assert done.code == int(kind != "conflict" or command[0] in ("migrate", "clean"))
        disturb(False)
        assert server_cli(command[0], index_name, *command[1:][-1:]).code == 0


def test_loaded_documents(server_cli: Cli, client: Client, index_name: str, tmp_path: Path) -> None:
    """A document that the server rejects is named; a bad line is none."""
    make_index(client, index_name, {"text": {"type": "text"}, "n": {"type": "integer"}})
    NearDupe(index_name, client).init(SETTINGS)
    file, failures = tmp_path / "in.jsonl", tmp_path / "failures.jsonl"
    lines = [{"id": f"d{n}", "text": f"text {n}", "n": "many"} for n in range(5)]
    file.write_text("\n".join([*map(json.dumps, lines), "no JSON"]), "utf-8")
    done = server_cli("load", index_name, str(file))
    assert done.code == 1
    assert "'d0'" in done.err
    assert "and 2 more. All of them: --failures FILE." in done.err
    done = server_cli("load", index_name, str(file), "--failures", str(failures))
    found = [json.loads(line) for line in failures.read_text("utf-8").splitlines()]
    assert [line["id"] for line in found] == [line["id"] for line in lines]
    assert {line["kind"] for line in found} == {"refused"}
    assert "--failures" not in done.err


def test_a_file_that_cannot_be_written(server_cli: Cli, client: Client, index_name: str, tmp_path: Path) -> None:
    """It is an error before the work."""
    make_index(client, index_name)
    NearDupe(index_name, client).init(SETTINGS)
    put(client, index_name, {"a": {"text": "one two three"}})
    for file, why in ((tmp_path / "no" / "folder.jsonl", "does not exist"), (tmp_path / "x.txt", "unknown ending")):
        done = server_cli("enrich", index_name, "--failures", str(file))
        assert done.code in (1, 2)
        assert why in done.err
    assert NearDupe(index_name, client).enrich(dry_run=True).writes.written == 1
