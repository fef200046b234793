"""Documents that a run left: which, why, what to do about them, and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from itertools import chain, islice
from typing import TYPE_CHECKING

import typer

from es_neardupe.cli.output import ExitCode, say, warn
from es_neardupe.wording import counted, current

if TYPE_CHECKING:
    from pathlib import Path

    from es_neardupe.commands.migrate.report import MigrateWrites
    from es_neardupe.index.storage.interface import GroupIdsWritten
    from es_neardupe.report_parts import WriteCounts
    from es_neardupe.server.failures import Failure, Failures
    from es_neardupe.verification.evidence_entries import EvidenceReport


_SHOWN = 3
"""Maximum number of documents named, and of reasons why group ids were rejected."""
_SAME_COMMAND = "run the same command again"


def fail_on_left(
    file: Path | None,
    writes: WriteCounts | MigrateWrites,
    mirrored: GroupIdsWritten | None = None,
    *,
    evidence: EvidenceReport | None = None,
    changed: int = 0,
    for_changed: str = _SAME_COMMAND,
    unfinished: bool = False,
) -> None:
    """Name the first documents that a run left, write all to the file of ``--failures``, and show for each kind the
    reasons, the number and what to do. ``mirrored``: the group ids also written to documents. ``changed``: documents
    that changed before ``writes`` were made. ``for_changed``: what to do about all that changed meanwhile.

    Exit with code 1 if any was rejected or not written. Documents that changed meanwhile are processed by the next run
    like all changes, so they are a failure only if the command is ``unfinished`` without them.
    """
    left = [writes.left_documents, *([mirrored.left_documents] if mirrored is not None else [])]
    write_failures(file, chain.from_iterable(left))
    on = current()
    _name(left, to_file=file is None and on is not None and "failures" in on.options)
    if file is not None:
        say(f"Wrote {file}")
    kinds = sum((one.kinds for one in left), Counter[str]())
    refusals, failures = list(writes.refusals), list(writes.failures)
    if mirrored is not None:
        refusals += [one.reason for one in mirrored.left_documents.first if one.kind == "refused"][:_SHOWN]
        failures += mirrored.failures
    changed += kinds["conflict"] + writes.left - len(writes.left_documents)  # the server only counts some conflicts
    if changed:
        warn(f"{counted(changed, 'document')} changed meanwhile: {for_changed}.")
    _warn_of_rejected(kinds["refused"], refusals, "document")
    if evidence is not None:
        _warn_of_rejected(evidence.refused, evidence.refusals, "pair of the evidence", "pairs of the evidence")
    for reason in dict.fromkeys(failures):
        warn(f"Not written: {reason}.")
    if failed := kinds["failed"]:
        documents = counted(failed, "document was", "documents were")
        warn(f"{documents} not written: resolve the reasons above, then {_SAME_COMMAND}.")
    if kinds["refused"] or failed or (evidence is not None and evidence.refused) or (changed and unfinished):
        raise typer.Exit(ExitCode.FAILED)


def write_failures(file: Path | None, failures: Iterable[Failure]) -> None:
    """Write failures to the file of ``--failures``, also if there are none. Raises as ``Table.write`` does."""
    if file is not None:
        from es_neardupe.tables import Table

        columns = dict.fromkeys(("kind", "index", "id", "routing", "reason"), str)
        Table(columns, map(astuple, failures)).write(file)


def _name(left: Sequence[Failures], *, to_file: bool) -> None:
    """Name the first documents. ``to_file``: suggest the option that names all."""
    documents = chain.from_iterable(one.first for one in left)
    shown = [f"{one.id!r} of {one.index} ({one.kind})" for one in islice(documents, _SHOWN)]
    more = sum(map(len, left)) - len(shown)
    if shown:
        hint = ". All of them: --failures FILE" if more and to_file else ""
        warn(f"Documents left: {', '.join(shown)}{f' and {more:,} more' if more else ''}{hint}.")


def _warn_of_rejected(number: int, reasons: Iterable[str], one: str, many: str = "") -> None:
    """Warn of what the server rejected, in the singular or plural."""
    for reason in dict.fromkeys(reasons):
        warn(f"The server rejected: {reason}")
    if number:
        rejected, them = counted(number, f"{one} was", f"{many or one + 's'} were"), "it" if number == 1 else "them"
        warn(f"{rejected} rejected by the server: correct {them} or the index, then {_SAME_COMMAND}.")
