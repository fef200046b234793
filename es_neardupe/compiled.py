"""The package's modules in C, each of which has the same in Python beside it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def compiled(name: str) -> ModuleType | None:
    """The module in C of this name; None if no compiler was available when the package was installed."""
    try:
        return import_module(f"es_neardupe.{name}")
    except ImportError:
        return None
