"""Completion of values by the shell: names of indices and of example requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["complete_example", "complete_index"]


def complete_example(incomplete: str) -> list[str]:
    """The names of the requests that ``duplicates --example`` prints."""
    from es_neardupe.commands import duplicates

    folder = Path(duplicates.__path__[0]) / "examples"
    return sorted(file.stem for file in folder.glob(f"{incomplete}*.json"))


def complete_index(ctx: Any, incomplete: str) -> list[str]:
    """The names of indices, aliases and data streams on the server that the options so far name."""
    return []
