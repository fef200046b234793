"""`stats`: the sums of its report and of all others count each document, after any changes to the index."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from conftest import Cli
from server_tools import JSON, change, family, hits, make_index, put, reconcile, send, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.group.report import GroupReport
from es_neardupe.commands.stats import counts
from es_neardupe.commands.stats.report import GroupSizes, StatsReport
from es_neardupe.errors import SettingsError
from es_neardupe.groups import sizes
from es_neardupe.server.client import Client, ForwardingClient

SETTINGS = Settings(("text",))
STATES = ("signed", "short", "empty", "too_large", "failed")

TEXTS = {
    **{f"f{k}": text for k, text in enumerate(family("accounts", 6))},
    **{f"s{k}": " ".join(words(k, 60)) for k in range(6)},
    **{f"n{k}": " ".join(map(str, range(k, k + 30))) for k in range(3)},
    **{f"p{k}": text for k, text in enumerate(["7", "1 2 3", "٤٢", "two words"])},
    **{f"e{k}": text for k, text in enumerate(["", "!", None])},
    **{f"l{k}": "x" * 3000 for k in range(2)},
}
PROPERTIES: JSON = {"text": {"type": "text"}, "lang": {"type": "keyword"}}
MAX_CHARS = 2500
WHOLE = {"signed": 15, "short": 4, "empty": 3, "too_large": 2, "failed": 0}


def check(client: Client, index: str) -> StatsReport:
    """Check the sums of stats, and each part against a separate count of the stored documents."""
    found = NearDupe(index, client).stats()
    scope, groups = found.scope, found.groups
    stored = [hit["_source"].get("neardupe") or {} for hit in hits(client, index)]
    assert scope.documents == len(stored)
    assert tuple(scope.states) == STATES
    outside = scope.unknown + scope.other_schemes + scope.unprocessed
    assert scope.documents == sum(scope.states.values()) + outside
    keyed = scope.states["signed"] + scope.states["short"] - scope.numeric
    others = sum(scope.states[name] for name in ("empty", "too_large", "failed"))
    assert scope.documents == keyed + scope.numeric + others + outside
    parts = Counter(location_of(one) for one in stored)
    assert scope.states == {name: parts[name] for name in STATES}
    assert (scope.unknown, scope.other_schemes, scope.unprocessed) == tuple(
        parts[name] for name in ("unknown", "other_schemes", "unprocessed")
    )
    numeric = [one for one in stored if one.get("numeric") is True and location_of(one) in ("signed", "short")]
    assert scope.numeric == len(numeric)
    assert groups.count == sum(groups.sizes.values())
    assert groups.grouped == sum(size * number for size, number in groups.sizes.items())
    return found


def check_group(report: GroupReport) -> GroupReport:
    """Check the sums of a run over all documents or some."""
    reconcile("group", report)
    return report


def location_of(stored: JSON) -> str:
    """The part in which a document is counted; a field with several values matches if one of them does."""
    schemes, states = (value if isinstance(value, list) else [value] for value in map(stored.get, ("scheme", "state")))
    schemes = [one for one in schemes if one is not None]
    if not schemes:
        return "unprocessed"
    if SETTINGS.scheme.id not in schemes:
        return "other_schemes"
    return next((name for name in STATES if name in states), "unknown")


def filled(client: Client, index: str) -> None:
    make_index(client, index, PROPERTIES, settings={"number_of_shards": 2})
    put(client, index, {id: {"text": text, "lang": "en" if id[0] in "fs" else "xx"} for id, text in TEXTS.items()})
    NearDupe(index, client).init(SETTINGS)


GARBAGE: list[JSON] = [
    {"state": "odd"},
    {"state": None},
    {"state": ["short", "signed"]},
    {"state": ["odd", "even"]},
    {"scheme": "v1-00000000"},
    {"scheme": None},
    {"scheme": ["v1-00000000", SETTINGS.scheme.id]},
    {"scheme": []},
    {"scheme": None, "state": "signed", "numeric": True},
    {"numeric": True},
    {"numeric": False},
    {"state": "empty", "numeric": True},
    {"state": "failed", "bands": None, "content": None},
    {"bands": None, "tokens": -5},
    {"group": None, "similarity": None},
]


def test_what_is_printed(client: Client, index_name: str, server_cli: Cli) -> None:
    filled(client, index_name)
    NearDupe(index_name, client).enrich(max_chars=MAX_CHARS)
    NearDupe(index_name, client).group()
    run = server_cli("stats", index_name)
    assert (run.code, run.err) == (0, "")
    rows = [line.split() for line in run.out.splitlines() if line.strip(" ─")]
    assert rows[:6] == [
        [f"{index_name},", "scheme", SETTINGS.scheme.id, "documents"],
        ["documents", "24"],
        *([name, str(number)] for name, number in WHOLE.items() if number),
    ]
    assert rows[-6:] == [
        ["groups", "of", "two", "or", "more", "2"],
        ["documents", "in", "them", "9"],
        ["largest", "6"],
        ["documents", "in", "a", "group", "groups"],
        ["6", "1"],
        ["3", "1"],
    ]


def test_stats_of_an_index_with_damaged_fields(client: Client, index_name: str, server_cli: Cli) -> None:
    filled(client, index_name)
    assert check(client, index_name).scope.unprocessed == len(TEXTS)
    NearDupe(index_name, client).enrich(max_chars=MAX_CHARS)
    found = check(client, index_name)
    assert (found.scope.states, found.scope.numeric) == (WHOLE, 6)
    NearDupe(index_name, client).group()
    shown = server_cli("stats", index_name)
    assert "only numbers" in shown.out
    assert "unknown state" not in shown.out

    rng = random.Random(4)
    left = list(TEXTS)
    for fields in GARBAGE:
        change(client, index_name, rng.choice(left), {"neardupe": fields})
    check(client, index_name)
    for id in rng.sample(left, 5):
        send(client, [({"delete": {"_index": index_name, "_id": id}}, None)])
        left.remove(id)
    for id in rng.sample(left, 4):
        put(client, index_name, {id: {"text": "written anew as a whole"}})
    change(client, index_name, left[0], {"neardupe": GARBAGE[0]})
    change(client, index_name, left[1], {"neardupe": GARBAGE[6]})
    found = check(client, index_name)
    assert found.scope.unknown > 0
    assert found.scope.documents == len(TEXTS) - 5
    report = server_cli("stats", index_name, "--json").json
    assert report["scope"]["unknown"] == found.scope.unknown
    assert "unknown state" in server_cli("stats", index_name).out
    for rebuild in (False, True):
        grouped = check_group(NearDupe(index_name, client).group(rebuild=rebuild, dry_run=not rebuild))
        assert grouped.scope.documents + grouped.scope.unprocessed == found.scope.documents
    assert grouped.scope.affected == grouped.scope.documents > grouped.scope.corrupt > 0

    NearDupe(index_name, client).enrich(check=True, max_chars=MAX_CHARS)  # repairs all of it
    found = check(client, index_name)
    assert (found.scope.unknown, found.scope.other_schemes, found.scope.unprocessed) == (0, 0, 0)


def test_every_report_adds_up(client: Client, index_name: str, server_cli: Cli, tmp_path: Any) -> None:
    filled(client, index_name)
    total = len(TEXTS)
    query = {"term": {"lang": "en"}}
    parts: Counter[str] = Counter()
    for scope in (query, None):
        report = NearDupe(index_name, client).enrich(query=scope, max_chars=MAX_CHARS)
        assert report.scope.documents + report.scope.excluded == total
        assert report.scope.read == report.writes.total
        assert report.writes.written == sum(report.writes.states.values())
        assert report.scope.current is not None
        assert report.scope.read == report.scope.documents - report.scope.current
        assert report.writes.numeric <= report.writes.states.get("signed", 0) + report.writes.states.get("short", 0)
        parts.update({**report.writes.states, "numeric": report.writes.numeric})
        assert report.scope.excluded == (total - 12 if scope else 0)
    assert parts == Counter({name: number for name, number in WHOLE.items() if number} | {"numeric": 6})
    tried = server_cli("enrich", index_name, "--all", "--query", '{"term": {"lang": "en"}}', "--dry-run")
    assert f"out of scope {total - 12}" in " ".join(tried.out.split())

    file = tmp_path / "more.jsonl"
    lines = ['{"id": "f0", "text": "there"}', '{"id": "m1", "text": "1 2"}', '{"id": "m1", "text": "x"}', "no json"]
    file.write_text("\n".join([*lines, '{"id": "m2", "text": ""}', '{"id": "m3", "text": "a b c d e"}']), "utf-8")
    loaded = NearDupe(index_name, client).load([str(file)])
    assert loaded.scope.read == loaded.scope.existing + loaded.scope.bad + loaded.scope.duplicates + loaded.writes.total
    assert (loaded.scope.read, loaded.scope.existing, loaded.scope.bad, loaded.scope.duplicates) == (6, 1, 1, 1)
    assert loaded.writes.written == sum(loaded.writes.states.values()) == 3
    assert (loaded.writes.states, loaded.writes.numeric) == ({"signed": 1, "short": 1, "empty": 1}, 1)
    assert check_group(NearDupe(index_name, client).group()).scope.documents == total + 3
    again = check_group(NearDupe(index_name, client).group())
    assert (again.scope.affected, again.writes.total, again.pairs.copies, again.groups.looked_at.count) == (0, 0, 0, 0)
    assert again.groups.count > 0
    found = check(client, index_name)
    assert (found.scope.documents, found.scope.numeric) == (total + 3, 7)
    assert "numeric" not in next(h["_source"]["neardupe"] for h in hits(client, index_name) if h["_id"] == "m3")
    change(client, index_name, "n0", {"text": "no numbers any more in this text"})
    NearDupe(index_name, client).enrich(check=True, max_chars=MAX_CHARS)
    assert check(client, index_name).scope.numeric == 6
    changed = check_group(NearDupe(index_name, client).group())
    assert 0 < changed.scope.affected < changed.scope.documents
    cleaned = NearDupe(index_name, client).clean()
    assert cleaned.documents == cleaned.writes.total == cleaned.writes.written == total + 3


class Measuring(ForwardingClient):
    """Records the size of each answer."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.answers: list[int] = []

    def request(self, *given: Any, **options: Any) -> Any:
        answer = super().request(*given, **options)
        self.answers.append(len(json.dumps(answer)))
        return answer

    def pages(self, *given: Any, **options: Any) -> Any:
        raise AssertionError("reads documents")


@pytest.mark.parametrize(
    "sidecar",
    [
        pytest.param(False, id="inline"),
        pytest.param(True, id="sidecar"),
    ],
)
def test_requests_and_answers_do_not_grow_with_the_documents(
    client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch, sidecar: bool
) -> None:
    monkeypatch.setattr(counts, "_SAMPLE", 20)
    make_index(client, index_name)
    neardupe = NearDupe(index_name, client)
    neardupe.init(SETTINGS, sidecar=sidecar)
    put(client, index_name, {f"f{k}": {"text": text} for k, text in enumerate(family("few", 6))})
    answers = []
    for part, number in (("few", 30), ("many", 600)):
        put(client, index_name, {f"{part}{k}": {"text": " ".join(words((part, k), 20))} for k in range(number)})
        neardupe.enrich()
        neardupe.group()
        measuring = Measuring(client)
        found = NearDupe(index_name, measuring).stats(buckets=10)
        assert (found.scope.documents, found.groups.sizes) == ((36, {6: 1}) if part == "few" else (636, {6: 1}))
        assert found.buckets is not None
        assert found.buckets.sampled == 20
        answers.append(measuring.answers)
    few, many = answers
    assert len(many) <= len(few)
    assert sum(many) < 1.1 * sum(few)


@pytest.mark.parametrize(
    "sidecar",
    [
        pytest.param(False, id="inline"),
        pytest.param(True, id="sidecar"),
    ],
)
def test_groups_are_counted_page_by_page(
    client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch, sidecar: bool
) -> None:
    """Damaged groups too: each is as large as `groups` says."""
    monkeypatch.setattr(sizes, "_PAGE", 2)
    make_index(client, index_name, settings={"number_of_shards": 2})
    sources = {f"g{n}d{k}": {"text": text} for n in range(7) for k, text in enumerate(family(n, n + 2))}
    put(client, index_name, sources)
    neardupe = NearDupe(index_name, client)
    neardupe.init(SETTINGS, sidecar=sidecar)
    neardupe.enrich()
    assert neardupe.stats().groups == GroupSizes(0, 0, 0, {})
    neardupe.group()
    assert neardupe.stats().groups == GroupSizes(7, 35, 8, dict.fromkeys(range(8, 1, -1), 1))
    by_size = {one.size: one for one in neardupe.groups()}
    for size in (2, 5):  # two groups without a principal, the first of them without any pair
        principal = by_size[size].principal
        assert principal is not None
        send(client, [({"delete": {"_index": index_name, "_id": principal.id}}, None)])
    for size, place in ((6, 1), (7, 0)):  # a member and a principal whose texts changed
        change(client, index_name, by_size[size].members[place].id, {"text": "quite another text by now"})
    neardupe.enrich(check=True)
    if not sidecar:
        change(client, index_name, by_size[8].members[3].id, {"neardupe": {"group": "no id"}})
        change(client, index_name, by_size[8].members[4].id, {"neardupe": {"similarity": 7}})
    found = neardupe.groups()
    assert neardupe.stats().groups == GroupSizes.of(one.size for one in found)
    assert neardupe.stats().groups.count == 6
    assert all(neardupe.groups(top=number) == found[:number] for number in (1, 3, 6, 7))


@pytest.mark.product("each")
def test_large_buckets_are_found_in_a_sample_and_counted_in_all(
    client: Client, index_name: str, server_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_index(client, index_name, settings={"number_of_shards": 2})
    footer = " ".join(words("footer", 100))
    with_footer = {f"o{k}": {"text": f"{' '.join(words(k, 10))} {footer}"} for k in range(80)}
    put(client, index_name, with_footer | {f"s{k}": {"text": " ".join(words(("s", k), 60))} for k in range(40)})
    neardupe = NearDupe(index_name, client)
    neardupe.init(SETTINGS)
    neardupe.enrich()
    stored = Counter(key for hit in hits(client, index_name) for key in hit["_source"]["neardupe"]["bands"])
    largest = [number for _, number in stored.most_common(3)]
    assert largest[0] > 20
    for sample, sampled in ((30, 30), (1000, 120)):
        monkeypatch.setattr(counts, "_SAMPLE", sample)
        found = neardupe.stats(buckets=3).buckets
        assert found is not None
        assert found.sampled == sampled
        assert [stored[one.key] for one in found.largest] == [one.documents for one in found.largest] == largest
    shown = server_cli("stats", index_name, "--buckets", "1")
    assert found is not None
    assert found.largest[0].key in shown.out
    assert "Found among the keys of 120 documents, and counted in all." in shown.err
    assert neardupe.stats().buckets is None
    for number in (0, 101):
        with pytest.raises(SettingsError, match="between 1 and 100"):
            neardupe.stats(buckets=number)
