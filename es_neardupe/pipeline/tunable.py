"""``--tune``: a command whose indices have their settings lowered for the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar, cast

from es_neardupe.clients import Client
from es_neardupe.indices import mappings_of
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.sidecar import kept_beside, opened, sidecar_name
from es_neardupe.tuning import mend, tuned

__all__ = ["tunable", "tuned_mappings"]

P = ParamSpec("P")
R = TypeVar("R")


def tunable(command: Callable[P, R]) -> Callable[P, R]:
    """Give a command's ``tune`` its meaning: the settings of its indices are lowered while it runs, and the field
    ``tuned`` of its report says what they were. With or without it, what an earlier run left lowered is given back.

    The command takes a client and a name of indices, and by keyword ``prefix``, ``tune`` and ``dry_run``; a dry run
    changes no settings. Raises what `tuned` raises.
    """

    parameters = signature(command)

    @wraps(command)
    def run(*given: P.args, **options: P.kwargs) -> R:
        arguments = parameters.bind(*given, **options).arguments
        client, name = arguments["client"], arguments["index"]
        if arguments.get("dry_run"):
            return command(*given, **options)
        prefix = arguments.get("prefix", DEFAULT_PREFIX)
        mend(client, tuned_mappings(client, name, prefix))
        if not arguments.get("tune"):
            return command(*given, **options)
        _, target = opened(client, name, prefix, adopting=True, writes=command.__name__ != "migrate")
        with tuned(client, target, command.__name__) as lowered:
            report: Any = command(*given, **options)
        return cast("R", replace(report, tuned=lowered))

    return run


def tuned_mappings(client: Client, name: str, prefix: str) -> dict[str, dict[str, Any]]:
    """Index -> mapping, of those that a run with ``tune`` may have lowered: with those beside, where keys are there."""
    found = mappings_of(client, name)
    beside = kept_beside(client, found, prefix)
    return found | {sidecar_name(index, prefix): one for index, one in beside.items()}
