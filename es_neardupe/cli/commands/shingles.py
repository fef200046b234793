"""``es-neardupe shingles``: every step from one text to its keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.output import print_json, print_table, show, warn
from es_neardupe.commands.bands import bands
from es_neardupe.commands.shingles import shingles as library
from es_neardupe.commands.shingles import shingles_of
from es_neardupe.display_text import beginning
from es_neardupe.errors import InputError
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.commands.shingles.report import ShinglesReport


_WAYS = "FILE (- is standard input), or INDEX ID"
_TOKEN, _WORDS, _PREPARED = 30, 60, 2000
"""Characters shown of a token, of a shingle and of a prepared text."""


@with_options_of(bands, summary=False)
def shingles(
    what: Annotated[list[str], typer.Argument(metavar="WHAT...", help=f"{_WAYS}.", show_default=False)],
    shingle: options.Shingle = None,
    *,
    sample_mod: options.SampleMod = 0,
    clean: options.CleanTexts = None,
    mask: options.MaskTexts = None,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of rows shown of each table.")] = 20,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Show how the keys of one text are made: tokens, shingles, hashes, minima and bands. A file needs no server.

    Examples:

      es-neardupe shingles letter.txt --shingle 3

      es-neardupe shingles news 1001 --json
    """
    from es_neardupe.index.settings import Settings
    from es_neardupe.readers.files import read_text_file

    chosen = {**given, "shingle": shingle, "sample_mod": sample_mod or None, "clean": clean, "mask": mask}
    if len(what) == 1:
        settings = Settings.chosen(("text",), **chosen)
        _check_exists(what[0])
        report = shingles_of(read_text_file(what[0]), settings.scheme, name=what[0])
    elif len(what) == 2:
        if named := [name for name, value in chosen.items() if value is not None]:
            raise typer.BadParameter(f"--{named[0].replace('_', '-')} is for a file: an index has its scheme.")
        report = library(open_index(what[0], prefix), what[1])
    else:
        raise typer.BadParameter(f"Give {_WAYS}: 1 or 2 words, not {len(what)}.")
    if as_json:
        values = vars(report).items()  # the lists of a long text are written as they are converted
        print_json({name: iter(value) if isinstance(value, tuple) else value for name, value in values})
        return
    _show(report, top)
    if report.stored is not None:
        _show_stored(report, what[0])


def _check_exists(name: str) -> None:
    if name != "-" and not Path(name).exists():
        raise InputError(f"File {name!r} does not exist. One argument is a file; for a document, give INDEX ID.")


def _show(report: ShinglesReport, top: int) -> None:
    from es_neardupe.keys.unit import Unit, shingle_text

    settings, words = report.settings, report.unit is Unit.WORD
    text = f"its {report.unit.value}s"
    size = shingle_text(int(settings["shingle"]), report.unit)
    show(
        f"Scheme {report.scheme}: shingles of {size}, {counted(int(settings['permutations']), 'slot')}, "
        f"{counted(int(settings['bands']), 'band')} of {counted(int(settings['rows']), 'row')}"
    )
    tokens, found = counted(len(report.tokens), "token"), counted(len(report.shingles), "shingle")
    show(f"State {report.state.value}: {tokens}, {found}, {report.features:,} different")
    if report.prepared is not None:
        show("Prepared text, which the keys are made of:")
        show(beginning(report.prepared, _PREPARED))
    if not report.tokens:
        show("A text without tokens has no keys.")
        return
    show(f"Content hash {report.content}")
    rows: Iterable[Sequence[object]] = (
        (number, beginning(token.text, _TOKEN), token.hash, *(_of_shingle(report, number) if words else ()))
        for number, token in enumerate(report.tokens)
    )
    columns = ["number", "token", "hash of the token"]
    if words:
        columns += ["shingle that begins here", "hash of the shingle"]
    _table("Tokens and shingles" if words else "Tokens", columns, rows, len(report.tokens), top)
    if not words:
        rows = ((number, *_of_shingle(report, number)) for number in range(len(report.shingles)))
        _table("Shingles", ["number", f"{report.unit.value}s", "hash of the shingle"], rows, len(report.shingles), top)
    rows = (
        (number, slot.minimum, slot.byte, slot.shingle, _words(report, slot.shingle))
        for number, slot in enumerate(report.slots)
    )
    _table("Signature", ["slot", "minimum", "byte", "shingle", text], rows, len(report.slots), top)
    octets = [slot.byte for slot in report.slots]
    rows = (
        (number, f"{band.slots[0]} to {band.slots[1] - 1}", " ".join(map(str, octets[slice(*band.slots)])), band.key)
        for number, band in enumerate(report.bands)
    )
    _table("Band keys", ["band", "slots", "bytes", "key"], rows, len(report.bands), top)
    if report.samples is not None:
        rows = (
            (one.key, "", "", "in a part that is left out")
            if one.shingle is None
            else (one.key, report.shingles[one.shingle].hash, one.shingle, _words(report, one.shingle))
            for one in report.samples
        )
        title = f"Sampled keys: shingles whose hash is divisible by {int(settings['sample_mod']):,}"
        _table(title, ["key", "hash of the shingle", "shingle", text], rows, len(report.samples), top)


def _of_shingle(report: ShinglesReport, number: int) -> tuple[str, str]:
    """Words and hash of the shingle that begins with a token; nothing for one of the last tokens."""
    return (_words(report, number), report.shingles[number].hash) if number < len(report.shingles) else ("", "")


def _words(report: ShinglesReport, shingle: int) -> str:
    return beginning(report.words(shingle), _WORDS)


def _table(title: str, columns: list[str], rows: Iterable[Sequence[object]], total: int, top: int) -> None:
    """Print the first rows, and the number of the others."""
    print_table(columns, islice(rows, top), title=title)
    if total > top:
        show(f"{total - top:,} more: raise --top, or use --json.")


def _show_stored(report: ShinglesReport, index: str) -> None:
    """Say whether the stored keys are those of the current text."""
    assert report.stored is not None
    if report.stored.equal:
        show("The stored keys are equal to these.")
    elif report.stored.scheme is None:
        warn(f"Document {report.name} has no keys, or changed since it got them: run `{command('enrich', index)}`.")
    else:
        how = "--check" if "content" in report.stored.differing else "--all"
        warn(
            f"The stored keys are not those of the current text ({', '.join(report.stored.differing)} differ): "
            f"run `{command('enrich', index)} {how}`."
        )
