"""Results of ``es-neardupe duplicates`` as tables, JSON and lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from es_neardupe.cli.output import print_lines, print_table, printable, say, show, warn
from es_neardupe.commands.duplicates.request_model import MAX_GROUP_SIZE
from es_neardupe.commands.duplicates.results import (
    ContentStageReport,
    DocumentPair,
    DuplicatesReport,
    GroupsOfPairs,
    OverlapsStageReport,
    PairsStageReport,
)
from es_neardupe.display_text import named, range_text, score_text
from es_neardupe.records import Address
from es_neardupe.wording import counted

_MAX_GROUPS = 5
"""Maximum number of skipped groups shown; --json has all of the report."""

_MAX_VALUE = 60
"""Maximum characters of a value in a table; --json has the whole value."""

Result = PairsStageReport | ContentStageReport | OverlapsStageReport


def show_report(report: DuplicatesReport, top: int) -> None:
    """Print each stage: at most ``top`` rows, their total number, and the diagnostics."""
    several = len(report.indices) > 1
    for name, result in report.stages.items():
        if isinstance(result, PairsStageReport):
            _show_pairs(name, result, top, several)
        elif isinstance(result, ContentStageReport):
            _show_content(name, result, top, several)
        else:
            _show_overlaps(name, result, top, several)
    if report.groups is not None:
        _show_groups(report.groups)


def _show_groups(groups: GroupsOfPairs) -> None:
    written = f"{groups.writes.written:,} {'to be written (dry run)' if groups.dry_run else 'written'}"
    minimum = "" if groups.min_similarity is None else f", minimum similarity {score_text(groups.min_similarity)}"
    show(f"{groups.prefix}: {counted(groups.count, 'group')} with {counted(groups.grouped, 'document')}{minimum}")
    show(
        f"{counted(groups.documents, 'document')}: {groups.grouped:,} in groups, {groups.alone:,} alone, "
        f"{groups.changed:,} changed or deleted; {written}, {groups.writes.unchanged:,} unchanged"
    )
    show(f"Pairs of members below the minimum: {groups.pairs_below:,}; not compared: {groups.pairs_not_compared:,}")


def _show_pairs(name: str, result: PairsStageReport, top: int, several: bool) -> None:
    shown = list(islice(result.pairs, top))
    columns = ["a", "b", "similarity", *(f"similarity {number}" for number in range(2, result.validations + 1))]
    rows = [(named(one.a, several), named(one.b, several), *(one.similarities or [one.similarity])) for one in shown]
    if any(one.explanation for one in shown):
        columns.append("explanation")
        rows = [(*row, one.explanation) for row, one in zip(rows, shown, strict=True)]
    if rows:
        print_table(columns, rows, title=name)
    show(
        f"{name}: {counted(len(result.pairs), 'pair')}, {len(shown):,} of them shown"
        + _more(len(result.pairs), len(shown))
    )
    steps = [(heading if place == 0 else "", what, _number(value)) for heading, place, what, value in _steps(result)]
    print_table(["step", "diagnostic", "value"], steps)


def _more(total: int, shown: int) -> str:
    return "" if total == shown else ": raise --top, or use --pairs-only or --output"


def _steps(result: PairsStageReport) -> Iterator[tuple[str, int, str, Any]]:
    for heading, counts in result.diagnostics.labelled().items():
        for place, (what, value) in enumerate(counts.items()):
            yield heading.partition(" using ")[0], place, what, value


def _number(value: object) -> object:
    if isinstance(value, list):
        return range_text(*value)
    return f"{value:,.3f}" if isinstance(value, float) else value


def _show_content(name: str, result: ContentStageReport, top: int, several: bool) -> None:
    documents = result.documents[:top]
    columns = list(dict.fromkeys(field for one in documents for field in one["fields"]))
    rows = [
        (
            named(Address(one["index"], one["id"]), several),
            *(_short(one["fields"].get(field, "-")) for field in columns),
        )
        for one in documents
    ]
    if rows:
        print_table(["document", *columns], rows, title=name)
    show(f"{name}: {counted(len(result.documents), 'document')}, {len(documents):,} of them shown")


def _show_overlaps(name: str, result: OverlapsStageReport, top: int, several: bool) -> None:
    pairs = result.pairs[:top]
    rows = [
        (named(one.a, several), named(one.b, several), one.similarity, len(one.overlaps.blocks), one.overlaps.words)
        for one in pairs
    ]
    if rows:
        print_table(["a", "b", "similarity", "blocks", "words"], rows, title=name)
    show(f"{name}: {counted(len(result.pairs), 'pair')}, {len(pairs):,} of them shown; --json has the blocks")


def warn_of_losses(report: DuplicatesReport) -> None:
    """Warn of documents and pairs that are not in the results, or perhaps are not."""
    for warning in report.warnings:
        warn(warning)
    for name, result in report.stages.items():
        for count, what in _losses(result):
            if count:
                warn(f"{name}: {what}: {count:,}.")
        if isinstance(result, PairsStageReport) and not result.diagnostics.hashing.documents:
            warn(f"{name}: no document is in scope: the query matches nothing, or the index is empty.")
        if isinstance(result, PairsStageReport) and result.skipped_groups:
            _warn_of_groups(name, result)


def _losses(result: Result) -> list[tuple[int, str]]:
    if isinstance(result, ContentStageReport):
        return [
            (result.cut, "values cut at their maxValueLength"),
            (result.not_read, "documents beyond the limit of the request"),
            (result.missing, "documents deleted meanwhile"),
        ]
    if isinstance(result, OverlapsStageReport):
        return [
            (result.not_compared, "pairs beyond the limit of the request"),
            (result.too_long, "pairs with a text too long for a comparison word by word"),
            (result.missing, "pairs with a document deleted meanwhile"),
        ]
    hashing, validations = result.diagnostics.hashing, result.diagnostics.validations
    return [
        (hashing.without_fingerprint or 0, "documents without fingerprint, in no pair"),
        (hashing.without_features, "documents without features, in no pair"),
        (sum(one.changed_or_deleted for one in validations), "documents deleted or changed, in no pair"),
    ]


def _warn_of_groups(name: str, result: PairsStageReport) -> None:
    """Show the features that made no pairs because too many documents share them."""
    grouping = result.diagnostics.grouping
    warn(
        f"{name}: {counted(grouping.skipped, 'group')} of more than {grouping.max_group:,} documents made no pairs; "
        f"{counted(grouping.skipped_comparisons, 'comparison')} skipped. The largest:"
    )
    for group in result.skipped_groups[:_MAX_GROUPS]:
        feature = "a feature" if group.example is None else f"'{_short(group.example)}'"
        say(f"  {counted(group.size, 'document shares', 'documents share')} {feature}")
    more = "More are in --json. " * (grouping.skipped > _MAX_GROUPS)
    rarer = "group by rarer features."
    hint = f"Raise maxHashGroupSize, or {rarer}" if grouping.max_group < MAX_GROUP_SIZE else rarer.capitalize()
    say(f"  {more}{hint}")


def _short(value: object) -> str:
    text = printable(", ".join(map(str, value)) if isinstance(value, list) else value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."


def duplicates_json(report: DuplicatesReport) -> dict[str, Any]:
    """The report as the documented JSON. Pairs are an iterator, because a list of records would take too much
    memory."""
    return {
        "index": report.index,
        "indices": report.indices,
        "seconds": report.seconds,
        "stages": {name: _result_json(one) for name, one in report.stages.items()},
        "groups": report.groups,
        "warnings": report.warnings,
    }


def _result_json(result: Result) -> dict[str, Any]:
    if isinstance(result, PairsStageReport):
        return {
            "pairs": map(_pair_json, result.pairs),
            "diagnostics": result.diagnostics.labelled(),
            "skipped_groups": [
                {"size": one.size, "example": one.example, "documents": one.documents} for one in result.skipped_groups
            ],
        }
    if isinstance(result, ContentStageReport):
        return {
            "documents": result.documents,
            "values_cut": result.cut,
            "documents_missing": result.missing,
            "documents_not_read": result.not_read,
        }
    return {
        "overlaps": [
            {
                "pair": [one.a, one.b],
                "similarity": one.similarity,
                "words": one.overlaps.words,
                "blocks": one.overlaps.blocks,
                "html": [one.overlaps.html_a, one.overlaps.html_b],
            }
            for one in result.pairs
        ],
        "pairs_missing": result.missing,
        "pairs_too_long": result.too_long,
        "pairs_not_compared": result.not_compared,
    }


def _pair_json(pair: DocumentPair) -> dict[str, Any]:
    found: dict[str, Any] = {"pair": [pair.a, pair.b], "similarity": pair.similarity}
    if pair.similarities:
        found["similarities"] = pair.similarities
    if pair.explanation is not None:
        found["explanation"] = pair.explanation
    return found


def print_pairs(result: PairsStageReport) -> None:
    """Print each pair as a line of JSON."""
    print_lines(map(_pair_json, result.pairs))
