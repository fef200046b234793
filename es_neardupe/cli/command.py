"""Typer commands of the command line, with the options of connection and log that they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer
import typer.core
import typer.main

from es_neardupe.cli import connection, run_log
from es_neardupe.cli.plain_values import without_pydantic
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import CommandLine, spoken

UsageError: Any = typer.BadParameter.__base__
"""The error for wrong usage: of click, or of the copy of click in newer versions of typer."""

_SHARED_HELP = "Connection and log (--url, --profile, ...): es-neardupe help connection"

_PARAMETER = re.compile(r"`([a-z_]+)`")
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    name: options
    for names, options in {
        "num-perm num-permutations num-hashes hash-count": ("--permutations",),
        "ngram-size ngram ngrams n-gram n-grams window-size min-shingle-size": ("--shingle",),
        "b num-bands num-buckets bucket-count": ("--bands",),
        "r num-rows rows-per-band num-rows-per-band hashes-per-bucket minhashes-per-band": ("--rows",),
        "threshold jaccard jaccard-threshold similarity similarity-threshold min-similarity": ("--min", "--threshold"),
        "sim cutoff score min-score minimum-should-match percent-terms-to-match min": ("--min", "--threshold"),
        "column fields text-field text-column content-field": ("--field",),
        "host hosts endpoint": ("--url",),
        "k top-k limit size": ("--top", "--size"),
        "doc doc-id": ("--id",),
        "filter": ("--query",),
        "sort keep": ("--principal", "--keep-policy"),
        "min-cluster-size min-group-size": ("--min-size",),
        "n-jobs num-proc num-workers processes threads": ("--workers",),
        "batch-size chunk-size": ("--batch",),
        "requests-per-second rate-limit": ("--max-rate",),
        "force confirm": ("--yes",),
        "csv format": ("--output",),
    }.items()
    for name in names.split()
}
"""Name of a parameter in other tools -> the options with this meaning, the first that a command has; see
docs/parameters.md."""

_CHOSEN_BY_INIT = {"--permutations", "--shingle", "--bands", "--rows", "--threshold", "--field"}
"""Options that fix the keys of an index: other commands do not have them."""

_WRITTEN = ("output", "failures", "report", "html", "bulk", "plot", "summary", "log_file")
"""Parameters that name a file to write. Any other may name one to read, such as ``--query @FILE``."""

_REPEATED = ("--url", "--profile", "--prefix")
"""Options that a suggested command repeats."""


class Command(typer.core.TyperCommand):
    """A command whose help fills the width of the terminal and names options instead of parameters."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        names = _options_of(self.params)
        self.help = with_options(_unwrapped(self.help or ""), names)
        for parameter in self.params:
            parameter.help = with_options(getattr(parameter, "help", None) or "", names)  # type: ignore[attr-defined]

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, and the option of the help."""
        return without_pydantic(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Values are not converted for completion: typer would import pydantic."""
        if not ctx.resilient_parsing:
            try:
                given, _, order = self.make_parser(ctx).parse_args(args=[*args])
            except UsageError as error:
                raise self._with_our_name(error) from None
            _refuse_repeated(ctx, order)
            _refuse_overwriting(ctx, given)
            try:
                return super().parse_args(ctx, args)
            except UsageError as error:
                if "--id" in _options_of(self.params).values() and "unexpected extra argument" in error.message:
                    raise UsageError(f"{error.message}. The id of a document is given by --id.", ctx=ctx) from None
                raise
        values, ctx.args, _ = self.make_parser(ctx).parse_args(args=args)
        for parameter in self.get_params(ctx):
            ctx.params[parameter.name], source = parameter.consume_value(ctx, values)
            ctx.set_parameter_source(parameter.name, source)
        return list(ctx.args)

    def _with_our_name(self, error: Any) -> Any:
        """A usage error about an option that other tools have, or that is cut off: it names the one that is meant."""
        if not hasattr(error, "possibilities"):  # not about an unknown option
            return error
        known = _OTHER_NAMES.get(error.option_name.lstrip("-").replace("_", "-"), ())
        here = _options_of(self.params).values()
        meant = [option for option in known if option in here]
        meant += [f"{option} of `es-neardupe init`" for option in known if option in _CHOSEN_BY_INIT]
        if meant:
            return UsageError(f"No such option: {error.option_name}. The option for this is {meant[0]}.", ctx=error.ctx)
        error.possibilities = [one for one in here if one.startswith(f"{error.option_name}-")] or error.possibilities
        return error

    def invoke(self, ctx: Any) -> Any:
        with spoken(command_line(_options_of(self.params), ctx.params)):
            return super().invoke(ctx)


def _refuse_repeated(ctx: Any, given: Sequence[Any]) -> None:
    """Raise a usage error for an option with a single value that is given twice: the last value would count."""
    for parameter, number in Counter(given).items():
        if number == 1 or parameter.param_type_name != "option":
            continue
        if not (parameter.multiple or (parameter.is_flag and not parameter.secondary_opts)):
            raise UsageError(f"{parameter.opts[0]} is given {number} times: give it once.", ctx=ctx)


def _refuse_overwriting(ctx: Any, given: Mapping[str, Any]) -> None:
    """Raise a usage error if a file that is read, also in a folder, would be written over, or if two results would be
    written to one file. ``given``: the words of the command line, by parameter."""
    written = [Path(given[name]) for name in _WRITTEN if isinstance(given.get(name), str)]
    read = [
        Path(word.removeprefix("@"))
        for name, words in given.items()
        if name not in (*_WRITTEN, "index")
        for word in ([words] if isinstance(words, str) else words if isinstance(words, (list, tuple)) else [])
        if isinstance(word, str)
    ]
    for place, file in enumerate(written):
        if file.is_file() and any(_contains(one, file) for one in read):
            raise UsageError(f"{file} is an input file: name another file to write.", ctx=ctx)
        if any(file.resolve() == other.resolve() for other in written[:place]):
            raise UsageError(f"Two results would be written to {file}: name two files.", ctx=ctx)


def _contains(path: Path, file: Path) -> bool:
    """Whether a path is this file, or a folder that it is in."""
    try:
        return file.samefile(path) or (path.is_dir() and path.resolve() in file.resolve().parents)
    except (OSError, ValueError):  # no path, but an id or a text
        return False


class ConnectedCommand(Command):
    """A command with the options of connection and log. They are not passed to its function: see `open_index`."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "epilog": _SHARED_HELP})
        self.params.extend(shared_parameters())

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Omit the shared options: `es-neardupe help connection` explains them."""
        for parameter in shared_parameters():
            parameter.hidden = True
        try:
            super().format_help(ctx, formatter)
        finally:
            for parameter in shared_parameters():
                parameter.hidden = False

    def invoke(self, ctx: Any) -> Any:
        with spoken(command_line(_options_of(self.params), ctx.params)), ExitStack() as stack:
            log = {one.name: ctx.params.pop(one.name) for one in _parameters_of(run_log.options)}
            login = {one.name: ctx.params.pop(one.name) for one in _parameters_of(connection.options)}
            run = run_log.begin(self.name or "", {**ctx.params, **login}, **log)
            run.connection, run.stack = login, stack
            stack.enter_context(connection.tuning_messages())
            return typer.core.TyperCommand.invoke(self, ctx)


def shared_parameters() -> list[Any]:
    """The options of connection and log."""
    return [*_parameters_of(connection.options), *_parameters_of(run_log.options)]


@cache
def _parameters_of(function: Callable[..., None]) -> list[Any]:
    """The parameters of a function as typer objects."""
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return [one for one in typer.main.get_command(app).params if one.name != "help"]


def _options_of(parameters: list[Any]) -> dict[str, str]:
    """Parameter -> option."""
    return {one.name: one.opts[0] for one in parameters if one.opts and one.opts[0].startswith("--")}


def _unwrapped(text: str) -> str:
    """A docstring with one line per paragraph, and one line for each indented example."""
    text = re.sub(r"(?<=\S)\n(?=\S)", " ", text.replace("``", "`"))
    return re.sub(r"\n\n(?=  es-neardupe|  \S+ .*es-neardupe)", "\n", text)


def command_line(options: Mapping[str, str], given: Mapping[str, Any]) -> CommandLine:
    """What messages of a command name: its options (parameter -> option) and their values (parameter -> value)."""
    values = {options[name]: value for name, value in given.items() if name in options and isinstance(value, str)}
    repeated = {name: values[name] for name in _REPEATED if values.get(name)}
    if "--url" in repeated:
        repeated["--url"] = _without_login(repeated["--url"])
    if repeated.get("--prefix") == DEFAULT_PREFIX:
        del repeated["--prefix"]
    return CommandLine(options, repeated)


def with_options(help: str, options: Mapping[str, str]) -> str:
    """A help text, which is fixed, with option names instead of the parameter names in backticks."""
    return _PARAMETER.sub(lambda match: options.get(match[1], match[0]), help)


def _without_login(url: str) -> str:
    """A URL without user name and password."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return "URL"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
