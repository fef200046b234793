"""``es-neardupe what-if``: groups with other thresholds, without writing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import match_range, warn_of_corrupt, warn_of_detection, warn_of_unprocessed
from es_neardupe.cli.output import print_json, print_table, progress_bars, say
from es_neardupe.commands.what_if import what_if as library
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import counted

if TYPE_CHECKING:
    from es_neardupe.commands.what_if.report import WhatIfReport


@with_options_of(library)
def what_if(
    index: IndexName,
    *,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    All other rules are those of the last run of group.

    Examples:

      es-neardupe what-if news --min 0.7,0.8,0.9

      es-neardupe what-if news --min 0.8 --linkage chain --json
    """

    with progress_bars() as progress:
        found = library(open_index(index, prefix), progress=progress, **given)
    if as_json:
        print_json(found)
    else:
        _show(found)
    _warn(found)


def _show(found: WhatIfReport) -> None:
    rows: list[tuple[object, ...]] = [("now", found.groups, found.grouped, found.largest, 0, 0, 0)]
    rows += [
        (f"{one.min:g}", one.groups, one.grouped, one.largest, one.joined, one.left, one.moved)
        for one in found.thresholds
    ]
    columns = ("min", "groups", "documents in them", "largest", "join one", "leave one", "change groups")
    print_table(columns, rows, title=f"{found.index}, scheme {found.scheme}, {found.linkage}, {found.measure}")
    say(
        f"{counted(found.documents, 'document')}, {counted(found.candidates, 'candidate pair')}. Last grouped: "
        f"{match_range(found.measure, found.min, found.max)}. {found.seconds:.1f} s"
    )


def _warn(found: WhatIfReport) -> None:
    for one in found.thresholds:
        warn_of_detection(one.detection)
    name = found.index
    warn_of_corrupt(found.corrupt, name)
    warn_of_unprocessed(found.unprocessed, name, missing_in="group")
