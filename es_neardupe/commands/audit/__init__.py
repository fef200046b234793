"""Audit of an index: the share of true pairs that it finds, and false claims, by comparing a sample with all texts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.options import DEFAULT_MAX_BUCKET
from es_neardupe.run_options import READ_DEFAULTS, ReadOptions, check_seed, on_engine

if TYPE_CHECKING:
    from es_neardupe.commands.audit.report import AuditReport
    from es_neardupe.index.index import Index


Sample = Annotated[int, typer.Option("--sample", min=1, help="Number of random documents compared with all others.")]


@with_defaults(READ_DEFAULTS)
@on_engine
def audit(
    index: Index,
    *,
    sample: Sample = 2000,
    min: options.Minimum = None,
    seed: options.Seed = 1,
    max_bucket: options.MaxBucket = DEFAULT_MAX_BUCKET,
    **run: Unpack[ReadOptions],
) -> AuditReport:
    """Measure the share of the true pairs that the index finds, and why pairs are lost. Writes nothing.

    A random sample of the documents is compared with all documents, by the exact resemblance of their current texts.

    Every pair at least ``min`` (default: the threshold of the index) similar is a true pair. It is found if both
    documents have the fingerprint of their text, and their stored keys make them a candidate pair of `group` with this
    ``max_bucket``. Keys are read in ``slices`` at a time. Writes nothing. Memory grows with the number of documents and
    the sample, not with texts or pairs.

    Raises `SettingsError` for values out of range, `IndexUnusable` for an index with fewer than two documents,
    `EngineError` if the workers of ``engine`` cannot be used.

    >>> report = news.audit(min=0.8)
    >>> report.recall.pairs, report.recall.found
    (4, 4)
    """
    from es_neardupe.commands.audit.report import AuditReport, RecallCounts
    from es_neardupe.commands.audit.steps import (
        EXAMPLES,
        VerifiedPairsCheck,
        advice,
        audited_scope,
        drawn,
        grouped_by_resemblance,
        memberships,
        pairs_of_sample,
        related_counts,
        reviewed,
    )
    from es_neardupe.commands.audit.true_pairs import InvertedIndex, SampleTexts
    from es_neardupe.commands.audit.why_missed import verdicts
    from es_neardupe.index.index import opened
    from es_neardupe.verification.criterion import check_min

    progress = run["progress"]
    started = time.monotonic()
    index = opened(index, texts=True)
    minimum = check_min(index.settings.threshold if min is None else min)
    check_seed(seed)
    index.documents.refresh_if_allowed()
    total, chosen = drawn(index, sample, seed, progress)
    scope = audited_scope(index, chosen, max_bucket=max_bucket, slices=run["slices"], progress=progress)
    claims = VerifiedPairsCheck(index, scope, minimum, progress)
    held = claims.boilerplate()
    texts = SampleTexts(frozenset(scope.sample.references), InvertedIndex(scope.features), minimum, held)
    counts = RecallCounts(len(scope.sample.references))
    for pairs, others, apart in pairs_of_sample(scope, texts, index, progress):
        claims.confirm(pairs, scope.sample, others)
        verdict = verdicts(scope.candidacy, scope.sample, others, pairs.inside, pairs.given)
        counts.add_boilerplate(pairs, verdict, apart, within=others is scope.sample)
        counts.add(pairs.only(~apart), verdict[~apart], scope.sample, others)
    members = list(memberships(index, chosen, scope, minimum)) if grouped_by_resemblance(index) else None
    wrong = [*claims.denied(), *(one for one in members or () if not one.is_right)]
    claimed = len(claims) + len(members or ())
    whole = len(scope.sample.references) >= total
    return AuditReport(
        index=index.name,
        indices=index.target.indices,
        scheme=index.scheme_id,
        min=minimum,
        max_bucket=max_bucket,
        seed=seed,
        documents=total,
        sampled=len(scope.sample.references),
        recall=counts.all.recall(whole),
        within=counts.within.recall(whole),
        boilerplate=held,
        only_boilerplate=counts.only_boilerplate.recall(whole) if held.clusters else None,
        promised=index.settings.scheme.detection(minimum),
        expected=counts.expected(index.settings.scheme),
        lengths=counts.lengths(whole),
        scripts=counts.scripts(whole),
        lost=counts.reasons(),
        claims=len(claims),
        members=None if members is None else len(members),
        denied=len(wrong),
        precision=1 - len(wrong) / claimed if claimed else None,
        precision_without_boilerplate=claims.share_without(held, progress) if len(claims) and held.clusters else None,
        wrong=tuple(wrong[:EXAMPLES]),
        related=related_counts(index),
        reviewed=reviewed(index, scope, minimum, progress),
        advice=advice(index.target, minimum, counts, whole),
        seconds=time.monotonic() - started,
    )
