"""`init` on real servers: the added mapping, and rejected settings and indices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bad_input import fill, refused
from conftest import Cli
from existing_index import existing_index
from server_tools import JSON, exists, family, make_index, mapping, one_line, put, versions

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import NotFound, SettingsError
from es_neardupe.options import Versions
from es_neardupe.server.client import Client


@pytest.fixture(scope="module")
def filled(client: Client, shared_index: str) -> str:
    """An index for all tests that change nothing."""
    fill(client, shared_index)
    return shared_index


@pytest.mark.product("each")
def test_init_keeps_existing_fields_and_documents(client: Client, index_name: str) -> None:
    existing_index(client, index_name)
    before, written = mapping(client, index_name), versions(client, index_name)
    dry = NearDupe(index_name, client).init(Settings(("text",)), dry_run=True)
    assert mapping(client, index_name) == before
    report = NearDupe(index_name, client).init(Settings(("text",)))
    assert dry.prepared == report.prepared == (index_name,)
    after = mapping(client, index_name)
    assert after["properties"].pop("neardupe")["dynamic"] == "strict"
    meta = after["_meta"].pop("neardupe")
    assert meta["id"] == report.scheme == Settings(("text",)).scheme.id
    assert json.dumps(after["_meta"], sort_keys=True) == json.dumps(before["_meta"], sort_keys=True)
    assert after == before
    assert versions(client, index_name) == written

    again = mapping(client, index_name)
    assert NearDupe(index_name, client).init(Settings(("text",))).prepared == ()
    assert mapping(client, index_name) == again


@pytest.mark.parametrize("set_by", [None, Versions.EXTERNAL])
def test_a_template_before_there_is_an_index(client: Client, index_name: str, set_by: Versions | None) -> None:
    """It has the fields and the settings that `init` adds to an index; nothing is created."""
    report = NearDupe(index_name, client).init(Settings(("text",)), versions=set_by, template=True)
    assert (report.prepared, report.created, report.dry_run) == ((), False, True)
    assert report.template is not None
    with pytest.raises(NotFound):
        mapping(client, index_name)
    make_index(client, index_name)
    NearDupe(index_name, client).init(Settings(("text",)), versions=set_by)
    added = report.template["template"]["mappings"]
    assert added["_meta"] == mapping(client, index_name)["_meta"]
    assert added["properties"]["neardupe"] == mapping(client, index_name)["properties"]["neardupe"]


@pytest.mark.parametrize("name", ["_all", "_mapping", "", "a b", "UPPER", "a/b", "..", '"', "a#b", "a,_all"])
def test_invalid_names(name: str, server_cli: Cli, client: Client, index_name: str) -> None:
    done = server_cli("init", name, "--field", "text", "--create")
    one_line(done.err)
    assert done.code == 2
    if name == "a b":
        new = server_cli("init", index_name, "--field", "title,body", "--create")
        assert "'title,body' is one field with a comma in its name: repeat --field for each." in new.err
        assert not exists(client, index_name)
    if name == "UPPER":
        assert "error: A new index cannot have the name 'UPPER': use 'upper'." in done.err


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("name", ["x*", "x,y", "x:y", "ü" * 128])
def test_names_that_no_new_index_can_have(name: str, dry_run: bool, client: Client) -> None:
    """A template is for all indices that match a pattern."""
    with pytest.raises(SettingsError, match="use at most 255 bytes, without"):
        NearDupe(name, client).init(Settings(("text",)), create=True, dry_run=dry_run)
    assert NearDupe("new-test-*", client).init(Settings(("text",)), template=True).template is not None


def test_the_name_of_an_index_is_suggested(client: Client, filled: str, server_cli: Cli) -> None:
    for wrong in (filled[:-1], f"{filled}s", filled.upper()):
        refused(server_cli("stats", wrong), f"There is no index {wrong!r}. Did you mean {filled}?", code=1)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("absent", ("has no field 'absent'", "Its text fields: body.en, text.")),
        ("text.raw", ("text.raw is a multi-field", "name text itself")),
        ("body", ("'body'", "Its text fields: body.en, text.")),
        ("body.en,text", ("has no field 'body.en,text'. To join several, repeat --field.",)),
        ("neardupe.bands", ("Fields under the prefix",)),
        ("", ("--field",)),
    ],
)
def test_fields_that_are_no_text(
    field: str, words: tuple[str, ...], client: Client, filled: str, server_cli: Cli
) -> None:
    before = mapping(client, filled), versions(client, filled)
    wrong = field in ("", "neardupe.bands")  # for any index
    refused(server_cli("init", filled, "--field", field), *words, code=2 if wrong else 1)
    assert (mapping(client, filled), versions(client, filled)) == before


def test_each_message_about_a_field_names_one_that_works(client: Client, index_name: str, server_cli: Cli) -> None:
    """A multi-field, an alias and a field that copies of others are indexed in have no texts in _source."""
    fields = {
        "body": {"type": "keyword", "fields": {"t": {"type": "text"}}},
        "named": {"type": "alias", "path": "body"},
        "title": {"type": "text", "copy_to": ["all", "other"]},
        "lead": {"type": "text", "copy_to": "all"},
        "all": {"type": "text"},
        "other": {"type": "text"},
        "size": {"type": "integer"},
    }
    make_index(client, index_name, fields)
    put(client, index_name, {f"d{n}": {"body": text, "title": text} for n, text in enumerate(family("fields", 3))})
    for field, words in (
        ("body.t", "name body itself"),
        ("named", "name body itself"),
        ("all", "copied from lead, title by copy_to, and _source does not contain them: name lead and title instead."),
        ("size", "is integer, not text"),
    ):
        refused(server_cli("init", index_name, "--field", field), words, code=1)
    NearDupe(index_name, client).init(Settings(("body",)))
    assert NearDupe(index_name, client).enrich().writes.states == {"signed": 3}
    NearDupe(index_name, client).clean()
    NearDupe(index_name, client).init(Settings(("lead",)))
    done = server_cli("enrich", index_name)
    assert f"3 of 3 documents have no text: `es-neardupe doctor {index_name}` shows their fields." in done.err
    checks = server_cli("doctor", index_name).out
    assert "3 of 3 have no text in lead: if their texts are in other fields" in " ".join(checks.split())
    NearDupe(index_name, client).migrate(fields=["title"])
    assert NearDupe(index_name, client).enrich(check=True).writes.unchanged == 3


@pytest.mark.parametrize(
    ("source", "word"),
    [({"enabled": False}, "disabled"), ({"excludes": ["body"]}, "excludes"), ({"includes": ["text"]}, "includes")],
)
@pytest.mark.product("each")
def test_incomplete_source(source: JSON, word: str, client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, _source=source)
    put(client, index_name, {"a": {"text": "some text", "body": "more"}})
    before = mapping(client, index_name), versions(client, index_name)
    refused(server_cli("init", index_name, "--field", "text"), "_source", word)
    assert (mapping(client, index_name), versions(client, index_name)) == before
    checks = server_cli("doctor", index_name, "--json").json["checks"]
    assert "error" in [one["level"] for one in checks if one["name"] == "_source"]


@pytest.mark.parametrize(
    "ours_before",
    [
        {"type": "text"},
        {"type": "keyword"},
        {"properties": {"bands": {"type": "text"}}},
        {"properties": {"bands": {"type": "text", "fields": {"keyword": {"type": "keyword"}}}}},
        {"properties": {"group": {"type": "keyword", "doc_values": False}}},
        {"properties": {"bands": {"type": "keyword", "index": False, "doc_values": False}}},
        {"properties": {"author": {"type": "keyword"}}},
    ],
)
@pytest.mark.product("each")
def test_conflicting_mapping(ours_before: JSON, client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, {"text": {"type": "text"}, "neardupe": ours_before})
    put(client, index_name, {"a": {"text": "some text"}})
    before = mapping(client, index_name)
    refused(server_cli("init", index_name, "--field", "text"), "neardupe", "--prefix")
    assert mapping(client, index_name) == before
    assert server_cli("init", index_name, "--field", "text", "--prefix", "dupes").code == 0
    assert server_cli("enrich", index_name, "--prefix", "dupes", "--json").json["writes"]["written"] == 1


@pytest.mark.parametrize("options", [(), ("--sidecar", "--write-group")])
def test_an_object_of_the_user(options: tuple[str, ...], client: Client, index_name: str, server_cli: Cli) -> None:
    """`clean` would remove it, and the mapping would no longer take new fields in it."""
    make_index(client, index_name, {"text": {"type": "text"}, "meta": {"properties": {"author": {"type": "keyword"}}}})
    put(client, index_name, {"a": {"text": "some text", "meta": {"author": "me"}}})
    before = mapping(client, index_name)
    done = server_cli("init", index_name, "--field", "text", "--prefix", "meta", *options)
    refused(done, "meta is an object with other fields (author)")
    assert mapping(client, index_name) == before
    cleaned = server_cli("clean", index_name, "--prefix", "meta", "--yes")
    assert (cleaned.code, cleaned.out.partition(":")[0]) == (0, "Nothing to clean")


def test_a_hidden_index_has_no_keys_of_its_own(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name)
    put(client, index_name, {"a": {"text": "some text"}})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    done = server_cli("init", f"{index_name}-neardupe-groups", "--field", "group")
    refused(done, "is a hidden index of es-neardupe", f"name {index_name} instead")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--threshold", "0"), ("--threshold", "is not in (0, 1]")),
        (("--threshold", "1.01"), ("--threshold", "is not in (0, 1]")),
        (("--threshold", "nan"), ("--threshold", "is not in (0, 1]")),
        (("--detection", "1"), ("detection",)),
        (("--bands", "20", "--rows", "8"), ("160", "128")),
        (("--bands", "20"), ("rows",)),
        (("--shingle", "0"), ("shingle",)),
        (("--threshold", "0.01"), ("lowest threshold",)),
        (("--prefix", "a.b"), ("prefix",)),
        (("--field", "text"), ("twice",)),
    ],
)
def test_settings_out_of_range(
    options: tuple[str, ...], words: tuple[str, ...], client: Client, filled: str, server_cli: Cli
) -> None:
    before = mapping(client, filled)
    refused(server_cli("init", filled, "--field", "text", *options), *words, code=2)
    assert mapping(client, filled) == before


def test_init_takes_settings_only(client: Client, filled: str) -> None:
    without_settings: Any = "text"
    with pytest.raises(SettingsError, match="init needs Settings"):
        NearDupe(filled, client).init(without_settings)


def test_init_with_other_settings_shows_the_difference(client: Client, index_name: str, server_cli: Cli) -> None:
    fill(client, index_name)
    assert server_cli("init", index_name, "--field", "text").code == 0
    before = mapping(client, index_name)
    line = refused(
        server_cli("init", index_name, "--field", "body.en", "--threshold", "0.5", "--shingle", "3"),
        "fields: text, not body.en",
        "threshold: 0.8, not 0.5",
        "shingle: 5, not 3",
        f"es-neardupe migrate {index_name}",
    )
    assert "permutations" not in line
    assert mapping(client, index_name) == before


def test_the_measure_of_the_preset_reader_decides(client: Client, index_name: str, server_cli: Cli) -> None:
    """Its keys are those of 3-word shingles, and runs use edit unless they get another measure."""
    make_index(client, index_name)
    put(client, index_name, {str(number): {"text": text} for number, text in enumerate(family("reader", 6))})
    said = server_cli("init", index_name, "--field", "text", "--preset", "reader")
    assert "use --measure edit --min 0.71." in said.err
    news = NearDupe(index_name, client)
    news.enrich()
    report = news.group()
    assert (report.rules.match.measure.value, report.rules.min, report.groups.count) == ("edit", 0.71, 1)
    assert all(pair.measure == "edit" and pair.similarity >= 0.71 for pair in news.pairs())
    assert news.similar(id="0").hits
    again = server_cli("init", index_name, "--field", "text", "--preset", "reader")
    assert "nothing to do" in again.out
