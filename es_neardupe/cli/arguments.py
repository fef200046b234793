"""Arguments and options that only the command line has, shared by several commands."""

from __future__ import annotations

from typing import Annotated

import typer

from es_neardupe.cli.completion import complete_index
from es_neardupe.options import FEATURES

__all__ = ["AsJson", "FeatureSources", "IndexName", "TextFile"]

IndexName = Annotated[
    str,
    typer.Argument(
        metavar="INDEX",
        help="Index, alias, data stream or pattern.",
        show_default=False,
        autocompletion=complete_index,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
TextFile = Annotated[
    str | None, typer.Option("--file", metavar="FILE", help="File with a text, or -.", show_default=False)
]
FeatureSources = Annotated[list[str] | None, FEATURES]
"""As `es_neardupe.options.Features`, which typer cannot take."""
