"""Pairs of documents that have chunks in common."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.options import DEFAULT_MAX_BUCKET
from es_neardupe.run_options import READ_DEFAULTS, ReadOptions, on_engine

if TYPE_CHECKING:
    from es_neardupe.commands.documents.report import DocumentsReport
    from es_neardupe.index.index import Index


By = Annotated[
    str,
    typer.Option("--by", metavar="FIELD", help="Field with the document that a chunk is from.", show_default=False),
]
TopPairs = Annotated[
    int, typer.Option("--top", min=1, help="Maximum number of pairs of documents shown, largest share first.")
]


@with_defaults(READ_DEFAULTS)
@on_engine
def documents(
    index: Index,
    *,
    by: By,
    measure: options.Measure = None,
    matching: options.MatchingName = None,
    passage: options.Passage = None,
    min: options.Minimum = None,
    top: TopPairs = 100,
    max_bucket: options.MaxBucket = DEFAULT_MAX_BUCKET,
    memory: options.Memory = None,
    **run: Unpack[ReadOptions],
) -> DocumentsReport:
    """List pairs of documents by the share of their chunks that match, for an index of chunks. Writes nothing.

    A chunk matches if its similarity by ``measure`` to a chunk of the other document is ``min`` (default: the threshold
    of the index) or more. All candidate pairs of chunks are verified, as by `pairs`. ``by`` is the field with the
    document that a chunk is from; a chunk with several values belongs to each of these documents, so they share it.

    Raises `SettingsError` as `pairs` does.

    >>> (pair,) = news.documents(by="date", min=0.9).pairs
    >>> pair.a.document[:10], pair.b.document[:10], pair.a.matching, pair.a.chunks
    ('2024-05-06', '2024-05-08', 1, 1)
    """
    from es_neardupe.candidates.detection import Detection
    from es_neardupe.candidates.fingerprints import read_fingerprints
    from es_neardupe.candidates.join import with_passages
    from es_neardupe.candidates.memory_limit import MemoryLimit
    from es_neardupe.candidates.spill_to_disk import scratch
    from es_neardupe.candidates.who_may_meet import ReadField
    from es_neardupe.commands.documents.report import DocumentsReport
    from es_neardupe.commands.documents.shares import chunks_of_documents, shared_texts_meet_all
    from es_neardupe.groups.rules import rules_of
    from es_neardupe.index.index import opened
    from es_neardupe.verification.criterion import match_criterion
    from es_neardupe.verification.match_rules import MatchRules
    from es_neardupe.verification.verified_pairs import verified_pairs

    progress = run["progress"]
    index = opened(index, texts=True)
    given = {"measure": measure, "matching": matching, "passage": passage, "min": min, "facts": ()}  # none decide
    match = match_criterion(index, MatchRules.of(index.settings).having(given), progress=progress)
    rules = rules_of(index, across=by, max_bucket=max_bucket)
    by = str(rules.across)
    rules = replace(rules, across=ReadField(by))  # dates as they are written
    limit = None if memory is None else MemoryLimit(memory)
    with scratch() as files:
        corpus = read_fingerprints(index, progress, rules, slices=run["slices"], limit=limit, files=files)
        found = verified_pairs(
            index,
            match,
            shared_texts_meet_all(corpus),
            rules=rules,
            limit=limit,
            progress=progress,
        )
    found.verifier.check_copies(progress)
    matches = match.matches(found.similarity)
    changed = found.verifier.documents.changed_or_deleted
    chunks = chunks_of_documents(corpus, found.classes.only(~changed))
    pairs, total = chunks.pairs(*found.linked(matches), top, progress)
    return DocumentsReport(
        index=index.name,
        by=by,
        measure=match.measure.label,
        min=match.min,
        detection=Detection.in_index(index, match.measure, match.min),
        weights=match.weights,
        documents=len(chunks.names),
        chunks=chunks.number,
        without=chunks.without,
        total=total,
        pairs=pairs,
        candidates=len(found.candidates),
        skipped=found.candidates.skipped,
        large_buckets=with_passages(index, found.corpus, found.classes, found.candidates.large),
        stale=int(changed.sum()),
        unprocessed=index.documents.count(index.target.stale()),
    )
