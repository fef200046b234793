"""Commands whose tasks run on Dask workers: the same results as in one process, no credentials in tasks, bad input."""

from __future__ import annotations

import json
import multiprocessing
import operator
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from multiprocessing.process import BaseProcess as Process
from pathlib import Path
from typing import Any

import cloudpickle
import distributed
import pytest
from cluster_tools import die_in, kill, local_cluster, programs
from conftest import Cli
from dask.config import set as configured
from kill_tools import State
from ports import claimed_ports
from server_tools import assert_settled, delete_all, groups_of, living, make_index, one_line, put
from sidecar_tools import PROPERTIES, document, plain_report, texts
from tls_tools import authority

from es_neardupe import NearDupe
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.engines import dask
from es_neardupe.engines.chosen import engine_of
from es_neardupe.errors import Blocked, EngineError, LeaseHeld, NeardupeError, NotFound, SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.index import index_on_workers
from es_neardupe.index.index import opened
from es_neardupe.index.index_on_workers import IndexOnWorkers
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.interface import EnrichRequest
from es_neardupe.options import PRESETS
from es_neardupe.server.client import Client, path
from es_neardupe.verification import verify
from es_neardupe.verification.current_texts import CurrentDocuments
from es_neardupe.wording import CommandLine, spoken


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with local_cluster() as started:
        yield started


@pytest.fixture
def engine(cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a scheduler; everything is divided into many small tasks."""
    monkeypatch.setattr(verify, "_MANY", 1)
    monkeypatch.setattr(CurrentDocuments, "portion", 2000)
    return str(cluster.scheduler_address)


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port on which nothing listens, during the whole test."""
    with claimed_ports(1) as (port,):
        yield port


SETTINGS = Settings(fields=("text",), threshold=0.7)


def _new(client: Client, name: str, settings: Settings = SETTINGS, *, shards: int = 3, **init: Any) -> NearDupe:
    """An index with families of near-duplicates, copies, short and empty texts."""
    delete_all(client, name)
    make_index(client, name, PROPERTIES, settings={"number_of_shards": shards, "number_of_replicas": 0})
    put(client, name, texts("engine", 50))
    news = NearDupe(name, client)
    news.init(settings, **init)
    return news


@pytest.fixture
def news(client: Client, index_name: str) -> NearDupe:
    """An index with keys."""
    news = _new(client, index_name)
    news.enrich()
    return news


def _life(news: NearDupe, client: Client, engine: str | None, **rules: Any) -> Iterator[Any]:
    """Every report and state of an index that is enriched, grouped, changed, enriched and grouped again."""
    for changed in (
        {"d000": document("d000", "")},
        {"d003": document("d003", "another text"), "d999": document("d999", "a new text")},
    ):
        put(client, news.name, changed)
        yield plain_report(news.enrich(engine=engine))
        yield plain_report(news.group(**rules, engine=engine))
        sidecars = opened(news).storage.sidecars  # whose entries have the uuid of the index
        yield _grouped(client, news.name) if sidecars else State.of(client, news.name)
    yield sorted((pair.a, pair.b, pair.similarity) for pair in news.pairs(max_bucket=2, engine=engine))
    yield plain_report(news.audit(sample=20, min=0.5, max_bucket=2, engine=engine))
    assert news.enrich().scope.read == 0  # the engine has stored the progress of the change feed


def _grouped(client: Client, index: str) -> Any:
    """The groups with their members, and the registry."""
    groups = {
        (one.group, *((member.address, member.similarity) for member in one.members))
        for one in groups_of(client, index)
    }
    return groups, sorted((one.group, one.principal, one.size, one.mean_similarity) for one in living(client, index))


_LIVES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "large-buckets": ({}, {"max_bucket": 2, "evidence": True}),
    "rules": (
        {"shards": 1},
        {"within": ["source"], "window": "date:9", "principal": "oldest", "linkage": "complete", "memory": 10**9},
    ),
    "sidecar": (
        {"sidecar": True, "settings": Settings(fields=("text",), **PRESETS["supershingles"])},
        {"linkage": "chain", "measure": "jaccard", "min": 0.8, "rebuild": True},
    ),
}


@pytest.mark.either("life")
@pytest.mark.parametrize("life", _LIVES)
def test_results_are_those_of_one_process(client: Client, index_name: str, engine: str, life: str) -> None:
    made, rules = _LIVES[life]
    expected = list(_life(_new(client, index_name, **made), client, None, **rules))
    assert list(_life(_new(client, index_name, **made), client, engine, **rules)) == expected


def test_own_processes_have_no_profiler() -> None:
    """It hangs workers before Python 3.11.9 (https://github.com/python/cpython/issues/106883)."""
    with dask.DaskEngine("processes:1") as mine:
        (callbacks,) = mine._client.run(lambda dask_worker: sorted(dask_worker.periodic_callbacks)).values()
    assert "heartbeat" in callbacks
    assert "profile" not in callbacks


def test_own_processes_and_spilled_keys(news: NearDupe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_MANY", 1)
    expected = plain_report(news.group(dry_run=True))
    monkeypatch.setattr(MemoryLimit, "spills", lambda self, bands: True)
    assert plain_report(news.group(dry_run=True, memory=10**9)) == expected
    monkeypatch.undo()
    assert plain_report(news.group(dry_run=True, engine="processes:1")) == expected


def test_no_task_has_credentials(
    news: NearDupe, server_url: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers find them by themselves, here in the same file."""
    file = tmp_path / "password"
    file.write_text("a-secret-word")
    sent = []
    submit = distributed.Client.submit

    def spy(self: Any, *given: Any, **more: Any) -> Any:
        sent.append(cloudpickle.dumps([one for one in given if not isinstance(one, distributed.Future | tuple)]))
        return submit(self, *given, **more)

    monkeypatch.setattr(distributed.Client, "submit", spy)
    with NearDupe(news.name, url=server_url, username="editor", password_file=str(file)) as mine:
        assert mine.server.login == "basic editor"
        mine.enrich(all=True, engine=engine)
        mine.group(engine=engine, dry_run=True)
        assert len(sent) > 20
        assert any(b"editor" in one for one in sent)
        assert not any(b"a-secret-word" in one for one in sent)
        file.unlink()
        with pytest.raises(SettingsError, match=r"On a worker: The secret in .* cannot be read"):
            mine.group(engine=engine, dry_run=True)


def test_errors_of_tasks_are_those_of_the_command(news: NearDupe, client: Client, engine: str) -> None:
    """With a kind that has more than a message; other tasks are cancelled."""
    update = {"index.blocks.write": True}
    task = IndexOnWorkers.of(opened(news), 1)
    client.request("PUT", path(news.name, "_settings"), body=update)
    with pytest.raises(Blocked) as blocked:
        list(_writes(task, engine))
    assert blocked.value.status == 403
    assert "is blocked for writing" in str(blocked.value)


def test_errors_of_tasks_name_the_options_of_the_command(news: NearDupe, server_url: str, engine: str) -> None:
    task = replace(IndexOnWorkers.of(opened(news), 1), url="http://other:9200", options={"url": server_url})
    for on, named in ((CommandLine({"url": "--url"}), "--url"), (None, "`url`")):
        with spoken(on), pytest.raises(EngineError) as refused:
            list(_writes(task, engine))
        assert str(refused.value) == (
            f"A worker connects to {server_url}, and this command to http://other:9200: name the server by {named}."
        )


def test_no_error_is_its_own_cause(client: Client) -> None:
    """Workers follow the causes of an error to the end: they have hung."""
    with pytest.raises(NotFound) as missing:
        next(client.pages("engine-no-such-index", {"query": {"match_all": {}}}))
    causes: list[BaseException] = [missing.value]
    while (cause := causes[-1].__cause__) is not None:
        assert cause not in causes
        causes.append(cause)


def _writes(index: IndexOnWorkers, engine: str) -> Iterator[Any]:
    request = EnrichRequest(None, False, None, True, 1000, False, None)
    with engine_of(engine, insecure=False) as opened_engine:
        assert opened_engine is not None
        found = opened_engine.run(
            index_on_workers._enrich_slice, index_on_workers._Enriching(index, request, 2, 9, 1), [1, 2]
        )
        yield from found


@pytest.mark.parametrize(
    "error", [Blocked("Words.", status=403, type="t", reason="r"), LeaseHeld("Words."), EngineError()]
)
def test_errors_can_be_pickled(error: NeardupeError) -> None:
    error.request = "run/1"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))


def _error(server_cli: Cli, *arguments: str) -> str:
    done = server_cli(*arguments)
    assert done.code in (1, 2)
    return one_line(done.err) if done.code == 1 else " ".join(done.err.split())


def test_no_scheduler(server_cli: Cli, news: NearDupe, unused_port: int) -> None:
    message = _error(server_cli, "group", news.name, "--engine", "tcp://10.1.2.3:8786")
    assert (
        "tcp://10.1.2.3:8786 has no encryption and no authentication: use tls://, or add --insecure-engine in a"
        in message
    )
    message = _error(server_cli, "group", news.name, "--engine", f"tcp://127.0.0.1:{unused_port}")
    assert f"No Dask scheduler answers at tcp://127.0.0.1:{unused_port}" in message


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("processes:0", "The number of processes must be from 1 to 256."),
        ("threads:4", "Give processes:NUMBER, tcp://HOST:PORT or tls://HOST:PORT, not"),
        ("tcp://scheduler", "Give processes:NUMBER"),
    ],
)
def test_an_engine_that_cannot_be(server_cli: Cli, engine: str, message: str) -> None:
    assert message in _error(server_cli, "group", "news", "--engine", engine).replace("│ │ ", "")


def _open(engine: str) -> None:
    with engine_of(engine, insecure=False):
        pass


def test_workers_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "_CONNECT", 5)
    metadata = tmp_path / "es_neardupe-0.0.9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: es-neardupe\nVersion: 0.0.9\n")
    with programs(tmp_path) as started:
        with pytest.raises(EngineError, match=f"The scheduler at {started.address} has no workers"):
            _open(started.address)
        started.start_worker({"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.pathsep.join(sys.path)}"})
        monkeypatch.setattr(dask, "_CONNECT", 60)
        versions = f"has es-neardupe 0.0.9, and this command es-neardupe {version('es-neardupe')}"
        with pytest.raises(EngineError, match=versions):
            _open(started.address)


def test_a_worker_of_another_version_that_joins_later(tmp_path: Path) -> None:
    """It runs no task; the error names it."""
    other = tmp_path / "other"
    metadata = other / "es_neardupe-0.0.9.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: es-neardupe\nVersion: 0.0.9\n")
    with programs(tmp_path) as started:
        first = started.start_worker()
        with engine_of(started.address, insecure=False) as engine:
            assert engine is not None
            assert sorted(engine.run(operator.add, 1, range(3))) == [(0, 1), (1, 2), (2, 3)]
            started.start_worker({"PYTHONPATH": f"{other}{os.pathsep}{os.pathsep.join(sys.path)}"})
            kill(first)
            with pytest.raises(EngineError, match=r"Worker tcp://\S+ has es-neardupe 0\.0\.9, and this command"):
                list(engine.run(operator.add, 1, range(3)))
            with pytest.raises(EngineError, match=r"Worker tcp://\S+ has es-neardupe 0\.0\.9, and this command"):
                list(engine.run(operator.add, 1, [tuple(engine.keep(operator.add, 1, [1]))]))


def _killed(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Kill the first processes of workers as soon as they have started, so many times. Returns their ids."""
    start, killed = Process.start, list[int]()

    def started(self: Process) -> None:
        start(self)
        if self.pid is not None and len(killed) < times:
            killed.append(self.pid)
            os.kill(self.pid, signal.SIGKILL)

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", started)
    return killed


def test_processes_that_are_killed_at_their_start(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = _killed(monkeypatch, 1)
    with dask.DaskEngine("processes:1") as engine:
        assert list(engine.run(operator.add, 1, [2])) == [(2, 3)]
    assert len(killed) == 1
    monkeypatch.undo()
    _killed(monkeypatch, 1000)
    with (
        dask.DaskEngine("processes:1") as engine,
        pytest.raises(
            EngineError,
            match=r"processes:1 ended before they could work, 3 times: check the memory .* below `if __name__",
        ),
    ):
        list(engine.run(operator.add, 1, [2]))


_TRACKER = """
import operator, os, signal
from multiprocessing import resource_tracker
from es_neardupe.engines.dask import DaskEngine
if __name__ == "__main__":
    with DaskEngine("processes:1") as engine:
        assert list(engine.run(operator.add, 1, [2])) == [(2, 3)]
        os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
        os.waitpid(resource_tracker._resource_tracker._pid, 0)
"""


def test_no_traceback_of_a_tracker_that_was_killed(tmp_path: Path) -> None:
    """Python starts it again, and the new one knows nothing of the resources of the engine."""
    program = tmp_path / "program.py"
    program.write_text(_TRACKER)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("name", "there"), [("python", "3.9"), ("distributed", "2020.1"), ("es-neardupe", None)])
def test_other_versions_are_refused(name: str, there: str | None) -> None:
    here = {"python": "3.11.7.final.0", "distributed": "2026.1", "numpy": "2.1", "es-neardupe": "1.0"}

    class Found:
        def get_versions(self, packages: list[str]) -> Any:
            assert packages == ["es-neardupe"]
            same = {"packages": {**here, "python": "3.11.2.final.0"}}
            return {"client": {"packages": here}, "workers": {"w1": same, "w2": {"packages": {**here, name: there}}}}

    with pytest.raises(EngineError, match=f"Worker w2 has {name} {there or 'not installed'}, and this command {name}"):
        dask._check_versions(Found())


def _certificates(folder: Path) -> dict[str, Any]:
    """The settings for the certificates of a new authority, for all roles."""
    made, pair = authority("localhost"), {"cert": str(folder / "dask.pem"), "key": str(folder / "dask.key")}
    folder.mkdir()
    return {"ca-file": str(made.write(folder, "dask")), **dict.fromkeys(("scheduler", "worker", "client"), pair)}


def _configured(**tls: Any) -> Any:
    return configured({f"distributed.comm.tls.{name}": value for name, value in tls.items()})


def test_a_scheduler_with_certificates(
    server_cli: Cli, news: NearDupe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs find them in Dask's configuration, and so does the command."""
    right, other = _certificates(tmp_path / "right"), _certificates(tmp_path / "other")
    settings = {"distributed": {"comm": {"tls": right, "require-encryption": True}}}
    (tmp_path / "dask").mkdir()
    (tmp_path / "dask" / "tls.yaml").write_text(json.dumps(settings))  # JSON is YAML
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path / "dask"))
    with programs(tmp_path, "tls") as started:
        arguments = ["group", news.name, "--dry-run", "--json", "--engine", started.address]
        cannot = f"No encrypted connection to the scheduler at {started.address} ("
        assert f"{cannot}a certificate is missing): check" in _error(server_cli, *arguments)
        for wrong in (
            other,  # neither accepts that of the other one
            {**other, "ca-file": right["ca-file"]},  # the scheduler does not accept that of the command
            {**right, "ca-file": "missing.pem"},
        ):
            with _configured(**wrong):
                assert cannot in _error(server_cli, *arguments)
        started.start_worker()
        command = [sys.executable, "-m", "es_neardupe", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["groups"] == server_cli(*arguments[:-2]).json["groups"]


def test_without_the_extra(server_url: str) -> None:
    program = "import sys; sys.modules['distributed'] = None; from es_neardupe.cli.app import main; main()"
    command = [sys.executable, "-c", program, "pairs", "news", "--engine", "processes:2", "--url", server_url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert one_line(done.stderr) == f"error: --engine needs Dask: {install_extra('cluster')}"


_TASKS = [
    "es_neardupe.engines.dask._same",
    *(f"es_neardupe.candidates.fingerprints.{name}" for name in ("_read_slice", "_without_keys")),
    *(f"es_neardupe.candidates.keys_on_workers.{name}" for name in ("_split", "_piece", "_joined_range", "_keys_at")),
    "es_neardupe.verification.on_workers._compare",
]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_workers_change_nothing(
    client: Client, index_name: str, engine: str, cluster: distributed.LocalCluster
) -> None:
    """In each kind of task, both workers are killed once."""
    news = _new(client, index_name)
    die_in(cluster, "es_neardupe.index.index_on_workers._enrich_slice")
    news.enrich(engine=engine)
    assert news.enrich().scope.read == 0
    expected = plain_report(news.group(max_bucket=2, dry_run=True))
    assert expected["pairs"]["large_buckets"]
    for task in _TASKS:
        die_in(cluster, task)
        assert plain_report(news.group(max_bucket=2, dry_run=True, engine=engine)) == expected, task
        with distributed.Client(cluster, set_as_default=False) as one:
            one.wait_for_workers(2, timeout=60)


@pytest.mark.long
@pytest.mark.parametrize(("command", "stage"), [("enrich", "fingerprinting"), ("group", "verifying pairs")])
def test_a_lost_scheduler_ends_the_run_and_the_next_one_finishes(
    client: Client, index_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, stage: str
) -> None:
    monkeypatch.setattr(verify, "_MANY", 1)
    monkeypatch.setattr(CurrentDocuments, "portion", 2000)
    news = _new(client, index_name)
    if command == "group":
        news.enrich()
    with programs(tmp_path) as started:
        started.start_worker()

        def reported(name: str, done: int, total: int | None) -> None:
            if name == stage and done:
                kill(started.scheduler)

        with pytest.raises(EngineError, match=r"The scheduler at tcp://.* was lost.* or start the scheduler and its"):
            getattr(news, command)(engine=started.address, progress=reported)
    with programs(tmp_path) as started:
        started.start_worker()
        getattr(news, command)(engine=started.address)
    news.group()
    assert_settled(client, index_name)
