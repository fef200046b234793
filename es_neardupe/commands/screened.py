"""``screened``: finds the near-duplicates of bulk actions before they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from es_neardupe import options
from es_neardupe.incoming.matches import ScreenReport, WhatToDo
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.match_options import MATCH_DEFAULTS, MatchOptions
from es_neardupe.options import DEFAULT_MAX_CHARS, OnMatch

if TYPE_CHECKING:
    from es_neardupe.index.index import Index


@with_defaults(first=MATCH_DEFAULTS, after="on_match")
def screened(
    index: Index,
    actions: Iterable[Mapping[str, Any]],
    *,
    on_match: OnMatch | str | WhatToDo = OnMatch.MARK,
    max_candidates: options.CandidatesByKeys = 100,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    report: ScreenReport | None = None,
    **given: Unpack[MatchOptions],
) -> Iterator[dict[str, Any]]:
    """Add the keys to your own bulk actions, as `fingerprinted`, and compare each new document with all documents of
    the index, and of earlier actions, that share keys with it: pass the result to the driver's ``helpers.bulk``.

    A match has an exact similarity of ``min`` (default: the threshold of the index) or more. ``on_match``: ``mark``
    writes the document into the group of its match, if it is also similar to the principal of that group, so that
    ``collapse`` folds it before ``group`` runs; ``skip`` does not yield the action; ``pass`` only reports the match. A
    function is called with each action that has a match and its `Match`, and returns one of these words.

    A document that is in the index already (same index, id and routing) is an update, and never a duplicate. Actions
    are read in pieces of 256; of several with the same id in a piece, the last one counts. Actions for other indices,
    updates, deletions, and documents without id or without keys are returned as by `fingerprinted`. ``report`` counts
    all of them, and keeps the matches. With ``skip``, send documents again that were skipped because of one that the
    server rejected: ``report.matches`` names them.

    ``facts``: texts that differ in facts of these kinds do not match.

    ``within``: only documents with the same values of these fields match. ``across``: documents that have a common
    value in this field, such as chunks of one document, do not match; one without a value can match any other. Values
    are compared as they are written in the documents.

    Raises `SettingsError` for options that are unknown, contradict each other or do not apply to the measure.

    >>> report = ScreenReport()
    >>> copy = {"_id": "2001", "title": "Harbour bridge closed", "body": bridge}
    >>> list(news.screened([copy], on_match="skip", report=report))
    []
    >>> [(one.id, one.done, one.match.id, one.match.copy) for one in report.matches]
    [('2001', 'skipped', '1004', True)]
    """
    from es_neardupe.incoming.piece import ComparedFields
    from es_neardupe.incoming.screen import Screen
    from es_neardupe.incoming.writes import fingerprinted_actions
    from es_neardupe.index.index import opened_inline
    from es_neardupe.verification.criterion import match_criterion
    from es_neardupe.verification.match_rules import MatchRules

    found = opened_inline(index, "screened", texts=True, writes=True)
    criterion = match_criterion(found, MatchRules.of(found.settings).having(given))
    screen = Screen(
        found,
        criterion,
        on_match,
        report or ScreenReport(),
        fields=ComparedFields.of(found, given["within"] or (), given["across"]),
        max_candidates=max_candidates,
    )
    yield from fingerprinted_actions(
        actions,
        found.settings,
        index=index.name,
        max_chars=max_chars,
        skipped_relations=found.target.skipped_relations,
        choose_groups=screen.choose_groups,
    )
