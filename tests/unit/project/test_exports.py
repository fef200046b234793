"""What the public modules offer, and that every module says what it is for."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import es_neardupe
from es_neardupe import errors

NAMES = sorted(
    info.name
    for info in pkgutil.walk_packages(es_neardupe.__path__, "es_neardupe.")
    if not info.name.rpartition(".")[2].startswith("_")  # the start of the command, and what was compiled
)

PUBLIC = {"es_neardupe", "es_neardupe.errors", "es_neardupe.local", "es_neardupe.reports"}


def test_all_modules_are_found() -> None:
    assert len(NAMES) > 60
    assert {"es_neardupe.cli.app", "es_neardupe.keys.bands", "es_neardupe.groups.linkage"} <= set(NAMES)


def test_public_modules_list_their_names() -> None:
    """And only these: within the package, what a module offers are its names without an underscore."""
    listed = {name for name in ["es_neardupe", *NAMES] if hasattr(importlib.import_module(name), "__all__")}
    assert listed == PUBLIC
    for name in listed:
        module = importlib.import_module(name)
        assert module.__all__ == sorted(module.__all__, key=rank)
        assert len(set(module.__all__)) == len(module.__all__)
        assert all(hasattr(module, member) for member in module.__all__)


def rank(name: str) -> tuple[int, str]:
    """Constants, classes, functions, as the formatter sorts them."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name


def public(module: ModuleType) -> list[str]:
    """Functions and classes that a module defines for others."""
    return [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", "") == module.__name__
    ]


@pytest.mark.parametrize("name", NAMES)
def test_docstrings(name: str) -> None:
    """Every module says what it is for, and so does every function and class that it offers."""
    module = importlib.import_module(name)
    if not hasattr(module, "__path__"):
        assert module.__doc__
    for member in public(module):
        value = getattr(module, member)
        if callable(value) and not isinstance(value, type):
            assert value.__doc__, f"{name}.{member}"


def test_package() -> None:
    assert es_neardupe.__all__ == [
        "Address",
        "NearDupe",
        "NeardupeError",
        "Scheme",
        "Settings",
        "asgi",
        "bands",
        "compare_page",
        "compare_texts",
        "distinct",
        "estimate",
        "features",
        "fingerprints",
        "moved_table",
        "resemblance",
        "shingles_of",
        "tokenize",
    ]


def test_one_tree_of_errors() -> None:
    """Each error is in the drawing of the docstring, below its base."""
    drawn = str(errors.__doc__).splitlines()
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, errors.NeardupeError)
        (line,) = [line for line in drawn if line.replace("│", " ").lstrip(" ├└─").split(" ")[0] == name]
        depth = (len(line) - len(line.lstrip(" │├└─"))) // 4
        assert depth == len(kind.__mro__) - len(errors.NeardupeError.__mro__) + 1
