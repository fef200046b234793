"""``scripts/sbom.py``: a valid CycloneDX file with every package and every jar that users run, and no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from es_neardupe.local_server.versions import SUPPORTED

pytestmark = pytest.mark.xdist_group("sbom")  # both files are written once

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

JSON = dict[str, Any]


def names(requirements: list[str]) -> set[str]:
    """The packages of requirements that apply here."""
    found = [Requirement(one) for one in requirements]
    return {one.name for one in found if one.marker is None or one.marker.evaluate()}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of two runs at the same SOURCE_DATE_EPOCH."""
    written = []
    for seed in ("1", "2"):
        written.append(tmp_path_factory.mktemp("sbom") / "folder" / "es-neardupe.cdx.json")
        environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-W", "error", str(ROOT / "scripts" / "sbom.py"), str(written[-1])]
        run = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    return written


@pytest.fixture(scope="module")
def bill(files: list[Path]) -> JSON:
    found: JSON = json.loads(files[0].read_text("utf-8"))
    return found


def test_it_is_valid_and_reproducible(files: list[Path], bill: JSON) -> None:
    text = files[0].read_text("utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.replace('"library"', '"book"')) is not None
    assert files[1].read_text("utf-8") == text
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    product = bill["metadata"]["component"]
    assert (product["name"], product["version"]) == ("es-neardupe", PROJECT["version"])
    assert product["licenses"] == [{"license": {"id": PROJECT["license"]}}]


def test_python_packages(bill: JSON) -> None:
    packages = {one["name"]: one for one in bill["components"] if one.get("purl", "").startswith("pkg:pypi/")}
    assert {name: one["version"] for name, one in packages.items()} == {name: version(name) for name in packages}
    direct = names(PROJECT["dependencies"])
    assert {packages[name]["scope"] for name in direct} == {"required"}
    extras = {
        name for extra in ("local", "demo", "plot", "watch") for name in names(PROJECT["optional-dependencies"][extra])
    }
    assert {packages[name]["scope"] for name in extras} == {"optional"}
    assert packages["markupsafe"]["scope"] == "required"  # needed by a dependency
    assert not {"pytest", "mypy", "datasketch", "es-neardupe"} & packages.keys()


def test_jars_with_their_pinned_checksums(bill: JSON) -> None:
    jars = {one["bom-ref"]: one for one in bill["components"] if one["bom-ref"].startswith("jar:")}
    pinned = {jar: checksum for release in SUPPORTED for jar, checksum in release.jars().items()}
    assert {ref: one["hashes"] for ref, one in jars.items()} == {
        f"jar:{jar}": [{"alg": "SHA-256", "content": checksum}] for jar, checksum in pinned.items()
    }
    assert {one["purl"].partition("@")[0] for one in jars.values()} == {
        "pkg:maven/{}/{}".format(*jar.split(":")) for jar in pinned
    }
    needed = {one["ref"]: set(one.get("dependsOn", ())) for one in bill["dependencies"]}
    for release in SUPPORTED:
        assert needed[f"server:{release.slug}"] == {f"jar:{jar}" for jar in release.jars()}


def test_everything_is_needed_by_the_product(bill: JSON) -> None:
    needed = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}
    reached, waiting = set(), [bill["metadata"]["component"]["bom-ref"]]
    while waiting:
        if (one := waiting.pop()) not in reached:
            reached.add(one)
            waiting += needed[one]
    assert reached == {one["bom-ref"] for one in (bill["metadata"]["component"], *bill["components"])}
