"""The structure of ``es_neardupe`` in numbers, with their targets. Enforces nothing: the contracts of import-linter
enforce the directions, and that nothing imports in a circle."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "es_neardupe"
TREES = {file: ast.parse(file.read_text("utf-8")) for file in sorted(PACKAGE.rglob("*.py"))}
GRAPH = grimp.build_graph("es_neardupe")

LATER = (
    "candidates/random_texts",
    "candidates/unprepared",
    "candidates/unrelated",
    "cli/commands/documents",
    "commands/distribution/facts",
    "commands/distribution/labelled_trials",
    "commands/distribution/presets",
    "commands/doctor/service",
    "commands/documents",
    "commands/duplicates/texts",
    "commands/init/prepared_sample",
    "groups/clusters",
    "groups/former",
    "groups/heaviest",
    "groups/related",
    "groups/stars",
    "incoming/stored_buckets",
    "index/on_server/in_cluster",
    "keys/prepare",
    "keys/shapes",
    "keys/short_table",
    "mcp_server/answers",
    "mcp_server/protocol",
    "pages/bar",
    "pages/group",
    "pages/readings",
    "query_strings",
    "serve/document_pages",
    "serve/large_work",
    "serve/parameters",
    "server/collection",
    "server/drivers/aws",
    "server/failures",
    "similarity/boilerplate",
    "similarity/facts",
    "similarity/weighed_places",
    "verification/boilerplate",
    "verification/equal_signs",
    "verification/facts",
    "views/document_pages",
)
"""Modules and packages of features that came after the aims were set, which are counted apart."""


def functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Every function and method, with its file."""
    for file, tree in TREES.items():
        yield from ((file, node) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def parameters(function: ast.FunctionDef) -> list[str]:
    """The names of its parameters, without self and cls."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def answers_requests(function: ast.FunctionDef) -> bool:
    """Whether a function is that of a path of a web application."""
    called = (one.func for one in function.decorator_list if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr in ("get", "post") for one in called)


def contracts() -> list[dict[str, Any]]:
    """The contracts of import-linter."""
    tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return found


def rooms(package: str) -> set[str]:
    """The modules and packages in a package."""
    return set(GRAPH.find_children(package))


def arrows(package: str) -> set[tuple[str, str]]:
    """Pairs of rooms of a package of which the first imports the second, also only for type checking."""
    found = set()
    for a in rooms(package):
        inside = {a, *GRAPH.find_descendants(a)}
        imported = {target for one in inside for target in GRAPH.find_modules_directly_imported_by(one)}
        found |= {(a, b) for b in rooms(package) - {a} if imported & {b, *GRAPH.find_descendants(b)}}
    return found


def in_circles(edges: Iterable[tuple[str, str]]) -> int:
    """Number of rooms from which the arrows lead back to themselves."""
    after: dict[str, set[str]] = {}
    for a, b in edges:
        after.setdefault(a, set()).add(b)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = after.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen

    return sum(one in reached(one) for one in after)


def most_parameters(folders: Iterable[Path]) -> tuple[int, str]:
    """The function in these folders with the most parameters. Class constructors and the functions of web pages do not
    count: they list the fields of an object or a form."""
    here = tuple(folders)
    found = (
        (len(parameters(one)), f"{file.parent.name if file.stem == '__init__' else file.stem}.{one.name}")
        for file, one in functions()
        if any(folder == file or folder in file.parents for folder in here)
        and one.name != "__init__"
        and not answers_requests(one)
    )
    return max(found)


def clients_with_names() -> int:
    """Number of functions outside of ``server`` that take a client together with the name of an index, or an index."""
    named = {"index", "name", "path", "target", "concrete"}
    return sum(
        "client" in parameters(one) and bool(named & set(parameters(one)))
        for file, one in functions()
        if PACKAGE / "server" not in file.parents
    )


def main() -> None:
    """Print the table."""
    lengths = {file: len(file.read_text("utf-8").splitlines()) for file in TREES}
    largest = max(lengths, key=lambda file: lengths[file])
    commands, command_line = PACKAGE / "commands", PACKAGE / "cli"
    others = [one for one in PACKAGE.iterdir() if one not in (commands, command_line, PACKAGE / "api.py")]
    independent = next(one for one in contracts() if one["type"] == "independence")
    index, words = arrows("es_neardupe.index"), arrows("es_neardupe.commands")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    later = {file for file in TREES if file.relative_to(PACKAGE).with_suffix("").as_posix().startswith(LATER)}
    rows: list[tuple[str, int, str]] = [
        ("modules, without those of later features", len(TREES.keys() - later), "266"),
        ("modules of later features", len(later), "apart"),
        ("lines, without those of later features", sum(lengths[file] for file in TREES.keys() - later), "53,000"),
        ("lines of later features", sum(lengths[file] for file in later), "apart"),
        (f"lines of the largest module ({largest.name})", lengths[largest], "650"),
        ("rooms of index", len(rooms("es_neardupe.index")), "19"),
        ("arrows of index", len(index), "60"),
        ("rooms of index in circles", in_circles(index), "0"),
        ("rooms of commands", len(rooms("es_neardupe.commands")), "31"),
        ("arrows of commands", len(words), "12"),
        ("rooms of commands in circles", in_circles(words), "0"),
        ("exceptions from the independence of commands", len(independent["ignore_imports"]), "12"),
        *(
            (f"most parameters of a function of {what} ({name})", number, aim)
            for what, folders, aim in (
                ("the command line", [command_line], "12"),
                ("the library", [commands], "22"),
                ("other packages", others, "8"),
            )
            for number, name in [most_parameters(folders)]
        ),
        ("functions outside of server with a client and a name", clients_with_names(), "10"),
        ("layers of import-linter", len(next(one for one in contracts() if one["type"] == "layers")["layers"]), "14"),
        ("entries of the changelog", changes.count("\n- "), "40"),
    ]
    for row, now, aim in rows:
        print(f"{row:<90} {now:>16,} {aim if aim == 'apart' else f'aim {aim}':>12}")


if __name__ == "__main__":
    main()
