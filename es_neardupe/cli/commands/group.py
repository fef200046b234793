"""``es-neardupe group``: find groups of near-duplicates and write them into the documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, FailuresFile, IndexName
from es_neardupe.cli.connection import open_index, resumable
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.left_documents import fail_on_left
from es_neardupe.cli.messages import (
    match_range,
    outcome_rows,
    related_rows,
    say_common,
    say_measure,
    say_next,
    say_tuning,
    show_first,
    warn_of_boilerplate,
    warn_of_buckets,
    warn_of_corrupt,
    warn_of_detection,
    warn_of_stale,
    warn_of_texts,
    warn_of_unprocessed,
)
from es_neardupe.cli.output import ask, check_output, print_json, print_table, progress_bars, say, show, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.group import group as library
from es_neardupe.options import DEFAULT_PREFIX, Linkage
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.candidates.who_may_meet import ReadField
    from es_neardupe.commands.group.report import GroupReport
    from es_neardupe.index.index import Index
    from es_neardupe.verification.facts import GroupFacts
    from es_neardupe.verification.match_rules import MatchRules


@with_options_of(library)
def group(
    index: IndexName,
    *,
    max_rate: options.MaxRate = None,
    max_load: options.MaxLoad = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    failures: FailuresFile = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Every pair is verified on the current texts. Rules that are not given are taken from the last run, or else from the
    defaults. If the rules are those of the last run, only documents that changes can affect are processed.

    Examples:

      es-neardupe group news

      es-neardupe group news --min 0.9 --dry-run

      es-neardupe group news --measure containment --min 0.9

      es-neardupe group news --principal oldest --within language --window published:30

      es-neardupe group news --default-rules
    """

    check_output(failures)
    found = open_index(index, prefix, max_rate=max_rate, max_load=max_load)
    if given["break_lease"] and not yes and not given["dry_run"]:
        _confirm_break(found)
    with resumable(), progress_bars() as progress:
        report = library(found, progress=progress, **given)
    result(report)
    if as_json:
        print_json(report)
    else:
        _show_groups(report)
        show_first(report.requests)
    _warn_of_groups(report, given["measure"])
    if report.scope.written_since_enrich and not report.scope.stale:
        _warn_of_written(report.index, report.scope.written_since_enrich)
    writes = report.writes
    fail_on_left(failures, writes, writes.mirrored, evidence=report.evidence, for_changed="run enrich and group")


def _confirm_break(index: Index) -> None:
    """Ask whether to delete the lease of another run, if there is one."""
    from es_neardupe.index.index import opened
    from es_neardupe.index.runs.lease import holder

    if run := holder(opened(index)):
        question = f"Delete the lease of {run}? If that run is alive, it stops before its next write."
        ask(question, abort=True)


def _warn_of_written(index: str, number: int) -> None:
    """Warn of documents that were written since the last ``enrich``."""
    these = counted(number, "document was", "documents were")
    texts = "its text has" if number == 1 else "their texts have"
    warn(f"{these} written since the last enrich: if {texts} changed, run `{command('enrich', index)}`.")


def _show_groups(report: GroupReport) -> None:
    scope, groups = report.scope, report.groups
    show(f"Rules: {report.rules}.")
    print_table(
        [f"{report.index}, scheme {report.scheme}", "whole index"],
        [
            ("enriched documents", scope.documents),
            (f"  in {counted(groups.count, 'group')}", groups.grouped),
            ("  alone", groups.alone),
            *related_rows(groups.related, "    although they match another document"),
            *([("documents not enriched", scope.unprocessed)] if scope.unprocessed else []),
            ("largest group", groups.largest),
            ("minimum similarity to a principal", groups.min_similarity),
        ],
    )
    print_table(
        ["this run", "value"], [("documents examined", scope.affected), *(_run(report) if scope.affected else ())]
    )
    examined = "Examined all documents" if scope.whole else "Examined only what changed"
    say(f"{examined}: {scope.reason}. {report.seconds:.1f} s")
    if report.evidence is not None:
        kept = report.evidence
        say(
            f"Evidence in {kept.index}: {counted(kept.pairs, 'pair')}; "
            f"{kept.written:,} written, {kept.decided_again:,} decided again, {kept.removed:,} removed, "
            f"{kept.left_out:,} skipped."
        )
        if kept.large:
            large = counted(kept.large, "new pair is", "new pairs are")
            repeat = counted(kept.without_passages, "repeats", "repeat")
            say(
                f"{large} of large texts, more than 100,000 words together: describing one can take a second. {repeat} "
                f"too much for jaccard and containment."
            )
    say_tuning(report.tuned)
    few = _finds_few(report)
    if groups.count or report.dry_run or not few:
        say_next(command("groups", report.index), report.dry_run)
    if few:
        say(
            f"{groups.grouped:,} of {scope.documents:,} documents have near-duplicates by these keys and rules. "
            f"`{command('distribution', report.index)}` tries every preset on a sample."
        )


def _run(report: GroupReport) -> Iterator[tuple[str, int | float | None]]:
    """Rows about the pairs and documents of a run that examined at least one document."""
    scope, pairs, groups, writes = report.scope, report.pairs, report.groups.looked_at, report.writes
    decided = report.decisions
    yield from outcome_rows(writes, dry_run=report.dry_run)
    yield "  unchanged", writes.unchanged
    yield "  changed or deleted meanwhile", writes.conflicts + writes.deleted + scope.untouched
    yield "  in no group: text changed since enrich", scope.stale
    yield "  in no group: unreadable keys", scope.corrupt
    yield "exact copies", pairs.copies
    yield "candidate pairs, all verified", pairs.candidates
    yield f"  {match_range(report.rules.measure, report.rules.min, report.rules.match.max)}", pairs.matches
    if report.rules.match.facts:
        yield "  as similar, but with other facts", pairs.other_facts
    yield "comparisons skipped in large buckets", pairs.skipped
    if report.rules.group.linkage is Linkage.COMPLETE:
        yield "other pairs, compared to complete groups", pairs.compared_to_link
        yield "other pairs, too many to compare", pairs.open
    if any((decided.same, decided.different, decided.disputed)):
        yield "decisions of reviewers: same", decided.same
        yield "  not satisfied", decided.unsatisfied
        yield "decisions of reviewers: different", decided.different
        yield "pairs on which reviewers disagree", decided.disputed
        yield "documents in a group only by a decision", decided.held
    if groups.count:
        yield "groups examined", groups.count
        yield "  mean similarity to a principal", groups.mean_similarity
        yield "  pairs of members less similar to each other", groups.pairs_below
        yield "  pairs of members not compared", groups.pairs_not_compared
        if groups.only_boilerplate:
            yield "  held together only by boilerplate", groups.only_boilerplate
        if groups.facts is not None and groups.facts.groups:
            yield from _facts(groups.facts)
    if writes.mirrored is not None:
        yield "group ids written into documents", writes.mirrored.written


_NEARLY = 10
"""Candidate pairs that nearly match, at least, before a hint at the threshold."""
_HALF = 0.5
"""Texts that are less similar often have only a template in common."""


_ENOUGH, _FEW = 20, 0.01
"""Documents with words from which it is worth a hint that fewer than this share of them are in groups."""


def _warn_of_threshold(report: GroupReport) -> None:
    """Warn if more candidates nearly match than match."""
    from es_neardupe.verification.verify import nearly_from

    minimum = report.rules.min
    if _nearly_match(report):
        warn(
            f"{report.pairs.nearly:,} candidate pairs are {nearly_from(minimum):g} to {minimum:g} similar, more than "
            f"match: `{command('distribution', report.index)}` shows them, and which preset suits the texts."
        )


def _nearly_match(report: GroupReport) -> bool:
    """Whether more candidates nearly match than match, unless these share a template or boilerplate, or a message about
    the texts comes first."""
    from es_neardupe.verification.verify import nearly_from

    pairs, rules = report.pairs, report.rules
    by_keys = report.detection.probability is not None and nearly_from(rules.min) >= _HALF and rules.match.max >= 1
    many = _NEARLY <= pairs.nearly <= pairs.nearly_texts and pairs.nearly > pairs.matches + pairs.other_facts
    return report.scope.whole and by_keys and many and not _is_explained(report)


def _finds_few(report: GroupReport) -> bool:
    """Whether fewer than 1 % of the documents are in groups, and no other message gives a reason."""
    from es_neardupe.records import State

    scope, groups = report.scope, report.groups
    with_words = scope.documents - scope.states.get(State.EMPTY.value, 0)
    few = with_words >= _ENOUGH and groups.grouped < _FEW * with_words and not groups.related.alone
    return scope.whole and few and not _is_explained(report) and not _nearly_match(report)


def _is_explained(report: GroupReport) -> bool:
    """Whether a message about the texts says why keys do not suit them."""
    return bool(report.boilerplate.clusters or report.unprepared or (report.unsuited and report.unsuited.preset))


_TEXTS = 10
"""Texts compared with their principals, at least, before an option is named for what differs."""


def _say_what_keeps_apart(name: str, facts: GroupFacts | None, across: ReadField | None) -> None:
    """Name the option for windows of documents, if most matches overlap; or that for form letters, products and others
    that differ in one number, if most groups mix some."""
    if facts is None or facts.pairs < _TEXTS:
        return
    if across is None and 2 * facts.overlapping > facts.pairs:
        say(
            f"Of {facts.pairs:,} texts compared with their principal, {facts.overlapping:,} overlap with it: the end "
            f"of one is the beginning of the other. If texts are parts of documents, "
            f"`{command('group', name)} --across FIELD` keeps apart those of one document: FIELD holds its id."
        )
    elif 2 * facts.differ > facts.examined:
        kinds = "facts" if facts.negations else "figures,names"
        say(
            f"Figures, names or negations differ in {facts.differ:,} of {counted(facts.examined, 'group')}, such as "
            f"'{facts.example}'. If these make texts different, `{command('group', name)} --facts {kinds}` keeps them "
            "apart."
        )


def _facts(facts: GroupFacts) -> Iterator[tuple[str, int]]:
    """Rows about the groups in which facts differ."""
    yield "  with different texts", facts.groups
    yield "    facts compared with the principal", facts.examined
    yield "      figures, names or negations differ", facts.differ
    yield "        figures", facts.figures
    yield "        names", facts.names
    yield "        negations", facts.negations
    if facts.pairs_left_out:
        yield "      texts not compared", facts.pairs_left_out
    if facts.copies_differ:
        yield "  texts whose exact copies were compared", facts.copies
        yield "    copies differ in signs, such as $5 and €5", facts.copies_differ


def _without_boilerplate(match: MatchRules) -> str:
    """The options that compare texts without boilerplate, by shingles."""
    if match.ignore_common is not None:
        return "--ignore-common auto --renew"
    return (
        "--ignore-common auto" if match.by_resemblance else "--default-rules --measure resemblance --ignore-common auto"
    )


def _warn_of_groups(report: GroupReport, measure: object = None) -> None:
    """Messages about the groups. ``measure``: what the user has given."""
    say_measure(report.rules.measure, report.rules.weights, given=measure)
    say_common(report.common)
    warn_of_detection(report.detection)
    name = report.index
    scope = report.scope
    warn_of_unprocessed(scope.unprocessed, name, missing_in="group")
    warn_of_stale(scope.stale, name)
    warn_of_corrupt(scope.corrupt, name)
    warn_of_buckets(report.pairs.skipped, report.pairs.large_buckets)
    if report.decisions.unsatisfied:
        warn(
            f"{counted(report.decisions.unsatisfied, 'decision')} of reviewers that texts are the same "
            f"could not be satisfied: other decisions, or the rules within and window, keep the texts apart."
        )
    if report.pairs.open:
        warn(
            f"Groups may be split: linkage complete requires every pair, and "
            f"{counted(report.pairs.open, 'pair of linked texts was', 'pairs of linked texts were')} "
            f"not compared, because there are too many of them. A higher --max-bucket compares more."
        )
    warn_of_texts(name, report.unprepared, report.unsuited)
    _warn_of_threshold(report)
    _say_what_keeps_apart(name, report.groups.looked_at.facts, report.rules.group.across)
    warn_of_boilerplate(name, report.boilerplate, group_options=_without_boilerplate(report.rules.match))
