"""The examples beneath deploy/ agree with the command line, the image, the metrics of watch and published schemas. No
server, and no container is started."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import jsonschema
import kubernetes_validate
import promql_parser
import pytest
import typer
import yaml

from es_neardupe.cli.app import app
from es_neardupe.cli.commands.watch import metrics, serving
from es_neardupe.commands.watch.rounds import Lag, Round, RoundPairs, RoundScope, RoundWrites

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yml").read_text("utf-8"))
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "watch.json").read_text("utf-8"))
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]
INTERVALS = {"$__rate_interval": "5m"}
"""What Grafana inserts into expressions."""


@cache
def manifests(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text("utf-8")))


def pods() -> Iterator[dict[str, Any]]:
    for file in MANIFESTS:
        for one in manifests(file):
            if one["kind"] == "CronJob":
                yield one["spec"]["jobTemplate"]["spec"]["template"]["spec"]
            elif one["kind"] == "Deployment":
                yield one["spec"]["template"]["spec"]


def pod_containers() -> list[dict[str, Any]]:
    return [one for pod in pods() for one in (*pod.get("initContainers", ()), *pod["containers"])]


def composed() -> dict[str, dict[str, Any]]:
    """The services of the compose file that run the image."""
    return {name: service for name, service in COMPOSE["services"].items() if service.get("image") == "es-neardupe"}


def command_lines() -> list[list[str]]:
    return [one["args"] for one in pod_containers()] + [one["command"] for one in composed().values()]


def parsed(arguments: list[str]) -> dict[str, Any]:
    """The parameters of a command, as its command line parses them."""
    program: Any = typer.main.get_command(app)
    with program.make_context("es-neardupe", list(arguments)) as context:
        word, command, rest = program.resolve_command(context, list(arguments))
        parameters: dict[str, Any] = command.make_context(word, rest, parent=context).params
        return parameters


def healthcheck() -> ModuleType:
    """docker/healthcheck.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("healthcheck", ROOT / "docker" / "healthcheck.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Schemas


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_kubernetes_knows_every_field(file: Path) -> None:
    for one in manifests(file):
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


def test_compose_knows_every_field() -> None:
    schema = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(COMPOSE, json.loads(schema.read_text("utf-8")))


def test_the_schemas_find_mistakes() -> None:
    wrong = json.loads(json.dumps(manifests(MANIFESTS[0])[0]))
    wrong["spec"]["schedul"] = wrong["spec"].pop("schedule")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, kubernetes_validate.latest_version(), strict=True)


# Command lines and environment


def test_all_command_lines_are_valid() -> None:
    lines = command_lines()
    assert sorted(line[0] for line in lines) == ["enrich", "group", "serve", "serve", "watch", "watch"]
    for line in lines:
        assert parsed(line)["index"] == "news"


def test_the_commands_of_the_comment_are_valid() -> None:
    comment = (DEPLOY / "compose.yml").read_text("utf-8")
    (line,) = re.findall(r"run --rm watch (init .+)", comment)
    assert parsed(line.split())["fields"] == ["body"]


def test_environment_variables_exist() -> None:
    known = set(re.findall(r"`(ES_NEARDUPE_[A-Z_]+)`", (ROOT / "docs" / "settings.md").read_text("utf-8")))
    names = {one["name"] for container in pod_containers() for one in container["env"]}
    names |= {name for service in composed().values() for name in service["environment"]}
    assert {"ES_NEARDUPE_URL", "ES_NEARDUPE_API_KEY", "ES_NEARDUPE_SERVE_TOKEN"} <= names <= known


def test_credentials_come_from_a_secret() -> None:
    for container in pod_containers():
        for one in container["env"]:
            if re.search("KEY|TOKEN|PASSWORD", one["name"]):
                assert list(one["valueFrom"]) == ["secretKeyRef"]
    assert composed()["serve"]["environment"]["ES_NEARDUPE_SERVE_TOKEN"].startswith("${ES_NEARDUPE_SERVE_TOKEN:?")


# Security and health


def test_pods_have_no_more_rights_than_they_need() -> None:
    """The restricted pod security standard, with a read-only root file system."""
    assert pod_containers()
    for pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {volume["name"]: list(volume)[1] for volume in pod["volumes"]} == {"tmp": "emptyDir"}
    for container in pod_containers():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
        assert "memory" in container["resources"]["limits"]


def test_services_of_compose_have_no_more_rights_than_they_need() -> None:
    for service in composed().values():
        assert service["read_only"] is True
        assert (service["tmpfs"], service["cap_drop"]) == (["/tmp"], ["ALL"])
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_probes_and_ports_are_those_of_the_commands() -> None:
    ports = {path: port for port, path in healthcheck().ADDRESSES}
    expected = {"watch": ("metrics_port", ports["/metrics"]), "serve": ("port", ports["/health"])}
    for line in command_lines():
        if line[0] in expected:
            name, port = expected[line[0]]
            assert parsed(line)[name] == port
    for container in pod_containers():
        word = container["args"][0]
        if word in expected:
            (port,) = container["ports"]
            assert port["containerPort"] == expected[word][1]
            probes = [container[kind] for kind in ("livenessProbe", "readinessProbe") if kind in container]
            asked = [probe[kind]["port"] for probe in probes for kind in ("httpGet", "tcpSocket") if kind in probe]
            assert asked == [port["name"]]
    scraped = manifests(DEPLOY / "kubernetes" / "watch.yaml")[0]["spec"]["template"]["metadata"]["annotations"]
    assert scraped["prometheus.io/port"] == str(ports["/metrics"])
    for service in composed().values():
        (port,) = service["ports"]
        assert port.split(":")[2] == str(expected[service["command"][0]][1])


def test_every_health_check_runs_the_script_of_the_image() -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text("utf-8")
    (copied,) = re.findall(r"^COPY docker/healthcheck\.py (\S+)$", dockerfile, re.MULTILINE)
    (checked,) = re.findall(r"^HEALTHCHECK .*CMD (\[.+\])$", dockerfile, re.MULTILINE)
    command = ["python", f"{copied}healthcheck.py"]
    assert json.loads(checked) == command
    probes = [one["readinessProbe"]["exec"]["command"] for one in pod_containers() if "readinessProbe" in one]
    assert probes == [command]


def test_watch_is_healthy_while_it_serves_its_metrics() -> None:
    registry, _ = metrics("news", Lag())
    check = healthcheck().is_healthy
    with serving("127.0.0.1", 0, registry) as address:
        port = int(address.split(":")[2].split("/")[0])
        assert check(port, "/metrics")
    assert not check(port, "/metrics")


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (401, True), (421, False), (503, False)])
def test_an_error_of_serve_is_not_healthy(status: int, healthy: bool) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            assert healthcheck().is_healthy(server.server_port, "/health") is healthy
        finally:
            server.shutdown()
            thread.join()


# Metrics


@cache
def known_series() -> dict[str, set[str]]:
    """The series of a watch with a failed and a successful round -> their labels."""
    registry, count = metrics("news", Lag())
    done = Round(
        1, "", "news", RoundScope(9, 4, 1, {}, {}), RoundPairs(3, 0), RoundWrites(4, 4, 0), 0.0, None, None, 2.0
    )
    count(done)
    count(Round(2, "", "news", None, None, RoundWrites(0, 0, 0), 0.0, "Unreachable", "why", 2.0))
    found: dict[str, set[str]] = {}
    for family in registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def selectors(node: Any) -> Iterator[Any]:
    """The vector selectors of an expression."""
    match node:
        case promql_parser.VectorSelector():
            yield node
        case promql_parser.MatrixSelector():
            yield node.vector_selector
        case promql_parser.BinaryExpr():
            yield from selectors(node.lhs)
            yield from selectors(node.rhs)
        case promql_parser.Call():
            for one in node.args:
                yield from selectors(one)
        case promql_parser.AggregateExpr() | promql_parser.ParenExpr() | promql_parser.UnaryExpr():
            yield from selectors(node.expr)
        case promql_parser.NumberLiteral() | promql_parser.StringLiteral():
            pass
        case _:
            raise AssertionError(f"an unknown kind of expression: {node}")


def checked(expression: str) -> set[str]:
    """The labels that all series of an expression have, after a check that they exist."""
    for variable, value in INTERVALS.items():
        expression = expression.replace(variable, value)
    parsed = promql_parser.parse(expression)
    used = list(selectors(parsed))
    assert used
    for one in used:
        assert one.name in known_series(), expression
        assert {matcher.name for matcher in one.matchers.matchers} <= known_series()[one.name], expression
    common = set.intersection(*(known_series()[one.name] for one in used))
    if isinstance(parsed, promql_parser.AggregateExpr):
        assert parsed.modifier is not None
        assert set(parsed.modifier.labels) <= common, expression
        common = set(parsed.modifier.labels)
    return common


def test_the_dashboard_uses_metrics_that_exist() -> None:
    targets = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    for target in targets:
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= checked(target["expr"])
    used = {name for name in known_series() if any(name in target["expr"] for target in targets)}
    assert used == known_series().keys(), "each metric is shown"


def test_the_variables_of_the_dashboard_exist() -> None:
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"])))
    assert used - {"__rate_interval"} == variables.keys()
    query = re.fullmatch(r"label_values\((\w+), (\w+)\)", variables["index"]["query"]["query"])
    assert query is not None
    name, label = query.groups()
    assert label in known_series()[name]


def test_panels_do_not_overlap() -> None:
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert sorted(panel["id"] for panel in DASHBOARD["panels"]) == list(range(1, len(DASHBOARD["panels"]) + 1))


def test_the_alert_rules_use_metrics_that_exist() -> None:
    assert len(RULES) == 2
    page = (ROOT / "docs" / "watch.md").read_text("utf-8")
    for rule in RULES:
        labels = checked(rule["expr"])
        texts = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", texts)) <= labels
        assert set(re.findall(r"es_neardupe_\w+", texts)) <= known_series().keys()
        assert f"`{rule['alert']}`" in page


@pytest.mark.parametrize(
    "wrong", ["es_neardupe_lags", 'es_neardupe_lag_seconds{indx="a"}', "sum by (kind) (es_neardupe_lag_seconds)"]
)
def test_the_check_finds_mistakes(wrong: str) -> None:
    with pytest.raises(AssertionError):
        checked(wrong)
