"""Signatures of the functions of the library: their options, for the command line and for ``help()`` in Python.

The module of a command is light: it imports what it needs when it runs, and types only for type checkers. So the types
of its function cannot all be evaluated.
"""

from __future__ import annotations

import builtins
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from typer.models import OptionInfo

from es_neardupe.errors import SettingsError
from es_neardupe.keywords import keywords_of
from es_neardupe.lists import as_list, check_list
from es_neardupe.options import like, parse_fraction
from es_neardupe.wording import option as option_name


def option_of(annotation: Any) -> OptionInfo | None:
    """The option of an alias; None for any other type."""
    return next((one for one in get_args(annotation)[1:] if isinstance(one, OptionInfo)), None)


def option_parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function of the library that are options, by their names."""
    parameters = signature_of(function).parameters
    return {name: one for name, one in parameters.items() if option_of(one.annotation) is not None}


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Option of a function of the library -> its default, for interfaces that have the same."""
    return {name: one.default for name, one in option_parameters(function).items()}


def meaning_of(function: Callable[..., Any], name: str, **limits: int) -> dict[str, Any]:
    """What the help says about an option, and its limits, by the names that ``Field`` of pydantic has, for interfaces
    that have the same option. ``limits``: other ones, which only the interface has."""
    option = option_of(option_parameters(function)[name].annotation)
    assert option is not None
    if option.parser is parse_fraction:
        bounds: dict[str, float] = {"gt": 0, "le": 1}
    else:
        given = {"ge": option.min, "le": option.max}
        bounds = {name: bound for name, bound in given.items() if bound is not None}
    return {"description": f"{option.help}{_default_text(option)}", **bounds, **limits}


_ACCEPTED: Mapping[Any, tuple[type, str]] = {
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
    bool: (bool, "True or False"),
    Sequence: (Iterable, "a list"),
    Path: (PathLike, "a path"),
    Mapping: (Mapping, "a dict"),
    tuple: (Sequence, "a pair"),
    NoneType: (NoneType, "None"),
}
"""Type of an option -> the types of values that it accepts, and their name."""


def checked_values(parameters: Mapping[str, inspect.Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of parameters, with lists in place of iterators.

    Raises `SettingsError` for a list that is one text, and for the value of an option that has another type than the
    option, or is out of its range. Other types than those of Python, such as `Versions`, are not checked.
    """
    checked = {name: _listed(name, _kinds(parameters[name]), value) for name, value in values.items()}
    for name, value in checked.items():
        if (option := option_of(parameters[name].annotation)) is None:
            continue
        parts = _kinds(parameters[name])
        if not any(_accepts(part, value) for part in parts):
            names = [_ACCEPTED[part][1] for part in map(_plain, parts) if part in _ACCEPTED and part is not NoneType]
            raise SettingsError(f"{option_name(name)} must be {' or '.join(names)}, not {value!r}.")
        if isinstance(value, Integral) and not isinstance(value, bool):
            _check_range(option, name, int(value))
        if isinstance(value, Mapping):
            _check_json(name, value)
    return checked


def _kinds(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """The types that a parameter accepts."""
    kind = parameter.annotation
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _listed(name: str, kinds: Sequence[Any], value: Any) -> Any:
    """The value of a parameter: of one that is a list, a list in place of an iterator, also for each part of it that is
    a list."""
    sequence = next((kind for kind in kinds if _plain(kind) is Sequence), None)
    if any(_plain(kind) is Iterable for kind in kinds):
        check_list(name, value)
    if sequence is None or any(_accepts(kind, value) for kind in kinds if kind is not sequence):
        return value
    values = as_list(name, value)
    part = get_args(sequence)
    return [_listed(name, part, one) for one in values] if _plain(part[0]) is Sequence else values


def _plain(kind: Any) -> Any:
    """A type without its parameters."""
    return get_origin(kind) or kind


def _accepts(kind: Any, value: Any) -> bool:
    """Whether a value is of a type of options; True for a type that is not known."""
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if _plain(kind) not in _ACCEPTED:
        return True
    accepted, _ = _ACCEPTED[_plain(kind)]
    if isinstance(value, bool):
        return accepted is bool
    if _plain(kind) is tuple:
        return isinstance(value, Sequence) and len(value) == len(get_args(kind))
    return isinstance(value, accepted)


def _check_json(name: str, value: Mapping[str, Any]) -> None:
    """Raises `SettingsError` for a query that is no JSON, such as one with a datetime."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingsError(f"{option_name(name)} must be JSON: {error}.") from error


def _check_range(option: OptionInfo, name: str, value: int) -> None:
    """Raises `SettingsError` for a number that is out of the range of an option."""
    least, most = option.min, option.max
    if least is None or (least <= value and (most is None or value <= most)):
        return
    if most is None:
        raise SettingsError(f"{option_name(name)} must be {least:,} or more, not {value}.")
    raise SettingsError(f"{option_name(name)} must lie between {least:,} and {most:,}, not {value}.")


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """A signature with evaluated types, and with its keywords in a `TypedDict`, such as ``**run``. Types that a
    module imports only for type checkers are names."""
    keywords = keywords_of(function)
    function = inspect.unwrap(function)
    names = _Known(vars(sys.modules[function.__module__]))
    signature = inspect.signature(function, locals=names, eval_str=True)
    if keywords is None:
        return signature
    *own, last = signature.parameters.values()
    types = get_type_hints(last.annotation, include_extras=True)
    place = [one.name for one in own].index(keywords.after) + 1 if keywords.first else 0
    first = [_keyword(name, types[name], keywords.first[name], keywords.default_text) for name in keywords.first]
    names_last = sorted(keywords.last, key="progress".__eq__)  # a callback is the last one
    after = [_keyword(name, types[name], keywords.last[name]) for name in names_last]
    return signature.replace(parameters=[*own[:place], *first, *own[place:], *after])


def _keyword(name: str, kind: Any, default: object, default_text: str | None = None) -> inspect.Parameter:
    """A keyword of a `TypedDict` as a parameter."""
    if default_text is not None:
        kind = _with_default_text(kind, default_text)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


@cache  # an alias has one option
def _with_default_text(alias: Any, text: str) -> Any:
    """An alias whose help shows this text as the default. A flag can then be given as no, too."""
    kind, option = get_args(alias)
    other: dict[str, Any] = {"show_default": text}
    if kind == bool | None:
        name = option.default  # where typer has the first name of an option of an alias
        other["default"] = f"{name}/--no-{name.removeprefix('--')}"
    return Annotated[kind, like(alias, **other)]


class _Known(dict[str, Any]):
    """The names of a module; any other stands for itself."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        return TypeVar(name)  # it can be a part of a type, and has a name


_Class = TypeVar("_Class", bound=type)


def document_options(cls: _Class) -> _Class:
    """Make ``help()`` of a class and of each method readable: its options below its docstring, and a signature with
    plain types."""
    for name, method in vars(cls).items():
        shown = name == "__init__" or not name.startswith("_")
        if inspect.isfunction(method) and shown and "\nOptions:\n" not in (method.__doc__ or ""):
            lines = list(_explained(method))
            if lines:
                method.__doc__ = "\n".join([inspect.getdoc(method) or "", "", "Options:", *lines])
            if hasattr(method, "__wrapped__"):  # the function keeps its own
                method.__dict__["__signature__"] = _shown_signature(method)
    return cls


class _Shown(str):
    """A part of a signature that is shown without quotes."""

    __repr__ = str.__str__


def _shown_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a method, without the metadata of options."""
    signature = signature_of(function)
    first, *others = signature.parameters.values()
    shown = [one.replace(annotation=_Shown(type_text(one.annotation)), default=_shown_default(one)) for one in others]
    return inspect.Signature(
        [first.replace(name="self", annotation=first.empty), *shown],
        return_annotation=_Shown(type_text(signature.return_annotation)),
    )


def _shown_default(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    if isinstance(default, Enum):
        return default.value
    return _Shown("...") if inspect.isfunction(default) else default


def type_text(annotation: Any) -> str:
    """A type without the modules of its parts, and without the metadata of an option."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Union:
        return " | ".join(type_text(part) for part in get_args(annotation))
    if annotation is type(None):
        annotation = None
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z])|~", "", inspect.formatannotation(annotation))


def _explained(function: Callable[..., Any]) -> Iterator[str]:
    for name, parameter in option_parameters(function).items():
        option = option_of(parameter.annotation)
        assert option is not None
        text = f"{name}: {option.help}{_range(option)}{_default_text(option)}"
        yield from textwrap.wrap(text, 110, initial_indent="    ", subsequent_indent="        ")


def _default_text(option: OptionInfo) -> str:
    return f" Default: {option.show_default}." if isinstance(option.show_default, str) else ""


def _range(option: OptionInfo) -> str:
    if option.min is not None and option.max is not None:
        return f" From {option.min} to {option.max}."
    return "" if option.min is None else f" At least {option.min}."
