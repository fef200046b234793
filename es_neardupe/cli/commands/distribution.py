"""``es-neardupe distribution``: histograms of the similarities in an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName, Output
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import say_measure
from es_neardupe.cli.output import (
    check_output,
    plot_counts,
    print_json,
    print_table,
    progress_bars,
    say,
    show,
    warn,
    write_output,
)
from es_neardupe.commands.distribution import distribution as library
from es_neardupe.display_text import named, score_text
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, connection_in_commands, counted

if TYPE_CHECKING:
    from es_neardupe.commands.distribution.report import (
        Distribution,
        DistributionReport,
        FactsExample,
        FactsReport,
        FactsValue,
        LabelledTrial,
        LabelLevel,
        LabelsReport,
        SimilarityExample,
        ThresholdLevel,
    )


_BEST = 10
"""Trials on labelled pairs that are shown, the best ones."""


@with_options_of(library)
def distribution(
    index: IndexName,
    *,
    output: Output = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Examples:

      es-neardupe distribution news --plot news.png

      es-neardupe distribution news --measure bag --shingle 1,2,3,4 --sample 1000 --json

      es-neardupe distribution news --measure resemblance --measure jaccard --labels pairs.csv
    """

    check_output(output)
    with progress_bars() as progress, connection_in_commands(not as_json):
        found = library(open_index(index, prefix), progress=progress, **given)
    if as_json:
        print_json(found)
    if output is not None:
        write_output(output, found.table())
    elif not as_json:
        for one in found.distributions:
            _show(found, one)
        _show_presets(found)
        _show_facts(found.facts, found.threshold, len(found.indices) > 1)
        if found.trials:
            _show_trials(found.trials)
    _say(found, given["plot"], measures=given["measure"])


def _show(report: DistributionReport, one: Distribution) -> None:
    show(
        f"{one.title}: all {counted(one.sample.pairs, 'pair')} of a sample, {one.sampled:,} of "
        f"{counted(report.documents, 'document')}"
    )
    plot_counts(one.sample, report.threshold)
    others = f", {one.other_facts:,} more with other facts" if one.other_facts else ""
    show(f"{one.title}: {counted(one.candidates.pairs, 'candidate pair')} of the index{others}")
    plot_counts(one.candidates, report.threshold)
    columns = ["threshold", "pairs", "documents", "groups", "largest", "detection", "in sample", "candidates"]
    print_table([*columns, "all pairs, estimated (95 %)"], map(_row, one.levels))
    for side, examples in (("above", one.above), ("below", one.below)):
        if examples:
            rows = [row for example in examples for row in _example(example, len(report.indices) > 1)]
            print_table([f"just {side}", "id", "text at the first difference"], rows)
        else:
            show(f"just {side}: no pair")
    if one.labels is not None:
        _show_labels(one.title, one.labels)


def _show_labels(title: str, labels: LabelsReport) -> None:
    columns = ["threshold", "same", "different", "precision", "recall", "F", "candidates"]
    show(f"{title}: labelled pairs that reach a threshold")
    rows = [_labels_row(f"{level.threshold:g}", level) for level in labels.levels]
    print_table(columns, [*rows, _labels_row(f"best: {labels.best.threshold:g}", labels.best)])
    found = labels.validated
    show(
        f"{found.folds}-fold cross-validation: F {score_text(found.f)} "
        f"({score_text(found.lowest_f)} to {score_text(found.highest_f)}), "
        f"thresholds {found.lowest_threshold:g} to {found.highest_threshold:g}"
    )


def _labels_row(name: str, level: LabelLevel) -> tuple[object, ...]:
    return name, level.same, level.different, level.precision, level.recall, level.f, level.found


def _show_presets(report: DistributionReport) -> None:
    show(f"each preset, tried on {counted(report.preset.texts, 'text')} of the sample")
    rows = [(one.title, one.pairs, one.documents, one.held) for one in report.presets]
    print_table(["preset", "pairs", "documents", "held by boilerplate"], rows)


def _show_trials(trials: Sequence[LabelledTrial]) -> None:
    show("presets with options, tried on the labelled pairs")
    columns = ["preset", "--clean", "--ignore-common", "--facts", "threshold", "of the keys"]
    rows = [
        (*_options(one), f"{one.threshold:g}", f"{one.keys:g}", found.precision, found.recall, found.f)
        for one in sorted(trials, key=lambda one: -one.validated.f)[:_BEST]
        for found in (one.validated,)
    ]
    print_table([*columns, "precision", "recall", "F"], rows)


def _options(one: LabelledTrial) -> tuple[str, str, str, str]:
    return one.preset, one.clean or "", one.ignore_common or "", one.facts or ""


def _show_facts(found: FactsReport, threshold: float, several: bool) -> None:
    """Values of ``--facts`` that would separate a pair; with labels, and their errors."""
    values = [one for one in found.values if one.pairs]
    if not values:
        return
    if found.same is not None and found.different is not None:
        show(f"facts that separate the {counted(found.pairs, 'labelled pair')} of {threshold:g} or more")
        columns = ["--facts", "different: separated", "not separated", "same: separated", "not separated"]
        print_table(columns, (_errors(one, found.same, found.different) for one in values))
        return
    show(
        f"facts that would separate candidate pairs: compared in {found.examined:,} of the "
        f"{counted(found.pairs, 'pair')} of {threshold:g} or more"
    )
    print_table(["--facts", "pairs"], ((one.value, one.pairs) for one in values))
    for one in values:
        if one.examples:
            rows = (row for example in one.examples for row in _facts_of(example, several))
            print_table([f"--facts {one.value}", "a", "b", "fact", "in a", "in b"], rows)


def _errors(one: FactsValue, same: int, different: int) -> tuple[object, ...]:
    wrong, right = one.same or 0, one.different or 0
    return one.value, right, different - right, wrong, same - wrong


def _facts_of(example: FactsExample, several: bool) -> Iterator[tuple[object, ...]]:
    """A row with the first fact."""
    for fact in example.facts[:1]:
        kinds = ", ".join(kind.value for kind in fact.kinds)
        both = (named(one, several) for one in (example.a, example.b))
        yield score_text(example.similarity), *both, kinds, fact.words_a or "-", fact.words_b or "-"


def _row(level: ThresholdLevel) -> tuple[object, ...]:
    expected = f"{level.expected.pairs:,.0f} ({level.expected.low:,.0f} to {level.expected.high:,.0f})"
    found = (level.pairs, level.documents, level.groups, level.largest)
    return str(round(level.threshold, 6)), *found, level.detection, level.sample_pairs, level.sample_found, expected


def _example(example: SimilarityExample, several: bool) -> list[tuple[object, ...]]:
    """One row for each document of the pair."""
    sides = ((score_text(example.similarity), example.a, example.excerpt_a), ("", example.b, example.excerpt_b))
    return [(value, named(name, several), excerpt) for value, name, excerpt in sides]


def _say(found: DistributionReport, plot: str | None, *, measures: object) -> None:
    for one in found.distributions:
        say_measure(one.measure, given=measures)
    if found.recommendation is not None:
        say(found.recommendation.text)
    clean = [] if found.preset.clean is None else [f"--clean {found.preset.clean}"]
    options = " ".join(filter(None, [found.preset.options, *clean]))
    preset = f"{found.preset.preset}, with {options}" if options else found.preset.preset
    say(f"Preset for new keys (init, migrate): {preset}. {found.preset.reasons}")
    if found.labels is not None and (unused := found.labels.missing + found.labels.changed):
        warn(
            f"{unused:,} of {counted(found.labels.pairs, 'labelled pair')} {'was' if unused == 1 else 'were'} not "
            f"used: {found.labels.missing:,} {'has' if found.labels.missing == 1 else 'have'} a document that is not "
            f"in the index or not enriched, {found.labels.changed:,} one that changed."
        )
    if plot is not None:
        say(f"Wrote {plot}")
    if found.skipped:
        warn(
            f"{counted(found.skipped, 'comparison in large buckets was', 'comparisons in large buckets were')} "
            f"skipped: raise --max-bucket."
        )
    if found.stale:
        documents = counted(
            found.stale,
            "document changed since it got its keys, and is",
            "documents changed since they got their keys, and are",
        )
        warn(f"{documents} in no pair: run `{command('enrich', found.index)}`.")
