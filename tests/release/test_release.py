"""A release as `scripts/release` builds it, and the builds that the workflow selects for other systems."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import release
import yaml
from packaging.requirements import Requirement
from pythons import pythons
from repository import ROOT, copied

from es_neardupe.compiled import MODULES

pytestmark = [pytest.mark.xdist_group("release"), pytest.mark.timeout(1800)]
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="releases are built on Linux")

VERSION = release.project()["version"]
AUTHOR = {f"GIT_{who}_{what}": "nobody@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text("utf-8"))


def git(repository: Path, *arguments: str) -> str:
    environ = {**os.environ, **AUTHOR, "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    return subprocess.check_output(["git", *arguments], cwd=repository, env=environ, text=True).strip()


def committed(folder: Path) -> Path:
    """A repository with the files of this one, as one commit."""
    copied(folder)
    shutil.copy(ROOT / ".gitignore", folder)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Release")
    return folder


def run(repository: Path, *arguments: str, umask: int = -1) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / "scripts" / "release.py"), *arguments]
    environ = {**os.environ, **AUTHOR, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=repository, env=environ, umask=umask, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return committed(tmp_path_factory.mktemp("released") / "repository")


# What is refused, before anything is built


def _uncommitted(repository: Path) -> None:
    (repository / "forgotten.py").touch()


def _tagged(repository: Path) -> None:
    """As the commit before the last one."""
    git(repository, "tag", f"v{VERSION}")
    git(repository, "commit", "--allow-empty", "--quiet", "--message", "Next")


def _without_changes(repository: Path) -> None:
    file = repository / "CHANGELOG.md"
    file.write_text(file.read_text("utf-8").replace(f"\n## {VERSION}\n", "\n## 9.9.9\n"), "utf-8")
    git(repository, "commit", "--all", "--quiet", "--message", "Next")


def _full(repository: Path) -> None:
    (repository / "dist").mkdir()
    (repository / "dist" / "old.whl").touch()


@on_linux
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_uncommitted, "?? forgotten.py"),
        (_tagged, f"The tag v{VERSION} is that of another commit"),
        (_without_changes, f"The first section of CHANGELOG.md must be {VERSION}"),
        (_full, "dist is not empty"),
    ],
)
def test_what_is_no_release(repository: Path, tmp_path: Path, spoil: Callable[[Path], None], words: str) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    spoil(clone)
    refused = run(clone, "dist")
    assert refused.returncode == 1
    assert words in refused.stderr
    assert "$ " not in refused.stdout


@on_linux
@pytest.mark.parametrize("options", [(), ("--annotate", "--message", "Release")])
def test_a_tagged_commit_can_be_built(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    monkeypatch.setattr(release, "ROOT", clone)
    assert release.commit_of_tag(VERSION) == ""
    git(clone, "tag", *options, f"v{VERSION}")
    assert release.commit_of_tag(VERSION) == git(clone, "rev-parse", "HEAD")
    assert release.checked_version(tmp_path / "dist") == VERSION


# The whole release


@on_linux
@pytest.mark.long
def test_a_release_twice(repository: Path, tmp_path: Path) -> None:
    """Its files, checks and tag. Again, from another folder with another umask, each byte is the same."""
    first = run(repository, str(tmp_path / "first"), "--tag", umask=0o022)
    assert first.returncode == 0, first.stdout[-3000:] + first.stderr[-3000:]
    files = {one.name: one.read_bytes() for one in (tmp_path / "first").iterdir()}
    wheels = sorted(name.partition("-manylinux2014_")[0] for name in files if name.endswith(".whl"))
    assert wheels == [f"es_neardupe-{VERSION}-{tags}" for tags in ("cp310-cp310", "cp311-abi3")]
    assert {f"es_neardupe-{VERSION}.tar.gz", f"es-neardupe-{VERSION}.cdx.json"} < set(files)
    assert len(files) == 4
    assert first.stdout.count("all modules in C are active, 108 golden vectors are equal") == len(pythons())
    assert first.stdout.count("PASSED") == 3
    assert git(repository, "tag", "--list") == f"v{VERSION}"
    assert git(repository, "status", "--porcelain") == ""
    with tarfile.open(tmp_path / "first" / f"es_neardupe-{VERSION}.tar.gz") as source:
        assert {(one.uid, one.uname, one.mtime) for one in source} == {(0, "", 1767225600)}
    other = committed(tmp_path / "other" / "repository")
    git(other, "tag", f"v{VERSION}")
    second = run(other, str(tmp_path / "second"), "--tag", umask=0o077)
    assert second.returncode == 0, second.stdout[-3000:] + second.stderr[-3000:]
    assert {one.name: one.read_bytes() for one in (tmp_path / "second").iterdir()} == files


@on_linux
@pytest.mark.long
@pytest.mark.parametrize("minor", pythons())
def test_the_whole_program_without_a_compiler(tmp_path: Path, minor: str) -> None:
    """With all dependencies, from wheels alone: on each Python, from the wheel that fits it."""
    python = pythons()[minor]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "ES_NEARDUPE_REQUIRE_KERNEL": "1"}
    wheel = release.wheel(python, copied(tmp_path / "source"), tmp_path / "work", tmp_path, environ)
    place = release.installed(tmp_path / "clean", python, str(wheel))
    command = [str(place.with_name("es-neardupe")), "version", "--no-server"]
    shown = subprocess.check_output(command, text=True, cwd=tmp_path)
    assert re.findall(r"^ (\S+) +compiled *$", shown, re.M) == list(MODULES)


# Other systems


@pytest.mark.parametrize(
    ("platform", "archs", "suffixes"),
    [
        ("linux", "x86_64,aarch64", ["manylinux_x86_64", "manylinux_aarch64", "musllinux_x86_64", "musllinux_aarch64"]),
        ("macos", "x86_64,arm64", ["macosx_x86_64", "macosx_arm64"]),
        ("windows", "AMD64", ["win_amd64"]),
    ],
)
def test_which_wheels_the_workflow_builds(platform: str, archs: str, suffixes: list[str]) -> None:
    """On every Python from 3.10 to 3.14; the wheel for 3.11 is tested again on later ones."""
    pytest.importorskip("cibuildwheel")  # not on Python 3.10
    command = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers"]
    command += ["--platform", platform, "--archs", archs]
    found = subprocess.check_output(command, cwd=ROOT, text=True).split()
    assert sorted(found) == sorted(f"cp3{minor}-{suffix}" for minor in range(10, 15) for suffix in suffixes)


def test_the_workflow() -> None:
    """It covers each system and processor, uses the tools that are tested here, and has no right to write."""
    (job,) = WORKFLOW["jobs"].values()
    systems = {"ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "macos-15-intel", "windows-2025"}
    assert set(job["strategy"]["matrix"]["system"]) == systems
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "permissions" not in job
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    assert "python -m cibuildwheel" in commands
    assert "abi3audit --strict" in commands
    assert not any(word in commands for word in ("twine", "upload", "secrets"))
    tools = release.project()["optional-dependencies"]["release"]
    wanted = {one.name: one.specifier for one in map(Requirement, tools)}
    for name in ("cibuildwheel", "abi3audit"):
        (named,) = (one for one in commands.split('"') if one.startswith(name) and ">" in one)
        assert Requirement(named).specifier == wanted[name]
