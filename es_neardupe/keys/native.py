"""The inner loops in C (``_kernel.c``), where they could be built. Elsewhere numpy gives the same bits, more slowly."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["kernel"]

kernel: ModuleType | None
try:
    kernel = import_module("es_neardupe.keys._kernel")
except ImportError:  # no compiler when the package was installed
    kernel = None
