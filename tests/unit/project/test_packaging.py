"""The built packages: what is in them, what their metadata say, and what type checkers see of an installed one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import es_neardupe

pytestmark = [pytest.mark.xdist_group("packaging"), pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]

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

WRONG = {
    "news.group(mim=0.9)": "mim",
    "news.init(Settings(fields=('body',)), craete=True)": "craete",
    'news.pairs(min="high")': "min",
    "news.enrich(chekc=True)": "chekc",
}


def copied(source: Path) -> Path:
    """A copy of the repository without what was built in it."""
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.so", "build", "dist", "*.egg-info")
    return shutil.copytree(ROOT, source, ignore=ignored)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The wheel, the source package and what their build printed."""
    folder = tmp_path_factory.mktemp("built")
    source = copied(folder / "source")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(source)]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # is warned of
    run = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
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
    if shutil.which("gcc") and Path(sysconfig.get_path("include"), "Python.h").exists():
        for module in ("keys/_kernel", "similarity/_pairs"):
            assert [name for name in names if name.startswith(f"es_neardupe/{module}.") and name.endswith(".so")]


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
def test_the_wheel_is_reproducible(tmp_path: Path) -> None:
    """In another folder, with sources of other times and permissions and another umask, each byte is the same."""
    wheels = []
    for umask in (0o022, 0o077):
        source = copied(tmp_path / f"{umask}" / "source")
        for file in source.rglob("*"):
            file.chmod((0o777 if file.is_dir() else 0o666) & ~umask)
            os.utime(file, (1_600_000_000 + umask, 1_600_000_000 + umask))
        dist = source.parent / "dist"
        command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(dist), str(source)]
        environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run(command, env=environ, umask=umask, check=True, capture_output=True)
        wheels += dist.iterdir()
    with zipfile.ZipFile(wheels[0]) as first, zipfile.ZipFile(wheels[1]) as second:
        for one, other in zip(first.infolist(), second.infolist(), strict=True):
            assert (one.filename, one.date_time, one.external_attr) == (
                other.filename,
                other.date_time,
                other.external_attr,
            )
            assert first.read(one) == second.read(other), one.filename
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


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


def test_version() -> None:
    assert es_neardupe.__version__ == "0.1.0"


def test_dir_shows_the_public_names() -> None:
    assert dir(es_neardupe) == sorted([*es_neardupe.__all__, "__version__"])


def mypy(python: Path, folder: Path, program: str) -> list[str]:
    """The errors of ``mypy --strict`` in a program that uses the installed package."""
    file = folder / "user.py"
    file.write_text(program, "utf-8")
    cache = folder.parent / "mypy-cache"
    if not cache.exists() and (ROOT / ".mypy_cache").exists():  # which `scripts/check` has left, with all dependencies
        shutil.copytree(ROOT / ".mypy_cache", cache)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.10", "--python-executable", str(python)]
    command += ["--cache-dir", str(cache), str(file)]
    environ = {name: value for name, value in os.environ.items() if name != "MYPYPATH"}
    run = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    return [line for line in run.stdout.splitlines() if ": error:" in line]


def test_a_correct_program_passes(installed: Path, tmp_path: Path) -> None:
    assert mypy(installed, tmp_path, USER) == []


def test_wrong_calls_are_rejected(installed: Path, tmp_path: Path) -> None:
    """Each of them by an error in its own line that names the option."""
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
