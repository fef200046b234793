"""Commands with the options of library functions, written only there."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from es_neardupe.cli.derived import options_for, with_options_of
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.run_options import READ_DEFAULTS, ReadOptions

Names = Annotated[Sequence[str], typer.Option("--name", help="A name. Repeatable.")]
Numbers = Annotated[
    Sequence[int] | None,
    typer.Option("--numbers", metavar="N,...", parser=lambda text: [int(one) for one in text.split(",")]),
]
Text = Annotated[str, typer.Option("--text", help="A text.")]


@with_defaults(READ_DEFAULTS)
def library(index: object, *, names: Names = (), numbers: Numbers = None, **run: Unpack[ReadOptions]) -> None:
    """Do it. Then stop.

    For Python only.
    """


def other(*, text: Text = "", names: Names = ("a",)) -> None:
    """Do something else."""


def given_to(*words: str) -> dict[str, Any]:
    """What a command with the options of `library` gets for these words."""
    got: dict[str, Any] = {}

    @with_options_of(library)
    def command(index: str, first: Text = "", *, last: Text = "z", **given: Any) -> None:
        """It is a test."""
        got.update(given, index=index, first=first, last=last)

    app = typer.Typer(add_completion=False)
    app.command()(command)
    done = CliRunner().invoke(app, [*words])
    assert done.exit_code == 0, done.output
    return got


def test_options_are_passed_on() -> None:
    """A callback such as `progress` is no option, and a list that is not given has the default of the library."""
    run = {"slices": None, "engine": None, "insecure_engine": False}
    assert given_to("i") == {"index": "i", "first": "", "last": "z", "names": (), "numbers": None, **run}
    found = given_to("i", "--name", "a", "--name", "b", "--numbers", "3,4", "--slices", "2")
    assert (found["names"], found["numbers"], found["slices"]) == (["a", "b"], [3, 4], 2)


def test_order_and_summary() -> None:
    """Own positional parameters come first, own keywords last. The help begins with the summary of the library."""

    @with_options_of(other, library)
    def command(index: str, first: int = 1, *, last: int = 2, text: int = 3, **given: Any) -> None:
        """In one go.

        Example:
        """

    names = ["index", "first", "names", "numbers", "slices", "engine", "insecure_engine", "last", "text"]
    assert list(inspect.signature(command).parameters) == names
    assert inspect.signature(command).parameters["text"].default == 3, "its own option"
    assert command.__doc__ == "Do it. Then stop. In one go.\n\nExample:"

    @with_options_of(library)
    def with_paragraph() -> None:
        """
        In one go.
        """

    assert with_paragraph.__doc__ == "Do it. Then stop.\n\nIn one go."

    @with_options_of(library, summary=False)
    def without() -> None:
        """In one go."""

    assert without.__doc__ == "In one go."


def test_options_for_one_of_several_functions() -> None:
    assert options_for(other, {"text": "a", "numbers": [1]}) == {"text": "a"}
