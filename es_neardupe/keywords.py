"""Keywords that several functions take, written once: ``**run: Unpack[RunOptions]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from types import MappingProxyType
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

EMPTY: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True)
class Keywords:
    """The keywords that a function has from `with_defaults`."""

    first: Mapping[str, object]
    """Those that help shows before the other options, with their defaults."""
    last: Mapping[str, object]
    """Those that help shows after the other options, with their defaults."""
    after: str
    """The parameter after which help shows ``first``."""
    default_text: str | None
    """What help shows in place of the defaults of ``first``."""


def keywords_of(function: Callable[..., Any]) -> Keywords | None:
    """The keywords of a function that are in a `TypedDict`."""
    return cast("Keywords | None", vars(function).get(_KEYWORDS))


_KEYWORDS = "keywords"


def with_defaults(
    last: Mapping[str, object] = EMPTY,
    *,
    first: Mapping[str, object] = EMPTY,
    after: str = "index",
    default_text: str | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function all its keywords; `Keywords` says how help shows them. Raises `TypeError` for any other keyword,
    which ``**run`` would take."""
    defaults = {**first, **last}

    def complete(function: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(function).parameters.values()
        known = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD} | defaults.keys()

        @wraps(function)
        def run(*given: P.args, **named: P.kwargs) -> R:
            if unknown := sorted(named.keys() - known):
                raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {unknown[0]!r}")
            return cast("Callable[..., R]", function)(*given, **{**defaults, **named})

        vars(run)[_KEYWORDS] = Keywords(first, last, after, default_text)
        return run

    return complete
