"""Documents that a run left: refused by the server, not written, or changed by another client each time."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from es_neardupe.errors import SettingsError

if TYPE_CHECKING:
    from es_neardupe.records import Outcome, Reference


KEPT_CHANGING = "another client kept changing it"

_READ = 1 << 16
"""Bytes of a file that are read at a time."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A document that a run left as it was, and why."""

    kind: Literal["refused", "failed", "conflict"]
    """``refused``: the server rejected the update. ``failed``: no update was sent, because it could change another
    field, because the document is too large, or for another ``reason``. ``conflict``: another client changed the
    document meanwhile."""
    index: str
    """Its concrete index."""
    id: str
    routing: str | None
    reason: str

    @staticmethod
    def refused(outcome: Outcome, index: str | None = None) -> Failure:
        """A document whose update was rejected. ``index``: that of the document, if its keys are in another one."""
        action = outcome.action
        reason = f"{outcome.type}: {outcome.reason}"
        return Failure("refused", index or action.index, action.id, action.routing, reason)

    @staticmethod
    def conflict(reference: Reference, reason: str = KEPT_CHANGING) -> Failure:
        """A document that another client changed."""
        return Failure("conflict", *reference, reason)


class Failures(Iterable[Failure]):
    """The failures of a run: the ``first`` hundred in memory, all others in a temporary file.

    They can be iterated several times, and pickled. The file has no name on systems that support it, and is closed
    together with the last reference to this object.
    """

    MAX_FIRST = 100

    def __init__(self, failures: Iterable[Failure] = ()) -> None:
        self.first: list[Failure] = []
        self.kinds: Counter[str] = Counter()
        """Kind -> number of such documents."""
        self._file: BinaryIO | None = None
        self.extend(failures)

    def add(self, failure: Failure) -> None:
        """Add one. Raises `SettingsError` if there is no space for temporary files."""
        if len(self.first) < self.MAX_FIRST:
            self.first.append(failure)
            self.kinds[failure.kind] += 1
            return
        try:
            file = self._opened()
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(astuple(failure)).encode("ascii") + b"\n")
        except OSError as error:
            raise SettingsError(
                f"Cannot write a temporary file ({error.strerror or error}): set TMPDIR to a folder "
                f"with more free space."
            ) from error
        self.kinds[failure.kind] += 1

    def extend(self, failures: Iterable[Failure]) -> None:
        """Add all of these. Raises as `add`."""
        for failure in failures:
            self.add(failure)

    def __len__(self) -> int:
        return self.kinds.total()

    def __iter__(self) -> Iterator[Failure]:
        yield from self.first
        place = 0
        while self._file is not None:
            self._file.seek(place)
            lines = self._file.readlines(_READ)
            place = self._file.tell()
            if not lines:
                return
            yield from (Failure(*json.loads(line)) for line in lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Failures):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} failures>"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """In a JSON schema, the list of the `first` ones."""
        return handler.generate_schema(list[Failure])

    def _opened(self) -> BinaryIO:
        if self._file is None:
            file = tempfile.TemporaryFile(prefix="es-neardupe-")  # noqa: SIM115 - closed with this object
            self._file = cast(BinaryIO, file)
            weakref.finalize(self, file.close)
        return self._file

    def __getstate__(self) -> tuple[list[Failure], Counter[str], bytes]:
        packed = BytesIO()
        if self._file is not None:
            self._file.seek(0)
            with gzip.open(packed, "wb", compresslevel=1) as target:
                shutil.copyfileobj(self._file, target)
        return self.first, self.kinds, packed.getvalue()

    def __setstate__(self, state: tuple[list[Failure], Counter[str], bytes]) -> None:
        self.first, self.kinds, packed = state
        self._file = None
        if packed:
            with gzip.open(BytesIO(packed)) as source:
                shutil.copyfileobj(source, self._opened())
