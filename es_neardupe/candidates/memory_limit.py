"""The memory limit of a run: what is spilled to disk, and which runs need more. Each part is checked as soon as its
number is known: documents and stored pairs before they are read, candidate pairs while they are found."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from es_neardupe.display_text import size_text
from es_neardupe.errors import SettingsError
from es_neardupe.wording import counted, option

_PROCESS = 200_000_000
"""Bytes of the process itself, and of the texts that are compared at a time."""

_BYTES = {
    "documents": 140,
    "candidate_pairs": 50,
    "linked_pairs": 150,
    "remembered_pairs": 300,
    "stored_pairs": 110,
    "examined_documents": 4000,
    "examined_pairs": 2000,
    "groups": 500,
}
"""Bytes of each at most: documents without their keys and with an id of 20 characters; candidate pairs, with linkage
complete (linked), in an incremental run (remembered); pairs of the stored evidence; documents and
stored pairs of an incremental run, as they were read; groups of two or more documents."""

_KEY = 8

_SPILLED = 34
"""Bytes of the columns of a document that are spilled together with its keys."""


@dataclass(frozen=True)
class MemoryLimit:
    """Maximum memory of a run, in bytes."""

    size: int
    held: Mapping[str, int] = field(default_factory=dict)
    """The numbers of what the run holds, by the names of `_BYTES`."""

    def holding(self, bucket: int = 0, /, **numbers: int) -> MemoryLimit:
        """The limit of a run that also holds these. Raises `SettingsError` if they do not fit.

        ``bucket``: number of texts in the largest bucket whose pairs are held, if it is a large one.
        """
        limit = replace(self, held={**self.held, **numbers})
        if limit._needed > self.size:
            numbers_of = [(limit.held.get(name, 0), name.replace("_", " ")) for name in _BYTES]
            held = [f"{number:,} {name}" for number, name in numbers_of if number] or ["the program itself"]
            everything = " and ".join(filter(None, (", ".join(held[:-1]), held[-1])))
            remedy = f"give at least {size_text(limit._needed)}"
            if any(name.endswith("_pairs") for name in numbers):
                which = f"the largest bucket, of {counted(bucket, 'text')}," if bucket else "a large bucket"
                remedy += f", or compare fewer texts of {which} with a lower {option('max_bucket')}"
            raise SettingsError(f"{option('memory')} {size_text(self.size)} is too small for {everything}: {remedy}.")
        return limit

    @property
    def _needed(self) -> int:
        return _PROCESS + sum(_BYTES[name] * number for name, number in self.held.items())

    def spills(self, bands: int) -> bool:
        """Whether the keys of the documents, and what only the writes of groups need, are spilled to disk. Raises
        `SettingsError` if there is too little disk space."""
        documents = self.held["documents"]
        spilled = (_KEY * bands + _SPILLED) * documents
        if self._needed + spilled <= self.size:
            return False
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if free < spilled:
            raise SettingsError(
                f"The keys of {counted(documents, 'document')} need {size_text(spilled)} in {folder}, which has "
                f"{size_text(free)}: set TMPDIR to a folder with more free space, or give more {option('memory')}."
            )
        return True
