"""Steps of ``fold``: the search pipeline of an index, its checks and state."""

from __future__ import annotations

from collections.abc import Mapping

from es_neardupe.errors import IndexUnusable
from es_neardupe.index.index import Index
from es_neardupe.index.on_server import folding
from es_neardupe.wording import command, counted


def counted_documents(index: Index) -> tuple[int, int]:
    """The number of documents, and of those without a value in the group field."""
    field = index.settings.group_field
    index.plain_documents.refresh_if_allowed()
    total = index.plain_documents.count()
    return total, total if field is None else total - index.plain_documents.count({"exists": {"field": field}})


def checked(index: Index, pipelines: Mapping[str, str | None], without: int) -> str:
    """The group field. Raises `IndexUnusable` if the index cannot be folded."""
    name, field = index.name, index.settings.group_field
    if index.client.server.is_collection:
        raise IndexUnusable(
            "Amazon OpenSearch Serverless documents no search pipelines that collapse: add `collapse` to each search, "
            "as in docs/collapse.md."
        )
    if not index.client.server.has_search_pipelines:
        raise IndexUnusable(
            f"{index.client.server} has no search pipelines, so searches of {name} cannot be folded without changing "
            f"them: add `collapse` to each search, as in docs/collapse.md."
        )
    if index.storage.sidecars:
        raise IndexUnusable(
            f"The groups of {name} are in a sidecar index, where its searches cannot see them: `es-neardupe search` "
            f"folds them."
        )
    if field is None:
        raise IndexUnusable(
            f"Index {name} has no group field, which the search pipeline needs: run `{command('init', name)} "
            f"{index.settings.as_options()} --group-field neardupe_group`, then `{command('enrich', name)}`."
        )
    others = {one: present for one, present in pipelines.items() if present and not folding.is_ours(present, field)}
    for one, present in others.items():
        raise IndexUnusable(
            f"Index {one} has the default search pipeline {present} already, which is not replaced: add the processors "
            f"of docs/fold.md to it, or remove it from the index settings."
        )
    if without:
        raise IndexUnusable(
            f"{counted(without, 'document')} of {name} {'has' if without == 1 else 'have'} no value in {field}, and "
            f"one hit would stand for all of them: run `{command('enrich', name)}` first."
        )
    return field
