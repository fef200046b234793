"""The built packages: what is in them, what their metadata say, and what type checkers see of an installed one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from contextlib import closing
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
import release
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from pythons import pythons
from repository import ROOT, copied

import es_neardupe
from es_neardupe.compiled import MODULES

pytestmark = [pytest.mark.xdist_group("packaging"), pytest.mark.timeout(600)]

USER = """
from elasticsearch import Elasticsearch

from es_neardupe import NearDupe, NeardupeError, Settings

with NearDupe("news", Elasticsearch("http://127.0.0.1:9200")) as news:
    prepared = news.init(Settings(fields=("title", "body"), threshold=0.8), create=True)
    bands: int = prepared.bands
    news.enrich(check=True, query={"term": {"language": "en"}})
    report = news.group(min=0.9, linkage="star", dry_run=True)
    scheme: str = report.scheme
    for hit in news.similar(id="4711", min=0.7, top=5).hits:
        print(hit.id, hit.similarity)
    for pair in news.pairs(measure="containment", matching="information", min=0.9):
        print(pair.a, pair.b, pair.similarity)
    for found in news.groups(min_size=3, top=10):
        print(found.group, found.size)
    try:
        news.clean(dry_run=True)
    except NeardupeError as error:
        print(error)
"""

OWN = f"3.{sys.version_info.minor}"
HAS_COMPILER = bool(shutil.which("gcc")) and Path(sysconfig.get_path("include"), "Python.h").exists()
needs_compiler = pytest.mark.skipif(not HAS_COMPILER or sys.platform != "linux", reason="needs gcc, on Linux")

EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}

WRONG = {
    "news.group(mim=0.9)": "mim",
    "news.init(Settings(fields=('body',)), craete=True)": "craete",
    'news.pairs(min="high")': "min",
    "news.enrich(chekc=True)": "chekc",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The wheel, the source package and what their build printed."""
    folder = tmp_path_factory.mktemp("built")
    source = copied(folder / "source")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(source)]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # is warned of
    run = subprocess.run(command, cwd=folder, env=environ | EPOCH, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    (wheel,) = folder.glob("dist/*.whl")
    (sdist,) = folder.glob("dist/*.tar.gz")
    return wheel, sdist, run.stdout + run.stderr


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python in whose environment the wheel is installed, with the dependencies that are here."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    place = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(place)
    (place / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def audited(built: tuple[Path, Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as it is released: checked for an old glibc and for the limited API."""
    folder = tmp_path_factory.mktemp("audited")
    return release.audited(built[0], folder / "work", folder, os.environ)


def kernels(wheel: Path) -> list[str]:
    """The modules in C that a wheel holds."""
    with zipfile.ZipFile(wheel) as opened:
        names = [name for name in opened.namelist() if name.endswith(".so")]
    modules = [name.removeprefix("es_neardupe/").partition(".")[0] for name in names]
    return sorted(name.replace("/", ".") for name in modules)


def clean(environment: Path, wheel: Path) -> Path:
    """The Python of an environment without a compiler that has a wheel, and the dependencies that are here."""
    python = release.installed(environment, sys.executable, "--no-deps", "--no-index", str(wheel))
    (place,) = environment.glob("lib/python*/site-packages")
    (place / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return python


def active(python: Path) -> list[tuple[str, str]]:
    """What the command of an environment shows of its modules in C."""
    command = [str(python.with_name("es-neardupe")), "version", "--no-server"]
    shown = subprocess.check_output(command, cwd=python.parent, text=True)
    return re.findall(r"^ (\S+) +((?:not )?compiled) *$", shown, re.M)


def metadata(wheel: Path) -> Message:
    """The metadata of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [one for one in opened.namelist() if one.endswith(".dist-info/METADATA")]
        return Parser().parsestr(opened.read(name).decode("utf-8"))


def test_the_build_prints_no_warnings(built: tuple[Path, Path, str]) -> None:
    found = [line for line in built[2].splitlines() if "warning" in line.lower() or "deprecat" in line.lower()]
    assert found == []


def test_the_wheel_holds_what_the_program_reads(built: tuple[Path, Path, str]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    read = [*(f"es_neardupe/mappings/{one.name}" for one in (ROOT / "mappings").glob("*.json"))]
    suffixes = {".py", ".json", ".j2", ".css", ".js", ".typed"}
    read += [str(one.relative_to(ROOT)) for one in (ROOT / "es_neardupe").rglob("*") if one.suffix in suffixes]
    assert "es_neardupe/py.typed" in read
    assert set(read) <= names
    assert not [name for name in names if name.startswith(("tests", "docs", "scripts"))]
    assert kernels(built[0]) == (list(MODULES) if HAS_COMPILER else [])


@needs_compiler
def test_one_wheel_serves_each_python_from_3_11_on(audited: Path) -> None:
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tags = f"{own}-{own}" if sys.version_info < (3, 11) else "cp311-abi3"
    assert audited.name.startswith(f"es_neardupe-{es_neardupe.__version__}-{tags}-manylinux2014_")
    assert kernels(audited) == list(MODULES)


@needs_compiler
def test_the_wheel_in_an_environment_without_a_compiler(audited: Path, tmp_path: Path) -> None:
    """The command runs there, with all modules in C and the dependencies that are here."""
    python = clean(tmp_path / "clean", audited)
    release.run(python, ROOT / "tests" / "tools" / "installed_wheel.py")
    assert active(python) == [(name, "compiled") for name in MODULES]


@needs_compiler
@pytest.mark.long  # `scripts/release` does it too
@pytest.mark.parametrize("minor", [one for one in pythons() if one not in ("3.10", OWN)])
def test_the_wheel_on_other_pythons(audited: Path, tmp_path: Path, minor: str) -> None:
    """The modules in C make the golden vectors, with the dependencies that they need."""
    if "abi3" not in audited.name:
        pytest.skip("this wheel is for one Python")
    release.check_installed(audited, pythons()[minor], tmp_path / "clean")


def from_source(source: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel from the source package on a machine without a working compiler."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    environ = {**os.environ, "CC": "/bin/false", **variables}
    command += ["--wheel-dir", str(folder), str(source)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_without_a_compiler_the_source_package_is_installed_without_kernels(
    built: tuple[Path, Path, str], tmp_path: Path
) -> None:
    assert from_source(built[1], tmp_path).returncode == 0
    (wheel,) = tmp_path.iterdir()
    assert kernels(wheel) == []
    python = clean(tmp_path / "clean", wheel)
    assert active(python) == [(name, "not compiled") for name in MODULES]
    refused = subprocess.run(
        [python, ROOT / "tests" / "tools" / "installed_wheel.py"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert refused.stderr == f"Not compiled: {', '.join(MODULES)}.\n"


def test_a_release_without_a_compiler_fails(built: tuple[Path, Path, str], tmp_path: Path) -> None:
    run = from_source(built[1], tmp_path, ES_NEARDUPE_REQUIRE_KERNEL="1")
    assert run.returncode != 0
    assert re.search(r"error: [Cc]ommand .*/bin/false", run.stdout + run.stderr)  # and its arguments
    assert list(tmp_path.iterdir()) == []


@needs_compiler
@pytest.mark.parametrize("module", MODULES)
def test_modules_are_standard_c(module: str) -> None:
    """No extension of gcc but attributes, which are defined for gcc only, so that Visual C++ can compile them."""
    options = ["-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-fsyntax-only"]
    options += ["-Wno-cast-function-type", f"-I{sysconfig.get_path('include')}"]
    options += ["-DPy_LIMITED_API=0x030B0000"] if sys.version_info >= (3, 11) else []
    subprocess.run(["gcc", *options, str(ROOT / "es_neardupe" / f"{module.replace('.', '/')}.c")], check=True)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
def test_the_wheel_is_reproducible(built: tuple[Path, Path, str], tmp_path: Path) -> None:
    """Built from the source package and from the repository, in other folders, with sources of other times and
    permissions and another umask, each byte is the same."""
    umask = 0o077
    source = copied(tmp_path / "source")
    for file in source.rglob("*"):
        file.chmod((0o777 if file.is_dir() else 0o666) & ~umask)
        os.utime(file, (1_600_000_000, 1_600_000_000))
    dist = tmp_path / "dist"
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(dist), str(source)]
    subprocess.run(command, env=os.environ | EPOCH, umask=umask, check=True, capture_output=True)
    (again,) = dist.iterdir()
    with zipfile.ZipFile(built[0]) as first, zipfile.ZipFile(again) as second:
        for one, other in zip(first.infolist(), second.infolist(), strict=True):
            assert (one.filename, one.date_time, one.external_attr) == (
                other.filename,
                other.date_time,
                other.external_attr,
            )
            assert first.read(one) == second.read(other), one.filename
    assert built[0].read_bytes() == again.read_bytes()


def test_the_source_package_holds_docs_and_changelog(built: tuple[Path, Path, str]) -> None:
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {"CHANGELOG.md", "README.md", "LICENSE", "setup.py", "mappings/fields.json", "tests/conftest.py"}
    wanted |= {f"docs/{one.name}" for one in (ROOT / "docs").iterdir() if one.is_file()}
    assert wanted <= names


def test_the_metadata(built: tuple[Path, Path, str]) -> None:
    found = metadata(built[0])
    assert found["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in found.get_all("Classifier", [])
    text = str(found.get_payload())
    assert text.startswith("# es-neardupe")
    assert "](docs/" not in text  # such a link leads nowhere outside the repository


def test_links_and_addresses_of_a_release(tmp_path: Path) -> None:
    """With the address of the repository, metadata name it, and each link of the README leads to a file there."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    (source / "es_neardupe").mkdir()
    (source / "es_neardupe" / "__init__.py").touch()
    command = [sys.executable, "setup.py", "--quiet", "egg_info"]
    address = "https://code.example/es-neardupe"
    environ = {**os.environ, "ES_NEARDUPE_REPOSITORY": address}
    subprocess.run(command, cwd=source, env=environ, check=True, capture_output=True)
    found = Parser().parsestr((source / "es_neardupe.egg-info" / "PKG-INFO").read_text("utf-8"))
    assert f"Source, {address}" in found.get_all("Project-URL", [])
    assert f"({address}/blob/main/docs/README.md)" in str(found.get_payload())


def test_installation_from_the_folder_of_a_wheel(built: tuple[Path, Path, str], tmp_path: Path) -> None:
    """The line of docs/install.md, with the dependencies that are here."""
    text = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert all(
        f"\n{line}" in text
        for line in ("pip install --find-links dist ", "pipx install dist/", "uvx --find-links dist ")
    )
    venv.create(tmp_path / "clean", with_pip=False)
    python = tmp_path / "clean" / "bin" / "python"
    options = ["--quiet", "--no-index", "--no-deps", "--find-links", str(built[0].parent)]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", *options, "es-neardupe"],
        cwd=tmp_path,
        check=True,
    )
    (place,) = (tmp_path / "clean").glob("lib/python*/site-packages")
    (place / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    command = [str(python.with_name("es-neardupe")), "version", "--no-server"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert es_neardupe.__version__ in shown
    where = [str(python), "-I", "-c", "import es_neardupe; print(es_neardupe.__file__)"]
    assert str(place) in subprocess.check_output(where, cwd=tmp_path, text=True)


NAMES_OF_CONDA = {"xxhash": "python-xxhash"}
"""Name on a package index -> name there, where it is another one."""


def test_the_conda_recipe() -> None:
    """Its version, dependencies, command and licence are those of pyproject.toml."""
    recipe = yaml.safe_load((ROOT / "deploy" / "conda" / "recipe.yaml").read_text("utf-8"))
    about = release.project()
    assert recipe["context"]["version"] == about["version"]
    assert recipe["package"] == {"name": about["name"], "version": "${{ version }}"}
    needed = {NAMES_OF_CONDA.get(one.name, one.name): one.specifier for one in map(Requirement, about["dependencies"])}
    needed["python"] = SpecifierSet(about["requires-python"])
    listed = {one.name: one.specifier for one in map(Requirement, recipe["requirements"]["run"])}
    assert listed == needed
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {at}" for name, at in about["scripts"].items()]
    assert (recipe["about"]["license"], recipe["about"]["summary"]) == (about["license"], about["description"])


def test_version() -> None:
    assert es_neardupe.__version__ == "0.1.0"


def test_dir_shows_the_public_names() -> None:
    assert dir(es_neardupe) == sorted([*es_neardupe.__all__, "__version__"])


@pytest.mark.parametrize("editable", [False, True])
def test_the_command_that_adds_an_extra_needs_no_index_for_the_program(installed: Path, editable: bool) -> None:
    """pip finds the program installed: here from a wheel, and in editable mode. The packages of the extra are here."""
    python = sys.executable if editable else str(installed)
    shown = [python, "-c", "from es_neardupe.folders import install_extra; print(install_extra('serve'))"]
    command = shlex.split(subprocess.run(shown, cwd="/", capture_output=True, text=True, check=True).stdout)
    assert command[0] == python
    run = subprocess.run([*command, "--no-index"], cwd="/", capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    place = next(line for line in run.stdout.splitlines() if "already satisfied: es-neardupe[serve]" in line)
    assert editable or str(installed.parents[1] / "lib") in place


def copy_databases(source: Path, target: Path) -> None:
    """Copy SQLite databases that another program may be writing now."""
    for file in source.rglob("*.db"):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        with (
            closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=60)) as read,
            closing(sqlite3.connect(place)) as written,
        ):
            read.backup(written)


def test_databases_are_copied_while_they_are_written(tmp_path: Path) -> None:
    """Without what is not committed."""
    place = tmp_path / "source" / "3.10" / "one.db"
    place.parent.mkdir(parents=True)
    with closing(sqlite3.connect(place)) as writer:
        writer.execute("CREATE TABLE files (n)")
        writer.execute("INSERT INTO files VALUES (1)")
        writer.commit()
        writer.execute("INSERT INTO files VALUES (2)")
        copy_databases(tmp_path / "source", tmp_path / "target")
    with closing(sqlite3.connect(tmp_path / "target" / "3.10" / "one.db")) as made:
        assert made.execute("SELECT n FROM files").fetchall() == [(1,)]


def mypy(python: Path, folder: Path, program: str) -> list[str]:
    """The errors of ``mypy --strict`` in a program that uses the installed package."""
    file = folder / "user.py"
    file.write_text(program, "utf-8")
    cache = folder.parent / "mypy-cache"
    if not cache.exists():
        copy_databases(ROOT / ".mypy_cache", cache)  # of `scripts/check`, with all dependencies
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.10", "--python-executable", str(python)]
    command += ["--cache-dir", str(cache), str(file)]
    environ = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    run = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    return [line for line in run.stdout.splitlines() if ": error:" in line]


def test_only_wrong_calls_are_rejected(installed: Path, tmp_path: Path) -> None:
    """Each of them by an error in its own line that names the option; the lines of a correct program have none."""
    before = USER.count("\n")
    program = USER + "".join(f"{call}\n" for call in WRONG)
    errors = mypy(installed, tmp_path, program)
    assert len(errors) == len(WRONG)
    for number, (error, option) in enumerate(zip(errors, WRONG.values(), strict=True), start=before + 1):
        assert error.startswith(f"user.py:{number}: ")
        assert f'"{option}"' in error or "incompatible type" in error


def test_type_checkers_see_an_editable_install() -> None:
    """It is a plain path file, which they follow; they follow no import hook."""
    place = Path(sysconfig.get_path("purelib"))
    paths = list(place.glob("__editable__*es_neardupe*.pth"))
    assert [Path(file.read_text("utf-8").strip()) for file in paths] == [ROOT]
