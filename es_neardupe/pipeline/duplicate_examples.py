"""What the documents of skipped groups have in common, by asking one of them again."""

from __future__ import annotations

from collections.abc import Sequence

from es_neardupe import documents
from es_neardupe.clients import Client
from es_neardupe.feature_examples import example
from es_neardupe.feature_trees import FeatureTree, fields_of
from es_neardupe.fetch import fetch
from es_neardupe.passages import beginning, common_passage
from es_neardupe.pipeline.duplicate_results import SkippedGroup
from es_neardupe.records import Scope
from es_neardupe.requests import SchemeKeys
from es_neardupe.sidecar import opened
from es_neardupe.stages.hash_groups import LargeGroup

__all__ = ["skipped_groups"]

_FETCH = 20
_LOOKED_AT = 100_000
"""Characters of a text in which common passages are sought."""


def skipped_groups(
    client: Client,
    index: str,
    scope: Scope,
    groups: Sequence[LargeGroup],
    grouping: FeatureTree | SchemeKeys,
    *,
    prefix: str,
) -> tuple[SkippedGroup, ...]:
    """The groups by their documents' addresses, each with its feature as a document has it now. For stored keys that
    is the passage that some of its documents share."""
    if not groups:
        return ()
    if isinstance(grouping, SchemeKeys):
        fields = opened(client, index, prefix)[1].settings.fields
        found = [_passage(client, scope, one, fields) for one in groups]
    else:
        found = _features(client, scope, groups, grouping)
    return tuple(
        SkippedGroup(one.size, tuple(scope.references[number][:2] for number in one.documents), text)
        for one, text in zip(groups, found, strict=True)
    )


def _features(client: Client, scope: Scope, groups: Sequence[LargeGroup], tree: FeatureTree) -> list[str | None]:
    """Asks the first document of each group, then the second of those that lost the feature, and so on."""
    found: list[str | None] = [None] * len(groups)
    fields = fields_of(tree)
    for place in range(max(len(one.documents) for one in groups)):
        asked = [k for k, one in enumerate(groups) if found[k] is None and place < len(one.documents)]
        references = [scope.references[groups[k].documents[place]] for k in asked]
        for k, hit in zip(asked, fetch(client, references, fields, batch=_FETCH), strict=True):
            if hit is not None:
                text = example(tree, documents.values_by_field(hit.source, fields), groups[k].hash)
                found[k] = None if text is None else beginning(text)
    return found


def _passage(client: Client, scope: Scope, group: LargeGroup, fields: Sequence[str]) -> str | None:
    references = [scope.references[number] for number in group.documents]
    hits = [hit for hit in fetch(client, references, fields) if hit is not None]
    passage = common_passage([documents.text_of(hit.source, fields)[:_LOOKED_AT] for hit in hits])
    return beginning(passage) or None
