"""The public modules: `es_neardupe`, and its modules reports, errors and local. Examples import from no others."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from docs_pages import DOCS, blocks

import es_neardupe
from es_neardupe import NearDupe, reports
from es_neardupe.tables import Tabular

PUBLIC = {"es_neardupe", "es_neardupe.errors", "es_neardupe.local", "es_neardupe.reports"}
PAGES = [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md", *sorted((DOCS / "notebooks").glob("*.ipynb"))]
METHODS = {name: method for name, method in vars(NearDupe).items() if inspect.isfunction(method) and name[0] != "_"}

RECORDS = {"decisions", "doctor", "fingerprinted", "group_history", "screened", "search_request", "withdraw"}
"""Methods that return records, requests or actions, not the report of a run."""

NOT_OF_REPORTS = {
    "es_neardupe.columns",  # arrays
    "es_neardupe.similarity.alignment",  # arrays
    "es_neardupe.keys.prepare.placed",  # the text of a side, with the places of what is compared
    "es_neardupe.commands.duplicates.request_plan",  # requests, in another form
    "es_neardupe.similarity.features",  # parts of requests
}


def code_of(page: Path) -> Iterator[str]:
    """The Python code of a page or a notebook, and of its interpreter sessions."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text("utf-8"))["cells"]
        yield from ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        return
    yield from blocks(page, "python")
    for block in blocks(page, "pycon"):
        yield "\n".join(line[4:] for line in block.splitlines() if line.startswith((">>> ", "... ")))


def imports(code: str) -> Iterator[tuple[str, str | None]]:
    """(module, name) of each import from this package; without a name, ``import module``."""
    for line in ast.walk(ast.parse(re.sub(r"(?m)^[%!].*", "", code))):
        if isinstance(line, ast.Import):
            yield from ((one.name, None) for one in line.names if one.name.partition(".")[0] == "es_neardupe")
        elif isinstance(line, ast.ImportFrom) and str(line.module).partition(".")[0] == "es_neardupe":
            yield from ((str(line.module), one.name) for one in line.names)


def is_public(module: str, name: str | None) -> bool:
    if name is None or f"{module}.{name}" in PUBLIC:
        return f"{module}.{name}" in PUBLIC or module in PUBLIC
    return module in PUBLIC and name in importlib.import_module(module).__all__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_import_public_names_only(page: Path) -> None:
    deeper = [found for code in code_of(page) for found in imports(code) if not is_public(*found)]
    assert deeper == []


def test_running_text_names_public_modules_only() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    named = set(re.findall(r"`(es_neardupe\.[\w.]+)`", text)) - {"es_neardupe.index"}  # a field of logs
    assert {name for name in named if find_spec(name) is not None} <= PUBLIC


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from es_neardupe import NearDupe, local", True),
        ("import es_neardupe.reports", True),
        ("from es_neardupe.errors import NotFound", True),
        ("from es_neardupe import api", False),
        ("from es_neardupe.local_server import control", False),
        ("import es_neardupe.server.connect", False),
        ("from es_neardupe.reports import one_line", False),
    ],
)
def test_what_is_public(code: str, expected: bool) -> None:
    assert [is_public(*found) for found in imports(code)][-1] is expected


def parts_of(hint: Any, found: dict[type, None]) -> None:
    """Add the classes of this package in a type, in the types of their fields, and in what their methods return."""
    for part in get_args(hint):
        for one in part if isinstance(part, list | tuple) else [part]:
            parts_of(one, found)
    kind = get_origin(hint) or hint
    if not inspect.isclass(kind) or not kind.__module__.startswith("es_neardupe") or kind in found:
        return
    if kind.__module__ in NOT_OF_REPORTS or kind.__name__ in es_neardupe.__all__:
        return
    found[kind] = None
    for base in getattr(kind, "__orig_bases__", ()):
        parts_of(base, found)
    for name, one in get_type_hints(kind).items():
        if name[0] != "_":
            parts_of(one, found)
    for name, member in inspect.getmembers(kind):
        function = member.fget if isinstance(member, property) else member
        if name[0] != "_" and inspect.isfunction(function):
            parts_of(_hints(function).get("return"), found)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function, but for those of optional packages. Commands import theirs only for type checkers."""
    modules = [one for name, one in sys.modules.items() if name.startswith("es_neardupe.")]
    classes = {name: one for module in modules for name, one in vars(module).items() if inspect.isclass(one)}
    function = inspect.unwrap(function)
    try:
        return get_type_hints(function, function.__globals__, {**classes, **function.__globals__})
    except NameError:
        return {}


def test_reports_has_all_types_of_the_methods() -> None:
    found: dict[type, None] = {}
    for method in METHODS.values():
        for name, hint in _hints(method).items():
            if name != "index":
                parts_of(hint, found)
    for function in (es_neardupe.bands, es_neardupe.shingles_of, es_neardupe.compare_texts):
        parts_of(_hints(function)["return"], found)
    expected = {kind.__name__: kind for kind in found if kind is not Tabular}
    assert {name: getattr(reports, name) for name in reports.__all__} == expected


def test_names_of_results_end_in_report() -> None:
    names = {}
    for name, method in METHODS.items():
        kind = _hints(method)["return"]
        kind = get_args(kind)[0] if name == "moved_all" else kind
        names[name] = getattr(kind, "__name__", str(kind))
    assert {name for name, kind in names.items() if not kind.endswith("Report")} == {*RECORDS, "close"}
    results = [name for name in reports.__all__ if name.endswith(("Result", "Results"))]
    assert results == []
