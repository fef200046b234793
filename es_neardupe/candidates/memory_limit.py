"""The memory limit of a run: what is spilled to disk, and which runs need more. Decided before anything is read."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass

from es_neardupe.candidates.spill_to_disk import Scratch, SpilledKeys
from es_neardupe.errors import SettingsError
from es_neardupe.options import size_text

__all__ = ["MemoryLimit"]

_PROCESS = 200_000_000
"""Bytes of the process itself, and of the texts that are compared at a time."""

_DOCUMENT = 220
"""Bytes of a document without its keys, at most, with an id of 20 characters."""

_KEY = 8

_PAIR = 40
"""Bytes of a candidate pair."""


@dataclass(frozen=True)
class MemoryLimit:
    """Maximum memory of a run, in bytes."""

    size: int

    def keys(self, documents: int, bands: int, files: Scratch) -> SpilledKeys | None:
        """Room for keys on disk, None if they fit into memory. Raises `SettingsError` if the limit is too small for
        the other columns, or if there is too little disk space."""
        least = _PROCESS + _DOCUMENT * documents
        if least > self.size:
            raise SettingsError(
                f"`memory` {size_text(self.size)} is too small for {documents:,} documents: give at least "
                f"{size_text(least)}."
            )
        every = _KEY * bands * documents
        if least + every <= self.size:
            return None
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if free < every:
            raise SettingsError(
                f"The keys of {documents:,} documents need {size_text(every)} in {folder}, which has "
                f"{size_text(free)}: set TMPDIR to a folder with more free space, or give more `memory`."
            )
        return SpilledKeys(files, bands)

    def check_pairs(self, documents: int, pairs: int) -> None:
        """Raises `SettingsError` if so many candidate pairs of so many documents need more memory."""
        least = _PROCESS + _DOCUMENT * documents + _PAIR * pairs
        if least > self.size:
            raise SettingsError(
                f"`memory` {size_text(self.size)} is too small for {pairs:,} candidate pairs of {documents:,} "
                f"documents: give at least {size_text(least)}, or compare fewer texts of a large bucket with a lower "
                f"`max_bucket`."
            )
