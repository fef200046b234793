"""Index settings changed for a run, and restored in any case: on real servers."""

from __future__ import annotations

import contextlib
import warnings

import pytest
from conftest import Cli
from kill_tools import Moment, run_to_death
from secured import Secured
from secured_users import NEWS
from server_tools import exists, make_index, mapping, ours, put
from unit_tools import index_of

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Forbidden, LeaseHeld, NotFound, TuningWarning
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.index.runs.tuning import records, tuned
from es_neardupe.index.target import Definitions, open_target
from es_neardupe.server.client import Client, path

SETTINGS = Settings(("text",))
LOWERED = {"refresh_interval": "-1", "number_of_replicas": "0"}
FORMER = {"refresh_interval": None, "number_of_replicas": "1"}
DOCUMENTS = {f"d{n}": {"text": f"{n} words are here for a test of settings"} for n in range(12)}


def prepared(client: Client, index: str, **settings: object) -> None:
    make_index(client, index, settings={"number_of_shards": 1, "number_of_replicas": 1, **settings})
    put(client, index, DOCUMENTS)
    NearDupe(index, client).init(SETTINGS)


def stored(client: Client, index: str) -> dict[str, str | None]:
    """The two settings as they are set; None: the server's default."""
    answer = client.request("GET", path(index, "_settings"), params={"flat_settings": "true"})
    return {name: answer[index]["settings"].get(f"index.{name}") for name in LOWERED}


def put_setting(client: Client, index: str, name: str, value: str) -> None:
    client.request("PUT", path(index, "_settings"), body={f"index.{name}": value})


def check_untouched(client: Client, index: str) -> None:
    assert stored(client, index) == FORMER
    assert mapping(client, index)["_meta"].keys() == {"neardupe"}


@pytest.fixture
def index(client: Client, index_name: str) -> str:
    prepared(client, index_name)
    return index_name


@pytest.mark.product("each")
def test_lowered_for_the_run(client: Client, index: str, server_cli: Cli) -> None:
    """Changed during the run only; a dry run changes nothing; interrupts and a second run at the same time do no
    harm."""
    seen = []

    def look(stage: str, done: int, total: int | None) -> None:
        seen.append(stored(client, index))

    assert NearDupe(index, client).enrich(tune=True, dry_run=True, progress=look).tuned is None
    done = NearDupe(index, client).enrich(tune=True, progress=look)
    assert (done.writes.written, done.tuned) == (12, {index: {f"index.{name}": one for name, one in FORMER.items()}})
    assert seen[0] == FORMER
    assert seen[-1] == LOWERED
    check_untouched(client, index)
    assert len(ours(client, index)) == 12
    run = server_cli("group", index, "--tune")
    assert "restored: refresh_interval default, number_of_replicas 1" in run.err
    assert "replicas are being rebuilt" in run.err
    loaded = server_cli("load", index, "docs/articles.jsonl", "--tune", "--json").json
    assert loaded["tuned"] == {index: {f"index.{name}": one for name, one in FORMER.items()}}
    check_untouched(client, index)

    def interrupted(stage: str, done: int, total: int | None) -> None:
        with pytest.raises(LeaseHeld, match="enrich --tune"):
            NearDupe(index, client).group(tune=True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NearDupe(index, client).enrich(check=True, tune=True, progress=interrupted)
    check_untouched(client, index)


def test_changed_by_somebody_meanwhile(client: Client, index: str) -> None:
    """A setting that differs from the value set by the run was changed by another client."""
    target = open_target(Definitions(client, index))
    with tuned(index_of(client, target), "test") as lowered:
        put_setting(client, index, "refresh_interval", "7s")
    assert lowered[index].keys() == {"index.refresh_interval", "index.number_of_replicas"}
    assert stored(client, index) == {"refresh_interval": "7s", "number_of_replicas": "1"}
    put_setting(client, index, "auto_expand_replicas", "0-2")
    with tuned(index_of(client, target), "test") as lowered:
        assert stored(client, index)["refresh_interval"] == "-1"
    assert lowered == {index: {"index.refresh_interval": "7s"}}


@pytest.mark.parametrize("lowered", [True, False])
def test_after_a_kill_the_next_command_gives_back(lowered: bool, client: Client, index: str, server_cli: Cli) -> None:
    """Killed while it writes documents, or after the former values were stored and before any setting was changed."""
    moment = Moment(2, "after", of="_bulk") if lowered else Moment(1, "before", ("_mapping", 1), "_settings")
    run_to_death(client, index, [("enrich", {"tune": True})], moment)
    assert stored(client, index) == (LOWERED if lowered else FORMER)
    (record,) = records({index: mapping(client, index)}).values()
    assert record.before == {f"index.{name}": one for name, one in FORMER.items()}
    (check,) = (one for one in NearDupe(index, client).doctor() if one.name == "tuning")
    assert (check.level, index in check.message) == ("warning", True)
    assert NearDupe(index, client).enrich(dry_run=True).scope.documents == 12
    assert stored(client, index) == (LOWERED if lowered else FORMER)
    run = server_cli("enrich", index)
    assert run.code == 0
    assert "by a run of enrich that did not end normally. They are now restored" in run.err
    check_untouched(client, index)
    assert server_cli("enrich", index).err.count("lowered") == 0


def test_keys_beside_an_index(client: Client, index_name: str, server_cli: Cli) -> None:
    """The settings of the sidecar index are changed, and restored by the next command; those of the index itself
    stay."""
    make_index(client, index_name, settings={"number_of_shards": 1, "number_of_replicas": 1})
    put(client, index_name, DOCUMENTS)
    (beside,) = NearDupe(index_name, client).init(SETTINGS, sidecar=True).sidecars
    done = NearDupe(index_name, client).enrich(tune=True)
    assert (done.writes.written, done.tuned) == (12, {beside: {"index.refresh_interval": None}})
    before = mapping(client, beside)
    for command in (["enrich"], ["clean", "--yes"]):
        moment = Moment(1, "after", of="_bulk")
        run_to_death(client, index_name, [("enrich", {"tune": True, "all": True})], moment)
        assert (stored(client, index_name), stored(client, beside)["refresh_interval"]) == (FORMER, "-1")
        assert [one.name for one in NearDupe(index_name, client).doctor() if beside in one.message][-1] == "tuning"
        assert (
            f"Settings of index {beside} (refresh_interval) were"
            in server_cli(command[0], index_name, *command[1:]).err
        )
        assert not exists(client, beside) or mapping(client, beside) == before
    assert not exists(client, beside)
    NearDupe(index_name, client).init(SETTINGS, sidecar=True)
    assert NearDupe(index_name, client).migrate(threshold=0.5, tune=True).tuned == {
        beside: {"index.refresh_interval": None}
    }
    assert stored(client, beside)["refresh_interval"] is None


def test_records_that_are_none_of_ours(client: Client, index: str) -> None:
    """Any client can write into ``_meta``: only the two settings are ever written, and nothing else breaks a run."""
    meta = mapping(client, index)["_meta"]
    sound = {"token": "t", "registry": "none-such", "command": "c", "at": "today"}
    for forged in (
        5,
        {},
        {**sound, "before": {"index.blocks.write": "true"}, "lowered": {"index.blocks.write": "false"}},
        {**sound, "before": {"index.refresh_interval": {"x": 1}}, "lowered": {"index.refresh_interval": "-1"}},
        {**sound, "before": [], "lowered": []},
    ):
        client.request("PUT", path(index, "_mapping"), body={"_meta": {**meta, "neardupe.tune": forged}})
        with warnings.catch_warnings():
            warnings.simplefilter("error", TuningWarning)
            NearDupe(index, client).enrich()
        assert stored(client, index) == FORMER
    elsewhere = {"before": {"index.refresh_interval": "3s"}, "lowered": {"index.refresh_interval": "-1"}}
    body = {"_meta": {**meta, "neardupe.tune": {**sound, **elsewhere, "registry": "../x"}}}
    client.request("PUT", path(index, "_mapping"), body=body)
    with pytest.warns(TuningWarning, match="refresh_interval, which another client has changed since"):
        NearDupe(index, client).group()
    check_untouched(client, index)


def test_without_the_right_nothing_is_changed(secured_server: Secured) -> None:
    """Rejected before anything is done; settings left by another run are reported, and do not stop the work."""
    with secured_server.client("admin") as admin, secured_server.client("runner") as runner:
        prepared(admin, NEWS)
        try:
            with pytest.raises(Forbidden, match="grant the privilege `manage` on it, or omit `tune`"):
                NearDupe(NEWS, runner).enrich(tune=True)
            check_untouched(admin, NEWS)
            assert not exists(admin, hidden_index_name(open_target(Definitions(admin, NEWS)), HiddenIndex.GROUPS))
            with tuned(opened(Index(NEWS, admin)), "test"):
                meta = mapping(admin, NEWS)["_meta"]
            admin.request("PUT", path(NEWS, "_mapping"), body={"_meta": meta})  # as if they had not been restored
            put_setting(admin, NEWS, "refresh_interval", "-1")
            with pytest.warns(TuningWarning, match="could not be restored"):
                assert NearDupe(NEWS, runner).enrich().writes.written == 12
            assert stored(admin, NEWS)["refresh_interval"] == "-1"
            with pytest.warns(TuningWarning, match="They are now restored"):
                NearDupe(NEWS, admin).enrich()
            check_untouched(admin, NEWS)
        finally:
            for name in (NEWS, f"{NEWS}-neardupe-groups"):
                with contextlib.suppress(NotFound):
                    admin.request("DELETE", path(name))
