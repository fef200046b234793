"""``es-neardupe demo``: all steps on real texts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe.cli.commands.groups import show_groups
from es_neardupe.cli.commands.serve import check_installed, serve_pages
from es_neardupe.cli.commands.similar import show_similar
from es_neardupe.cli.connection import connect_to
from es_neardupe.cli.output import print_table, progress_bars, say, show
from es_neardupe.cli.serving import Serving
from es_neardupe.display_text import score_text
from es_neardupe.errors import InputError
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.index.index import Index
    from es_neardupe.index.settings import Settings
    from es_neardupe.readers.files import FileRecord
    from es_neardupe.server.client import Client


_MIT = "mit.LICENSE"
_WORDS = "apache license contributor patent grant"


def demo(
    *,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Server to use instead of a local one.", show_default=False)
    ] = None,
    index: Annotated[str, typer.Option(metavar="INDEX", help="Index that the demo creates.")] = "neardupe-demo",
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Your own JSON lines or CSV instead of licence texts.", show_default=False),
    ] = None,
    text_field: Annotated[str, typer.Option(metavar="FIELD", help="Field of your file with the text.")] = "text",
    threshold: Annotated[float, typer.Option(help="Minimum resemblance of near-duplicates.")] = 0.8,
    bulk: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only write the texts to a file, as lines of bulk requests.", dir_okay=False),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="At the end, serve the pages to review the groups, until Ctrl-C.")
    ] = False,
) -> None:
    """Run all steps on real texts: start a server, enrich an index, group it, search it.

    Examples:

      es-neardupe demo --file articles.jsonl --text-field body

      es-neardupe demo --bulk licences.ndjson
    """
    from es_neardupe.index.index import Index
    from es_neardupe.index.settings import Settings

    if serve:
        check_installed()
    records = _records(file, text_field)
    if bulk is not None:
        _write_bulk(bulk, records)
        show(f"{counted(len(records), 'document')} written to {bulk}.")
        return
    client = _client(url)
    made = Index(index, client)
    try:
        _run(made, records, Settings((text_field,), threshold=threshold), words=None if file else _WORDS)
        if serve:
            serve_pages(made, Serving())
    finally:
        client.close()


def _records(file: str | None, text_field: str) -> list[FileRecord]:
    from es_neardupe.commands.demo import file_records, licence_records

    records = licence_records() if file is None else file_records(file)
    without = next((record for record in records if text_field not in record.source), None)
    if without is not None:
        raise InputError(f"{without.place} has no field {text_field!r}: name the one with the text with --text-field.")
    if len(records) < 2:
        raise InputError(f"{file} has {counted(len(records), 'document')}: a demo needs two or more.")
    return records


def _write_bulk(file: Path, records: list[FileRecord]) -> None:
    """Write two lines for each document, as bulk requests of any client have them."""
    from es_neardupe.folders import replacing

    with replacing(file) as lines:
        for record in records:
            head = json.dumps({"index": {"_id": str(record.id)}})
            lines.write(f"{head}\n{json.dumps(record.source, ensure_ascii=False)}\n")


def _client(url: str | None) -> Client:
    from es_neardupe.local_server import control

    def local() -> str:
        running = control.running()
        return (running[0] if running else control.start(say=say)).url

    return connect_to(url=url, local_url=local)


def _run(index: Index, records: list[FileRecord], settings: Settings, words: str | None) -> None:
    from es_neardupe.commands.demo import create_index, index_plain, search_hits
    from es_neardupe.commands.enrich import enrich
    from es_neardupe.commands.group import group
    from es_neardupe.commands.groups import groups
    from es_neardupe.commands.init import init
    from es_neardupe.commands.load.records import LoadRun, load_records
    from es_neardupe.commands.similar import similar
    from es_neardupe.commands.stats import stats
    from es_neardupe.index.index import opened

    started = time.monotonic()
    (field,) = settings.fields
    old, new = records[::2], records[1::2]
    _step(
        1,
        f"An index without keys: {counted(len(old), 'document')} in {index.name} on {index.client.server} at "
        f"{index.client.url}",
    )
    create_index(index, field)
    index_plain(index, old)
    _step(2, "init: add fields to the mapping, enrich: add keys to every document")
    prepared = init(index, settings)
    with progress_bars() as progress:
        enriched = enrich(index, progress=progress)
    show(
        f"{counted(enriched.writes.written, 'document')} enriched in {enriched.seconds:.1f} s; "
        f"{counted(prepared.bands, 'key each finds', 'keys each find')} a pair exactly {settings.threshold:g} similar "
        f"with probability {score_text(prepared.detection)}"
    )
    _step(3, "load: index new documents with their keys")
    found = opened(index)
    with progress_bars() as progress:
        loaded = load_records(found, new, run=LoadRun(progress=progress))
    show(f"{counted(loaded.writes.written, 'document')} loaded in {loaded.seconds:.1f} s")
    _step(4, "group: find candidates by keys, verify every pair on its texts, write the groups")
    with progress_bars() as progress:
        grouped = group(index, progress=progress)
    show(
        f"{counted(grouped.pairs.candidates, 'candidate pair')} verified, {grouped.pairs.matches:,} at least "
        f"{grouped.rules.min:g} similar, {counted(grouped.pairs.copies, 'exact copy', 'exact copies')}; "
        f"{grouped.seconds:.1f} s"
    )
    if grouped.pairs.skipped:
        show(
            f"{counted(grouped.pairs.skipped, 'comparison was', 'comparisons were')} skipped, because too many texts "
            f"share a key (see --max-bucket of group)"
        )
    totals = stats(index)
    show(
        f"{counted(totals.scope.documents, 'document')}: {totals.groups.grouped:,} in "
        f"{counted(totals.groups.count, 'group')} of two or more, {totals.scope.documents - totals.groups.grouped:,} "
        f"alone; every member is at least {score_text(grouped.groups.min_similarity or 1)} similar to the principal of "
        f"its group"
    )
    _step(5, "groups: the ten largest")
    largest = groups(index, top=10, fields=None)
    show_groups(largest, members=1)
    ids = [record.id for record in records]
    principal = largest[0].principal if largest else None
    probe = _MIT if _MIT in ids else principal.id if principal else ids[0]
    _step(6, f"similar: the near-duplicates of {probe}")
    show_similar(similar(index, id=probe, top=5, fields=None))
    _step(7, "An ordinary search, without and with collapse on the group")
    example = records[ids.index(principal.id if principal else probe)]
    query = words or " ".join(str(example.source[field]).split()[:12])
    for collapse in (False, True):
        hits = list(search_hits(index, field, query, found.fields.group, collapse=collapse))
        how = f'with "collapse": {{"field": "{found.fields.group}"}}' if collapse else "without collapse"
        title = f"{query!r}, {how}: {counted(len({hit.group for hit in hits}), 'group')} in {counted(len(hits), 'hit')}"
        print_table(["id", "title", "group"], [(hit.id, hit.title, hit.group) for hit in hits], title=title)
    show(f"Finished in {time.monotonic() - started:.0f} s. Next:")
    for suggested in (
        command("stats", index.name),
        f"{command('groups', index.name)} --min-size 5",
        f"{command('similar', index.name)} --text 'any text'",
        f"{command('pairs', index.name)} --min 0.95 --top 20",
        command("serve", index.name),
        command("doctor", index.name),
        "es-neardupe node stop",
    ):
        show(f"  {suggested}")


def _step(number: int, text: str) -> None:
    show("")
    show(f"{number}. {text}")
