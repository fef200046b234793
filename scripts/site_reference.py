"""Pages of the site that are made from the program: the list of commands and options, the Python interface, and the
fields of results."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, get_args

import typer
from pydantic import BaseModel, create_model
from pydantic.fields import FieldInfo

import es_neardupe
from es_neardupe import NearDupe, json_models, local, reports
from es_neardupe.cli.app import app
from es_neardupe.cli.command import shared_parameters
from es_neardupe.signatures import option_of, signature_of, type_text

PAGES = {
    "reference/commands": "Commands",
    "reference/python": "Python: signatures",
    "reference/json": "JSON: fields",
}
"""Page -> its title."""


RESULTS: Mapping[str, Any] = {
    "init": json_models.model_of(reports.InitReport),
    "bands": json_models.model_of(reports.BandsReport),
    "load": json_models.model_of(reports.LoadReport),
    "enrich": json_models.model_of(reports.EnrichReport),
    "group": json_models.model_of(reports.GroupReport),
    "watch": json_models.model_of(reports.Round),
    "groups": json_models.GroupAnswer,
    "groups --history": json_models.model_of(reports.GroupRecord),
    "groups --suggest-keep": json_models.model_of(reports.KeepAdvice),
    "similar": json_models.SimilarAnswer,
    "search": json_models.model_of(reports.SearchReport),
    "moved": json_models.model_of(reports.MovedReport),
    "contained": json_models.ContainedAnswer,
    "pairs": json_models.PairAnswer,
    "documents": json_models.DocumentsAnswer,
    "compare": json_models.ComparisonAnswer,
    "distribution": json_models.model_of(reports.DistributionReport),
    "what-if": json_models.model_of(reports.WhatIfReport),
    "audit": json_models.model_of(reports.AuditReport),
    "stats": json_models.StatsAnswer,
    "doctor": create_model("Checks", checks=(list[json_models.model_of(reports.Check)], ...)),  # type: ignore[arg-type,misc]  # made at run time
    "shingles": json_models.model_of(reports.ShinglesReport),
    "version": json_models.model_of(reports.VersionReport),
    "migrate": json_models.model_of(reports.MigrateReport),
    "clean": json_models.model_of(reports.CleanReport),
    "fold": json_models.model_of(reports.FoldReport),
    "pipeline": json_models.model_of(reports.PipelineReport),
}
"""Command -> the model of what ``--json`` prints, or of one line of it."""

_PROGRAM: Any = typer.main.get_command(app)


def pages() -> Iterator[tuple[str, str]]:
    """(name, text) of each page."""
    makers = {"reference/commands": _commands, "reference/python": _python, "reference/json": _results}
    for name, title in PAGES.items():
        yield f"{name}.md", f"# {title}\n\n" + "\n".join(makers[name]()) + "\n"


# Commands


def page_of(command: str) -> str:
    """Name of the page of a command on the site, without its ending. Sphinx has a page ``search`` of its own."""
    return "search-command" if command == "search" else command


def command_words() -> list[str]:
    """The commands that have a page of their own."""
    return [name for name in _PROGRAM.commands if name != "help"]


def _commands() -> Iterator[str]:
    yield "The texts of `--help`. Each command has a page with examples and all of its options."
    panels: dict[str, list[str]] = {}
    for name, command in _PROGRAM.commands.items():
        panels.setdefault(command.rich_help_panel, []).append(name)
    for panel, names in panels.items():
        yield f"\n## {panel}\n\n| command | purpose |\n|---|---|"
        for name in names:
            title = f"[{name}](../{page_of(name)}.md)" if name in command_words() else name
            yield f"| {title} | {_cell(_PROGRAM.commands[name].help.partition(chr(10))[0])} |"
        listed = "\n".join(f"{name} <../{page_of(name)}.md>" for name in names if name in command_words())
        yield f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{listed}\n```"
    yield "\n## Options from A to Z\n"
    yield (
        "Without [those of connection and log](../settings.md#options-of-the-connection), which most commands have. "
        "Defaults are on the pages of the commands.\n\n| option | meaning | commands |\n|---|---|---|"
    )
    for (option, text), names in sorted(_options().items()):
        yield f"| `{option}` | {_cell(text)} | {', '.join(names)} |"


def _options() -> dict[tuple[str, str], list[str]]:
    """(option, help) -> links to the commands that have it."""
    shared = {name for parameter in shared_parameters() for name in parameter.opts} | {"--help"}
    found: dict[tuple[str, str], list[str]] = {}
    for word in command_words():
        command = _PROGRAM.commands[word]
        for part in getattr(command, "commands", {word: command}).values():
            for one in part.params:
                option = next((name for name in one.opts if name.startswith("--")), None)
                if option is not None and option not in shared:
                    names = found.setdefault((option, one.help or ""), [])
                    if (link := f"[{word}](../{page_of(word)}.md)") not in names:
                        names.append(link)
    return found


# Python


def _python() -> Iterator[str]:
    yield "Signatures and docstrings, also shown by `help()`. [Python](../python.md) shows how to use them.\n"
    yield "## `NearDupe`\n"
    yield from _called(NearDupe, "NearDupe")
    for name, method in vars(NearDupe).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            yield f"### `NearDupe.{name}`\n"
            yield from _called(method, name)
    for name in es_neardupe.__all__:
        value = getattr(es_neardupe, name)
        if value is NearDupe:
            continue
        yield f"## `{name}`\n"
        yield from _called(value, name)
        if inspect.isclass(value) and not issubclass(value, Exception):
            for attribute, part in vars(value).items():
                function = part.__func__ if isinstance(part, classmethod) else part
                if inspect.isfunction(function) and not attribute.startswith("_"):
                    yield f"### `{name}.{attribute}`\n"
                    yield from _called(function, attribute)
    for name in local.__all__:
        if inspect.isfunction(value := getattr(local, name)):
            yield f"## `local.{name}`\n"
            yield from _called(value, name)


def _called(function: Any, name: str) -> Iterator[str]:
    """Signature, docstring and options of a function, or of a class and its constructor."""
    text = (inspect.getdoc(function) or "").partition("\nOptions:\n")[0]
    if not (inspect.isclass(function) and issubclass(function, Exception)):
        signature = signature_of(function)
        parameters = list(signature.parameters.values())
        given = {"self", "cls", "index"} if name in vars(NearDupe) else {"self", "cls"}
        shown = [_parameter(one) for one in parameters if one.name not in given]
        returned = signature.return_annotation
        result = (
            "" if inspect.isclass(function) or returned is inspect.Signature.empty else f" -> {type_text(returned)}"
        )
        starred = _starred(parameters, shown)
        lines = "".join(f"    {one},\n" for one in starred)
        short = f"{name}({', '.join(starred)}){result}"
        yield f"```python\n{short if len(short) <= 90 else f'{name}({chr(10)}{lines}){result}'}\n```\n"
    yield _prose(text) + "\n"
    if not inspect.isclass(function) or function is NearDupe:
        options = [(one, option) for one in parameters if (option := option_of(one.annotation)) is not None]
        if options:
            yield "| option | meaning |\n|---|---|"
            for one, option in options:
                default = f" Default: {option.show_default}." if isinstance(option.show_default, str) else ""
                yield f"| `{one.name}` | {_cell((option.help or '') + default)} |"
            yield ""


def _starred(parameters: list[inspect.Parameter], shown: list[str]) -> list[str]:
    """The parameters with ``*`` before the first that can only be named."""
    kinds = [one.kind for one in parameters][len(parameters) - len(shown) :]
    if inspect.Parameter.KEYWORD_ONLY not in kinds or inspect.Parameter.VAR_POSITIONAL in kinds:
        return shown
    place = kinds.index(inspect.Parameter.KEYWORD_ONLY)
    return [*shown[:place], "*", *shown[place:]]


def _parameter(one: inspect.Parameter) -> str:
    default = one.default.value if isinstance(one.default, Enum) else one.default
    given = "" if one.default is one.empty else f" = {_short(default)}"
    return f"{one.name}: {type_text(one.annotation)}{given}"


def _short(default: Any) -> str:
    return default.__qualname__ if callable(default) else repr(default)


def _prose(text: str) -> str:
    """A docstring as Markdown: examples of the interpreter become blocks, up to an empty line."""
    text = re.sub(r"#\s*doctest:.*", "", text)
    return re.sub(r"(?m)^>>> .*(?:\n.+)*", r"```pycon\n\g<0>\n```", text)


# Results


def _results() -> Iterator[str]:
    yield (
        "The fields of what `--json` prints, and of the results in Python, which differ only where [JSON](../json.md) "
        "says so. It also shows an example of each command; `duplicates` and `node` are described only there.\n"
    )
    parts: dict[str, type[BaseModel]] = {}
    for command, model in RESULTS.items():
        yield f"## `{command}`\n"
        yield from _fields(model)
        _collect(model, parts)
    yield "## Parts\n"
    for name, model in sorted(parts.items()):
        yield f"### {name}\n"
        yield from _fields(model)


def _fields(model: type[BaseModel]) -> Iterator[str]:
    if model.__doc__ and not model.__doc__.startswith(model.__name__ + "("):
        yield _prose(inspect.cleandoc(model.__doc__)) + "\n"
    yield "| field | type | meaning |\n|---|---|---|"
    for name, info in model.model_fields.items():
        yield f"| `{name}` | {_linked(info)} | {_cell(info.description or '')} |"
    yield ""


def _linked(info: FieldInfo) -> str:
    """The type of a field. Names of parts lead to them."""
    parts: dict[str, type[BaseModel]] = {}
    _models_in(info.annotation, parts)
    text = type_text(info.annotation).replace("|", "\\|")
    for name in parts:
        text = re.sub(rf"\b{name}\b", f"[{name}](#{name.lower()})", text)
    return text


def _collect(model: type[BaseModel], found: dict[str, type[BaseModel]]) -> None:
    inner: dict[str, type[BaseModel]] = {}
    for info in model.model_fields.values():
        _models_in(info.annotation, inner)
    for name, part in inner.items():
        if name not in found:
            found[name] = part
            _collect(part, found)
        elif found[name] is not part:
            raise ValueError(f"Two models are called {name}.")


def _models_in(annotation: Any, found: dict[str, type[BaseModel]]) -> None:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        found[annotation.__name__] = annotation
    for part in get_args(annotation):
        _models_in(part, found)


def _cell(text: str) -> str:
    """Text in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
