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

    verdict: str
    """``keep``, ``note``, or how the parts were made: ``same``, ``different``, ``apart``, ``split``."""
    group: str
    page: str
    """Path and query string of the page that the form was on."""
    parts: Sequence[Sequence[Address]]
    """The documents, one for each text; of *keep* and *note*, those that it is about."""
    note: str | None
    seen: Mapping[str | Address, str]
    """The content hash of each of these documents."""

    @property
    def documents(self) -> list[Address]:
        """Those of all parts."""
        return [one for part in self.parts for one in part]


def decision_preview_page(
    site: Site, asked: DecisionRequest, report: DecisionReport, titles: Mapping[Address, Mapping[str, str]]
) -> Hosted:
    """What a decision about parts would do, with the button that stores it. ``titles``: the fields to show of each
    document."""
    return hosted("decide.html.j2", site, asked=asked, report=report, titles=titles)


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
