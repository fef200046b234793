"""Arbitrary content in the neardupe fields and the hidden indices: no run crashes over it, or writes anywhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from every_command import LOOKING, command_lines
from hostile import check_shown
from server_tools import JSON, change, family, hits, make_index, ours, put, runs_painless, send, theirs, versions, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import SettingsError
from es_neardupe.groups.registry import _decode_run
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.stored_fields import encode
from es_neardupe.index.target import Definitions, open_target
from es_neardupe.records import Fingerprint
from es_neardupe.server.client import Client

SETTINGS = Settings(("text",), sample_mod=4)
TEXTS = {f"d{n}": text for n, text in enumerate([*family("forged", 4), *family("other", 3)])}
WRONG: list[Any] = [
    None,
    True,
    -1,
    2**31 - 1,
    1.5,
    "",
    "\x1b[31m\u202e",
    "x" * 600,
    "0" * 32,
    "A" * 16,
    [],
    [1, "a", None],
    [0.5, 0.7],
    ["AAAAAAAA"] * 16,
    ["AAAAAAAA"] * 3000,
    [["x"]],
    {"a": 1},
    "lease",
]


@pytest.fixture
def grouped(client: Client, index_name: str) -> str:
    """An index with two groups and evidence, and other indices that no command may touch."""
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in TEXTS.items()})
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group(evidence=True)
    for end, more in (("-other", {}), ("-hidden", {"settings": {"index.hidden": True}})):
        make_index(client, f"{index_name}{end}", **more)
        put(client, f"{index_name}{end}", {id: {"text": text} for id, text in TEXTS.items()})
    return index_name


def others(client: Client, index: str) -> Any:
    """The state of the other indices, which any write would change."""
    return [versions(client, f"{index}{end}") for end in ("-other", "-hidden")]


def replaced(good: Mapping[str, Any]) -> Iterator[JSON]:
    """The same with each part replaced by each wrong value, or missing, at every level."""
    for name, value in good.items():
        yield from ({**good, name: wrong} for wrong in WRONG)
        yield {key: one for key, one in good.items() if key != name}
        if isinstance(value, dict):
            yield from ({**good, name: inner} for inner in replaced(value))


def index_forged(client: Client, index: str, sources: Mapping[str, Any]) -> int:
    """Index the documents that the mapping accepts; returns their number."""
    items = send(client, [({"index": {"_index": index, "_id": id}}, one) for id, one in sources.items()], whole=False)
    return sum("error" not in one["index"] for one in items)


def test_fields_of_documents(grouped: str, client: Client, server_cli: Cli, tmp_path: Path) -> None:
    """Every command, on documents of which each has one field that our code cannot have written."""
    good = next(hit["_source"] for hit in hits(client, grouped) if hit["_id"] == "d0")
    fields = [*replaced(good["neardupe"]), *WRONG]
    forged = {f"f{n:03}": {**good, "neardupe": one} for n, one in enumerate(fields)}
    assert index_forged(client, grouped, forged) > 100
    before, beside = theirs(client, grouped), others(client, grouped)
    request = {"components": {}, "stages": {"similarPairs": {"type": "documentPairs:duplicates"}}}
    file = tmp_path / "file"
    file.write_text(json.dumps(request))
    values = dict.fromkeys(("REQUEST", "FILE", "FILE2", "ADDRESSES", "DSL"), str(file))
    values |= {"INDEX": grouped, "ID": "d0", "ID2": "f000", "GROUP": good["neardupe"]["group"]}
    values |= {"TEXT": TEXTS["d0"], "NAME": "text", "OUT": str(tmp_path / "out.html"), "ADDRESS": "d0"}
    for line in command_lines(LOOKING, values):
        done = server_cli(*line)
        assert done.code in (0, 1, 2), (line, done.err)
        assert "Traceback" not in done.err
        check_shown(done.out + done.err)
    report = NearDupe(grouped, client).group(check=True)
    again = NearDupe(grouped, client).group(rebuild=True)
    assert again.scope.corrupt > 30
    assert (
        report.scope.documents
        == again.scope.documents
        == again.groups.grouped + again.groups.alone + again.scope.untouched + again.scope.corrupt
    )
    assert NearDupe(grouped, client).enrich(all=True).writes.refused == 0
    settled = NearDupe(grouped, client).group()
    assert (settled.scope.corrupt, settled.groups.count) == (0, 2)
    assert (theirs(client, grouped), others(client, grouped)) == (before, beside)
    assert NearDupe(grouped, client).clean().writes.left == 0
    assert (theirs(client, grouped), others(client, grouped)) == (before, beside)


IN_CLUSTER = pytest.param({"in_cluster": True, "check": True}, marks=pytest.mark.product("opensearch"))


@pytest.mark.parametrize("options", [{}, {"check": True}, IN_CLUSTER])
def test_right_form_and_wrong_value(options: dict[str, Any], grouped: str, client: Client) -> None:
    """A fingerprint of another text, or a part of it, with the content hash of this one."""
    if options.get("in_cluster") and not runs_painless(client):
        pytest.skip("this server runs no Painless scripts")
    before, news = ours(client, grouped), NearDupe(grouped, client)
    names = ("signature", "bands", "samples", "tokens", "features", "state", "numeric")
    for name, id in zip(names, sorted(before), strict=True):
        other = {"state": "short", "numeric": True, "tokens": 1, "features": 1}
        change(client, grouped, id, {"neardupe": {name: other.get(name) or before["d6" if id != "d6" else "d0"][name]}})
    assert ours(client, grouped) != before
    report = news.enrich(**options)
    assert (report.writes.written, report.writes.unchanged) == (len(names), 0)
    regrouped = news.group()
    assert (regrouped.groups.count, regrouped.scope.corrupt) == (2, 0)
    wanted = {id: {**one, "at": None} for id, one in before.items()}
    assert {id: {**one, "at": None} for id, one in ours(client, grouped).items()} == wanted


def sidecar(client: Client, index: str) -> tuple[NearDupe, str]:
    """A grouped index with two groups and two documents that are alone, and the name of its sidecar index."""
    make_index(client, index)
    texts = {**TEXTS, "alone": "one two three four five", "other": "six seven eight nine ten"}
    put(client, index, {id: {"text": text} for id, text in texts.items()})
    news = NearDupe(index, client)
    news.init(SETTINGS, sidecar=True)
    news.enrich()
    news.group()
    return news, f"{index}-neardupe-sidecar"


@pytest.mark.parametrize("name", ["bands", "signature", "tokens"])
def test_keys_in_a_sidecar_index(name: str, client: Client, index_name: str) -> None:
    """`enrich --check` replaces them, and the next `group` forms the groups of the right ones."""
    news, entries = sidecar(client, index_name)
    before = ours(client, entries)
    change(client, entries, "d1", {"neardupe": {name: before["d4"][name] if name != "tokens" else 7}})
    change(client, index_name, "d0", {"text": "quite another text, so that its group is formed again"})
    news.enrich()
    news.group()
    change(client, index_name, "d0", {"text": TEXTS["d0"]})
    news.enrich(check=True)
    assert ours(client, entries)["d1"]["group"]
    news.group()
    assert news.group(rebuild=True, dry_run=True).writes.written == 0
    assert {id: one["group"] for id, one in ours(client, entries).items() if id != "d0"} == {
        id: one["group"] for id, one in before.items() if id != "d0"
    }


@pytest.mark.parametrize(
    ("id", "wrong"),
    [
        ("d1", {"similarity": 0.99}),
        ("d1", {"principal": True, "similarity": 1.0}),
        ("d1", {"group": "d4"}),
        ("alone", {"similarity": 0.5}),
        ("alone", {"principal": False}),
        ("alone", {"principal": None}),
        ("alone", {"group": "d0"}),
    ],
)
def test_groups_in_a_sidecar_index(id: str, wrong: JSON, client: Client, index_name: str) -> None:
    """`group --check` finds what another client has written into the entries, which no run looks for otherwise."""
    news, entries = sidecar(client, index_name)
    before = ours(client, entries)
    change(client, entries, id, {"neardupe": wrong | {n: before[v]["group"] for n, v in wrong.items() if n == "group"}})
    assert ours(client, entries) != before
    report = news.group(check=True)
    assert (report.scope.whole, report.writes.written) == (False, 1)
    assert ours(client, entries) == before


def test_two_documents_that_are_alone_with_one_group_id(client: Client, index_name: str) -> None:
    """In a sidecar index: `group --check` gives one of them another."""
    news, entries = sidecar(client, index_name)
    ids = {one["group"] for one in ours(client, entries).values()}
    change(client, entries, "alone", {"neardupe": {"group": ours(client, entries)["other"]["group"]}})
    assert news.group(check=True).writes.written == 1
    assert len({one["group"] for one in ours(client, entries).values()}) == len(ids)
    assert news.group(rebuild=True, dry_run=True).writes.written == 0


def test_group_ids(grouped: str, client: Client) -> None:
    """Valid fingerprints under ids that are not those of groups: of a lease, of nothing, of another group, of a
    path."""
    good = next(one["group"] for one in ours(client, grouped).values())
    forged = {}
    for n, id in enumerate(("", "lease", "run", "x" * 600, "../_all", "=1", "\x1b[2J", good)):
        pair = family(f"group {n}", 2)
        found = fingerprint_sources([{"text": text} for text in pair], SETTINGS, 10_000)
        for k, (text, fingerprint) in enumerate(zip(pair, found, strict=True)):
            fields = {"group": id, "principal": k == 0, "similarity": 1.0}
            forged[f"g{n}-{k}"] = {"text": text, "neardupe": encoded(fingerprint) | fields}
    put(client, grouped, forged)
    assert len(NearDupe(grouped, client).groups()) == 2
    assert len(NearDupe(grouped, client).suggest_keep()) == 2
    ways: list[dict[str, Any]] = [{"check": True}, {"rebuild": True}, {}]
    for options in ways:
        report = NearDupe(grouped, client).group(evidence=True, **options)
    assert (report.groups.count, report.scope.corrupt) == (2 + 8, 0)
    registry = hits(client, hidden_index_name(open_target(Definitions(client, grouped)), HiddenIndex.GROUPS))
    assert {len(hit["_id"]) for hit in registry if hit["_source"]["kind"] == "group"} == {16}
    assert {hit["_id"] for hit in registry} >= {"lease", "run"}


def encoded(fingerprint: Fingerprint) -> JSON:
    return encode(fingerprint, "2024-05-01T00:00:00Z")


def test_hidden_indices(grouped: str, client: Client, server_cli: Cli) -> None:
    """Entries of the registry, of evidence and of decisions with any value in any place, and about documents of other
    indices."""
    target = open_target(Definitions(client, grouped))
    registry, evidence, decided = (hidden_index_name(target, kind) for kind in HiddenIndex)
    entries = {hit["_id"]: hit["_source"] for hit in hits(client, registry)}
    group = next(id for id in entries if len(id) == 16)
    pair = hits(client, evidence)[0]["_source"]
    elsewhere = {"index": f"{grouped}-other", "id": "d0"}
    away = [{**pair, "a": elsewhere, "b": {"index": ".security", "id": "d1"}}, *replaced(pair)]
    led = [{**entries[group], "principal": elsewhere}, *replaced(entries[group])]
    NearDupe(grouped, client).decide("same", "d0", ["d1"], author="ann")
    decision = hits(client, decided)[0]["_source"]
    wrong = [{**decision, "low": "zz", "documents": {"seen": [elsewhere, elsewhere]}}, *replaced(decision)]
    before, beside = theirs(client, grouped), others(client, grouped)
    assert index_forged(client, decided, {f"{n:032x}": one for n, one in enumerate(wrong)}) > 50
    assert index_forged(client, evidence, {f"{n:032x}": one for n, one in enumerate(away)}) > 50
    named = {f"{'A' * 12}{n:04}": one for n, one in enumerate(led)}
    named = {id: one | {"group": id} if "group" in one else one for id, one in named.items()}
    assert index_forged(client, registry, named) > 50
    assert index_forged(client, registry, {group: led[0]}) == 1
    looking = (("groups",), ("groups", "--suggest-keep"), ("groups", "--history", group), ("what-if", "--min", "0.5"))
    for name, *more in (
        *looking,
        ("audit",),
        ("doctor",),
        ("group", "--evidence", "--rebuild"),
        *looking,
        ("clean", "--yes", "--decisions"),
    ):
        done = server_cli(name, grouped, *more)
        assert done.code in (0, 1), done.err
        assert "Traceback" not in done.err
        check_shown(done.out + done.err)
        if (name, *more) == ("group", "--evidence", "--rebuild"):
            assert done.code == 0
            assert hits(client, evidence)
            assert {hit["_source"]["a"]["index"] for hit in hits(client, evidence)} == {grouped}
    assert (theirs(client, grouped), others(client, grouped)) == (before, beside)


def notes(client: Client, index: str) -> tuple[str, dict[str, JSON]]:
    """The name of the registry, and its documents."""
    registry = hidden_index_name(open_target(Definitions(client, index)), HiddenIndex.GROUPS)
    return registry, {hit["_id"]: hit["_source"] for hit in hits(client, registry)}


def test_forged_leases(grouped: str, client: Client) -> None:
    """A lease that our code cannot have written blocks no run."""
    registry, entries = notes(client, grouped)
    entries["lease"]["value"]["seconds"] = 0.1  # a valid lease is watched for this time
    forged = [*replaced(entries["lease"])]
    tried = 0
    for one in forged[:: len(forged) // 4]:
        if index_forged(client, registry, {"lease": one}):
            tried += 1
            assert NearDupe(grouped, client).group().groups.count == 2
    assert tried > 1


def refusal(run: Callable[[], object]) -> str | None:
    """The message of the error, if there is one."""
    try:
        run()
    except SettingsError as error:
        return str(error)
    return None


def test_forged_rules(grouped: str, client: Client) -> None:
    """Rules of the last run that our code cannot have written are never used, and block no run for long."""
    registry, entries = notes(client, grouped)
    forged = [*replaced(entries["run"])]
    refused = 0
    for one in forged:
        try:
            _decode_run(one)
        except ValueError:
            refused += 1
    assert refused > len(forged) / 2
    tried = 0
    for one in forged[:: len(forged) // 8]:
        if index_forged(client, registry, {"run": one}):
            tried += 1
            for run in (NearDupe(grouped, client).suggest_keep, NearDupe(grouped, client).group):
                said = refusal(run)
                assert said is None or f"es-neardupe group {grouped} --default-rules" in said
            assert NearDupe(grouped, client).group(default_rules=True).groups.count == 2
            assert NearDupe(grouped, client).group().groups.count == 2
    assert tried > 3


def test_records_of_clusters(client: Client, index_name: str) -> None:
    """Each run notices that one is missing or new, `group --check` and `doctor` also that one was changed."""
    text = words("cluster", 70)
    make_index(client, index_name)
    parts = (text[:60], text[4:62], text[8:67])
    put(client, index_name, {f"d{n}": {"text": " ".join(one)} for n, one in enumerate(parts)})
    near = NearDupe(index_name, client)
    near.init(SETTINGS)
    near.enrich()
    near.group(linkage="complete", min=0.8)
    registry, before = notes(client, index_name)
    (id,) = (id for id, one in before.items() if one["kind"] == "cluster")
    other = {"groups": ["0123456789abcdef"], "alone": before[id]["groups"]}
    damages: list[tuple[str, JSON | None, dict[str, Any]]] = [
        (id, None, {}),
        (id, None, {"check": True}),
        (id, before[id] | {"alone": []}, {"check": True}),
        (id, before[id] | {"split_similarity": 0.99}, {"check": True}),
        (id, before[id] | {"alone": "0123456789abcdef"}, {"check": True}),
        (id, before[id] | {"kind": "group"}, {}),
        ("cluster-0123456789abcdef", before[id] | other, {}),
    ]
    for damaged, record, options in damages:
        if record is None:
            client.request("DELETE", f"/{registry}/_doc/{damaged}", params={"refresh": True})
        else:
            assert index_forged(client, registry, {damaged: record}) == 1
        (found,) = (one for one in near.doctor() if one.name == "groups")
        assert found.level == "warning"
        assert found.message == (
            f"records of related groups were changed or deleted in {registry}: "
            f"run `es-neardupe group {index_name} --check`"
        )
        report = near.group(**options)
        assert report.scope.reason == "records of related groups were changed or deleted"
        assert {id: one for id, one in notes(client, index_name)[1].items() if one["kind"] == "cluster"} == {
            id: before[id]
        }
        assert near.doctor()[-1].level == "ok"
        again = near.group(check=True)
        assert (again.scope.whole, again.writes.written) == (False, 0)


def test_records_of_groups(grouped: str, client: Client) -> None:
    """`group --check` finds any change of one, and records of groups that do not exist."""
    near = NearDupe(grouped, client)
    registry, before = notes(client, grouped)
    id = next(id for id, one in before.items() if one["kind"] == "group")
    good, founded = before[id], before[id]["history"]["events"][0]
    wrong = {"texts": 7, "pairs_below": 9, "held": 3, "weakest": 0.9, "min_similarity": 0.1, "size": 1, "principal": {}}
    dated = {"created": "2020-01-01T00:00:00Z", "ended": "2020-01-01T00:00:00Z", "settings": None}
    damages = [good | {name: value} for name, value in (wrong | dated).items()]
    damages.append(good | {"history": {"events": [founded, {**founded, "event": "dissolved"}]}})
    for damaged in damages:
        invented = {"0123456789abcdef": damaged | {"group": "0123456789abcdef"}}
        assert index_forged(client, registry, {id: damaged} | invented) == 2
        report = near.group(check=True)
        assert report.groups.count == 2
        after = notes(client, grouped)[1]
        living = {id: one for id, one in after.items() if one["kind"] == "group" and one["ended"] is None}
        assert living.keys() == {id for id, one in before.items() if one["kind"] == "group"}
        changing = {"created", "updated", "history", "checksum"}
        assert {name: living[id][name] for name in good.keys() - changing} == {
            name: good[name] for name in good.keys() - changing
        }
        again = near.group(check=True)
        assert (again.scope.whole, again.scope.affected, again.writes.written) == (False, 0, 0)


def test_a_bucket_of_forged_keys(grouped: str, client: Client) -> None:
    """Hundreds of documents that claim the keys of another, with different contents: compared with few, and excluded
    from its group."""
    good = next(hit["_source"] for hit in hits(client, grouped) if hit["_id"] == "d0")
    forged = {
        f"b{n}": {
            "text": f"nothing like it {n}",
            "neardupe": good["neardupe"] | {"content": f"{n:032x}", "similarity": None},
        }
        for n in range(400)
    }
    put(client, grouped, forged)
    report = NearDupe(grouped, client).group(max_bucket=10)
    assert report.groups.count == 2
    assert report.pairs.skipped > 0
    assert report.pairs.candidates < 100 * len(forged)
