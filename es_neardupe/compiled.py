"""The modules in C of the package; each has an equivalent in Python."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def compiled(name: str) -> ModuleType | None:
    """The module in C of this name; None if no compiler was available when the package was installed."""
    try:
        return import_module(f"es_neardupe.{name}")
    except ImportError:
        return None
