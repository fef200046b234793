"""Names whose indices change: data streams and aliases with a write index, with real rollovers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from conftest import Cli
from kill_tools import Moment, run_commands, run_to_death
from rollover_tools import KINDS, Rolling, rolled
from server_tools import assert_settled, make_index, mapping, ours, send, theirs
from unit_tools import index_of

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.watch.rounds import Round, may_succeed_later
from es_neardupe.errors import BeingMigrated, InputError, LeaseHeld, NotInitialised, RolledOver, SchemeMismatch
from es_neardupe.index.hidden_indices import HiddenDocuments, HiddenIndex, ensure, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import Phase, phase_of
from es_neardupe.index.runs.lease import Lease, held
from es_neardupe.index.runs.tuning import records, tuned
from es_neardupe.index.storage.sidecar.indices import sidecars_of
from es_neardupe.index.storage.stored_settings import settings_mappings
from es_neardupe.index.target import Definitions, IndexState, open_target
from es_neardupe.options import Versions
from es_neardupe.server.client import Client, path
from es_neardupe.server.documents import Documents
from es_neardupe.server.http_client import ServerClient

pytestmark = pytest.mark.either("sidecar")

SETTINGS = Settings(("text",))


both = pytest.mark.parametrize("rolling", KINDS, indirect=True)


@pytest.fixture
def rolling(request: pytest.FixtureRequest, client: Client) -> Iterator[Rolling]:
    """An alias with a write index, or the kind that the test requests."""
    with rolled(client, getattr(request, "param", "alias")) as made:
        yield made


def in_the_middle(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], step: str = "write") -> None:
    """Call a function once, just before a step of enrich: by default before its first write."""
    plain, todo = getattr(Documents, step), [work]

    def then(*arguments: Any, **options: Any) -> Any:
        while todo:
            todo.pop()()
        return plain(*arguments, **options)

    monkeypatch.setattr(Documents, step, then)


@both
def test_a_rollover_in_the_middle_of_a_run(
    rolling: Rolling, client: Client, server_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run continues with its initial indices; the next one prepares the new index, reports it, and includes it."""
    name = rolling.name
    rolling.add(0, 4)
    first = NearDupe(name, client).init(SETTINGS)
    assert (first.rolls_over, first.next_prepared, len(first.prepared)) == (True, False, 1)
    assert first.indices == first.prepared

    def roll() -> None:
        rolling.roll()
        rolling.add(4, 8)

    in_the_middle(monkeypatch, roll)
    done = NearDupe(name, client).enrich(batch=2, workers=1)
    assert (done.writes.written, done.scope.documents, done.prepared) == (4, 4, ())
    new = next(index for index in client.request("GET", path(name, "_mapping")) if index not in first.indices)
    assert "neardupe" not in mapping(client, new)["properties"]  # nothing was written there before our mapping

    users = theirs(client, name)
    for work in (NearDupe.group, NearDupe.groups, NearDupe.stats):
        with pytest.raises(RolledOver, match=f"{new} was created by a rollover.*es-neardupe enrich {name}"):
            work(NearDupe(name, client))
    assert may_succeed_later(RolledOver(""))  # a watch continues
    dry = NearDupe(name, client).enrich(dry_run=True)
    assert (dry.prepared, dry.writes.written, dry.scope.documents) == ((new,), 4, 8)
    assert "neardupe" not in mapping(client, new)["properties"]
    again = server_cli("enrich", name, "--json")
    assert again.json["prepared"] == [new]
    assert again.json["writes"]["written"] == 4
    assert f"New indices of {name} after a rollover, which were prepared like the others: {new}." in again.err
    assert mapping(client, new)["_meta"] == mapping(client, first.indices[0])["_meta"]
    assert NearDupe(name, client).group().groups.largest == 8
    assert theirs(client, name) == users

    third = rolling.roll()
    rolling.add(8, 9)
    rounds: list[Round] = []
    NearDupe(name, client).watch(once=True, on_round=rounds.append)
    (one,) = rounds
    assert one.scope is not None
    assert (one.writes.enriched, one.scope.documents, one.prepared, one.error) == (1, 9, (third,), None)
    assert NearDupe(name, client).groups()[0].size == 9
    assert {one["group"] for one in ours(client, name).values()} == {NearDupe(name, client).groups()[0].group}
    (warning,) = (one for one in NearDupe(name, client).doctor() if one.level != "ok")
    assert (warning.name, warning.level) == ("rollover", "warning")
    assert "no index template adds the neardupe fields to the next index" in warning.message
    assert NearDupe(name, client).clean().writes.written == 9
    assert NearDupe(name, client).clean().documents == 0


def test_a_rollover_while_the_name_is_opened(rolling: Rolling, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the requests for mappings and states: the run continues without the new index."""
    name = rolling.name
    rolling.add(0, 2)
    NearDupe(name, client).init(SETTINGS)
    plain, todo = Definitions.states, [rolling.roll]

    def states(definitions: Definitions) -> dict[str, IndexState]:
        while todo:
            todo.pop()()
        return plain(definitions)

    monkeypatch.setattr(Definitions, "states", states)
    assert NearDupe(name, client).enrich().writes.written == 2
    rolling.add(2, 4)
    assert NearDupe(name, client).enrich().writes.written == 2
    assert NearDupe(name, client).group().groups.largest == 4


class Interrupted:
    """A driver that calls a function before its n-th request; 0: never."""

    def __init__(self, driver: Any, moment: int, work: Callable[[], object]) -> None:
        self._driver, self._moment, self._todo = driver, moment, [work]
        self.requests = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def send(self, *request: Any) -> Any:
        self.requests += 1
        if self.requests == self._moment:
            self._todo.pop()()
        return self._driver.send(*request)


def rolled_over_at(client: Client, kind: str, moment: int, *, sidecar: bool) -> int:
    """Enrich and group a name that rolls over before the n-th request, while an application writes; the next run
    completes the result. Returns the number of requests."""
    with rolled(client, kind) as rolling:
        found = NearDupe(rolling.name, client)
        rolling.add(0, 4)
        found.init(SETTINGS, sidecar=sidecar)

        def roll() -> None:
            rolling.add(4, 5)
            rolling.roll()
            rolling.add(5, 9)

        assert isinstance(client, ServerClient)
        plain = client._driver
        driver = client._driver = Interrupted(plain, moment, roll)
        try:
            with suppress(RolledOver):
                found.enrich(batch=2)
                found.group(evidence=True, batch=2)
        finally:
            client._driver = plain
        if 0 < moment <= driver.requests:  # a faster run sends fewer: mappings are read again after a while
            users = theirs(client, rolling.name)
            assert len(users) == 9
            found.watch(once=True)
            assert [one.size for one in found.groups()] == [9]
            assert theirs(client, rolling.name) == users
            assert_settled(client, rolling.name)
        found.clean()
        return driver.requests


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sidecar", [False, True])
def test_a_rollover_at_some_moments(kind: str, sidecar: bool, client: Client) -> None:
    requests = rolled_over_at(client, kind, 0, sidecar=sidecar)
    for moment in (requests // 3, 2 * requests // 3):
        rolled_over_at(client, kind, moment, sidecar=sidecar)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sidecar", [False, True])
def test_a_rollover_at_any_moment(kind: str, sidecar: bool, client: Client) -> None:
    for moment in range(1, rolled_over_at(client, kind, 0, sidecar=sidecar) + 1):
        rolled_over_at(client, kind, moment, sidecar=sidecar)


@pytest.mark.parametrize("rolling", KINDS, indirect=True)
@pytest.mark.parametrize("sidecar", [False, True])
def test_rollovers_in_the_middle_of_a_migration(rolling: Rolling, sidecar: bool, client: Client) -> None:
    """Before the switch, during it and after a kill: new indices are prepared, and the result is that of one run."""
    name = rolling.name
    rolling.add(0, 3)
    NearDupe(name, client).init(SETTINGS, sidecar=sidecar)
    run_commands(client, name, [("enrich", {}), ("group", {})])
    assert NearDupe(name, client).migrate(shingle=3, prepare=True).state == "prepared"
    second = rolling.roll()
    rolling.add(3, 5)
    dry = NearDupe(name, client).migrate(dry_run=True)
    assert (dry.state, dry.writes.enriched) == ("prepared", 2)
    assert "_meta" not in mapping(client, second)

    puts = 3 if sidecar else 4  # the sidecar of the second index is created with its mapping
    run_to_death(client, name, [("migrate", {})], Moment(1, "after", ("_mapping", puts), "_bulk"))
    assert phase_of(settings_mappings(Index(name, client), "neardupe").values(), "neardupe") is Phase.SWITCHING
    third = rolling.roll()
    rolling.add(5, 9)
    with pytest.raises(BeingMigrated, match=f"`es-neardupe migrate {name}`"):
        NearDupe(name, client).enrich()
    assert NearDupe(name, client).migrate().state == "done"
    found = [settings_mappings(Index(one, client), "neardupe")[one]["_meta"] for one in (second, third)]
    assert found[0]["neardupe"] == found[1]["neardupe"]
    assert [one.keys() - {"@source", "neardupe.owner"} for one in found] == [{"neardupe"}] * 2
    assert [one.size for one in NearDupe(name, client).groups()] == [9]
    assert (
        NearDupe(name, client).enrich(check=True).writes.written
        == NearDupe(name, client).group(check=True).writes.written
        == 0
    )


def test_a_rollover_that_only_the_new_keys_know_of(rolling: Rolling, client: Client) -> None:
    """While a migration works on an index, a new index gets a sidecar of both kinds before the switch."""
    name = rolling.name
    rolling.add(0, 3)
    NearDupe(name, client).init(SETTINGS, sidecar=True)
    run_commands(client, name, [("enrich", {}), ("group", {})])

    def meanwhile(comparison: object) -> bool:
        new = rolling.roll()
        rolling.add(3, 5)
        assert NearDupe(name, client, prefix="neardupe_next").enrich().prepared == (new,)
        return True

    assert NearDupe(name, client).migrate(shingle=3, confirm=meanwhile).state == "done"
    assert [one.size for one in NearDupe(name, client).groups()] == [5]
    sidecars = sidecars_of(client, Definitions(client, name).mappings(), "neardupe")
    assert [one["dynamic"] for one in sidecars.values()] == ["strict"] * 2, "none was made by its first document"


@pytest.mark.parametrize("rolling", ["stream"], indirect=True)
@pytest.mark.product("opensearch")
def test_settings_of_what_a_rollover_made_are_lowered_too(rolling: Rolling, client: Client) -> None:
    """An index that is deleted meanwhile, as old ones are, does not prevent the others from getting their settings
    back."""
    name = rolling.name
    rolling.add(0, 1)
    (first,) = NearDupe(name, client).init(SETTINGS).indices
    second = rolling.roll()
    rolling.add(1, 3)
    done = NearDupe(name, client).enrich(tune=True)
    assert (done.prepared, done.writes.written) == ((second,), 3)
    assert done.tuned is not None
    assert done.tuned.keys() == {first, second}
    with tuned(opened(Index(name, client)), "test"):
        client.request("DELETE", path(first))
    assert records(Definitions(client, name).mappings()) == {}


@both
def test_one_registry_however_many_indices(rolling: Rolling, client: Client) -> None:
    """The second run is incremental, and knows the group; the templates of the name do not match our index."""
    name = rolling.name
    rolling.add(0, 3)
    NearDupe(name, client).init(SETTINGS)
    NearDupe(name, client).enrich()
    NearDupe(name, client).group()
    (before,) = NearDupe(name, client).groups()
    registry = hidden_index_name(open_target(Definitions(client, name)), HiddenIndex.GROUPS)
    assert registry == f"neardupe-groups-{name}"
    assert "text" not in mapping(client, registry)["properties"]
    rolling.roll()
    rolling.add(3, 4)
    NearDupe(name, client).enrich()
    again = NearDupe(name, client).group()
    assert (again.scope.reason, again.writes.written) == ("1 new or changed document", 1)
    (after,) = NearDupe(name, client).groups()
    assert (after.group, after.size) == (before.group, 4)
    assert NearDupe(name, client).group_history(after.group).history[0].event == "founded"
    assert client.request("GET", path(registry, "_count"))["count"] > 0


@both
def test_a_template_of_the_users_gives_later_indices_our_fields(
    rolling: Rolling, client: Client, server_cli: Cli
) -> None:
    name = rolling.name
    rolling.add(0, 2)
    done = server_cli("init", name, "--field", "text")
    assert f"New indices of {name} will not have the fields, because index templates are not changed." in done.err
    printed = server_cli("init", name, "--field", "text", "--template")
    assert printed.code == 0
    assert "Nothing was written." in printed.err
    assert client.request("GET", path("_index_template", name))["index_templates"][0]["index_template"].get(
        "composed_of", []
    ) in ([], None)
    client.request("PUT", path("_component_template", name), body=json.loads(printed.out))
    client.request("PUT", path("_index_template", name), body=rolling.template | {"composed_of": [name]})
    assert (
        f"New indices of {name} will have the fields, from its index template."
        in server_cli("init", name, "--field", "text").err
    )
    assert {one.level for one in NearDupe(name, client).doctor() if one.name != "documents"} == {"ok"}
    new = rolling.roll()
    assert mapping(client, new)["_meta"] == {"neardupe": SETTINGS.to_meta()}
    assert NearDupe(name, client).stats().scope.unprocessed == 2  # nothing prevents a rollover
    actions = [{"_op_type": "create", "_id": "d2", "@timestamp": "2026-01-01", "text": rolling.texts[2]}]
    with NearDupe(name, url=client.url) as dupes:
        sent = list(dupes.fingerprinted(actions))
    send(client, [({"create": {"_index": name, "_id": "d2"}}, {k: v for k, v in sent[0].items() if k[0] != "_"})])
    enriched = NearDupe(name, client).enrich()
    assert (enriched.prepared, enriched.scope.current, enriched.writes.written) == ((), 1, 2)
    assert NearDupe(name, client).group().groups.largest == 3
    done = server_cli("clean", name, "--yes")
    assert f"An index template adds the neardupe fields to the next index of {name}: remove them" in done.err


@pytest.mark.parametrize("sidecar", [False, True], ids=["inline", "sidecar"])
def test_other_settings_are_for_all_indices(rolling: Rolling, client: Client, sidecar: bool) -> None:
    """`init` with other settings names the migration of what the user named, not that of one of its indices."""
    rolling.roll()
    NearDupe(rolling.name, client).init(SETTINGS, sidecar=sidecar)
    with pytest.raises(SchemeMismatch, match=f"`es-neardupe migrate {rolling.name}`"):
        NearDupe(rolling.name, client).init(Settings(("text",), threshold=0.7), sidecar=sidecar)


def suggested(message: str) -> list[list[str]]:
    """The commands that a message names, each as arguments."""
    return [shlex.split(one)[1:] for one in re.findall("`(es-neardupe .+?)`", message)]


def test_a_template_with_the_settings_before_a_migration(rolling: Rolling, client: Client, server_cli: Cli) -> None:
    """`doctor` names what prints the new template; without it, the message that stops all commands names a way out."""
    name = rolling.name
    rolling.add(0, 2)
    server_cli("init", name, "--field", "text")
    template = server_cli("init", name, "--field", "text", "--template").json
    client.request("PUT", path("_component_template", name), body=template)
    client.request("PUT", path("_index_template", name), body=rolling.template | {"composed_of": [name]})
    dupes = NearDupe(name, client)
    dupes.enrich()
    server_cli("migrate", name, "--threshold", "0.7", "--yes")
    (before,) = (one.message for one in dupes.doctor() if one.name == "rollover")
    assert f"an index template adds the neardupe fields to the next index of {name} with other settings" in before
    new = rolling.roll()
    rolling.add(2, 3)
    assert NearDupe(new, client).enrich().writes.written == 1  # old keys
    with pytest.raises(SchemeMismatch, match=f"as in {new}. Name one of them, or run") as stopped:
        dupes.stats()
    assert "scheme" in {one.name for one in dupes.doctor() if one.level == "error"}
    clean, enrich = suggested(str(stopped.value))
    assert server_cli(*clean, "--yes").code == 0
    assert server_cli(*enrich).code == 0
    assert (dupes.group().groups.largest, dupes.stats().scope.unprocessed) == (3, 0)
    client.request("PUT", path("_component_template", name), body=server_cli(*suggested(before)[0]).json)
    assert {one.level for one in dupes.doctor() if one.name == "rollover"} == {"ok"}
    rolling.roll()
    assert dupes.stats().scope.documents == 3


def test_a_template_for_external_versions(rolling: Rolling, client: Client, server_cli: Cli) -> None:
    """The template that `doctor` names says who sets the versions of documents."""
    dupes = NearDupe(rolling.name, client)
    dupes.init(SETTINGS, versions=Versions.EXTERNAL)
    (message,) = (one.message for one in dupes.doctor() if one.name == "rollover")
    (printing,) = [one for one in suggested(message) if "--template" in one]
    client.request("PUT", path("_component_template", rolling.name), body=server_cli(*printing).json)
    client.request(
        "PUT", path("_index_template", rolling.name), body=rolling.template | {"composed_of": [rolling.name]}
    )
    assert {one.level for one in dupes.doctor() if one.name == "rollover"} == {"ok"}
    rolling.roll()
    assert dupes.stats().scope.documents == 0


def test_names_that_overlap_exclude_each_other(rolling: Rolling, client: Client) -> None:
    """The index itself, its alias or data stream, a pattern: each has its registry, but only one run works at a
    time."""
    name = rolling.name
    rolling.add(0, 2)
    (index,) = NearDupe(name, client).init(SETTINGS).indices
    NearDupe(name, client).enrich()
    whole, alone = open_target(Definitions(client, name)), open_target(Definitions(client, index))
    with held(index_of(client, whole)), pytest.raises(LeaseHeld, match=f"is processing index {index}"):
        NearDupe(index, client).group()
    with held(index_of(client, alone)), pytest.raises(LeaseHeld):
        NearDupe(name, client).group()
    assert NearDupe(index, client).group().groups.largest == 2
    other = Settings(("text",), prefix="other")
    NearDupe(name, client, prefix="other").init(other)
    with held(opened(Index(name, client, "other"))):
        NearDupe(name, client).group()  # other fields: no conflict


def test_two_that_begin_at_once(rolling: Rolling, client: Client) -> None:
    """Each has its own lease before it looks for the other's: they never both continue."""
    name = rolling.name
    (index,) = NearDupe(name, client).init(SETTINGS).indices
    one, other = (
        Lease(HiddenDocuments(client, ensure(index_of(client, target), HiddenIndex.GROUPS)), target, "group", 60)
        for target in (open_target(Definitions(client, name)), open_target(Definitions(client, index)))
    )
    one.take()
    with pytest.raises(LeaseHeld), held(index_of(client, other.target)):
        pass
    one.give_way()  # the other has released its lease
    other.take()
    for lease in (one, other):
        with pytest.raises(LeaseHeld, match=f"is processing index {index}"):
            lease.give_way()


def test_a_name_of_very_many_indices(rolling: Rolling, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The indices do not fit into a request line, so the name is sent; nothing is written to an index without our
    mapping."""
    name = rolling.name
    monkeypatch.setattr("es_neardupe.index.target._MAX_PATH", 0)
    rolling.add(0, 2)
    NearDupe(name, client).init(SETTINGS)
    rolled: list[str] = []

    def roll() -> None:
        rolled.append(rolling.roll())
        rolling.add(2, 4)

    in_the_middle(monkeypatch, roll, "refresh")
    assert NearDupe(name, client).enrich().writes.written == 2
    assert "neardupe" not in mapping(client, rolled[0])["properties"]
    again = NearDupe(name, client).enrich()
    assert (again.writes.written, again.prepared) == (2, tuple(rolled))
    assert NearDupe(name, client).group().groups.largest == 4


def test_what_is_no_rollover_is_not_prepared(client: Client, index_name: str) -> None:
    """A plain alias does not show how its indices were created: `init` decides."""
    for number in (1, 2):
        make_index(client, f"{index_name}-{number}", aliases={f"{index_name}-all": {}})
    NearDupe(f"{index_name}-1", client).init(SETTINGS)
    with pytest.raises(NotInitialised, match=f"{index_name}-2 has no near-duplicate keys") as caught:
        NearDupe(f"{index_name}-all", client).enrich()
    assert not isinstance(caught.value, RolledOver)


@pytest.mark.parametrize("rolling", ["stream"], indirect=True)
@pytest.mark.product("opensearch")
def test_a_data_stream_takes_no_files(rolling: Rolling, client: Client) -> None:
    (index,) = NearDupe(rolling.name, client).init(SETTINGS).indices
    with pytest.raises(InputError, match="is a data stream"):
        NearDupe(rolling.name, client).load(["-"])
    rolling.add(0, 2)
    NearDupe(index, client).enrich()  # the backing index by its own name, like any index
    assert NearDupe(index, client).group().groups.largest == 2
    registry = hidden_index_name(open_target(Definitions(client, index)), HiddenIndex.GROUPS)
    assert registry.startswith("ds-")  # no leading dot, which the server's own indices have
    client.request("DELETE", path(registry))
