"""Local servers, as far as they can be tested without starting one."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from jgo.maven import Artifact

from es_neardupe import folders
from es_neardupe.errors import NodeError
from es_neardupe.folders import install_extra
from es_neardupe.local_server import control, download, state, versions
from es_neardupe.local_server.process import java_library, lay_out_elasticsearch, settings
from es_neardupe.local_server.state import Launch, Node
from es_neardupe.local_server.versions import Release, file_name

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's own servers or jars."""
    monkeypatch.setenv("ES_NEARDUPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "home"


JAR = b"not a jar, which no test needs"


real_jars = Release.jars


@pytest.fixture(autouse=True)
def jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each release consists of one small jar."""
    monkeypatch.setattr(Release, "jars", lambda _: {"g:a:1": hashlib.sha256(JAR).hexdigest()})


def launch_of(data: Path, port: int = 9299) -> Launch:
    release = versions.pick()
    return Launch(
        server=release.server,
        version=release.version,
        port=port,
        heap="512m",
        data=data,
        log=data / "opensearch.log",
        jars=download.folder(release),
        pid_file=state.pid_file(release.slug, data),
    )


_HOLDER = """
import signal, sys
from es_neardupe.local_server import state
from es_neardupe.local_server.state import Launch
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with state.claim(Launch.from_json(sys.argv[1])):
    print("here", flush=True)
    sys.stdin.read()
"""


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process that lives until the end of the block, unless it is ended before."""
    with subprocess.Popen(
        [sys.executable, "-c", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline().strip() == "here"
        yield started
        started.kill()


def stand_in(launch: Launch, *more: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process that claims to be the server of a launch."""
    return process(_HOLDER, launch.to_json(), *more)


@contextmanager
def one_that_answers(pid: int) -> Iterator[int]:
    """The port of something that answers as the server of another process does."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"nodes": {"a": {"process": {"id": pid}}}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def fill_cache() -> Path:
    """A cache with one jar, which contains no server."""
    place = download.folder(versions.pick())
    place.mkdir(parents=True)
    (place / "a-1.jar").write_bytes(JAR)
    return place


class TestVersions:
    @pytest.mark.parametrize("said", ["3", "3.8", "3.8.0", None])
    def test_opensearch_3(self, said: str | None) -> None:
        assert versions.pick("opensearch", said).version == "3.8.0"

    @pytest.mark.parametrize(
        ("server", "said", "meant"),
        [
            ("opensearch", "2.19", "2.19.1"),
            ("elasticsearch", None, "9.5.3"),
            ("elasticsearch", "8.19", "8.19.21"),
            ("Elasticsearch", "9", "9.5.3"),
        ],
    )
    def test_other_servers(self, server: str, said: str | None, meant: str) -> None:
        assert versions.pick(server, said).version == meant

    @pytest.mark.parametrize(
        ("server", "said"),
        [("opensearch", "3.80"), ("opensearch", "9.5"), ("opensearch", "2.1"), ("solr", "9")],
    )
    def test_others_are_refused_with_the_list(self, server: str, said: str) -> None:
        with pytest.raises(NodeError, match=r"Supported: opensearch 3\.8\.0, .*elasticsearch 8\.19\.21"):
            versions.pick(server, said)


class TestPorts:
    def test_a_busy_port_that_was_asked_for_is_refused(self, busy_port: int) -> None:
        with pytest.raises(NodeError, match=f"Port {busy_port} is in use"):
            control.choose_port(busy_port)

    def test_the_next_free_port_is_taken(self, busy_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(control, "FIRST_PORT", busy_port)
        monkeypatch.setattr(control, "LAST_PORT", busy_port + 50)
        chosen = control.choose_port()
        assert busy_port < chosen <= busy_port + 50
        assert control.choose_port(taken=[chosen]) > chosen

    def test_no_free_port_is_an_error(self, busy_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(control, "FIRST_PORT", busy_port)
        monkeypatch.setattr(control, "LAST_PORT", busy_port)
        with pytest.raises(NodeError, match="are in use"):
            control.choose_port()

    @pytest.mark.parametrize("port", [0, -1, 65536])
    def test_no_port_at_all(self, port: int) -> None:
        with pytest.raises(NodeError, match="not a port"):
            control.choose_port(port)

    @pytest.fixture
    def busy_port(self) -> Iterator[int]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]


class TestSettings:
    def test_the_node_is_alone_and_on_loopback(self, tmp_path: Path) -> None:
        said = settings(launch_of(tmp_path, port=9234))
        assert said["network.host"] == "127.0.0.1"
        assert said["http.port"] == "9234"
        assert said["discovery.type"] == "single-node"

    def test_a_launch_survives_the_way_to_its_process(self, tmp_path: Path) -> None:
        launch = launch_of(tmp_path / "with blank and ü")
        assert Launch.from_json(launch.to_json()) == launch

    def test_elasticsearch_is_laid_out(self, tmp_path: Path) -> None:
        given = [tmp_path / name for name in ("netty-common-4.jar", "lucene-core-10.jar")]
        for jar in given:
            jar.write_bytes(b"")
        lay_out_elasticsearch(tmp_path / "es", "8.19.21", given)
        lay_out_elasticsearch(tmp_path / "es", "9.5.3", given)
        module = tmp_path / "es/modules/transport-netty4"
        assert sorted(path.name for path in module.iterdir()) == [
            "netty-common-4.jar",
            "plugin-descriptor.properties",
        ]
        assert "elasticsearch.version=9.5.3\n" in (module / "plugin-descriptor.properties").read_text("utf-8")

    @pytest.mark.parametrize(
        ("platform", "name"),
        [
            ("linux", "lib/server/libjvm.so"),
            ("darwin", "lib/server/libjvm.dylib"),
            ("win32", "bin/server/jvm.dll"),
        ],
    )
    def test_the_virtual_machine_has_another_name_on_each_system(self, platform: str, name: str) -> None:
        assert java_library(Path("java"), platform) == Path("java") / name


class TestJars:
    def test_a_filled_cache(self) -> None:
        place = fill_cache()
        assert download.problem(versions.pick()) == ""
        assert download.ensure(versions.pick(), offline=True) == (place / "a-1.jar",)

    def test_a_flipped_byte_is_found(self) -> None:
        jar = fill_cache() / "a-1.jar"
        content = bytearray(jar.read_bytes())
        content[-1] ^= 1
        jar.write_bytes(content)
        assert "a-1.jar is damaged" in download.problem(versions.pick())
        with pytest.raises(NodeError, match=r"cannot be started offline: .*a-1\.jar is damaged"):
            download.ensure(versions.pick(), offline=True)

    def test_a_foreign_jar_is_found(self) -> None:
        (fill_cache() / "b.jar").touch()
        assert download.problem(versions.pick()).endswith("are not those of the release: b.jar")

    def test_missing_jars_are_found(self) -> None:
        (fill_cache() / "a-1.jar").rename(download.folder(versions.pick()) / "b.jar")
        assert download.problem(versions.pick()).endswith("are not those of the release: a-1.jar")
        (download.folder(versions.pick()) / "b.jar").unlink()
        assert "not in the cache" in download.problem(versions.pick())

    def test_offline_without_a_cache(self) -> None:
        with pytest.raises(NodeError, match="Start it once without `offline`"):
            download.ensure(versions.pick(), offline=True)

    def test_other_files_than_expected_are_removed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However complete: they may be a forgery, of a repository that sends matching checksums."""

        def forged(_coordinates: Iterable[str], repository: Path) -> list[Path]:
            repository.mkdir(parents=True)
            (repository / "a-1.jar").write_bytes(JAR[:9])
            return [repository / "a-1.jar"]

        error = r"^The downloaded a-1\.jar is not the file that es-neardupe expects: its SHA-256 is \w{64}, not"
        monkeypatch.setattr(download, "download", forged)
        with pytest.raises(NodeError, match=error):
            download.ensure(versions.pick())
        assert not list(folders.cache().rglob("*.jar"))
        monkeypatch.setattr(download, "download", fake_download)
        assert [jar.name for jar in download.ensure(versions.pick())] == ["a-1.jar"]

    def test_each_release_has_the_checksums_of_its_jars(self) -> None:
        for release in versions.SUPPORTED:
            found = real_jars(release)
            assert len(found) > 40
            assert {file_name(one) for one in found} > {f"{release.server}-{release.version}.jar"}
            assert all(re.fullmatch("[0-9a-f]{64}", one) for one in found.values())

    def test_a_damaged_jar_is_fetched_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        jar = fill_cache() / "a-1.jar"
        jar.write_bytes(b"")
        monkeypatch.setattr(download, "download", fake_download)
        found: list[str] = []
        download.ensure(versions.pick(), say=found.append)
        assert download.problem(versions.pick()) == ""
        assert "a-1.jar is damaged" in found[0]

    def test_parallel_first_starts_fetch_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[list[str]] = []

        def counted(coordinates: Iterable[str], repository: Path) -> list[Path]:
            calls.append(list(coordinates))
            return fake_download(coordinates, repository)

        monkeypatch.setattr(download, "download", counted)
        with ThreadPoolExecutor(4) as pool:
            found = set(pool.map(lambda _: download.ensure(versions.pick()), range(4)))
        assert len(found) == 1
        assert calls == [["g:a:1"]]

    def test_a_repository_that_fails_is_told_in_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def unreachable(*_: object) -> Path:
            raise ConnectionError("no route\nand more")

        monkeypatch.setattr(Artifact, "resolve", unreachable)
        with pytest.raises(NodeError, match=r"could not be downloaded .*\(ConnectionError: no route\)"):
            download.download(["g:a:1"], tmp_path)

    def test_what_a_failed_fetch_left_behind_is_removed_before_the_next_try(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place, tries = tmp_path / "g" / "a" / "1" / "a-1.jar", []

        def resolve(_: Artifact) -> Path:
            tries.append(place.exists())
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(b"half")
            if len(tries) < 3:
                raise ConnectionError("reset")
            return place

        monkeypatch.setattr(Artifact, "resolve", resolve)
        assert download.download(["g:a:1"], tmp_path) == [place]
        assert tries == [False, False, False]


def fake_download(_coordinates: Iterable[str], repository: Path) -> list[Path]:
    repository.mkdir(parents=True)
    (repository / "a-1.jar").write_bytes(JAR)
    return [repository / "a-1.jar"]


class TestPidFiles:
    def test_a_process_that_holds_its_lock_is_ours(self, tmp_path: Path) -> None:
        launch = launch_of(tmp_path)
        with stand_in(launch) as ours:
            found = control.status().silent
            assert [(each.pid, each.data, each.port) for each in found] == [(ours.pid, tmp_path, 9299)]
            assert control.running() == ()  # no server answers there

    def test_a_foreign_process_is_never_stopped(self, tmp_path: Path) -> None:
        launch = launch_of(tmp_path)
        with stand_in(launch):
            text = launch.pid_file.read_text("utf-8")
        with process("import sys; print('here', flush=True); sys.stdin.read()") as foreign:
            launch.pid_file.write_text(json.dumps({**json.loads(text), "pid": foreign.pid}), "utf-8")
            assert control.stop() == ()
            assert foreign.poll() is None
        assert not launch.pid_file.exists()

    def test_a_held_lock_with_another_process_number_is_not_believed(self, tmp_path: Path) -> None:
        launch = launch_of(tmp_path)
        with stand_in(launch) as ours:
            said = json.loads(launch.pid_file.read_text("utf-8"))
            launch.pid_file.write_text(json.dumps({**said, "pid": os.getpid()}), "utf-8")
            assert control.stop() == ()
            assert ours.poll() is None

    def test_a_stale_file_is_cleaned_and_told(self, tmp_path: Path) -> None:
        launch = launch_of(tmp_path)
        with stand_in(launch):
            assert launch.pid_file.exists()
        assert control.status().cleaned == (launch.pid_file,)
        assert control.status() == state.Status((), (), ())

    @pytest.mark.parametrize("content", ["", "{}", "[]", '{"pid": 1}', '"x"'])
    def test_a_damaged_file_is_cleaned(self, content: str) -> None:
        folders.run().mkdir(parents=True)
        file = folders.run() / "opensearch-3.8.0-00000000.json"
        file.write_text(content, "utf-8")
        assert control.status().cleaned == (file,)

    def test_without_a_folder_nothing_runs_and_nothing_is_made(self, home: Path) -> None:
        assert control.status() == state.Status((), (), ())
        assert control.stop() == ()
        assert not home.exists()


class TestStop:
    def test_it_asks_and_waits(self, tmp_path: Path) -> None:
        with stand_in(launch_of(tmp_path)) as ours:
            (stopped,) = control.stop()
            assert (stopped.node.pid, stopped.killed) == (ours.pid, False)
            assert ours.wait(60) != 0
        assert control.stop() == ()

    def test_a_server_that_ends_takes_its_pid_file_along(self, tmp_path: Path) -> None:
        launch = launch_of(tmp_path)
        with stand_in(launch) as ours:
            assert launch.pid_file.exists()
            assert ours.stdin is not None
            ours.stdin.close()
            assert ours.wait(60) == 0
            assert not launch.pid_file.exists()

    @pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
    def test_what_does_not_close_is_killed_and_told(self, tmp_path: Path) -> None:
        with stand_in(launch_of(tmp_path), "stubborn") as ours:
            (stopped,) = control.stop(timeout=0.1)
            assert stopped.killed
            assert ours.wait(60) != 0

    @pytest.mark.parametrize(
        ("asked", "stopped"),
        [
            ({"server": "elasticsearch"}, 0),
            ({"version": "2.19"}, 0),
            ({"port": 9298}, 0),
            ({"data": "elsewhere"}, 0),
            ({"server": "opensearch", "version": "3.8", "port": 9299}, 1),
            ({"version": "3"}, 1),
        ],
    )
    def test_only_what_fits(self, tmp_path: Path, asked: dict[str, Any], stopped: int) -> None:
        with stand_in(launch_of(tmp_path)):
            assert len(control.stop(**asked)) == stopped

    def test_an_unknown_server_is_refused(self) -> None:
        with pytest.raises(NodeError, match="supported"):
            control.stop("solr")

    def test_it_looks_again_before_it_sends_a_signal(self, tmp_path: Path) -> None:
        with stand_in(launch_of(tmp_path)) as ours:
            (mine,) = control.status().silent
            control._end(replace(mine, port=mine.port + 1))
            assert ours.poll() is None


class TestStart:
    @pytest.mark.parametrize("heap", ["512", "0m", "lots", "-1g", "1 g", ""])
    def test_a_heap_that_is_none(self, heap: str) -> None:
        with pytest.raises(NodeError, match="not a heap size"):
            control.start(heap=heap)

    def test_a_missing_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        there = importlib.util.find_spec
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *rest: None if name == "jpype" else there(name, *rest)
        )
        with pytest.raises(NodeError, match=re.escape(f"needs jpype: {install_extra('local')}")):
            control.start()

    def test_a_virtual_machine_that_does_not_start_tells_why(self) -> None:
        fill_cache()
        with pytest.raises(NodeError, match=r"(?s)could not be started|exited during startup") as caught:
            control.start(heap="1k", offline=True)
        assert "Too small" in str(caught.value)
        assert control.status() == state.Status((), (), ())

    def test_a_crash_shows_the_end_of_the_log(self, tmp_path: Path) -> None:
        fill_cache()
        with pytest.raises(NodeError, match=r"The last lines of .*opensearch\.log:") as caught:
            control.start(data=tmp_path / "data", offline=True)
        assert "OpenSearchRunner is not found" in str(caught.value)
        assert control.status() == state.Status((), (), ())

    def test_a_data_folder_that_is_a_file(self, tmp_path: Path) -> None:
        fill_cache()
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(NodeError, match=r"The folder .*file cannot be used"):
            control.start(data=tmp_path / "file", offline=True)

    def test_two_processes_look_at_a_folder_at_once(self, tmp_path: Path) -> None:
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(state.require_folder, [tmp_path / "run"] * 2000)) == [None] * 2000
        assert list((tmp_path / "run").iterdir()) == []

    def test_a_home_that_cannot_be_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_bytes(b"")
        monkeypatch.setenv("ES_NEARDUPE_HOME", str(tmp_path / "file"))
        with pytest.raises(NodeError, match="cannot be used"):
            control.start()

    def test_it_gives_up_on_a_server_that_never_answers(self, tmp_path: Path) -> None:
        launch = launch_of(tmp_path, port=1)
        with (
            stand_in(launch),
            pytest.raises(NodeError, match="did not answer within 0 s and is still running"),
        ):
            control.start(data=tmp_path, timeout=0)

    def test_another_server_takes_the_port_meanwhile(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is noticed at once, since a busy machine may need a minute until the server finds its port taken."""
        monkeypatch.setattr(control, "_PORTS", 1)
        with one_that_answers(pid=1) as port:
            launch = launch_of(tmp_path, port)
            with stand_in(launch) as starting, pytest.raises(NodeError, match=f"process 1, has taken port {port}"):
                control.start(data=tmp_path)
            assert starting.wait(60)

    def test_a_running_server_does_not_change_its_port(self, tmp_path: Path) -> None:
        launch = launch_of(tmp_path)
        with stand_in(launch), pytest.raises(NodeError, match=r"is already running at http://127\.0\.0\.1:9299"):
            control.start(data=tmp_path, port=9298)


class TestLogs:
    def test_stack_frames_are_left_out(self, tmp_path: Path) -> None:
        log = tmp_path / "x.log"
        log.write_text("before\nCaused by: disk\n" + "\tat a.b.c\n" * 50 + "\t... 12 more\n", "utf-8")
        assert control.ending(log) == f"The last lines of {log}:\n  before\n  Caused by: disk"

    def test_no_log(self, tmp_path: Path) -> None:
        assert "is empty" in control.ending(tmp_path / "x.log")

    def test_a_taken_port(self, tmp_path: Path) -> None:
        log = tmp_path / "x.log"
        assert not control.port_was_taken(log)
        log.write_text("starting\nCaused by: disk\n", "utf-8")
        assert not control.port_was_taken(log)
        log.write_text("Caused by: java.net.BindException: Address already in use\n\tat sun.nio\n", "utf-8")
        assert control.port_was_taken(log)

    def test_the_last_run_is_kept(self, tmp_path: Path) -> None:
        log = tmp_path / "x.log"
        log.write_text("first", "utf-8")
        control.rotate(log)
        control.rotate(log)
        assert (tmp_path / "x.log.old").read_text("utf-8") == "first"


class TestLocks:
    def test_waiting_ends(self, tmp_path: Path) -> None:
        with (
            state.hold(tmp_path / "lock", timeout=1, doing="testing"),
            pytest.raises(NodeError, match="Another process has been testing"),
            state.hold(tmp_path / "lock", timeout=0, doing="testing"),
        ):
            pass

    def test_it_is_free_after_the_block(self, tmp_path: Path) -> None:
        with state.hold(tmp_path / "lock", timeout=1, doing="testing"):
            assert state._acquired(tmp_path / "lock", 0) is None
        with state.hold(tmp_path / "lock", timeout=0, doing="testing"):
            pass

    def test_an_error_in_the_block_is_not_taken_for_one_of_the_lock(self, tmp_path: Path) -> None:
        for error in (TimeoutError(), OSError()):
            with (
                pytest.raises(type(error)) as caught,
                state.hold(tmp_path / "lock", timeout=1, doing="testing"),
            ):
                raise error
            assert caught.value is error

    @pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
    def test_it_is_private(self, tmp_path: Path, umask: int) -> None:
        lock = tmp_path / "locks" / "lock"
        before = os.umask(umask)
        try:
            with state.hold(lock, timeout=1, doing="testing"):
                modes = [stat.S_IMODE(one.stat().st_mode) for one in (lock.parent, lock)]
        finally:
            os.umask(before)
        assert modes == [0o700, 0o600]

    def test_a_killed_process_leaves_it_free(self, tmp_path: Path) -> None:
        code = (
            "import sys; from pathlib import Path; from es_neardupe.local_server import state\n"
            "with state.hold(Path(sys.argv[1]), timeout=1, doing='testing'):\n"
            "    print('here', flush=True); sys.stdin.read()"
        )
        with process(code, str(tmp_path / "lock")) as holder:
            with pytest.raises(NodeError), state.hold(tmp_path / "lock", timeout=0, doing="testing"):
                pass
            holder.kill()
            with state.hold(tmp_path / "lock", timeout=60, doing="testing"):
                pass

    def test_a_lock_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with (
            pytest.raises(NodeError, match=r"The lock .* cannot be used"),
            state.hold(tmp_path / "file" / "lock", timeout=1, doing="testing"),
        ):
            pass


def test_a_node_goes_into_json() -> None:
    one = Node("opensearch", "3.8.0", "http://127.0.0.1:9200", 9200, 1, Path("data"), Path("log"))
    assert json.loads(json.dumps(one.as_dict()))["data"] == "data"


def test_a_mirror_is_named_in_the_configuration_of_jgo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jgo.conf").write_text("[repositories]\ncentral = https://mirror.example.org\n", "utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert download.remotes() == {"central": "https://mirror.example.org"}
