"""Values of the command line that are converted without pydantic, which newer versions of typer import for each value.

It takes longer to import than a command that does little. What is not plain, and every wrong value, is left to typer,
so that its messages are the same.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, get_args, get_origin

_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)


class _NotPlain(Exception):
    """A value that typer must convert."""


class PlainValues:
    """Takes the place of what typer converts the values of a parameter with."""

    def __init__(self, parameter: Any) -> None:
        self._kind = parameter.type_descriptor.annotation
        self._option = parameter.type_descriptor.parameter_info

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command takes it."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        try:
            if get_origin(self._kind) is list and isinstance(value, (list, tuple)):
                return [self._plain(one, get_args(self._kind)[0]) for one in value]
            return self._plain(value, self._kind)
        except _NotPlain:
            param._runtime_param = None
            return param.get_runtime_param().coerce(value, param, ctx)

    def _plain(self, value: Any, kind: Any) -> Any:
        if self._option.parser is not None:
            try:
                return self._option.parser(value)
            except (ValueError, AssertionError):
                raise _NotPlain from None
        if kind is str and isinstance(value, str):
            return value
        if kind is int and isinstance(value, str) and _INTEGER.fullmatch(value):
            return self._within(int(value))
        if kind is float and isinstance(value, str) and _DECIMAL.fullmatch(value):
            return self._within(float(value))
        if kind in (int, float) and type(value) in (int, float):
            return self._within(kind(value))
        if isinstance(kind, type) and issubclass(kind, Enum):
            for member in kind:
                if value in (member, member.value):
                    return member
        raise _NotPlain

    def _within(self, number: float) -> float:
        low, high = self._option.min, self._option.max
        if (low is not None and number < low) or (high is not None and number > high):
            raise _NotPlain
        return number


def without_pydantic(parameters: list[Any]) -> list[Any]:
    """These parameters, whose plain values are converted without pydantic. Older versions of typer do so anyway."""
    for parameter in parameters:
        if getattr(parameter, "_runtime_param", True) is None:
            parameter._runtime_param = PlainValues(parameter)
    return parameters
