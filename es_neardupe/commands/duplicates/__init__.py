"""Duplicates by a request in JSON, among any documents of any index. Needs no keys."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.progress import Progress, silent
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.duplicates.request_plan import RequestPlan
    from es_neardupe.commands.duplicates.results import DuplicatesReport
    from es_neardupe.index.index import Index


Stage = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Stage whose pairs are written to lines, files and groups.", show_default="the only one"
    ),
]
WriteGroups = Annotated[
    str | None,
    typer.Option(
        "--write-groups",
        metavar="PREFIX",
        help="Store the pairs as groups in an object field of this name in the documents.",
        show_default=False,
    ),
]


def duplicates(
    index: Index,
    request: RequestPlan | Mapping[str, Any] | str,
    *,
    stage: Stage = None,
    write_groups: WriteGroups = None,
    dry_run: options.DryRun = False,
    progress: Progress = silent,
) -> DuplicatesReport:
    """Run a request for duplicates: a query, and features for grouping and validation. Needs no keys.

    Finds the pairs of documents that the request describes, and reads the fields and text blocks that it requests.

    ``index`` may be an alias, a pattern or a comma-separated list. ``request`` is JSON text, the same as Python
    objects, or a parsed plan. The result does not depend on the order of the documents.

    ``write_groups``: a prefix under which the pairs are stored as groups; ``stage`` is the stage whose pairs these are,
    if several find pairs. With ``dry_run``, the groups are formed and counted, and nothing is written.

    Raises `SettingsError` for an invalid request, for a field that no index has and for a prefix of keys, `NotFound`
    for an unknown index, `NotInitialised` for grouping by stored keys in an index without keys, `RequestError` for a
    query that the server rejects, `LeaseHeld` while another run writes the same groups.

    >>> words = {"type": "featureSource:words", "fields": {"type": "fields:simple", "fields": ["title"]}}
    >>> words = {"type": "featureSource:flatten", "source": words}
    >>> measure = {"type": "pairwiseSimilarity:featureIntersectionToUnionRatio", "features": words}
    >>> stage = {
    ...     "type": "documentPairs:duplicates",
    ...     "query": {"type": "query:all"},
    ...     "hashGrouping": {"features": words, "pairing": {"maxHashGroupSize": 200}},
    ...     "validation": {"pairwiseSimilarity": measure, "min": 0.5},
    ... }
    >>> for pair in news.duplicates({"stages": {"titles": stage}}).stages["titles"].pairs:
    ...     print(pair.a.id, pair.b.id, pair.similarity)
    1001 1004 0.6
    """
    from es_neardupe.commands.duplicates.find_pairs import find_pairs
    from es_neardupe.commands.duplicates.request_explain import range_warnings
    from es_neardupe.commands.duplicates.request_plan import ContentPlan, DuplicatesPlan, RequestPlan, parse_request
    from es_neardupe.commands.duplicates.results import (
        ContentStageReport,
        DuplicatesReport,
        OverlapsStageReport,
        PairList,
        PairsStageReport,
    )
    from es_neardupe.commands.duplicates.texts import check_fields, chosen_stage, contents, overlapping
    from es_neardupe.commands.duplicates.write_groups import check_prefix, write_groups_of_pairs

    started = time.monotonic()
    plan = request if isinstance(request, RequestPlan) else parse_request(request)
    mappings = index.definitions.mappings()
    check_fields(index.name, mappings, plan, index.prefix)
    index.documents.refresh_if_allowed()
    settings = None
    if dry_run and write_groups is None:
        raise SettingsError(f"{option('dry_run')} is for {option('write_groups')}: without it, nothing is written.")
    if write_groups is not None:
        chosen = chosen_stage(plan, stage, needed=True)
        settings = check_prefix(index, chosen, write_groups)
    stages: dict[str, PairsStageReport | ContentStageReport | OverlapsStageReport] = {}
    pairs: dict[str, PairList] = {}
    for one in plan.stages:
        if isinstance(one, DuplicatesPlan):
            result = find_pairs(index, one, progress=progress)
            stages[one.name], pairs[one.name] = result, result.pairs
        elif isinstance(one, ContentPlan):
            stages[one.name] = contents(index.client, pairs[one.pairs], one, progress)
        else:
            stages[one.name] = overlapping(index.client, pairs[one.pairs], one, progress)
    groups = None
    if settings is not None:
        found = stages[chosen.name]
        assert isinstance(found, PairsStageReport)
        groups = write_groups_of_pairs(index, chosen, found, settings, dry_run=dry_run, progress=progress)
    seconds = time.monotonic() - started
    return DuplicatesReport(index.name, tuple(sorted(mappings)), stages, seconds, groups, tuple(range_warnings(plan)))
