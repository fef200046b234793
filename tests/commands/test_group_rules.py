"""Rules that `group` takes from the last run: which run that is, and what changes them."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Cli
from server_tools import JSON, change, family, make_index, one_line, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.group import steps as module
from es_neardupe.commands.group.report import GroupReport
from es_neardupe.errors import LeaseHeld, SettingsError
from es_neardupe.groups.registry import Registry
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.server.client import Client, path

pytestmark = pytest.mark.either("news")

FIELDS = {"text": {"type": "text"}, "site": {"type": "keyword"}, "at": {"type": "date"}}
DEFAULTS: JSON = {
    "measure": "resemblance",
    "min": 0.6,
    "max": 1.0,
    "linkage": "star",
    "principal": "longest",
    "within": [],
    "across": None,
    "window": None,
    "max_bucket": 200,
}


def documents() -> dict[str, JSON]:
    found: dict[str, JSON] = {"alone": {"text": " ".join(words("alone", 40))}}
    for edits in (1, 3):
        found |= {f"f{edits}-{k}": {"text": text} for k, text in enumerate(family(edits, 4, edits=edits))}
    return {id: one | {"site": "ab"[n % 2], "at": f"2024-01-{n + 1:02}"} for n, (id, one) in enumerate(found.items())}


@pytest.fixture(params=["inline", "sidecar"])
def news(client: Client, index_name: str, request: pytest.FixtureRequest) -> NearDupe:
    """An enriched index that has not been grouped."""
    make_index(client, index_name, FIELDS)
    put(client, index_name, documents())
    found = NearDupe(index_name, client)
    found.init(Settings(("text",), threshold=0.6), sidecar=request.param == "sidecar")
    found.enrich()
    return found


def in_force(report: GroupReport) -> JSON:
    """The rules of a run that its report shows, by the names of the options."""
    rules = report.rules
    return {
        "measure": rules.measure,
        "min": rules.min,
        "max": rules.match.max,
        "linkage": rules.group.linkage.value,
        "principal": rules.group.principal.name,
        "within": [one.field for one in rules.group.within],
        "across": None if rules.group.across is None else rules.group.across.field,
        "window": None if rules.group.window is None else str(rules.group.window),
        "max_bucket": rules.group.max_bucket,
    }


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def killed(news: NearDupe, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """A run that is killed after it recorded that it has begun."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_groups", stop)
        with pytest.raises(KeyboardInterrupt):
            news.group(**options)


def test_options_are_remembered_one_by_one(news: NearDupe) -> None:
    expected = dict(DEFAULTS)
    assert in_force(news.group()) == expected
    for given in (
        {"min": 0.7},
        {"linkage": "chain"},
        {"principal": "newest"},
        {"within": ["site"]},
        {"across": "at"},
        {"window": "at:2.5"},
        {"max": 0.99},
        {"max_bucket": 20},
    ):
        expected |= given
        report = news.group(**given)
        assert (in_force(report), report.scope.whole) == (expected, True)
        again = news.group()
        assert (in_force(again), again.scope.whole, again.writes.written) == (expected, False, 0)
    assert in_force(news.group(default_rules=True, linkage="chain")) == DEFAULTS | {"linkage": "chain"}
    assert in_force(news.group()) == DEFAULTS | {"linkage": "chain"}
    assert in_force(news.group(default_rules=True)) == DEFAULTS


MEASURES: list[tuple[JSON, str]] = [
    ({"measure": "jaccard", "matching": "information"}, "jaccard (information)"),
    ({"measure": "jaccard", "passage": 8}, "jaccard (literal, passages of 8 words)"),
    ({"measure": "bag", "ngram": 2, "whitespace": True}, "bag (2-grams of words as they stand)"),
    ({"features": ["words", "site:values"]}, "resemblance (words + site:values)"),
    ({"measure": "weighted"}, "weighted"),
]


@pytest.mark.parametrize(
    ("news", "given", "measure"),
    [
        pytest.param(storage, *one, marks=() if (n + k) % 2 else pytest.mark.long)
        for n, one in enumerate(MEASURES)
        for k, storage in enumerate(("inline", "sidecar"))
    ],
    indirect=["news"],
)
def test_measures_are_remembered_with_what_belongs_to_them(news: NearDupe, given: JSON, measure: str) -> None:
    assert news.group(**given).rules.measure == measure
    again = news.group()
    assert (again.rules.measure, again.writes.written) == (measure, 0)
    assert news.group(min=0.9).rules.measure == measure
    assert (in_force(news.group(default_rules=True)), news.group().rules.measure) == (DEFAULTS, "resemblance")


def test_features_and_whitespace_can_be_taken_back(news: NearDupe) -> None:
    news.group(features=["words"])
    assert news.group(features=[]).rules.measure == "resemblance"
    news.group(measure="bag", whitespace=True)
    assert news.group(whitespace=False).rules.measure == "bag (1-grams)"


def test_neither_a_dry_run_nor_a_killed_one_is_remembered(news: NearDupe, monkeypatch: pytest.MonkeyPatch) -> None:
    news.group(min=0.7)
    assert news.group(linkage="chain", dry_run=True).rules.group.linkage == "chain"
    assert in_force(news.group()) == DEFAULTS | {"min": 0.7}
    killed(news, monkeypatch, linkage="chain", min=0.9)
    shown = news.group(dry_run=True)
    assert (in_force(shown), shown.scope.whole) == (DEFAULTS | {"min": 0.7}, True)
    assert [one.policy for one in news.suggest_keep()] == ["longest"] * len(news.groups())
    again = news.group()
    assert (in_force(again), again.scope.reason) == (DEFAULTS | {"min": 0.7}, "the last run did not finish")
    assert not news.group().scope.whole


def test_a_first_run_that_was_killed_leaves_the_defaults(news: NearDupe, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(news, monkeypatch, linkage="chain", min=0.9)
    assert in_force(news.group()) == DEFAULTS


def test_how_a_run_behaves_is_not_remembered(news: NearDupe) -> None:
    assert news.group(evidence=True, rebuild=True).evidence is not None
    again = news.group()
    assert (again.evidence, again.scope.whole) == (None, False)


def test_the_threshold_of_the_index_given_as_min_is_remembered(news: NearDupe) -> None:
    """It makes the same groups, so nothing changes, but it is a rule now."""
    assert news.group().rules.match.min is None
    given = news.group(min=0.6)
    assert (given.scope.whole, given.writes.written, given.rules.match.min) == (False, 0, 0.6)
    assert news.group().rules.match.min == 0.6


def test_a_field_that_is_gone(news: NearDupe, client: Client, server_cli: Cli) -> None:
    news.group(within=["site"], min=0.7)
    make_index(client, f"{news.name}-new", {"text": {"type": "text"}})
    copied = NearDupe(f"{news.name}-new", client)
    put(client, copied.name, {id: {"text": one["text"]} for id, one in documents().items()})
    copied.init(Settings(("text",), threshold=0.6))
    copied.enrich()
    hand_over_note(news, copied)
    for command in (("group",), ("watch", "--once"), ("migrate", "--threshold", "0.5", "--yes")):
        refused = server_cli(command[0], copied.name, *command[1:])
        assert refused.code == 2
        assert "no field with values to compare" in one_line(refused.err)
        assert f"es-neardupe group {copied.name} --default-rules" in one_line(refused.err)
    done = server_cli("group", copied.name, "--default-rules", "--min", "0.7", "--json")
    assert (done.code, done.json["rules"]["group"]["within"], done.json["rules"]["min"]) == (0, [], 0.7)
    assert copied.group().rules.min == 0.7


def hand_over_note(source: NearDupe, target: NearDupe) -> None:
    """As if the other index had been grouped by the rules of this one."""
    target.group()
    names = [hidden_index_name(opened(one).target, HiddenIndex.GROUPS) for one in (source, target)]
    note = source.client.request("GET", path(names[0], "_doc", "run"))["_source"]
    store(target.client, names[1], note)


def store(client: Client, registry: str, note: JSON) -> None:
    client.request("PUT", path(registry, "_doc", "run"), params={"refresh": True}, body=note)


def test_rules_that_contradict_the_remembered_ones(news: NearDupe) -> None:
    news.group(measure="jaccard", matching="information")
    with pytest.raises(SettingsError, match=r"`matching` and `passage` are for .* not for edit\. .* --default-rules"):
        news.group(measure="edit")
    assert news.group(measure="edit", default_rules=True).rules.measure == "edit"


@pytest.mark.parametrize("version", [2, None])
def test_notes_of_another_version(news: NearDupe, client: Client, server_cli: Cli, version: int | None) -> None:
    news.group(min=0.7)
    registry = hidden_index_name(opened(news).target, HiddenIndex.GROUPS)
    note = client.request("GET", path(registry, "_doc", "run"))["_source"]
    settings = {**note["settings"], "version": version} if version else {"measure": "resemblance", "min": 0.7}
    store(client, registry, {**note, "settings": settings})
    for command in (("group",), ("watch", "--once"), ("groups", "--suggest-keep"), ("what-if", "--min", "0.7")):
        refused = server_cli(command[0], news.name, *command[1:])
        assert refused.code == 2
        assert f"version {version}, not 1" in one_line(refused.err)
        assert f"es-neardupe group {news.name} --default-rules" in one_line(refused.err)
    done = news.group(default_rules=True)
    assert (in_force(done), done.scope.reason, done.groups.count) == (DEFAULTS, "the first run", 2)
    assert in_force(news.group()) == DEFAULTS


def test_another_run_changes_the_rules_meanwhile(news: NearDupe, monkeypatch: pytest.MonkeyPatch) -> None:
    news.group()
    wait = Registry.last_run
    calls: list[int] = []

    def late(registry: Registry) -> Any:
        found = wait(registry)
        if not calls:
            calls.append(1)
            NearDupe(news.name, news.client).group(min=0.9)
        return found

    monkeypatch.setattr(Registry, "last_run", late)
    with pytest.raises(LeaseHeld, match="by other rules in the meantime"):
        news.group()
    assert news.group().rules.min == 0.9


def test_watch_groups_by_the_rules_of_the_last_run(news: NearDupe) -> None:
    rounds: list[Any] = []
    news.watch(once=True, on_round=rounds.append)
    assert in_force(rounds[-1].grouping) == DEFAULTS
    news.group(linkage="complete", within=["site"], min=0.7)
    news.watch(once=True, on_round=rounds.append)
    assert in_force(rounds[-1].grouping) == DEFAULTS | {"linkage": "complete", "within": ["site"], "min": 0.7}
    assert (rounds[-1].grouping.scope.whole, rounds[-1].writes.grouped) == (False, 0)


def last_rules(news: NearDupe) -> Any:
    last = Registry(opened(Index(news.name, news.client))).last_run()
    assert last is not None
    assert last.finished
    return last.rules


def test_migrate_carries_the_rules_over(news: NearDupe) -> None:
    news.group(linkage="chain", principal="newest", within=["site"])
    done = news.migrate(threshold=0.5, prepare=True)
    assert [one for one in done.changes if one.startswith("group ")] == ["group min: 0.5, not 0.6"]
    news.group(max_bucket=30)
    news.migrate()
    expected = DEFAULTS | {"linkage": "chain", "principal": "newest", "within": ["site"], "max_bucket": 30, "min": 0.5}
    assert (last_rules(news).match.min, last_rules(news).min) == (None, 0.5)
    again = news.group()
    assert (in_force(again), again.writes.written) == (expected, 0)


def test_migrate_keeps_a_minimum_that_was_given(news: NearDupe) -> None:
    news.group(min=0.7)
    assert not [one for one in news.migrate(threshold=0.5).changes if one.startswith("group ")]
    assert in_force(news.group()) == DEFAULTS | {"min": 0.7}


def test_the_first_line_names_the_rules(news: NearDupe, server_cli: Cli) -> None:
    first = server_cli("group", news.name)
    assert first.out.splitlines()[0] == (
        "Rules: measure resemblance, min 0.6 (the threshold of the index), max 1.0, max-bucket 200, linkage star, "
        "principal longest."
    )
    within = ("--within", "site", "--within", "at")
    server_cli("group", news.name, "--min", "0.7", "--measure", "bag", "--whitespace", *within)
    again = server_cli("group", news.name)
    assert again.out.splitlines()[0] == (
        "Rules: measure bag (1-grams of words as they stand), min 0.7, max 1.0, max-bucket 200, linkage star, "
        "principal longest, within at and site."
    )
    taken_back = server_cli("group", news.name, "--no-whitespace", "--json").json
    assert (taken_back["rules"]["measure"], taken_back["rules"]["match"]["whitespace"]) == ("bag (1-grams)", False)
    assert taken_back["rules"]["version"] == 1
    for name in ("watch", "migrate"):
        assert server_cli(name, news.name, "--min", "0.7").code == 2


@pytest.mark.parametrize(
    "rules", [{"within": ["site"]}, {"across": "site"}, {"principal": "at:asc"}, {"window": "at:3"}], ids=str
)
def test_another_value_of_a_field_of_a_rule_is_noticed(news: NearDupe, client: Client, rules: JSON) -> None:
    """Though no text has changed, and so no key."""
    news.group(**rules)
    change(client, news.name, "f1-1", {"site": "b", "at": "2022-02-02"})
    news.enrich()
    assert news.group().writes.written > 0
    assert news.group(rebuild=True, dry_run=True).writes.written == 0
