"""Simulation of groups with other thresholds, which writes nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.progress import Progress, silent
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.what_if.report import WhatIfReport
    from es_neardupe.index.index import Index


ThresholdsToTry = Annotated[
    Sequence[float],
    typer.Option(
        "--min",
        metavar="S,...",
        parser=options.list_of(float, "numbers"),
        help="Thresholds to try, such as 0.7,0.8,0.9.",
        show_default=False,
    ),
]
LinkageToTry = Annotated[
    str | None,
    options.one_of(
        options.words_of(options.Linkage), "--linkage", help=options.LINKAGE, show_default="that of the last group"
    ),
]


def what_if(
    index: Index,
    *,
    min: ThresholdsToTry,
    linkage: LinkageToTry = None,
    progress: Progress = silent,
) -> WhatIfReport:
    """Show the groups that other thresholds would give. Compares the texts once for all of them; writes nothing.

    The groups for each ``min`` are those of `group` with this ``min``. ``linkage`` is that of the last run by default.

    Raises `IndexUnusable` for an index that has not been grouped.

    >>> for threshold in news.what_if(min=[0.7, 0.9]).thresholds:
    ...     print(threshold.min, threshold.groups, threshold.grouped)
    0.7 2 6
    0.9 1 2
    """
    from es_neardupe.commands.what_if.report import WhatIfReport
    from es_neardupe.commands.what_if.steps import last_rules, statistics
    from es_neardupe.index.index import opened
    from es_neardupe.index.permissions import check_sees_all
    from es_neardupe.verification.criterion import check_min

    started = time.monotonic()
    tried = tuple(dict.fromkeys(map(check_min, min)))
    if not tried:
        raise SettingsError(f"{option('min')} needs one threshold or more to try, for example 0.7,0.8,0.9.")
    index = opened(index)
    check_sees_all(index, "grouping")
    last = last_rules(index, linkage)
    criterion = last.criterion(sorted(tried)[0], progress)
    verified = last.verified(criterion, progress)
    corpus = verified.corpus
    return WhatIfReport(
        index=index.name,
        scheme=index.scheme_id,
        measure=last.rules.measure,
        min=last.rules.min,
        max=last.rules.match.max,
        linkage=last.group.linkage.value,
        documents=len(corpus) + len(corpus.corrupt),
        corrupt=len(corpus.corrupt),
        **statistics(corpus.group_ids),
        candidates=len(verified.candidates),
        unprocessed=index.documents.count(index.target.stale()),
        thresholds=tuple(last.simulated(verified, criterion, minimum, progress) for minimum in tried),
        seconds=time.monotonic() - started,
    )
