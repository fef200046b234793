"""Answer a request for duplicates, over any documents of any index: nothing has to be prepared, nothing is written."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from es_neardupe.asking import refresh_if_allowed
from es_neardupe.clients import Client
from es_neardupe.indices import mappings_of
from es_neardupe.pipeline.duplicate_checks import check_fields
from es_neardupe.pipeline.duplicate_contents import contents, overlapping
from es_neardupe.pipeline.duplicate_pairs import find_pairs
from es_neardupe.pipeline.duplicate_results import (
    ContentResult,
    DuplicatesReport,
    OverlapsResult,
    PairList,
    PairsResult,
)
from es_neardupe.progress import Progress, silent
from es_neardupe.requests import ContentPlan, DuplicatesPlan, RequestPlan, parse_request
from es_neardupe.settings import DEFAULT_PREFIX

__all__ = ["duplicates"]


def duplicates(
    client: Client,
    index: str,
    request: RequestPlan | Mapping[str, Any] | str,
    *,
    prefix: str = DEFAULT_PREFIX,
    progress: Progress = silent,
) -> DuplicatesReport:
    """Find the pairs of documents that a request describes, and read of them what it asks for.

    ``index`` may be an alias, a pattern or a comma list; ``request`` is JSON as text, as objects, or a plan that was
    read already. The same documents give the same pairs, in whatever order they come. Raises `SettingsError` for a
    request that is not understood or that names a field which no index has, `NotFound` for an unknown index,
    `NotInitialised` for a request by stored keys where there are none, `RequestError` in the server's words for a
    query that it rejects.
    """
    started = time.monotonic()
    plan = request if isinstance(request, RequestPlan) else parse_request(request)
    mappings = mappings_of(client, index)
    check_fields(index, mappings, plan, prefix)
    refresh_if_allowed(client, index)
    stages: dict[str, PairsResult | ContentResult | OverlapsResult] = {}
    pairs: dict[str, PairList] = {}
    for stage in plan.stages:
        if isinstance(stage, DuplicatesPlan):
            found = find_pairs(client, index, stage, prefix=prefix, progress=progress)
            stages[stage.name], pairs[stage.name] = found, found.pairs
        elif isinstance(stage, ContentPlan):
            stages[stage.name] = contents(client, pairs[stage.pairs], stage, progress)
        else:
            stages[stage.name] = overlapping(client, pairs[stage.pairs], stage, progress)
    return DuplicatesReport(index, tuple(sorted(mappings)), stages, time.monotonic() - started)
