"""``load``: indexes the documents of files, with their fingerprints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.run_options import WRITE_DEFAULTS, WriteOptions, tunable
from es_neardupe.wording import command, option

if TYPE_CHECKING:
    from es_neardupe.commands.load.report import LoadReport
    from es_neardupe.incoming.matches import ScreenReport
    from es_neardupe.index.index import Index
    from es_neardupe.readers.files import Problem


IdField = Annotated[
    str | None, typer.Option("--id-field", metavar="FIELD", help="Field with the id.", show_default="id or _id")
]
TextField = Annotated[
    str | None,
    typer.Option(
        "--text-field", metavar="FIELD", help="Field of the files with the text.", show_default="as in the index"
    ),
]
RoutingField = Annotated[
    str | None,
    typer.Option("--routing-field", metavar="FIELD", help="Field with the routing value.", show_default="none"),
]
Replace = Annotated[bool, typer.Option("--replace", help="Overwrite documents that exist.")]
FollowLinks = Annotated[
    bool, typer.Option("--follow-links", help="Also read what symbolic links outside of the folder lead to.")
]
OnMatchOfLoad = Annotated[
    str | None,
    options.one_of(
        options.words_of(options.OnMatch),
        "--on-match",
        help="Compare each document with the index before it is written. One with a match is written into its group "
        "(mark), left out (skip), or written as any other (pass).",
        show_default="do not compare",
    ),
]
MinimumOfLoad = Annotated[
    float | None,
    typer.Option(
        "--min",
        parser=options.parse_fraction,
        metavar="FLOAT",
        help="With `on_match`: minimum similarity of a match, in (0, 1].",
        show_default="the threshold of the index",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first line that cannot be read.")]


@with_defaults(WRITE_DEFAULTS)
@tunable
def load(
    index: Index,
    paths: Sequence[str | Path] | Path,
    *,
    id_field: IdField = None,
    text_field: TextField = None,
    routing_field: RoutingField = None,
    replace: Replace = False,
    on_match: OnMatchOfLoad = None,
    min: MinimumOfLoad = None,
    report: ScreenReport | None = None,
    follow_links: FollowLinks = False,
    strict: Strict = False,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    on_problem: Callable[[Problem], None] = lambda problem: None,
    **run: Unpack[WriteOptions],
) -> LoadReport:
    """Index documents from files, with their keys.

    The files are JSON lines, CSV, TSV, Parquet or Arrow, or folders of them or of texts. The index must be initialised.

    ``paths`` are names, URLs that fsspec reads, or ``-`` for JSON lines on standard input; also one `Path`.

    The field ``text_field`` of the files becomes the first text field of the index. The value of ``routing_field``
    becomes the routing; the field stays in the document, unless it is ``_routing``. A document whose id is already in
    the index is skipped, or overwritten with ``replace``: loading twice changes nothing. A bad line is passed to
    ``on_problem`` and counted; with ``strict`` it raises `InputError`. Symbolic links that leave a folder, unless
    ``follow_links``, and other files in a folder of records are skipped, passed to ``on_problem`` and counted.
    ``on_match`` compares the documents with the index before they are written, see `screened`; ``report`` gets the
    matches. A document that was skipped because of one that was then not written is compared again. ``tune``: see
    `tunable`. A dry run returns its first ``show_requests`` write requests.

    >>> report = news.load(["docs/articles.jsonl"])
    >>> report.writes.written, report.writes.states["signed"], report.writes.states["short"]
    (9, 8, 1)
    """
    from es_neardupe.commands.load.records import LoadOptions, LoadRun, load_records
    from es_neardupe.index.index import opened_inline
    from es_neardupe.readers.files import check_paths, read_records
    from es_neardupe.readers.streams import Reading

    names = [str(path) for path in ([paths] if isinstance(paths, Path) else paths)]
    check_paths(names)
    if on_match is None and (min is not None or report is not None):
        raise SettingsError(f"{option('min')} and {option('report')} are for {option('on_match')}: give it too.")
    index = opened_inline(index, "load", texts=on_match is not None, writes=True)
    if replace and index.settings.versions is options.Versions.EXTERNAL:
        raise IndexUnusable(
            f"{option('replace')} would raise the versions of the documents of {index.name}, which another system "
            f"sets: write them with that system, then run `{command('enrich', index.name)}`."
        )
    reading = Reading(run["progress"])
    records = read_records(
        names,
        text_field=text_field or index.settings.fields[0],
        id_field=id_field,
        follow_links=follow_links,
        reading=reading,
    )
    how = LoadOptions(
        text_field=text_field,
        routing_field=routing_field,
        replace=replace,
        max_chars=max_chars,
        on_match=on_match,
        min=min,
        report=report,
    )
    loading = LoadRun(
        strict=strict,
        workers=run["workers"],
        batch=run["batch"],
        dry_run=run["dry_run"],
        show_requests=run["show_requests"],
        on_problem=on_problem,
        progress=run["progress"],
        reading=reading,
    )
    return load_records(index, records, how, loading)
