"""`doctor` on real servers: the next step after each command. Other problems are in the tests of their subjects."""

from __future__ import annotations

import pytest
from conftest import Cli
from server_tools import change, family, make_index, put

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client


def test_doctor_before_init(client: Client, index_name: str, server_cli: Cli) -> None:
    """It reports whether the index can be used, and that init comes next; this is no error."""
    make_index(client, index_name, {"title": {"type": "text"}, "body": {"properties": {"en": {"type": "text"}}}})
    done = server_cli("doctor", index_name, "--json")
    levels = {one["name"]: one["level"] for one in done.json["checks"]}
    said = {one["name"]: one["message"] for one in done.json["checks"]}
    assert (done.code, levels.pop("scheme"), set(levels.values())) == (0, "warning", {"ok"})
    assert {"_source", "fields", "privileges", "blocks", "limits"} <= levels.keys()
    assert said["fields"] == f"text fields of {index_name}: body.en, title"
    assert f"es-neardupe init {index_name} --field FIELD" in said["scheme"]


def test_unknown_index(index_name: str, server_cli: Cli) -> None:
    done = server_cli("doctor", index_name, "--json")
    assert done.code == 1
    assert [one["level"] for one in done.json["checks"]] == ["ok", "error"]


def test_doctor_of_an_index_without_texts(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, {"number": {"type": "integer"}})
    done = server_cli("doctor", index_name, "--json")
    assert (done.code, [one["name"] for one in done.json["checks"] if one["level"] == "error"]) == (1, ["fields"])


def test_doctor_names_only_fields_that_init_takes(client: Client, index_name: str, server_cli: Cli) -> None:
    """Not those that others are copied to; a keyword, if there is no text."""
    make_index(client, index_name, {"body": {"type": "keyword", "copy_to": "all"}, "all": {"type": "text"}})
    said = {one["name"]: one["message"] for one in server_cli("doctor", index_name, "--json").json["checks"]}
    assert said["fields"] == f"{index_name} has no text field; `init` also takes body"
    assert server_cli("init", index_name, "--field", "body").code == 0


@pytest.mark.product("each")
def test_what_to_do_next(client: Client, index_name: str, server_cli: Cli) -> None:
    """From an index without settings to one with nothing left to do, and back."""

    def problems() -> dict[str, tuple[str, str]]:
        done = server_cli("doctor", index_name, "--json")
        found = {one["name"]: (one["level"], one["message"]) for one in done.json["checks"] if one["level"] != "ok"}
        assert done.code == int("error" in {level for level, _ in found.values()})
        return found

    make_index(client, index_name)
    put(client, index_name, {f"d{number}": {"text": text} for number, text in enumerate(family("doctor", 3))})
    level, message = problems().pop("scheme")
    assert (level, f"es-neardupe init {index_name}" in message) == ("warning", True)
    NearDupe(index_name, client).init(Settings(("text",)))
    assert {name: level for name, (level, _) in problems().items()} == {"documents": "warning"}
    NearDupe(index_name, client).enrich()
    assert {name: level for name, (level, _) in problems().items()} == {"groups": "warning"}
    NearDupe(index_name, client).group()
    assert problems() == {}
    change(client, index_name, "d0", {"neardupe": {"similarity": None}})
    assert list(problems()) == ["changes", "groups"]
