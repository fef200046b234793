"""Sizes of es-neardupe and its extras: what pip downloads, and what it installs into an empty environment.

Usage: .venv/bin/python scripts/sizes.py [EXTRA ...]

Prints the tables of docs/install.md. Needs a connection to a package index, and about 3 GB in the temporary folder.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = "es-neardupe"
SMALL = 1.0
"""Packages with fewer megabytes are added up in one row."""

Row = tuple[str, list[float]]


def main() -> None:
    extras = sys.argv[1:] or sorted(
        {*distribution(NAME).metadata.get_all("Provides-Extra", [])} - {"bench", "dev", "docs", "release"}
    )
    with tempfile.TemporaryDirectory() as folder:
        core_download, core = measured("", Path(folder))
        rows: list[Row] = [("without extras", [core_download, total(core)])]
        for extra in extras:
            download, installed = measured(extra, Path(folder))
            rows.append((f"`{extra}`", [download - core_download, total(installed) - total(core)]))
        show(["extra", "download, MB", "installed, MB"], rows)
        large = {name: size for name, size in core.items() if size >= SMALL}
        small = {name: size for name, size in core.items() if size < SMALL}
        shown: list[Row] = [(name, [size]) for name, size in sorted(large.items(), key=lambda one: -one[1])]
        show(["package", "installed, MB"], [*shown, (f"{len(small)} others", [sum(small.values())])])


def measured(extra: str, folder: Path) -> tuple[float, dict[str, float]]:
    """Megabytes of the wheels, and megabytes of each package after its installation."""
    requirement = f"[{extra}]" if extra else ""
    wheels, environment = folder / f"wheels-{extra}", folder / f"environment-{extra}"
    pip("wheel", "--wheel-dir", str(wheels), f"{ROOT}{requirement}")
    venv.create(environment, with_pip=False)
    local = ("--no-index", "--find-links", str(wheels))
    pip("--python", str(environment), "install", *local, f"{NAME}{requirement}")
    (site,) = environment.glob("lib/python*/site-packages")
    found = {one.metadata["Name"]: megabytes(files(one)) for one in distributions(path=[str(site)])}
    return megabytes(wheels.iterdir()), found


def files(package: Distribution) -> Iterable[Path]:
    """The files of an installed package, including bytecode."""
    return {Path(str(package.locate_file(one))).resolve() for one in package.files or ()}


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


def megabytes(paths: Iterable[Path]) -> float:
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def total(packages: dict[str, float]) -> float:
    return sum(packages.values())


def show(columns: Sequence[str], rows: Iterable[Row]) -> None:
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name, numbers in rows:
        print(f"| {name} | {' | '.join('< 1' if number < 1 else f'{number:,.0f}' for number in numbers)} |")
    print()


if __name__ == "__main__":
    main()
