"""``es-neardupe documents``: pairs of documents that have chunks in common."""

from __future__ import annotations

from typing import Any

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName, Output
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import (
    match_range,
    say_measure,
    warn_of_buckets,
    warn_of_detection,
    warn_of_stale,
    warn_of_unprocessed,
)
from es_neardupe.cli.output import check_output, print_json, print_table, progress_bars, say, warn, write_output
from es_neardupe.commands.documents import documents as library
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import counted


@with_options_of(library)
def documents(
    index: IndexName,
    *,
    output: Output = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Examples:

      es-neardupe documents chunks --by doc_id

      es-neardupe documents chunks --by doc_id --min 0.6 --output documents.parquet
    """

    check_output(output)
    with progress_bars() as progress:
        found = library(open_index(index, prefix), progress=progress, **given)
    if as_json:
        print_json(found)
    if output is not None:
        write_output(output, found.table())
    elif not as_json and found.pairs:
        rows = [
            (
                a.document,
                f"{a.matching} of {a.chunks}",
                a.word_share,
                b.document,
                f"{b.matching} of {b.chunks}",
                b.word_share,
            )
            for a, b in ((one.a, one.b) for one in found.pairs)
        ]
        print_table(["a", "chunks", "of words", "b", "chunks", "of words"], rows)
    if not as_json:
        documents = f"{counted(found.documents, 'document')} of {counted(found.chunks, 'chunk')}"
        say(f"{len(found.pairs):,} of {counted(found.total, 'pair')} of documents shown, from {documents}")
        say(f"Chunks match if they are {match_range(found.measure, found.min, 1.0)}.")
    say_measure(found.measure, found.weights, given=given["measure"])
    warn_of_detection(found.detection)
    warn_of_buckets(found.skipped, found.large_buckets)
    if found.without:
        warn(f"{counted(found.without, 'chunk has', 'chunks have')} no value of {found.by}: left out.")
    warn_of_stale(found.stale, index, noun="chunk")
    warn_of_unprocessed(found.unprocessed, index, missing_in="pair", noun="chunk")
