"""Commands of the command line whose options are those of a function of the library, written only there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from es_neardupe.signatures import option_of, option_parameters

_Command = Callable[..., None]


def with_options_of(*functions: Callable[..., Any], summary: bool = True) -> Callable[[_Command], _Command]:
    """A decorator: the command takes the options of library functions in place of its ``**options``, which it passes
    on. An option with the name of one of its own parameters is not taken. Its positional parameters come before the
    options that are taken, and its keywords after them.

    ``summary``: its help begins with the first paragraph of the docstring of the last function. Its own docstring
    continues this paragraph, or begins a new one if its first line is empty.
    """

    def derived(command: _Command) -> _Command:
        own = inspect.signature(command, eval_str=True).parameters
        library = {name: one for function in functions for name, one in option_parameters(function).items()}
        taken = [one for name, one in library.items() if name not in own]
        lists = {one.name: one.default for one in taken if any(get_origin(kind) is Sequence for kind in _types_of(one))}

        def run(**given: Any) -> None:
            """Typer has an empty list or None for a list that is not given."""
            command(**{name: value or lists.get(name, value) for name, value in given.items()})

        arguments = [one for one in own.values() if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
        options = [one for one in own.values() if one.kind is Parameter.KEYWORD_ONLY]
        parameters = [*arguments, *map(_for_typer, taken), *options]
        run.__name__, run.__module__, run.__doc__ = command.__name__, command.__module__, command.__doc__
        if summary:
            run.__doc__ = _with_summary(inspect.getdoc(functions[-1]) or "", command.__doc__ or "")
        run.__dict__["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return derived


def _with_summary(library: str, own: str) -> str:
    summary, _, _ = library.partition("\n\n")
    return summary + ("\n\n" if own.startswith("\n") else " ") + inspect.cleandoc(own)


def options_for(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given options that a library function takes, for a command with the options of several."""
    return {name: given[name] for name in option_parameters(function) if name in given}


def _for_typer(parameter: Parameter) -> Parameter:
    """An option with a type that typer knows. A sequence of texts is an option that can be repeated; any other value
    with a parser is one word. What can be a text in Python is one here."""
    kinds, option = _types_of(parameter), option_of(parameter.annotation)
    assert option is not None
    kind: Any = get_args(parameter.annotation)[0]
    if Sequence[str] in kinds:
        kind = list[str] | None
    elif option.parser is not None:
        kind = Any
    elif str in kinds and len(kinds) > 1:
        kind = str | None
    default = None if parameter.default == () else parameter.default
    return parameter.replace(annotation=Annotated[kind, option], default=default, kind=Parameter.KEYWORD_ONLY)


def _types_of(parameter: Parameter) -> list[Any]:
    """The types of an option, without None."""
    kind = get_args(parameter.annotation)[0]
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [one for one in kinds if one is not type(None)]
