"""``stats``: what an index contains: documents by state, schemes, groups; on request large buckets and bytes.

All numbers are counted by the server, so neither memory nor the number of requests grows with the number of documents.
Only groups are counted in pages: one for every few thousand groups of two or more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from es_neardupe.commands.stats.report import StatsReport
    from es_neardupe.index.index import Index


LargestBuckets = Annotated[
    int | None,
    typer.Option("--buckets", min=1, max=100, help="Also show this many of the band keys that most documents share."),
]
DiskUsage = Annotated[
    bool, typer.Option("--disk-usage", help="Also measure the disk usage of the fields, which reads the whole index.")
]


def stats(
    index: Index,
    *,
    buckets: LargestBuckets = None,
    disk_usage: DiskUsage = False,
) -> StatsReport:
    """Show what is in an index: documents by state, schemes, groups and their sizes.

    ``buckets``: number of the largest buckets to report. They are searched among the keys of 10,000 random documents.
    ``disk_usage`` makes the server read all files of the index. Raises `SettingsError` for a number out of range.

    >>> report = news.stats()
    >>> report.scope.documents, report.scope.unprocessed, report.groups.count, report.groups.largest
    (9, 0, 1, 4)
    """
    from es_neardupe.commands.stats.counts import bytes_per_document, documents_in_scope, largest_buckets
    from es_neardupe.commands.stats.report import GroupSizes, StatsReport
    from es_neardupe.groups.sizes import group_sizes
    from es_neardupe.index.index import opened

    index = opened(index)
    scope = documents_in_scope(index)
    return StatsReport(
        index=index.name,
        indices=index.target.indices,
        sidecars=index.storage.sidecars,
        scheme=index.scheme_id,
        agree=index.settings.scheme.agree,
        fields=index.settings.fields,
        threshold=index.settings.threshold,
        scope=scope,
        groups=GroupSizes.of(size for _, size in group_sizes(index)),
        buckets=None if buckets is None else largest_buckets(index, buckets),
        bytes_per_document=bytes_per_document(index, scope.documents) if disk_usage else None,
    )
