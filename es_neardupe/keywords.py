"""Keywords that several functions take, written once: ``**run: Unpack[RunOptions]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack  # noqa: PLC0414  # others import it from here
else:

    class Unpack:
        """At run time, a type for `Unpack` of Python 3.11: ``Unpack[X]`` is X."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return kind


P = ParamSpec("P")
R = TypeVar("R")


def with_defaults(defaults: Mapping[str, object]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function all its keywords. Raises `TypeError` for any other keyword, which ``**run`` would take."""

    def complete(function: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(function).parameters.values()
        known = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD} | defaults.keys()

        @wraps(function)
        def run(*given: P.args, **named: P.kwargs) -> R:
            if unknown := sorted(named.keys() - known):
                raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {unknown[0]!r}")
            return cast("Callable[..., R]", function)(*given, **{**defaults, **named})

        return run

    return complete
