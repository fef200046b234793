"""Messages of all errors of the package, found in its sources, with … for the variable parts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from es_neardupe import errors

SOURCES = Path(errors.__file__).parent
KINDS = {name for name in errors.__all__ if name != "NeardupeError"}
VARIES = "…"


@cache
def messages(folder: Path = SOURCES) -> dict[str, str]:
    """Template of each message -> where it is made, as ``file:line``; in the order of the sources."""
    found: dict[str, str] = {}
    for file in sorted(folder.rglob("*.py")):
        module = ast.parse(file.read_text("utf-8"))
        for line, made in _of_module(module):
            for text in _texts(made, module):
                template = _tidy(text)
                if re.search(r"[a-z]{2}", template):  # otherwise all of it is made elsewhere
                    found.setdefault(template, f"{file.relative_to(folder.parent)}:{line}")
    return found


def _of_module(module: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """The first arguments of errors: calls of their classes, and of the constructors of classes derived from these."""
    derived = [one for one in ast.walk(module) if isinstance(one, ast.ClassDef) and _names(one.bases) & KINDS]
    inside = {node for one in derived for node in ast.walk(one)}
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        own = node in inside and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"
        if own or _names([node.func]) & (KINDS | {"invalid", "kind"}):
            yield node.lineno, node.args[-1] if _names([node.func]) == {"invalid"} else node.args[0]


def _names(nodes: list[ast.expr]) -> set[str]:
    return {one.id for one in nodes if isinstance(one, ast.Name)}


def _texts(node: ast.expr, module: ast.Module) -> Iterator[str]:
    """The strings that an expression can be, as far as they are literal, including those returned by functions and
    methods of the module."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(one.value) if isinstance(one, ast.Constant) else _part(one) for one in node.values)
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body, module)
        yield from _texts(node.orelse, module)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for function in ast.walk(module):
            if isinstance(function, ast.FunctionDef) and function.name == name:
                for one in ast.walk(function):
                    if isinstance(one, ast.Return) and one.value is not None:
                        yield from _texts(one.value, module)


def _part(node: ast.expr) -> str:
    """The words of a variable part: the plural for a number, a parameter, a suggested command, otherwise …"""
    match node:
        case ast.FormattedValue(ast.Call(ast.Name("option"), [name])):
            return f"`{str(name.value) if isinstance(name, ast.Constant) else VARIES}`"
        case ast.FormattedValue(ast.Call(ast.Name("command"), [ast.Constant(str(name)), _], keywords)):
            return f"es-neardupe {name} {VARIES}" + "".join(f" --{one.arg} {VARIES}" for one in keywords)
        case ast.FormattedValue(ast.Call(ast.Name("counted"), [_, *nouns])):
            *_, noun = [str(one.value) for one in nouns if isinstance(one, ast.Constant)]
            return f"{VARIES} {noun}" if len(nouns) > 1 else f"{VARIES} {noun}s"
        case ast.FormattedValue(ast.IfExp(ast.Compare(_, [ast.Eq()], [ast.Constant(1)]), _, ast.Constant(str(many)))):
            return many
    return VARIES


def _tidy(text: str) -> str:
    """One line, with adjacent … merged into one."""
    return re.sub(rf"{VARIES}[{VARIES} ]*{VARIES}", VARIES, re.sub(r"\s+", " ", text)).strip()
