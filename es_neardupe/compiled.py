"""The modules in C of the package; each has an equivalent in Python."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

MODULES = (
    "groups._stars",
    "incoming._nearest",
    "keys._kernel",
    "keys.prepare._html",
    "keys.prepare._mail",
    "keys.prepare._masks",
    "similarity._pairs",
)


def compiled(name: str) -> ModuleType | None:
    """The module in C of this name; None if no compiler was available when the package was installed.

    Raises `ImportError` if there is a module that cannot be loaded: doing without would only be slower, and nobody
    would notice.
    """
    module = f"es_neardupe.{name}"
    try:
        return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            return None
        raise ImportError(f"{module} cannot be loaded ({error}): install es-neardupe again.", name=module) from error
