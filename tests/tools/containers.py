"""Servers in containers, with the images of ``docker/images.env`` and the settings of the compose files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from es_neardupe.errors import NodeError

DOCKER = Path(__file__).parents[2] / "docker"
_PORT = 9200
_READY = "/_cluster/health?wait_for_status=yellow&timeout=5s"
_START_TIMEOUT = 180

LOOPBACK: dict[Any, Any] = {_PORT: ("127.0.0.1", None)}
"""A free port of this machine only: the servers have no security."""


def image(kind: str, version: str) -> str:
    """The image of a server by its name and minor version."""
    lines = (DOCKER / "images.env").read_text("utf-8").splitlines()
    images = [line.partition("=")[2] for line in lines if "=" in line and not line.startswith("#")]
    return next(one for one in images if one.rpartition("/")[2].startswith(f"{kind}:{version}."))


def settings(kind: str) -> dict[str, str]:
    """The settings of a container: those of the compose file, with more shards, because tests create many indices."""
    compose = yaml.safe_load((DOCKER / f"compose.{kind}.yml").read_text("utf-8"))
    return {**compose["services"][kind]["environment"], "cluster.max_shards_per_node": "10000"}


@contextmanager
def container(kind: str, version: str) -> Iterator[str]:
    """The URL of a server in a container, for a ``with`` block. Raises `NodeError` if no engine answers, or the image
    is not available."""
    from docker.errors import DockerException
    from testcontainers.core.config import testcontainers_config
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import HttpWaitStrategy

    ready = HttpWaitStrategy(_PORT, _READY).for_status_code(200).with_startup_timeout(_START_TIMEOUT)
    name = image(kind, version)
    testcontainers_config.ryuk_disabled = True  # its port, which is for everybody, can end containers
    try:
        made = DockerContainer(name, env=settings(kind)).waiting_for(ready)
        made.ports = LOOPBACK
        made.start()
    except DockerException as error:
        raise NodeError(f"{name} was not started as a container; does a Docker engine run here? {error}") from error
    try:
        yield f"http://{made.get_container_host_ip()}:{made.get_exposed_port(_PORT)}"
    finally:
        made.stop()
