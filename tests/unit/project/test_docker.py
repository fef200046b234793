"""The files beneath docker/, read as Docker would read them; no container is started."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import containers
import pytest
import yaml
from fake_servers import fake_servers, reply
from packaging.specifiers import SpecifierSet

from es_neardupe.errors import NodeError
from es_neardupe.local_server import versions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
COMPOSE = sorted(DOCKER.glob("compose.*.yml"))


def images() -> dict[str, str]:
    lines = (DOCKER / "images.env").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def services(file: Path) -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text("utf-8"))["services"]
    return loaded


def stage_files(dockerfile: str) -> set[str]:
    """The files of the project that the Dockerfile copies."""
    copies = re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE)
    return {source for copy in copies for source in copy.split()[:-1]}


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return found


def test_there_is_a_compose_file_for_each_server() -> None:
    assert [file.name.split(".")[1] for file in COMPOSE] == sorted({r.server for r in versions.SUPPORTED})


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
class TestCompose:
    def test_image_comes_from_the_one_file(self, file: Path) -> None:
        for name, service in services(file).items():
            variable = re.match(r"\$\{(\w+)", service["image"])
            assert variable is not None
            assert name in images()[variable.group(1)]

    def test_ports_are_published_on_loopback_only(self, file: Path) -> None:
        ports = [port for service in services(file).values() for port in service["ports"]]
        assert ports
        assert all(port.startswith("127.0.0.1:") for port in ports)

    def test_health_is_checked(self, file: Path) -> None:
        for service in services(file).values():
            assert "/_cluster/health" in service["healthcheck"]["test"][-1]

    def test_no_setting_is_read_as_a_yaml_boolean(self, file: Path) -> None:
        for service in services(file).values():
            assert all(isinstance(value, str) for value in service["environment"].values())


def test_image_versions_are_those_that_can_be_started_without_docker() -> None:
    named = sorted((image.split(":")[0].rpartition("/")[2], image.split(":")[1]) for image in images().values())
    minors = [(server, ".".join(version.split(".")[:2])) for server, version in named]
    assert minors == sorted((release.server, release.minor) for release in versions.SUPPORTED)


def test_old_images_are_older() -> None:
    for server in ("ELASTICSEARCH", "OPENSEARCH"):
        new, old = (images()[f"{server}{part}_IMAGE"].split(":")[1] for part in ("", "_OLD"))
        assert int(old.split(".")[0]) < int(new.split(".")[0])


class TestContainers:
    """Those of ``--docker``."""

    @pytest.mark.parametrize("release", versions.SUPPORTED, ids=lambda release: release.slug)
    def test_every_server_has_its_image(self, release: versions.Release) -> None:
        name = containers.image(release.server, release.minor)
        assert name.rpartition("/")[2].startswith(f"{release.server}:{release.minor}.")
        found = containers.settings(release.server)
        assert found["discovery.type"] == "single-node"
        assert all(isinstance(value, str) for value in found.values())

    def test_ports_are_published_on_loopback_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The engine is a fake, which refuses to create a container, but sees how."""
        with fake_servers() as start:
            engine = start()
            engine.on("GET /version", reply({"ApiVersion": "1.44"}))
            engine.on(f"GET /v1.44/images/{containers.image('opensearch', '3.8')}/json", reply({"Id": "an-image"}))
            engine.on("POST /v1.44/containers/create", reply({"message": "refused"}, 500))
            monkeypatch.setenv("DOCKER_HOST", engine.url.replace("http://", "tcp://"))
            with pytest.raises(NodeError, match="refused"), containers.container("opensearch", "3.8"):
                pass
            (asked,) = (json.loads(body) for request, _, body in engine.seen if "containers/create" in request)
        assert [one["HostIp"] for ports in asked["HostConfig"]["PortBindings"].values() for one in ports] == [
            "127.0.0.1"
        ]

    def test_no_engine_is_said_in_one_sentence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
        message = r"opensearch:3\.8\.0 was not started as a container; does a Docker engine run here\?"
        with pytest.raises(NodeError, match=message), containers.container("opensearch", "3.8"):
            pass


class TestDockerfile:
    text = (DOCKER / "Dockerfile").read_text("utf-8")

    def test_python_is_one_that_the_project_supports(self) -> None:
        versions = re.findall(r"^FROM python:([\d.]+)-slim", self.text, re.MULTILINE)
        assert versions
        supported = SpecifierSet(project()["project"]["requires-python"])
        assert all(version in supported for version in versions)

    def test_runs_the_command_as_an_ordinary_user(self) -> None:
        lines = [line for line in self.text.splitlines() if line.startswith(("USER", "ENTRYPOINT"))]
        command = next(iter(project()["project"]["scripts"]))
        assert lines == ["USER 10001:10001", f'ENTRYPOINT ["{command}"]']

    def test_installs_extras_that_exist(self) -> None:
        (extras,) = re.findall(r"pip install .*'\.\[([\w,]+)\]'", self.text)
        assert {"watch", "serve"} <= set(extras.split(",")) <= project()["project"]["optional-dependencies"].keys()

    def test_fails_without_any_of_the_modules_in_c(self) -> None:
        (imported,) = re.findall(r"python -I -c 'import (.+)'", self.text)
        modules = [file.relative_to(ROOT).with_suffix("") for file in (ROOT / "es_neardupe").rglob("*.c")]
        assert sorted(imported.split(", ")) == sorted(".".join(module.parts) for module in modules)

    def test_both_stages_have_the_same_python(self) -> None:
        """The environment is copied from one to the other."""
        build, final = re.findall(r"^FROM python:([\d.]+)", self.text, re.MULTILINE)
        assert build == final

    def test_copies_what_the_build_needs(self) -> None:
        about = project()["project"]
        needed = {"pyproject.toml", "setup.py", "README.md", *about["license-files"], "es_neardupe", "mappings"}
        assert needed | {"docker/healthcheck.py"} == stage_files(self.text)

    def test_the_ignore_file_lets_it_through(self) -> None:
        ignore = (DOCKER / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
        assert stage_files(self.text) == {line[1:] for line in ignore if line.startswith("!")}
