"""The report of `load`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from es_neardupe.candidates.detection import UnsuitedTexts
from es_neardupe.candidates.unprepared import UnpreparedTexts
from es_neardupe.incoming.matches import ScreenCounts
from es_neardupe.records import one_line
from es_neardupe.report_parts import FingerprintWrites
from es_neardupe.server.dry_run import ShownRequest


@dataclass(frozen=True, kw_only=True)
class LoadScope:
    """Lines of the files: ``read = bad + duplicates + existing + matching + dropped`` + the sum of the writes."""

    read: int
    bad: int
    """Lines that are not a document."""
    duplicates: int
    """Lines whose id occurs earlier in the files; the first line is used."""
    existing: int
    """Lines with an id that exists in the index; these documents are skipped, unless ``replace``."""
    matching: int
    """Lines whose document matches another one and is not written: with ``on_match`` ``skip``."""
    dropped: int
    """Lines whose document an ingest pipeline of the index dropped."""
    skipped_links: int
    """Symbolic links that leave a folder, which were not followed and are not part of ``read``."""
    skipped_files: int
    """Files in a folder of records that are no records, which are not part of ``read``."""
    empty_lines: int
    """Lines that hold nothing, which are not part of ``read``."""


@dataclass(frozen=True)
class LoadReport:
    """Result of `load`: lines by their outcome; see `LoadScope`."""

    index: str
    scheme: str
    scope: LoadScope
    writes: FingerprintWrites
    dry_run: bool
    seconds: float = field(compare=False)
    unprepared: UnpreparedTexts | None = None
    """The first documents with texts of a kind that should be prepared; None if there is none."""
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``."""
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with their restored values."""
    unsuited: UnsuitedTexts | None = None
    """Documents of the index that are too short or too long for the keys, in a dry run of those that it would write;
    None if the keys suit all lengths."""
    screened: ScreenCounts | None = None
    """With ``on_match``: the documents by the result of their comparison."""
    pipelines: tuple[str, ...] = ()
    """Ingest pipelines of the index that can have changed the texts: the next `enrich` reads the documents again."""

    def __repr__(self) -> str:
        return one_line(self, index=self.index, read=self.scope.read, written=self.writes.written, dry_run=self.dry_run)
