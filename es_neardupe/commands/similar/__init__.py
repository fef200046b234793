"""Near-duplicates of one document or of any text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from es_neardupe import options
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.match_options import MATCH_DEFAULTS, MatchOptions, Maximum

if TYPE_CHECKING:
    from es_neardupe.commands.similar.report import SimilarReport
    from es_neardupe.index.index import Index
    from es_neardupe.records import Address


@with_defaults(first=MATCH_DEFAULTS, after="text")
def similar(
    index: Index,
    *,
    id: Annotated[str | Address | None, options.ID] = None,
    text: options.Text = None,
    max: Maximum = 1.0,
    renew: options.Renew = False,
    top: options.TopHits = 10,
    query: options.Query = None,
    max_candidates: options.CandidatesByKeys = 1000,
    fields: options.TitleFields = (),
    **given: Unpack[MatchOptions],
) -> SimilarReport:
    """List the near-duplicates of a document or of any text, with their exact similarity.

    Their exact similarity lies between ``min`` (default: the threshold of the index) and ``max``. Give ``id`` or
    ``text``. If several indices have the id, give the `Address`. ``query`` selects the documents to compare with. Both
    sides are compared by their current texts. ``facts``: texts that differ in these facts are no hits, but counted.
    ``within``: only with documents that have the same values of these fields as the document. ``across``: not with
    documents that have a value of this field in common with it. ``fields`` are shown of each hit; None: none.

    Raises `NotFound` for an unknown id, `InputError` for a document without readable text, and `SettingsError` for
    options that are unknown, contradict each other or do not apply to the measure.

    >>> for hit in news.similar(id="1002", min=0.75).hits:
    ...     print(hit.id, round(hit.similarity, 4), hit.fields["title"])
    1004 0.8 HARBOUR BRIDGE CLOSED
    1001 0.7835 Harbour bridge closed until October
    """
    from es_neardupe.candidates.detection import Detection, TextLength
    from es_neardupe.commands.similar.report import SimilarReport
    from es_neardupe.commands.similar.steps import (
        ROUNDS,
        CandidateHits,
        Lookup,
        compared_probe,
        documents_allowed,
        with_stored_keys,
    )
    from es_neardupe.index import queries
    from es_neardupe.index.index import with_texts
    from es_neardupe.index.shown_fields import shown_fields
    from es_neardupe.records import Address
    from es_neardupe.verification.criterion import match_criterion
    from es_neardupe.verification.match_rules import MatchRules
    from es_neardupe.verification.probe import check_probe

    check_probe(id, text)

    def in_index(index: Index) -> SimilarReport:
        match = match_criterion(index, MatchRules.of(index.settings).having({**given, "max": max}), renew=renew)
        shown = shown_fields(index, fields)
        among = documents_allowed(index, given["within"] or (), given["across"], id, query)
        texts = [*match.measure.fields(index.settings.fields), index.fields.group, *shown.names]
        at_once = with_stored_keys(index, id, among, texts, max_candidates)
        if at_once is not None:
            probe, fingerprint, found = at_once
        else:
            probe = compared_probe(index, id, text, match)
            fingerprint, found = probe.fingerprint(index), None
        compared, total = CandidateHits(index, match, probe, shown), 0
        if fingerprint.state.has_keys:
            lookup = Lookup(index, fingerprint, match, texts)
            scope = queries.others(among, probe.address)
            candidates, total = lookup.candidates(scope, max_candidates) if found is None else lookup.at_once(found)
            for _ in range(ROUNDS):
                lost = compared.add(candidates, lookup.read(candidates))
                if not lost:
                    break
                scope = queries.others(scope, *(Address(*one.reference[:2]) for one in lost))
                copies = queries.all_of(scope, {"terms": {index.fields.content: [one.content for one in lost]}})
                candidates, _ = lookup.candidates(copies, len(lost))
        hits, related = (
            sorted(some, key=lambda hit: (-hit.similarity, -hit.shared_bands, hit.index, hit.id))
            for some in (compared.hits, compared.related)
        )
        return SimilarReport(
            query=probe.name | {"state": fingerprint.state.value, "tokens": fingerprint.tokens},
            hits=tuple(hits[:top]),
            candidates=total,
            texts=compared.texts,
            not_compared=total - compared.documents,
            other_facts=sum(1 + hit.copies for hit in related),
            related=tuple(related[:top]),
            detection=Detection.of(index.settings, match.measure, match.min, TextLength.of(fingerprint)),
            measure=match.measure.label,
            max=match.max,
            weights=match.weights,
            indices=index.target.indices,
            _shown=shown.names,
        )

    return with_texts(index, in_index)
