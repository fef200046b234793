"""`doctor` on real servers: what lacks, command by command. (Each kind of problem is in the tests of its subject.)"""

from __future__ import annotations

from conftest import Cli
from server_tools import change, family, make_index, put

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client


def test_doctor_tells_of_an_unknown_index(index_name: str, server_cli: Cli) -> None:
    done = server_cli("doctor", index_name, "--json")
    assert done.code == 1
    assert [one["level"] for one in done.json["checks"]] == ["ok", "error"]


def test_what_to_do_next(client: Client, index_name: str, server_cli: Cli) -> None:
    """From an index that was never prepared to one in which nothing is left to do, and back."""

    def problems() -> dict[str, tuple[str, str]]:
        done = server_cli("doctor", index_name, "--json")
        found = {one["name"]: (one["level"], one["message"]) for one in done.json["checks"] if one["level"] != "ok"}
        assert done.code == int("error" in {level for level, _ in found.values()})
        return found

    make_index(client, index_name)
    put(client, index_name, {f"d{number}": {"text": text} for number, text in enumerate(family("doctor", 3))})
    level, message = problems().pop("scheme")
    assert (level, f"es-neardupe init {index_name}" in message) == ("error", True)
    NearDupe(index_name, client).init(Settings(("text",)))
    assert {name: level for name, (level, _) in problems().items()} == {"documents": "warning"}
    NearDupe(index_name, client).enrich()
    assert {name: level for name, (level, _) in problems().items()} == {"groups": "warning"}
    NearDupe(index_name, client).group()
    assert problems() == {}
    change(client, index_name, "d0", {"neardupe": {"similarity": None}})
    assert list(problems()) == ["groups"]
