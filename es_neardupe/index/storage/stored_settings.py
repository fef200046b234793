"""Where the settings of an index are, as long as it is not opened: in its own mapping, or in those of its sidecar
indices."""

from __future__ import annotations

from collections.abc import Mapping

from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.migration_state import next_prefix, replaced_prefix
from es_neardupe.index.storage.sidecar.indices import invisible_sidecar, sidecar_name, sidecars_of
from es_neardupe.server.client import JSON, Client


def sidecar_mappings(client: Client, mappings: Mapping[str, JSON], prefix: str) -> dict[str, JSON]:
    """Sidecar index -> its mapping, for those sidecar indices of the given indices that this user may see. Sends no
    request if the indices have inline storage."""
    if any(prefix in mapping.get("_meta", {}) for mapping in mappings.values()):
        return {}
    return {sidecar_name(index, prefix): one for index, one in sidecars_of(client, mappings, prefix).items()}


def may_see_sidecars(index: IndexHandle, prefix: str) -> bool:
    """Whether this user has the privilege to see if an index has a sidecar index."""
    return not invisible_sidecar(index, prefix)


def settings_mappings(index: IndexHandle, prefix: str) -> dict[str, JSON]:
    """Concrete index -> the mapping whose ``_meta`` has the settings of a prefix and of a migration from or to it.

    Inline, this is the mapping of the index. With sidecar storage, it is one that merges the ``_meta`` of all its
    sidecar indices.
    """
    mappings = index.definitions.mappings()
    replaced = replaced_prefix(prefix)
    prefixes = dict.fromkeys((replaced, prefix))
    if any(
        one in mapping.get("_meta", {}) for mapping in mappings.values() for one in (*prefixes, next_prefix(prefix))
    ):
        return mappings
    metas: dict[str, JSON] = {name: {} for name in mappings}
    for sidecars in (
        sidecars_of(index.server, mappings, replaced),
        *(sidecars_of(index.server, mappings, next_prefix(one)) for one in prefixes),
    ):
        for name, mapping in sidecars.items():
            metas[name] |= mapping.get("_meta", {})
    return {name: {"_meta": meta} for name, meta in metas.items()} if any(metas.values()) else mappings
