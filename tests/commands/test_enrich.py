"""`enrich`: the documents that it reads, renews and skips."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Cli
from server_tools import JSON, change, family, hits, jaccard, make_index, ours, put, theirs, versions, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import DocumentTooLarge, InputError, SettingsError
from es_neardupe.records import Product
from es_neardupe.report_parts import EnrichReport
from es_neardupe.server.client import Client, path
from es_neardupe.server.drivers import driver

pytestmark = pytest.mark.either("sidecar")

SETTINGS = Settings(("text",))
LATER = {"text": {"type": "text"}, "changed": {"type": "date"}, "kind": {"type": "keyword"}}


def filled(client: Client, index: str, number: int = 20, *, sidecar: bool = False) -> dict[str, JSON]:
    make_index(client, index, LATER)
    kinds = ["a", "b"]
    documents = {
        f"d{n:02}": {"text": " ".join(words(n, 40)), "changed": f"2024-01-{n + 1:02}", "kind": kinds[n % 2]}
        for n in range(number)
    }
    put(client, index, documents)
    NearDupe(index, client).init(SETTINGS, sidecar=sidecar)
    return documents


def forget(client: Client, index: str) -> None:
    """Delete the progress of former runs: they could have been those of a version that stored none."""
    client.request("DELETE", path(f"{index}-neardupe-groups", "_doc", "feed"))


def written_by(client: Client, index: str, **options: Any) -> tuple[EnrichReport, set[str]]:
    """The report of an enrich, and the ids of the documents that it changed; nothing else may differ."""
    users, before = theirs(client, index), versions(client, index)
    report = NearDupe(index, client).enrich(**options)
    after = versions(client, index)
    assert theirs(client, index) == users
    changed = {id for (name, id), version in after.items() if version != before[name, id]}
    assert len(changed) == report.writes.written
    total = (
        report.writes.written
        + report.writes.unchanged
        + report.writes.deleted
        + report.writes.conflicts
        + report.writes.refused
    )
    assert report.scope.read == total
    assert sum(report.writes.states.values()) == report.writes.written
    return report, changed


def test_what_is_printed(client: Client, index_name: str, server_cli: Cli) -> None:
    """The documents that were read and written, and what to do next."""
    filled(client, index_name, 3)
    put(client, index_name, {"short": {"text": "three words only"}, "empty": {"text": "!"}})
    run = server_cli("enrich", index_name)
    assert run.code == 0
    shown = " ".join(run.out.split())
    for row in ("documents in scope 5 already enriched 0", "documents read 5 written 5 unchanged 0"):
        assert row in shown
    assert f"Next: es-neardupe group {index_name}" in run.err


@pytest.mark.parametrize("sidecar", [False, True])
def test_a_dry_run_warns_of_short_texts(client: Client, index_name: str, sidecar: bool) -> None:
    """It counts those that it read: none is stored yet."""
    make_index(client, index_name, {"text": {"type": "text"}})
    put(client, index_name, {"one": {"text": "three words only"}, "other": {"text": "four of them here"}})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), sidecar=sidecar)
    dry = news.enrich(dry_run=True).unsuited
    assert dry == news.enrich().unsuited == news.enrich(dry_run=True).unsuited
    assert dry is not None
    assert (dry.unsuited, dry.preset) == (2, "short")


@pytest.mark.parametrize("check", [False, True])
def test_texts_that_an_application_changed_are_renewed(client: Client, index_name: str, check: bool) -> None:
    """And only those. A plain run reads only what was written."""
    filled(client, index_name)
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    NearDupe(index_name, client).enrich()
    before = ours(client, index_name)
    change(client, index_name, "d03", {"text": " ".join(words("else", 40))})
    change(client, index_name, "d04", {"kind": "c"})
    assert ours(client, index_name) == before  # the application keeps the neardupe fields
    for _ in range(2):  # a dry run stores nothing
        assert NearDupe(index_name, client).enrich(check=check, dry_run=True).writes.written == 1
    report, changed = written_by(client, index_name, check=check)
    assert changed == {"d03"}
    read = 20 if check else 2
    assert (report.scope.read, report.scope.changed, report.writes.unchanged) == (read, 2, read - 1)
    assert report.scope.unnoticed == {}
    assert NearDupe(index_name, client).enrich().scope.read == 0
    after = ours(client, index_name)
    assert after["d03"]["content"] != before["d03"]["content"]
    assert not set(after["d03"]["bands"]) & set(before["d03"]["bands"])
    assert after["d03"]["group"] == before["d03"]["group"]
    assert {id: one for id, one in after.items() if id != "d03"} == {
        id: one for id, one in before.items() if id != "d03"
    }
    assert NearDupe(index_name, client).group().writes.written == 1
    assert written_by(client, index_name, check=True)[1] == set()


def test_since_limits_what_is_read_again(client: Client, index_name: str, server_cli: Cli) -> None:
    filled(client, index_name)
    NearDupe(index_name, client).enrich()
    forget(client, index_name)
    for id in ("d02", "d17"):
        change(client, index_name, id, {"text": f"something else in {id}"})
    put(client, index_name, {"old": {"text": "never enriched", "changed": "2001-01-01"}})
    done = server_cli("enrich", index_name, "--since", "changed=2024-01-16", "--json")
    assert done.code == 0
    assert (done.json["scope"]["read"], done.json["writes"]["written"]) == (6, 2)  # d15 to d19, and the new one
    stored = ours(client, index_name)
    assert (stored["d17"]["state"], stored["d17"]["tokens"]) == ("short", 4)
    assert (stored["d02"]["state"], stored["d02"]["tokens"]) == ("signed", 40)  # older: not read
    assert server_cli("enrich", index_name, "--since", "changed").code == 2


def test_all_writes_every_document_again(client: Client, index_name: str) -> None:
    filled(client, index_name)
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    before = ours(client, index_name)
    for id in ("d05", "d06"):  # damage that the content hash does not show, but `--check` compares all keys
        change(client, index_name, id, {"neardupe": {"tokens": 7}})
    assert written_by(client, index_name, check=True)[0].writes.written == 2
    report = NearDupe(index_name, client).enrich(all=True)
    assert (report.scope.read, report.writes.written) == (20, 20)
    assert ours(client, index_name) == before  # the groups are unchanged
    assert NearDupe(index_name, client).group().writes.written == 0
    change(client, index_name, "d07", {"neardupe": {"bands": ["a", "b"]}})
    assert written_by(client, index_name, check=True)[1] == {"d07"}


def test_query_is_the_scope(client: Client, index_name: str, server_cli: Cli) -> None:
    filled(client, index_name)
    done = server_cli("enrich", index_name, "--query", '{"term": {"kind": "a"}}', "--json")
    assert (done.code, done.json["scope"]["documents"], done.json["writes"]["written"]) == (0, 10, 10)
    assert {id for id, fields in ours(client, index_name).items() if fields} == {f"d{n:02}" for n in range(0, 20, 2)}
    bad = server_cli("enrich", index_name, "--query", '{"trem": {"kind": "a"}}')
    assert bad.code == 1
    assert "trem" in bad.err
    assert server_cli("enrich", index_name, "--query", "{").code == 2
    assert written_by(client, index_name)[0].writes.written == 10


@pytest.mark.parametrize("sidecar", [False, True], ids=["inline", "sidecar"])
@pytest.mark.product("each")
def test_slices_are_disjoint_and_together_complete(
    client: Client, index_name: str, server_cli: Cli, *, sidecar: bool
) -> None:
    filled(client, index_name, sidecar=sidecar)
    near = NearDupe(index_name, client)
    written, fingerprinted = [], 0
    for number in (2, 1, 3):
        dry = server_cli("enrich", index_name, "--slice", f"{number}/3", "--dry-run", "--json").json
        done = server_cli("enrich", index_name, "--slice", f"{number}/3", "--json").json
        assert (done["scope"]["slice"], done["scope"]["documents"]) == (f"{number}/3", 20)
        assert dry["writes"]["written"] == done["writes"]["written"] == done["scope"]["read"]
        assert done["scope"]["current"] is None
        assert near.enrich(slice=(number, 3)).writes.written == 0
        written.append(done["writes"]["written"])
        fingerprinted += written[-1]
    assert all(written)
    assert fingerprinted == 20
    assert near.enrich().writes.written == 0  # and from now on, changes are noticed
    change(client, index_name, "d07", {"text": "another text since it was enriched"})
    assert sum(near.enrich(slice=(number, 3)).writes.written for number in (1, 2, 3)) == 1


@pytest.mark.parametrize(
    ("slice", "said"),
    [
        ("0/3", "There is no slice 0 of 3"),
        ("4/3", "There is no slice 4 of 3"),
        ("1/0", "not 0."),
        ("1/1025", "not 1,025."),
    ],
)
def test_slices_that_do_not_exist(slice: str, said: str, client: Client, index_name: str, server_cli: Cli) -> None:
    filled(client, index_name)
    done = server_cli("enrich", index_name, "--slice", slice)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    number, of = map(int, slice.split("/"))
    with pytest.raises(SettingsError, match=said):
        NearDupe(index_name, client).enrich(slice=(number, of))
    assert not any(ours(client, index_name).values())


@pytest.mark.parametrize("slice", ["3", "1/2/3", "-1/3", "a/b", "1 / 3", ""])
def test_slices_that_are_none(slice: str, server_cli: Cli) -> None:
    done = server_cli("enrich", "docs", "--slice", slice)
    assert done.code == 2
    assert "Give NUMBER/COUNT, such as 3/16" in " ".join(done.err.split())


def test_documents_of_another_scheme_are_renewed(client: Client, index_name: str) -> None:
    filled(client, index_name)
    NearDupe(index_name, client).enrich()
    right = ours(client, index_name)
    NearDupe(index_name, client).clean()
    NearDupe(index_name, client).init(Settings(("text",), threshold=0.5))
    NearDupe(index_name, client).enrich(query={"term": {"kind": "b"}})
    meta = {"_meta": {"neardupe": SETTINGS.to_meta()}}
    client.request("PUT", path(index_name, "_mapping"), body=meta)  # as a migration would leave it
    found = NearDupe(index_name, client).stats()
    assert (found.scope.other_schemes, found.scope.unprocessed, sum(found.scope.states.values())) == (10, 10, 0)
    report, _ = written_by(client, index_name)
    assert (report.scope.current, report.writes.written) == (0, 20)
    renewed = ours(client, index_name)
    assert {id for id, one in renewed.items() if "similarity" not in one} == {f"d{n:02}" for n in range(1, 20, 2)}
    NearDupe(index_name, client).group()  # which those of another scheme wait for
    assert ours(client, index_name) == right
    assert NearDupe(index_name, client).stats().scope.schemes == {SETTINGS.scheme.id: 20}


@pytest.mark.product("each")
def test_custom_routing_is_kept(client: Client, index_name: str) -> None:
    make_index(client, index_name, settings={"number_of_shards": 4}, _routing={"required": True})
    texts = family("routed", 6)
    for n, text in enumerate(texts):
        put(client, index_name, {f"d{n}": {"text": text}}, routing=f"user{n}")
    routings = {hit["_id"]: hit["_routing"] for hit in hits(client, index_name)}
    NearDupe(index_name, client).init(SETTINGS)
    report, _ = written_by(client, index_name)
    assert (report.writes.written, report.writes.refused) == (6, 0)
    assert NearDupe(index_name, client).group().groups.largest == 6
    assert {hit["_id"]: hit["_routing"] for hit in hits(client, index_name)} == routings
    found = NearDupe(index_name, client).similar(id="d0", min=0.8)
    assert {hit.id for hit in found.hits} == {f"d{n}" for n in range(1, 6)}
    assert {pair.resemblance for pair in NearDupe(index_name, client).pairs()} <= {
        jaccard(one, other) for one in texts for other in texts
    }
    assert NearDupe(index_name, client).clean().writes.written == 6
    assert {hit["_id"]: hit["_routing"] for hit in hits(client, index_name)} == routings


def test_fields_in_every_form_that_json_gives_them(client: Client, index_name: str) -> None:
    """Several fields, dotted ones, arrays, objects in arrays, keys with a literal dot: all the same text."""
    text = {"type": "text"}
    make_index(
        client,
        index_name,
        {
            "title": text,
            "body": {"properties": {"text": text}},
            "notes": {"type": "nested", "properties": {"line": text}},
        },
    )
    title, lines, notes = "A title of it", [" ".join(words(n, 30)) for n in (1, 2)], ["first note", "second note"]
    forms: dict[str, JSON] = {
        "nested": {"title": title, "body": {"text": "\n".join(lines)}, "notes": [{"line": one} for one in notes]},
        "dotted": {"title": title, "body.text": "\n".join(lines), "notes": {"line": notes}},
        "arrays": {"title": [title], "body": {"text": lines}, "notes": {"line": notes}},
        "objects": {"body": [{"text": lines[0]}, {"text": lines[1]}], "title": title, "notes": [{"line": notes}]},
        "both": {"title": title, "body": {"text": lines[0]}, "body.text": lines[1], "notes": {"line": notes}},
    }
    put(client, index_name, forms)
    NearDupe(index_name, client).init(Settings(("title", "body.text", "notes.line")))
    assert written_by(client, index_name)[0].writes.states == {"signed": 5}
    stored = ours(client, index_name)
    assert {one["tokens"] for one in stored.values()} == {4 + 60 + 4}
    contents = {id: one["content"] for id, one in stored.items()}
    assert contents["nested"] == contents["dotted"] == contents["arrays"] == contents["objects"]
    assert NearDupe(index_name, client).group().groups.largest == 5
    put(
        client,
        index_name,
        {"order": {"title": lines[0], "body": {"text": title + " " + lines[1]}, "notes": {"line": notes}}},
    )
    NearDupe(index_name, client).enrich()
    assert ours(client, index_name)["order"]["content"] != contents["nested"]


ODD: dict[str, tuple[Any, str]] = {
    "null": (None, "empty"),
    "no_field": (..., "empty"),
    "list_of_null": ([None, None], "empty"),
    "empty": ("", "empty"),
    "blank": (" \n\t", "empty"),
    "signs": ("... !? --", "empty"),
    "word": ("word", "short"),
    "four": ("four words are short", "short"),
    "five": ("five words are just enough", "signed"),
    "number": (42, "short"),
    "float": (1.5, "short"),
    "boolean": (True, "short"),
    "mixed": ([1, "two", None, True], "short"),
    "chinese": ("汉字汉字汉字", "signed"),
    "large": ("long " * 50, "too_large"),
    "nul": ("a\x00b c d e f g", "signed"),
    "emoji": ("👍 👎", "empty"),
}


def test_values_of_every_kind_and_totals_that_reconcile(client: Client, index_name: str) -> None:
    make_index(client, index_name)
    put(client, index_name, {id: {} if value is ... else {"text": value} for id, (value, _) in ODD.items()})
    NearDupe(index_name, client).init(SETTINGS)
    report, _ = written_by(client, index_name, max_chars=100)
    stored = ours(client, index_name)
    assert {id: one["state"] for id, one in stored.items()} == {id: state for id, (_, state) in ODD.items()}
    for id, (_, state) in ODD.items():
        assert len(stored[id]["bands"]) == (SETTINGS.scheme.bands if state in ("signed", "short") else 0)
    assert written_by(client, index_name, max_chars=100, check=True)[0].writes.unchanged == len(ODD)
    found = NearDupe(index_name, client).stats()
    wanted = {state: [s for _, s in ODD.values()].count(state) for state in {s for _, s in ODD.values()}}
    assert {state: number for state, number in found.scope.states.items() if number} == wanted == report.writes.states
    assert sum(found.scope.states.values()) == found.scope.documents == len(ODD)
    grouped = NearDupe(index_name, client).group()
    assert (grouped.scope.documents, grouped.scope.states) == (len(ODD), found.scope.states)
    assert grouped.groups.grouped + grouped.groups.alone == len(ODD)
    assert len({one["group"] for one in ours(client, index_name).values()}) == len(ODD)  # none resembles another
    assert NearDupe(index_name, client).similar(id="null").hits == ()
    assert written_by(client, index_name, check=True)[1] == {"large"}  # it is no longer too large


def test_an_object_where_a_text_belongs(client: Client, index_name: str) -> None:
    """A mapping with ``enabled: false`` accepts any value; such a document is counted, not dropped."""
    make_index(client, index_name, {"part": {"type": "object", "enabled": False}, "text": {"type": "text"}})
    put(client, index_name, {"fine": {"text": "one two three four five six"}, "other": {"part": {"text": "one"}}})
    meta = Settings(("part",)).to_meta()
    NearDupe(index_name, client).init(SETTINGS)
    client.request("PUT", path(index_name, "_mapping"), body={"_meta": {"neardupe": meta}})
    put(client, index_name, {"text": {"part": "a b c d e f"}, "list": {"part": ["a", {"b": 1}]}})
    report, _ = written_by(client, index_name)
    assert report.writes.states == {"signed": 1, "empty": 1, "failed": 2}
    found = NearDupe(index_name, client).stats()
    assert (found.scope.states["failed"], sum(found.scope.states.values())) == (2, found.scope.documents)
    assert NearDupe(index_name, client).group().groups.alone == 4
    with pytest.raises(InputError, match="holds an object"):
        NearDupe(index_name, client).similar(id="list")


def test_max_chars_on_the_command_line(client: Client, index_name: str, server_cli: Cli) -> None:
    filled(client, index_name, 3)
    put(client, index_name, {"long": {"text": "many words " * 1000}})
    done = server_cli("enrich", index_name, "--max-chars", "5000", "--json")
    assert done.json["writes"]["states"] == {"signed": 3, "too_large": 1}
    grouped = server_cli("group", index_name, "--json").json
    assert (grouped["groups"]["alone"], grouped["scope"]["states"]["too_large"]) == (4, 1)


@pytest.mark.parametrize("sidecar", [False, True])
def test_a_document_that_does_not_fit_into_memory(
    client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch, *, sidecar: bool
) -> None:
    """It is counted as failed, and all others are processed. Other commands name it."""
    near = large_one(client, index_name, sidecar=sidecar)
    if client.server.product is Product.OPENSEARCH and client.server.version < (3, 3, 0):
        pytest.skip("pages of a scroll do not name their documents")
    with monkeypatch.context() as limited:
        limited.setattr(driver, "MAX_ANSWER", 100_000)
        for written in (40, 0):
            report = near.enrich()
            assert (report.writes.written, report.writes.failed, report.scope.read) == (written, 1, written + 1)
            assert "Document 'd20'" in report.writes.failures[0]
            assert "does not fit into memory" in report.writes.failures[0]
    assert near.enrich().writes.written == 1
    monkeypatch.setattr(driver, "MAX_ANSWER", 100_000)
    with pytest.raises(DocumentTooLarge, match=f"Document 'd20' of index {index_name} does not fit into memory"):
        near.audit()


def large_one(client: Client, index: str, *, sidecar: bool) -> NearDupe:
    """An index in which one document of 41 has 200 kB."""
    make_index(client, index)
    texts = {f"d{n:02}": {"text": " ".join(words(n, 40))} for n in range(41)}
    put(client, index, texts | {"d20": {"text": " ".join(words(20, 30_000))}})
    near = NearDupe(index, client)
    near.init(SETTINGS, sidecar=sidecar)
    return near


def test_workers_and_batches_change_nothing(client: Client, index_name: str) -> None:
    filled(client, index_name)
    NearDupe(index_name, client).enrich(workers=1, batch=1)
    one = ours(client, index_name)
    NearDupe(index_name, client).enrich(workers=8, batch=7, all=True)
    assert ours(client, index_name) == one


@pytest.mark.parametrize("analysis", ["keyword", "off"])
def test_analysis_has_no_effect(analysis: str, client: Client, index_name: str) -> None:
    """The text is read from `_source`: analyzer and index options have no effect."""
    field: JSON = {"type": "text", "index": False} if analysis == "off" else {"type": "text", "analyzer": "keyword"}
    make_index(client, index_name, {"text": field})
    put(
        client, index_name, {"a": {"text": "One two Three four FIVE six"}, "b": {"text": "one TWO three four five six"}}
    )
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    assert NearDupe(index_name, client).group().pairs.copies == 1
