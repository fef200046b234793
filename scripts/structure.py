"""Sizes of the modules, functions and layers of ``es_neardupe``, with their targets. Enforces nothing.

The modules that ``group`` uses are counted in a run on a local server, if one is running (`es-neardupe node start`).
"""

from __future__ import annotations

import ast
import inspect
import sys
import threading
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from es_neardupe import NearDupe, Settings
from es_neardupe.local_server import control
from es_neardupe.server.client import path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "es_neardupe"
TREES = {file: ast.parse(file.read_text("utf-8")) for file in sorted(PACKAGE.rglob("*.py"))}


def functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Every function and method, with its file."""
    for file, tree in TREES.items():
        yield from ((file, node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def parameters(function: ast.FunctionDef) -> list[str]:
    """The names of its parameters, without self and cls."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def layers() -> int:
    """Number of layers of import-linter."""
    tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    return next(len(one["layers"]) for one in contracts if one["type"] == "layers")


def side_by_side() -> int:
    """Number of functions with both a client and a target."""
    return sum({"client", "target"} <= set(parameters(one)) for _, one in functions())


def most_parameters() -> tuple[int, str]:
    """The function with the most parameters, except commands and `NearDupe`, whose signatures are public."""
    public = {"api.py", "resolve.py", "settings.py"}
    found = (
        (len(parameters(one)), f"{file.stem}.{one.name}")
        for file, one in functions()
        if "cli" not in file.parts and file.name not in public and one.name not in (*vars(NearDupe), "bands")
    )
    return max(found)


def options_any() -> int:
    """Number of methods of `NearDupe` with ``**options``."""
    methods = [value for value in vars(NearDupe).values() if inspect.isfunction(value)]
    return sum(
        any(one.kind is inspect.Parameter.VAR_KEYWORD for one in inspect.signature(method).parameters.values())
        for method in methods
    )


def names_with_several_meanings() -> list[str]:
    """Names of classes that several modules define."""
    public = Counter(
        node.name
        for tree in TREES.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, number in public.items() if number > 1)


def imported_once() -> int:
    """Number of modules that are imported by exactly one other."""
    importers: dict[str, set[Path]] = defaultdict(set)
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("es_neardupe"):
                for name in node.names:
                    inner = f"{node.module}.{name.name}"
                    is_module = (ROOT / Path(*inner.split("."))).with_suffix(".py").exists()
                    importers[inner if is_module else node.module].add(file)
    return sum(len(found) == 1 for found in importers.values())


def modules_of_group() -> int | None:
    """Number of modules with functions called by a run of ``group``; None without a local server."""
    running = control.running()
    if not running:
        return None
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered.add(frame.f_code.co_filename)

    with NearDupe(f"structure-{uuid.uuid4().hex[:8]}", url=running[0].url) as index:
        index.init(Settings(("text",)), create=True)
        words = [f"word{number}" for number in range(50)]
        for number in range(4):
            text = " ".join([*words, str(number // 2)])
            index.client.request("POST", f"{path(index.name, '_doc')}?refresh=true", body={"text": text})
        index.enrich()
        sys.setprofile(note)
        threading.setprofile(note)
        try:
            index.group()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        index.clean()
        index.client.request("DELETE", path(index.name))
    return len(entered)


def main() -> None:
    """Print the table."""
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in TREES)
    several = names_with_several_meanings()
    maximum, where = most_parameters()
    group = modules_of_group()
    rows = [
        ("modules", len(TREES), "175"),
        ("lines", lines, "28,500"),
        ("layers of import-linter", layers(), "10"),
        ("modules used by group", "no local server" if group is None else group, "32"),
        ("functions with both client and target", side_by_side(), "0"),
        (f"most parameters of a function ({where})", maximum, "8"),
        ("methods of NearDupe with **options", options_any(), "0"),
        (f"class names with several meanings ({', '.join(several)})", len(several), "0"),
        ("modules imported by exactly one other", imported_once(), "40"),
    ]
    for name, now, aim in rows:
        print(f"{name:<90} {now if isinstance(now, str) else f'{now:,}':>16} {'aim ' + aim:>12}")


if __name__ == "__main__":
    main()
