"""Pages about decisions of reviewers: the preview of one, and the list of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from es_neardupe.commands.decide import DecisionReport
from es_neardupe.groups.decisions import DecisionPage, Verdict
from es_neardupe.pages.application import Site
from es_neardupe.pages.site import Hosted, hosted
from es_neardupe.records import Address


@dataclass(frozen=True)
class DecisionRequest:
    """What a reviewer asks for."""

    verdict: Verdict
    group: str
    page: str
    """The query string of the page of the group."""
    document: Address
    others: Sequence[Address]
    note: str | None
    seen: Mapping[str | Address, str]
    """The content hash of each of these documents."""


def decision_preview_page(
    site: Site, asked: DecisionRequest, report: DecisionReport, titles: Mapping[Address, Mapping[str, str]]
) -> Hosted:
    """What a decision would do, with the button that stores it. ``titles``: the fields to show of each document."""
    first = report.copies.get(asked.seen[asked.document], 1)
    others = sum(report.copies.get(one, 1) for one in {asked.seen[one] for one in asked.others})
    return hosted("decide.html.j2", site, asked=asked, report=report, titles=titles, first=first, others=others)


def decisions_page(
    site: Site,
    found: DecisionPage,
    titles: Mapping[Address, Mapping[str, str]],
    *,
    given: Mapping[str, str],
    authors: Mapping[str, int],
    after: str | None,
    parquet: bool,
) -> Hosted:
    """The decisions of all reviewers, newest first. ``parquet``: they can be exported as Parquet."""
    return hosted(
        "decisions.html.j2",
        site,
        found=found,
        titles=titles,
        given=given,
        authors=authors,
        parquet=parquet,
        verdicts=[one.value for one in Verdict],
        next=None if after is None else site.link("/decisions", **given, after=after),
    )
