"""``es-neardupe what-if``: groups with other thresholds, without writing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.messages import range_text, warn_of_detection
from es_neardupe.cli.output import print_json, print_table, progress_bars, say, warn
from es_neardupe.options import DEFAULT_PREFIX

if TYPE_CHECKING:
    from es_neardupe.commands.what_if import WhatIf

__all__ = ["what_if"]


def what_if(
    index: IndexName,
    *,
    min: options.ThresholdsToTry,
    linkage: options.LinkageToTry = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """Show the groups that other thresholds would give. Reads evidence and keys, no texts; writes nothing.

    Needs the evidence of `group --evidence`. All other rules are those of the last run of group.

    Examples:

      es-neardupe what-if news --min 0.7,0.8,0.9

      es-neardupe what-if news --min 0.8 --linkage chain --json
    """
    from es_neardupe.commands.what_if import what_if as what_if_

    with progress_bars() as progress:
        found = what_if_(
            open_index(index, prefix),
            min=min,
            linkage=linkage,
            progress=progress,
        )
    if as_json:
        print_json(found)
    else:
        _show(found)
    _warn(found)


def _show(found: WhatIf) -> None:
    rows: list[tuple[object, ...]] = [("now", found.groups, found.grouped, found.largest, 0, 0, 0)]
    rows += [
        (f"{one.min:g}", one.groups, one.grouped, one.largest, one.joined, one.left, one.moved)
        for one in found.thresholds
    ]
    columns = ("min", "groups", "documents in them", "largest", "join one", "leave one", "change groups")
    print_table(columns, rows, title=f"{found.index}, scheme {found.scheme}, {found.linkage}, {found.measure}")
    say(
        f"{found.documents:,} documents, {found.candidates:,} candidate pairs. Last grouped: "
        f"{range_text(found.measure, found.min, found.max)}. {found.seconds:.1f} s"
    )


def _warn(found: WhatIf) -> None:
    for one in found.thresholds:
        warn_of_detection(one.min, one.detection, one.detection_cases)
        if one.open:
            warn(
                f"At {one.min:g}, {one.open:,} pairs of linked texts are no candidates. `group --linkage complete` "
                f"compares those that decide, so it can make larger groups."
            )
    name = found.index
    if found.unknown:
        warn(
            f"{found.unknown_documents:,} documents are in {found.unknown:,} candidate pairs without evidence, which "
            f"count as no match: run `es-neardupe group {name} --evidence`."
        )
    if found.stale:
        warn(
            f"{found.stale:,} entries of evidence are about documents that were changed or deleted: the next "
            f"`es-neardupe group {name} --evidence` removes them."
        )
    if found.corrupt:
        warn(f"{found.corrupt:,} documents have unreadable keys: run `es-neardupe enrich {name} --all`.")
    if found.unprocessed:
        warn(f"{found.unprocessed:,} documents are not enriched and are in no group: run `es-neardupe enrich {name}`.")
