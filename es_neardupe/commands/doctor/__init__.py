"""``doctor``: checks whether the commands can work on an index, and says how to fix problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from es_neardupe.errors import NameTaken, NeardupeError, NotFound, NotInitialised

if TYPE_CHECKING:
    from es_neardupe.commands.doctor.checks import Check
    from es_neardupe.index.index import Index


def doctor(index: Index) -> list[Check]:
    """Check server, privileges, mapping, scheme, blocks, limits and documents, and show how to fix problems.

    Returns all checks, in the order in which problems should be fixed. Writes nothing.

    >>> [check.name for check in news.doctor() if check.level != "ok"]
    []
    """
    from es_neardupe.commands.doctor.checks import (
        Check,
        before_init,
        changes,
        documents,
        fields,
        folded,
        groups,
        hidden_names,
        lease_holder,
        limits,
        migration,
        pipeline,
        replaced,
        rights,
        role_names,
        rollover,
        scheme,
        tuning,
        versions,
        visibility,
    )
    from es_neardupe.commands.doctor.service import probes
    from es_neardupe.index.index import opened
    from es_neardupe.index.rollover import alias_named
    from es_neardupe.index.storage.sidecar.indices import sidecar_name, sidecars_of
    from es_neardupe.index.storage.stored_settings import settings_mappings

    client, name, prefix = index.client, index.name, index.prefix
    checks = [Check("server", "ok", f"{client.server} at {client.url}")]
    try:
        metadata = index.definitions.metadata()
        mappings, family = metadata.with_source_modes, alias_named(metadata.rollover_aliases(name), name)
    except NotFound as error:
        return [*checks, Check("index", "error", str(error))]
    checks.append(Check("index", "ok", ", ".join(sorted(mappings))))
    checks += probes(client, ",".join(sorted(mappings)))
    try:
        sidecars = sidecars_of(client, mappings, prefix)
        with_settings = settings_mappings(index, prefix)
    except NameTaken as error:
        return [*checks, Check("hidden indices", "error", str(error))]
    checks += fields(mappings, sidecars, prefix)
    prepared = bool(sidecars) or any(prefix in mapping.get("_meta", {}) for mapping in mappings.values())
    checks += rights(client, role_names(mappings, family, name, prefix), sidecars, prefix, prepared=prepared)
    checks += migration(name, with_settings, prefix)
    named_sidecars = {sidecar_name(one, prefix): mapping for one, mapping in sidecars.items()}
    checks += tuning({**mappings, **named_sidecars})
    try:
        index = opened(index)
    except NeardupeError as error:
        if isinstance(error, NotInitialised) and not prepared:
            return [*checks, *before_init(index, mappings, error)]
        return [*checks, Check("scheme", "error", str(error))]
    checks += [scheme(index.settings), *hidden_names(index), *replaced(index)]
    checks += [*rollover(index), *visibility(index), *lease_holder(index), *pipeline(index), *folded(index)]
    checks += [limits(index.target.max_result_window), *versions(index)]
    return [*checks, *documents(index), *changes(index), *groups(index)]
