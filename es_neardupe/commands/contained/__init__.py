"""Documents that contain a text, or are contained in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.progress import Progress, silent
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.contained.report import ContainedReport
    from es_neardupe.index.index import Index
    from es_neardupe.records import Address


CandidatesByEstimate = Annotated[
    int, typer.Option("--max-candidates", min=1, help="Maximum number of candidates compared, highest estimates first.")
]
MinimumShare = Annotated[
    float,
    typer.Option(
        "--min",
        parser=options.parse_fraction,
        metavar="FLOAT",
        help="Minimum share of the words of one of the two texts, in (0, 1].",
    ),
]
MatchingOfPassages = Annotated[
    str, options.one_of(options.words_of(options.Matching), "--matching", help="How common passages are found.")
]


def contained(
    index: Index,
    *,
    id: Annotated[str | Address | None, options.ID] = None,
    text: options.Text = None,
    matching: MatchingOfPassages = "literal",
    min: MinimumShare = 0.5,
    ignore_common: options.IgnoreCommon = None,
    renew: options.Renew = False,
    top: options.TopHits = 10,
    query: options.Query = None,
    max_candidates: CandidatesByEstimate = 1000,
    progress: Progress = silent,
) -> ContainedReport:
    """List documents that contain a text or are contained in it, with the passages.

    These are the documents that have at least ``min`` of the words of a probe in common passages with it, or at least
    ``min`` of their own.

    The probe is a document of the index (``id``, or its `Address` if several indices have the id) or any ``text``.
    Candidates share sampled keys with it; their current texts are compared with that of the probe. ``query`` filters
    the documents. With ``ignore_common``, words in common shingles do not count: common passages consist of other
    words, and the shares are of these. Nothing is written, and groups do not change.

    Raises `NotInitialised` for an index without sampled keys, `NotFound` for an unknown id, `InputError` for a probe
    without readable text, and `SettingsError` for options out of range.

    >>> for hit in news.contained(text=bridge[:400], min=0.9, top=2).hits:
    ...     print(hit.id, hit.direction.value, round(hit.of_probe, 4))
    1001 contains the probe 0.9859
    1002 contains the probe 0.9859
    """
    from es_neardupe.commands.contained.report import ContainedReport
    from es_neardupe.commands.contained.steps import (
        Comparer,
        IgnoredWords,
        described,
        detection,
        find_candidates,
        opened_with_samples,
        rank,
    )
    from es_neardupe.index import queries
    from es_neardupe.similarity.comparison import Containments, Side, WordsCompared
    from es_neardupe.verification.common_shingles import common_shingles, described_list
    from es_neardupe.verification.criterion import check_min
    from es_neardupe.verification.match_rules import matching_named
    from es_neardupe.verification.probe import check_probe, read_probe

    check_probe(id, text)
    check_min(min)
    if renew and ignore_common is None:
        raise SettingsError(f"{option('renew')} is for {option('ignore_common')}.")
    index = opened_with_samples(index)
    how = matching_named(matching)
    mod = index.settings.scheme.sample_mod
    whole = index.settings.scheme.preparation.whole
    probe = read_probe(index, id, text, index.settings.fields)
    side = Side.of("text" if probe.address is None else probe.address.id, whole.placed(probe.values))
    fingerprint = probe.fingerprint(index)
    common = None
    if ignore_common is not None:
        common = common_shingles(index, ignore_common, index.settings.threshold, renew=renew, progress=progress)
    ignored = IgnoredWords.of(index, common)
    every = list(dict.fromkeys(fingerprint.samples or ()))
    keys = [key for key in every if key not in ignored.keys]
    passage = index.settings.unit.passage(index.settings.shingle)
    scope = queries.others(query, probe.address)
    candidates = find_candidates(index, keys, scope=scope, maximum=max_candidates, progress=progress)
    comparer = Comparer(
        index, keys, ignored.keys, Containments(side, how, passage, min, WordsCompared(whole, ignored.words))
    )
    hits = sorted(comparer.hits(candidates.references, progress), key=rank)
    return ContainedReport(
        query=probe.name | described(fingerprint),
        hits=tuple(hits[:top]),
        found=len(hits),
        candidates=candidates.total,
        not_compared=candidates.total - len(candidates.references),
        unreadable=comparer.unreadable,
        unprocessed=index.documents.count(index.target.stale(scope)),
        keys=len(keys),
        keys_ignored=len(every) - len(keys),
        keys_left_out=candidates.keys_left_out,
        detection=detection(min, len(keys) - candidates.keys_left_out, mod),
        sample_mod=mod,
        shingle=passage,
        matching=how,
        common=None if common is None else described_list(common),
        indices=index.target.indices,
    )
