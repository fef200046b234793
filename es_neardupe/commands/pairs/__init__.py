"""All verified pairs of an index with their exact similarities."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.match_options import RULE_DEFAULTS, RuleOptions
from es_neardupe.run_options import READ_DEFAULTS, ReadOptions, on_engine
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.pairs.report import PairsReport
    from es_neardupe.index.index import Index
    from es_neardupe.keys.arrays import Flags, Floats, Numbers
    from es_neardupe.verification.verify import Verified


MAX_SHOWN = 10_000
"""Characters of the text of a field that `pairs` shows by default: a text is in as many lines as it has pairs."""
WholeFields = Annotated[
    bool,
    typer.Option("--whole-fields", help=f"Show whole texts of fields, not only {MAX_SHOWN:,} characters of each."),
]


Related = Annotated[
    bool,
    typer.Option("--related", help="With `facts`: also show the pairs that are as similar, but with other facts."),
]


class PairsOptions(RuleOptions, ReadOptions, total=False):
    """Which pairs match, and how they are read."""


@with_defaults(READ_DEFAULTS, first=RULE_DEFAULTS)
@on_engine
def pairs(
    index: Index,
    *,
    renew: options.Renew = False,
    memory: options.Memory = None,
    fields: options.TitleFields = (),
    whole_fields: WholeFields = False,
    related: Related = False,
    **given: Unpack[PairsOptions],
) -> PairsReport:
    """List all verified pairs with their exact similarity, most similar first. Writes nothing.

    All candidate pairs are verified. Those from ``min`` (default: the threshold of the index) to ``max`` similar by
    ``measure`` are listed, both included.

    The options are those of `group`, but nothing is written, not even the list of common shingles. ``fields`` are
    shown of both documents by `PairsReport.with_fields`, the first 10,000 characters of each, or all with
    ``whole_fields``. ``related``: with ``facts``, `PairsReport.related` has the pairs that are as similar, but differ
    in facts that decide. Raises `SettingsError` as `group` does.

    >>> for pair in news.pairs(min=0.8):
    ...     print(pair.a.id, pair.b.id, round(pair.similarity, 4))
    1001 1004 0.9101
    1003 1004 0.8351
    1001 1003 0.8182
    1002 1004 0.8
    """
    from es_neardupe.candidates.detection import Detection
    from es_neardupe.candidates.fingerprints import read_fingerprints
    from es_neardupe.candidates.join import with_passages
    from es_neardupe.candidates.memory_limit import MemoryLimit
    from es_neardupe.candidates.spill_to_disk import scratch
    from es_neardupe.commands.pairs.report import PairFacts, PairFields, PairsReport
    from es_neardupe.groups.rules import rules_of
    from es_neardupe.index.index import opened
    from es_neardupe.index.shown_fields import shown_fields
    from es_neardupe.verification.boilerplate import boilerplate
    from es_neardupe.verification.common_shingles import used
    from es_neardupe.verification.criterion import match_criterion
    from es_neardupe.verification.match_rules import MatchRules
    from es_neardupe.verification.verified_pairs import verified_pairs

    progress = given["progress"]
    index = opened(index, texts=True)
    chosen = MatchRules.of(index.settings).having(given)
    if related and not chosen.facts:
        raise SettingsError(f"{option('related')} is for {option('facts')}: give it too.")
    limit = None if memory is None else MemoryLimit(memory)
    match = match_criterion(index, chosen, renew=renew, limit=limit, progress=progress)
    shown = shown_fields(index, fields)
    copies = match.measure.copies_are_equal
    rules = rules_of(index, within=given["within"], across=given["across"], max_bucket=given["max_bucket"])
    with scratch() as files:
        found = verified_pairs(
            index,
            match,
            read_fingerprints(index, progress, rules, slices=given["slices"], limit=limit, files=files),
            copies=copies,
            rules=rules,
            limit=limit,
            progress=progress,
        )
    corpus = found.corpus
    classes, candidates, verifier = found.classes, found.candidates, found.verifier
    verifier.check_copies(progress)
    left, right, ordered = _most_similar_first(found, found.matches(match.matches))
    changed = verifier.documents.changed_or_deleted
    report = PairsReport(
        indices=index.target.indices,
        measure=match.measure.label,
        min=match.min,
        max=match.max,
        detection=Detection.in_index(index, match.measure, match.min),
        weights=match.weights,
        common=used(match.common, verifier) if match.common else None,
        boilerplate=boilerplate(index, corpus, classes, left, right),
        candidates=len(candidates),
        other_facts=0 if found.other_facts is None else int(found.other_facts.sum()),
        skipped=candidates.skipped,
        large_buckets=with_passages(index, corpus, classes, candidates.large),
        stale=int(changed.sum()),
        unprocessed=index.documents.count(index.target.stale()),
        _references=corpus.references,
        _classes=classes.only(~changed),
        _left=left,
        _right=right,
        _similarity=ordered,
        _copies=match.copies_match,
        _maximum_copies=rules.max_bucket,
        _shown=PairFields(index, shown, None if whole_fields else MAX_SHOWN),
    )
    if not related or found.other_facts is None:
        return report
    left, right, ordered = _most_similar_first(found, found.other_facts)
    apart = PairFacts(verifier.documents, match.facts)
    others = replace(report, _left=left, _right=right, _similarity=ordered, _copies=False, _facts=apart)
    return replace(report, related=others)


def _most_similar_first(found: Verified, chosen: Flags) -> tuple[Numbers, Numbers, Floats]:
    """The classes of the chosen candidates and their similarities."""
    import numpy as np

    matches = np.flatnonzero(chosen)
    order = matches[np.argsort(-found.similarity[matches], kind="stable")]  # candidates ascend
    return found.candidates.left[order], found.candidates.right[order], found.similarity[order]
