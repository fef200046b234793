"""Start Elasticsearch inside this process; its virtual machine runs already."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from es_neardupe.local_server.java import java_class, settings
from es_neardupe.local_server.state import Launch

__all__ = ["is_module_jar", "lay_out", "run", "start"]

_MODULE = "transport-netty4"
_MODULE_JARS = ("netty-", "transport-netty4", "elasticsearch-ssl-config")
_DESCRIPTOR = """\
description=HTTP and transport by Netty
version={version}
elasticsearch.version={version}
name=transport-netty4
java.version={java}
classname=org.elasticsearch.transport.netty4.Netty4Plugin
"""


def is_module_jar(name: str) -> bool:
    """Whether a jar belongs to the HTTP module, which is loaded apart, instead of the classpath."""
    return name.startswith(_MODULE_JARS)


def lay_out(home: Path, version: str, jars: Iterable[Path]) -> None:
    """Make the folders that the server expects; the HTTP module is laid anew for its version."""
    for name in ("config", "plugins"):
        (home / name).mkdir(parents=True, exist_ok=True)
    modules = home / "modules"
    shutil.rmtree(modules, ignore_errors=True)
    module = modules / _MODULE
    module.mkdir(parents=True)
    for jar in jars:
        if is_module_jar(jar.name):
            shutil.copyfile(jar, module / jar.name)
    java = 17 if version.startswith("8.") else 21
    (module / "plugin-descriptor.properties").write_text(_DESCRIPTOR.format(version=version, java=java), "utf-8")


def start(launch: Launch) -> Callable[[], None]:
    """Start the node; what is returned closes it."""
    lay_out(launch.data, launch.version, launch.jars.glob("*.jar"))
    return run(launch.data, launch.version, settings(launch)).close  # type: ignore[no-any-return]


def run(home: Path, version: str, values: Mapping[str, str | Sequence[str]]) -> Any:
    """Start a node with these settings on a folder that is laid out: the Java object, whose ``close`` ends it."""
    java_class("org.elasticsearch.common.logging.LogConfigurator").configureESLogging()
    environment = _environment(home, values)
    node = java_class("org.elasticsearch.node.Node")(environment, _plugins(environment, version))
    node.start()
    return node


def _environment(home: Path, values: Mapping[str, str | Sequence[str]]) -> Any:
    path = java_class("java.nio.file.Path")
    builder = java_class("org.elasticsearch.common.settings.Settings").builder()
    for name, value in {**values, "path.home": str(home)}.items():
        if isinstance(value, str):
            builder.put(name, value)
        else:
            builder.putList(name, *value)
    return java_class("org.elasticsearch.env.Environment")(builder.build(), path.of(str(home / "config")))


def _plugins(environment: Any, version: str) -> Any:
    loader = java_class("org.elasticsearch.plugins.PluginsLoader")
    since_9 = () if version.startswith("8.") else (False,)
    bundles = loader.loadModulesBundles(environment.modulesDir(), *since_9)
    none = java_class("java.util.Set").of()
    return loader.createPluginsLoader(bundles, none, java_class("java.util.Map").of(), False)
