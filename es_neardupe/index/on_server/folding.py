"""Folding: the default search pipeline of OpenSearch that leaves one hit of each group of near-duplicates.

A pipeline of this program is the same for all indices with the same group field, since OpenSearch uses none at all for
several indices with different ones. Its name and its description mark it; one that was changed is not ours any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from es_neardupe.errors import Forbidden, IndexUnusable, NotFound, RequestError
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.on_server.pipelines import PipelineKind, changed_pipeline, not_stored, stored_pipeline
from es_neardupe.index.target import SEARCH_PIPELINE, Definitions
from es_neardupe.server.client import Client, path

_NAME = "es-neardupe-fold-"


def pipeline_name(group_field: str, oversample: int) -> str:
    """The name of the pipeline for a group field."""
    return f"{_of_field(group_field)}{oversample}"


def _of_field(group_field: str) -> str:
    """The beginning of the names of all pipelines for a group field."""
    return f"{_NAME}{group_field}-x"


def is_ours(name: str | None, group_field: str | None = None) -> bool:
    """Whether this is the name of a pipeline of this program, for the given field or for any."""
    beginning = _NAME if group_field is None else _of_field(group_field)
    return name is not None and name.startswith(beginning) and (not group_field or name[len(beginning) :].isdecimal())


def pipeline_body(group_field: str, oversample: int) -> dict[str, Any]:
    """The pipeline: request ``oversample`` times as many hits, keep the first of each group, return the requested
    number."""
    return {
        "description": f"es-neardupe: one hit of each group of near-duplicates, by the field {group_field}",
        "request_processors": [{"oversample": {"sample_factor": oversample}}],
        "response_processors": [{"collapse": {"field": group_field}}, {"truncate_hits": {}}],
    }


def default_pipelines(index: IndexHandle) -> dict[str, str | None]:
    """Concrete index of an opened index -> its default search pipeline."""
    states = Definitions(index.server, index.path).states()
    return {name: states[name].search_pipeline for name in index.target.indices if name in states}


def missing_pipelines(client: Client, names: Mapping[str, str | None]) -> dict[str, str]:
    """The entries of `default_pipelines` whose pipeline does not exist: the server rejects searches of these
    indices."""
    if not client.server.has_search_pipelines:
        return {}
    gone = not_stored(client, PipelineKind.SEARCH, [name for name in names.values() if name is not None])
    return {index: name for index, name in names.items() if name in gone}


def state(index: IndexHandle, pipelines: Mapping[str, str | None], *, stored: str | None = None) -> str:
    """The state of the indices with these default pipelines: ``folded``, ``partly`` (some of the indices),
    ``not folded``, ``unused`` (not folded, but a pipeline of ours is stored that no index uses), ``missing`` (an index
    names a pipeline that does not exist), ``other`` (an index has another pipeline), or ``unsupported`` (a server
    without search pipelines). ``stored``: a pipeline that exists, or would after a dry run."""
    field, names = index.settings.group_field, set(pipelines.values())
    if not index.client.server.has_search_pipelines:
        return "unsupported"
    if missing_pipelines(index.server, {one: name for one, name in pipelines.items() if name != stored}):
        return "missing"
    if any(name is not None and not is_ours(name, field) for name in names):
        return "other"
    if None not in names:
        return "folded"
    if len(names) > 1:
        return "partly"
    return "unused" if field is not None and unused_pipelines(index.server, field, pipelines) else "not folded"


def fold(client: Client, indices: Sequence[str], group_field: str, oversample: int) -> None:
    """Store the pipeline, then make it the default of concrete indices. Can be repeated. Raises as `store_pipeline`."""
    name = store_pipeline(client, group_field, oversample)
    for index in indices:
        client.request("PUT", path(index, "_settings"), body={SEARCH_PIPELINE: name})


def store_pipeline(client: Client, group_field: str, oversample: int) -> str:
    """Store the pipeline unless it exists; returns its name.

    Raises `IndexUnusable` if the name belongs to a pipeline that is not ours, or if the server lacks the processors.
    """
    name, body = pipeline_name(group_field, oversample), pipeline_body(group_field, oversample)
    stored = stored_pipeline(client, PipelineKind.SEARCH, name)
    if stored is not None and not _same(stored, body):
        raise changed_pipeline(PipelineKind.SEARCH, name)
    if stored is None:
        try:
            client.request("PUT", PipelineKind.SEARCH.path(name), body=body)
        except RequestError as error:
            if "Invalid processor type" not in error.reason:
                raise
            raise IndexUnusable(
                f"{client.server} cannot fold: it lacks processors of search pipelines ({error.reason}). Official "
                f"distributions have them since 2.12, in the module search-pipeline-common."
            ) from error
    return name


def _same(stored: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Whether a stored pipeline is the given one. Servers may return numbers as decimals."""
    (oversample,) = body["request_processors"]
    factor = oversample["oversample"]["sample_factor"]
    processors = stored.get("request_processors")
    try:
        equal = float(processors[0]["oversample"]["sample_factor"]) == factor  # type: ignore[index]
    except (TypeError, KeyError, IndexError, ValueError):
        return False
    return equal and {**stored, "request_processors": None} == {**body, "request_processors": None}


def unfold(client: Client, pipelines: Mapping[str, str | None], group_field: str) -> tuple[str, ...]:
    """Remove the default pipelines of ours from indices, then the pipelines that no index uses. Can be repeated.

    ``pipelines``: see `default_pipelines`. Returns the indices that had one. The indices come first: an index whose
    pipeline is missing rejects searches. A pipeline stays if this user may not see which indices use it.
    """
    if not client.server.has_search_pipelines:
        return ()
    folded = tuple(index for index, name in pipelines.items() if is_ours(name, group_field))
    for index in folded:
        client.request("PUT", path(index, "_settings"), body={SEARCH_PIPELINE: None})
    for name in unused_pipelines(client, group_field, folded):
        client.request("DELETE", PipelineKind.SEARCH.path(name))
    return folded


def unused_pipelines(client: Client, group_field: str, unfolded: Collection[str] = ()) -> list[str]:
    """The pipelines of ours for a group field that no index has as its default, other than the ``unfolded`` ones. None
    if this user may not see which indices use them."""
    with suppress(Forbidden, NotFound):
        stored: Mapping[str, Any] = client.request("GET", PipelineKind.SEARCH.path(f"{_of_field(group_field)}*"))
        every = Definitions(client, "*").settings(SEARCH_PIPELINE, expand_wildcards="all")
        used = {one.get(SEARCH_PIPELINE) for index, one in every.items() if index not in unfolded}
        return sorted(name for name in stored if is_ours(name, group_field) and name not in used)
    return []
