"""Wording of messages: counts in the singular or plural, names of parameters, and suggested commands.

A message is built from its parts and never changed afterwards, so names of indices and texts of documents in it stay
as they are. On the command line, a parameter is named as an option, and a suggested command contains the connection.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What messages name while a command of the command line runs."""

    options: Mapping[str, str] = field(default_factory=dict)
    """Parameter -> option of the command."""
    connection: Mapping[str, str] = field(default_factory=dict)
    """Option -> value, for the options of connection that the command was given."""


_current: list[CommandLine | None] = [None]
"""Of this process, since its threads make messages too; None: messages are for Python and HTTP."""


def current() -> CommandLine | None:
    """For whom messages are made now; see `spoken`."""
    return _current[-1]


@contextmanager
def spoken(on: CommandLine | None) -> Iterator[None]:
    """Messages that are made meanwhile are for this command line, or with None for Python and HTTP."""
    _current.append(on)
    try:
        yield
    finally:
        _current.pop()


@contextmanager
def connection_in_commands(included: bool) -> Iterator[None]:
    """Commands that are suggested meanwhile contain the options of connection only if ``included``."""
    on = _current[-1]
    with spoken(on if on is None or included else replace(on, connection={})):
        yield


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun, and with the words that agree with it: ``1 document``, ``2 documents``.

    ``many`` is the plural, if it is not ``one`` with an s: ``counted(n, "document has", "documents have")``.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def indices(names: Collection[str], one: str, many: str) -> str:
    """The names of indices with the words that agree with them: ``Index a has``, ``Indices a, b have``."""
    return f"Index {', '.join(names)} {one}" if len(names) == 1 else f"Indices {', '.join(names)} {many}"


def option(parameter: str) -> str:
    """The name of a parameter: ```min```, or on the command line ``--min``."""
    on = _current[-1]
    return f"`{parameter}`" if on is None else on.options.get(parameter, f"`{parameter}`")


def command(name: str, index: str, *, prefix: str | None = None) -> str:
    """A command to run with an index: ``es-neardupe enrich news``. On the command line, it can be pasted into a shell,
    and contains the options of connection that the current command was given. ``prefix``: another one than these."""
    on, own = _current[-1], {} if prefix is None else {"--prefix": prefix}
    if on is None:
        return " ".join(["es-neardupe", name, index, *(f"{word} {value}" for word, value in own.items())])
    words = [f"{word} {shlex.quote(value)}" for word, value in {**on.connection, **own}.items()]
    return " ".join(["es-neardupe", name, shlex.quote(index), *words])
