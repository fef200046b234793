"""``--tune``: a command whose indices have their settings lowered for the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar, cast

from es_neardupe.indices import mappings_of, open_target
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.tuning import mend, tuned

__all__ = ["tunable"]

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
        mend(client, mappings_of(client, name))
        if not arguments.get("tune"):
            return command(*given, **options)
        target = open_target(client, name, arguments.get("prefix", DEFAULT_PREFIX))
        with tuned(client, target, command.__name__) as lowered:
            report: Any = command(*given, **options)
        return cast("R", replace(report, tuned=lowered))

    return run
