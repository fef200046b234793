"""`doctor` on real servers: the next step after each command. Other problems are in the tests of their subjects."""

from __future__ import annotations

import pytest
from conftest import Cli
from server_tools import change, family, make_index, put

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client, path


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


def test_several_indices(client: Client, index_name: str, server_cli: Cli) -> None:
    names = [f"{index_name}-{number}" for number in (1, 2)]
    for name in names:
        make_index(client, name)
    checks = server_cli("doctor", ",".join(names), "--json").json["checks"]
    assert [one["message"] for one in checks if one["name"] == "_source"] == [f"{one} holds the texts" for one in names]
    assert checks[-1]["message"].startswith(f"Indices {', '.join(names)} have no near-duplicate keys")


def test_a_hidden_index_that_is_blocked(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name)
    put(client, index_name, {f"d{number}": {"text": text} for number, text in enumerate(family("doctor", 3))})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    news.enrich()
    news.group()
    hidden = f"{index_name}-neardupe-groups"
    client.request("PUT", path(hidden, "_settings"), body={"index.blocks.write": True})
    (check,) = (one for one in news.doctor() if one.name == "blocks")
    assert check.level == "error"
    assert check.message.startswith(f"Index {hidden} is blocked for writing by index.blocks.write. ")
    assert f"PUT /{hidden}/_settings" in check.message


def test_rules_about_a_field_that_the_index_lacks(client: Client, index_name: str) -> None:
    """The index was created again with other fields, and kept its registry."""
    make_index(client, index_name, {"text": {"type": "text"}, "lang": {"type": "keyword"}})
    news = NearDupe(index_name, client)
    for fields in ({"text": {"type": "text"}, "lang": {"type": "keyword"}}, {"text": {"type": "text"}}):
        client.request("DELETE", path(index_name))
        make_index(client, index_name, fields)
        texts = family("doctor", 3)
        put(
            client,
            index_name,
            {f"d{n}": {"text": text, **dict.fromkeys([*fields][1:], "x")} for n, text in enumerate(texts)},
        )
        news.init(Settings(("text",)))
        news.enrich()
        if "lang" in fields:
            news.group(within=["lang"])
    (check,) = (one for one in news.doctor() if one.name == "groups")
    assert (check.level, f"`es-neardupe group {index_name} --default-rules`" in check.message) == ("error", True)


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
