"""Distribution of the similarities of an index, and the results of each threshold."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.options import DEFAULT_MAX_BUCKET, Matching
from es_neardupe.progress import Progress, silent
from es_neardupe.run_options import check_seed
from es_neardupe.similarity.facts.kinds import parse_facts

if TYPE_CHECKING:
    from es_neardupe.commands.distribution.report import DistributionReport
    from es_neardupe.index.index import Index


def _parse_shingles(value: Any) -> Sequence[int | str]:
    return [options.parse_shingle(part) for part in value.split(",")]


MeasuresToPlot = Annotated[
    Sequence[str] | None,
    options.one_of(
        options.names_of(options.MeasureName),
        "--measure",
        help=f"Measure to compute. Repeatable. {options.JACCARD}",
        show_default="resemblance; bag with --whitespace",
    ),
]
MatchingToPlot = Annotated[
    str,
    options.one_of(
        options.words_of(options.Matching),
        "--matching",
        help="How common passages are found, for jaccard and containment.",
    ),
]
ShinglesToPlot = Annotated[
    Sequence[int | str] | None,
    typer.Option(
        "--shingle",
        metavar="N,...",
        parser=_parse_shingles,
        help="Words in a shingle, such as 1,2,3; 5c: characters; 7s: shapes.",
        show_default="that of the index",
    ),
]
WhitespaceToPlot = Annotated[
    bool,
    typer.Option("--whitespace", help="For bag, which is then the default measure: split words at whitespace only."),
]
Labels = Annotated[
    str | Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Labelled pairs (.jsonl, .csv, .tsv): precision, recall and F, and a recommended threshold.",
        show_default=False,
    ),
]
FactsToTry = Annotated[
    Sequence[str] | str | None,
    typer.Option(
        "--facts",
        metavar="VALUES",
        help="Leave out candidate pairs that differ in these facts, as group does: figures, facts or all, or kinds "
        "such as amounts, dates, names, separated by commas. Repeatable.",
        show_default=False,
    ),
]
SampleOfPairs = Annotated[
    int | None,
    typer.Option(
        "--sample", min=2, help="Number of random documents compared with each other.", show_default="2000 or 500"
    ),
]
ThresholdToPlot = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        parser=options.parse_fraction,
        metavar="FLOAT",
        help="Threshold to inspect, in (0, 1].",
        show_default="that of the index",
    ),
]
ThresholdsOfTable = Annotated[
    Sequence[float] | None,
    typer.Option(
        "--thresholds",
        metavar="S,...",
        parser=options.list_of(float, "numbers"),
        help="Thresholds in the table.",
        show_default="0.05 to 1 in steps of 0.05",
    ),
]
Plot = Annotated[
    str | Path | None, typer.Option("--plot", metavar="FILE", help="Write a plot, .png or .svg.", show_default=False)
]


def distribution(
    index: Index,
    *,
    measure: MeasuresToPlot = None,
    matching: MatchingToPlot = "literal",
    shingle: ShinglesToPlot = None,
    whitespace: WhitespaceToPlot = False,
    facts: FactsToTry = (),
    labels: Labels = None,
    sample: SampleOfPairs = None,
    seed: options.Seed = 1,
    threshold: ThresholdToPlot = None,
    thresholds: ThresholdsOfTable = None,
    plot: Plot = None,
    max_bucket: options.MaxBucket = DEFAULT_MAX_BUCKET,
    progress: Progress = silent,
) -> DistributionReport:
    """Show histograms of similarities and the result of each threshold. Writes nothing to the index.

    The similarities are those of all pairs of a random sample, and of all candidate pairs of the index. Each preset is
    tried on up to 1,000 texts of the sample, and one is recommended.

    There is one distribution for each ``measure`` (default: resemblance, or bag with ``whitespace``) and each
    ``shingle`` (default: that of the index). ``facts``: candidate pairs that differ in these facts are left out.
    ``labels``: file with labelled pairs, which are compared whether they are candidates or not; they give precision,
    recall and F of each threshold, and a recommended one, and choose the preset, threshold, options of keys and facts
    that decide. ``sample``: number of documents (default: 2,000, or 500 for slow measures). ``threshold``: the one that
    examples are near to (default: that of the index). ``thresholds``: those of the table. ``plot``: file for a plot.
    Nothing is written to the index. Raises `SettingsError` for values out of range, `IndexUnusable` if fewer than two
    documents have keys, `InputError` for a file of labels that is malformed or has too few pairs.

    >>> report = news.distribution(thresholds=[0.7, 0.9])
    >>> for level in report.distributions[0].levels:
    ...     print(level.threshold, level.pairs, level.groups)
    0.7 7 2
    0.8 4 1
    0.9 1 1
    """
    from es_neardupe.candidates.fingerprints import read_fingerprints
    from es_neardupe.candidates.join import candidate_pairs
    from es_neardupe.candidates.who_may_meet import GroupRules
    from es_neardupe.commands.distribution.facts import facts_of_pairs
    from es_neardupe.commands.distribution.labelled_trials import labelled_advice, tried_on_labels
    from es_neardupe.commands.distribution.labels import read_labels
    from es_neardupe.commands.distribution.plots import check_plot, draw
    from es_neardupe.commands.distribution.recommendation import preset_advice, recommended
    from es_neardupe.commands.distribution.report import DistributionReport
    from es_neardupe.commands.distribution.sample import compare_sample, random_rows
    from es_neardupe.commands.distribution.steps import (
        THRESHOLDS,
        compared_candidates,
        detecting,
        distribution,
        drawn_documents,
        examples,
        keyed,
        levels_of,
        measures_of,
        names_of_measures,
        shingle_sizes,
        texts_compared,
        thresholds_of_table,
        weighted,
        without_other_facts,
    )
    from es_neardupe.index.index import opened
    from es_neardupe.similarity.histogram import EDGES
    from es_neardupe.similarity.measure import default_sample
    from es_neardupe.verification.current_texts import CurrentDocuments

    started = time.monotonic()
    if plot is not None:
        check_plot(str(plot))
    names = names_of_measures(measure, whitespace=whitespace, matching=matching, shingle=shingle)
    check_seed(seed)
    labels_of_file = None if labels is None else read_labels(str(labels))
    index = opened(index, texts=True)
    settings = index.settings
    chosen = settings.threshold if threshold is None else threshold
    levels = thresholds_of_table(THRESHOLDS if thresholds is None else thresholds, chosen)
    unweighted = list(measures_of(names, Matching(matching), shingle_sizes(shingle, settings), settings, whitespace))
    kinds = parse_facts(facts) if facts else frozenset()

    corpus = read_fingerprints(index, progress)
    documents = CurrentDocuments.of_corpus(index.client, settings, corpus)
    classes = texts_compared(corpus, documents, unweighted, kinds, progress)
    sizes = [sample or default_sample(one.name) for one in unweighted]
    rows, drawn = drawn_documents(index.name, documents, random_rows(corpus, seed)[: max(sizes)], progress)
    measures = [weighted(one, drawn[:size]) for one, size in zip(unweighted, sizes, strict=True)]
    candidates = candidate_pairs(index, corpus, classes, GroupRules(max_bucket=max_bucket))
    by_measure = list(compared_candidates(documents, classes, candidates, measures, progress))
    matching_pairs = without_other_facts(by_measure, documents, classes, kinds, lowest=levels[0], progress=progress)
    labelled = None if labels_of_file is None else labels_of_file.compared(index, corpus, documents, measures, progress)
    distributions = []
    for place, (one, size, compared) in enumerate(zip(measures, sizes, matching_pairs, strict=True)):
        pairs = compare_sample(
            one,
            drawn[:size],
            corpus.keys[rows[:size]],
            thresholds=levels,
            threshold=chosen,
            agree=settings.scheme.agree,
            progress=progress,
        )
        results = levels_of(compared, pairs, levels, keyed(corpus), detecting(one, settings), measure=one.name)
        above, below = examples(
            documents,
            classes,
            compared,
            ((value, int(rows[int(a)]), int(rows[int(b)])) for value, a, b in pairs.near.tolist()),
            chosen,
        )
        found = distribution(one, pairs, compared, results)
        by_labels = None if labelled is None else labelled.results(place, levels, seed)
        distributions.append(replace(found, above=above, below=below, labels=by_labels))
    preset, presets = preset_advice(index, distributions, drawn, progress)
    trials = () if labelled is None else tried_on_labels(documents, labelled, drawn, seed, progress)
    report = DistributionReport(
        index=index.name,
        indices=index.target.indices,
        scheme=index.scheme_id,
        threshold=chosen,
        seed=seed,
        documents=keyed(corpus),
        candidates=len(candidates),
        skipped=candidates.skipped,
        stale=int(documents.changed_or_deleted.sum()),
        edges=tuple(EDGES.tolist()),
        labels=None if labelled is None else labelled.counts,
        recommendation=None if labelled is None else recommended(index, distributions, labelled.counts, chosen),
        preset=preset if labelled is None else labelled_advice(index, trials, len(labelled.same), preset.texts),
        presets=presets,
        trials=trials,
        facts=facts_of_pairs(
            documents, corpus, by_measure[0], labelled, threshold=chosen, seed=seed, progress=progress
        ),
        distributions=tuple(distributions),
        seconds=time.monotonic() - started,
    )
    if plot is not None:
        draw(report, str(plot))
    return report
