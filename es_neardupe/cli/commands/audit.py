"""``es-neardupe audit``: measure the recall and precision of an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName, Output
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import related_rows, rules_of_last_run, warn_of_boilerplate
from es_neardupe.cli.output import (
    ExitCode,
    check_output,
    print_json,
    print_table,
    progress_bars,
    say,
    show,
    warn,
    write_output,
)
from es_neardupe.commands.audit import audit as library
from es_neardupe.display_text import named, score_text
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.commands.audit.report import AuditReport, BandsAdvice, LostPairs, Recall, RecallPart


_REASONS = {
    "UNPROCESSED": ("a document is not enriched", "enrich", ""),
    "TOO_LARGE": ("a document was too large for keys", "enrich", "--all --max-chars N"),
    "FAILED": ("a document had no readable text", "enrich", "--check"),
    "CORRUPT": ("stored keys are unreadable, or not those of the text", "enrich", "--all"),
    "STALE": ("text changed since enrich", "enrich", ""),
    "BUCKET": ("skipped in a large bucket", "group", "--max-bucket N"),
    "BANDS": ("too few keys in common, by chance", "", ""),
}


@with_options_of(library)
def audit(
    index: IndexName,
    *,
    output: Output = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    A random sample is compared with all documents by their texts. Exit code 1 if a stored or verified pair is wrong.

    Examples:

      es-neardupe audit news

      es-neardupe audit news --sample 500 --min 0.9 --json
    """

    check_output(output)
    opened = open_index(index, prefix)
    with progress_bars() as progress:
        report = library(opened, progress=progress, **given)
    if as_json:
        print_json(report)
    if output is not None:
        write_output(output, report.table())
    elif not as_json:
        _show(report)
    _warn(report)
    if report.boilerplate.clusters:
        rules = rules_of_last_run(opened)
        left_out = rules is not None and rules.match.ignore_common is not None
        warn_of_boilerplate(
            report.index, report.boilerplate, group_options=None if left_out else "--ignore-common auto"
        )
    if report.denied:
        raise typer.Exit(ExitCode.FAILED)


def _show(report: AuditReport) -> None:
    show(
        f"{report.index}, scheme {report.scheme}: pairs at least {report.min:g} similar of "
        f"{report.sampled:,} of {counted(report.documents, 'document')}"
    )
    print_table(["pairs", "true", "found", "recall", "95 % interval"], _rows(report))
    print_table(["quality", "value"], list(_expectations(report)))
    lost = [one for one in report.lost if one.pairs]
    if lost:
        print_table(["reason for the loss", "pairs", "how to fix it"], [_lost(report, one) for one in lost])
        print_table(["lost", "similarity", "a", "b"], list(_examples(report, lost)))
    for one in report.wrong:
        both = " and ".join(named(document, len(report.indices) > 1) for document in (one.a, one.b))
        show(f"wrong: {both} are {score_text(one.actual)} similar, not {score_text(one.claimed)}")
    say(f"{report.seconds:.1f} s")


def _rows(report: AuditReport) -> Iterator[tuple[object, ...]]:
    yield _row("of the sample with all documents", report.recall)
    yield _row("  within the sample", report.within)
    for title, parts in (("tokens", report.lengths), ("script", report.scripts)):
        yield from (_part(title, one) for one in parts)
    if report.only_boilerplate is not None:
        yield _row("similar only because of boilerplate", report.only_boilerplate)


def _part(title: str, one: RecallPart) -> tuple[object, ...]:
    return _row(f"  {title} {one.name}", one.recall)


def _row(name: str, one: Recall) -> tuple[object, ...]:
    interval = "-" if one.low is None or one.high is None else f"{score_text(one.low)} to {score_text(one.high)}"
    return name, one.pairs, one.found, one.recall, interval


def _expectations(report: AuditReport) -> Iterator[tuple[str, object]]:
    yield f"detection probability of a pair exactly {report.min:g} similar", report.promised
    yield "expected recall of the bands for these pairs", report.expected
    yield "precision", report.precision
    if report.precision_without_boilerplate is not None:
        yield "  without boilerplate", report.precision_without_boilerplate
    yield "  verified pairs of texts", report.claims
    yield "  members of stored groups", report.members
    yield "  wrong according to the texts", report.denied
    if report.related is not None:
        yield from related_rows(report.related, "documents alone although they match another document")
    if (reviewed := report.reviewed) is not None:
        yield "precision as judged by reviewers", reviewed.precision
        yield f"  pairs at least {report.min:g} similar: same", reviewed.same
        yield "    different", reviewed.different
        yield "  less similar pairs: same", reviewed.below_same
        yield "    different", reviewed.below_different
        yield "  pairs on which reviewers disagree", reviewed.disputed
        yield "  pairs of texts that are no longer in the index", reviewed.gone


def _lost(report: AuditReport, one: LostPairs) -> tuple[object, ...]:
    reason, name, rest = _REASONS[one.reason.name]
    return reason, one.pairs, f"{command(name, report.index)} {rest}".rstrip() if name else "-"


def _examples(report: AuditReport, lost: list[LostPairs]) -> Iterator[tuple[object, ...]]:
    for one in lost:
        for pair in one.examples:
            yield one.reason.value, pair.similarity, *(named(end, len(report.indices) > 1) for end in (pair.a, pair.b))


def _warn(report: AuditReport) -> None:
    if not report.recall.pairs:
        warn("No document of the sample is in a true pair, so recall cannot be measured: use a larger --sample.")
    if report.denied:
        warn(
            f"{counted(report.denied, 'pair is', 'pairs are')} not as similar as stored or verified. Unless another "
            f"client wrote the fields, this is a bug: please report it with the "
            f"{'pair' if report.denied == 1 else 'pairs'} above."
        )
    if (advice := report.advice) is not None:
        warn(
            f"The bands find too few of these pairs. {counted(advice.bands, 'band')} of {counted(advice.rows, 'row')} "
            f"would find {score_text(advice.expected)} of them: run `{command('migrate', report.index)} --threshold "
            f"{report.min:g} --detection {advice.detection:g}{_other_options(advice)}`."
        )


def _other_options(advice: BandsAdvice) -> str:
    """Options for the settings of the index that differ from the defaults."""
    from es_neardupe.index.settings import Settings

    size = f"{advice.shingle}{advice.unit.letter}"
    shingle = f" --shingle {size}" if size != str(Settings.shingle) else ""
    return shingle + (f" --permutations {advice.permutations}" if advice.permutations != Settings.permutations else "")
