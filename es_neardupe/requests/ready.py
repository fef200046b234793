"""Requests to begin with: files of this package, to be printed, changed and run."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from es_neardupe.errors import SettingsError

__all__ = ["example", "names"]


@cache
def _all() -> dict[str, str]:
    folder = files("es_neardupe.requests") / "examples"
    found = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".json")}
    return {name.removesuffix(".json"): found[name] for name in sorted(found)}


def names() -> list[str]:
    """The names of the ready requests, sorted."""
    return list(_all())


def example(name: str) -> str:
    """The JSON text of a ready request. Raises `SettingsError`, with the names that there are."""
    if name not in _all():
        raise SettingsError(f"There is no ready request {name!r}. There are: {', '.join(names())}.")
    return _all()[name]
