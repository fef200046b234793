"""Pages for people: overview, groups, one group, two documents, search."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from typing import TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from es_neardupe.commands.compare.compare import compare
from es_neardupe.commands.group_pages import (
    MAX_WHOLE,
    DocumentFilter,
    GroupSelection,
    common_values,
    has_evidence,
    page_of_groups,
    read_values,
)
from es_neardupe.commands.search.search import search
from es_neardupe.commands.stats.counts import documents_in_scope
from es_neardupe.errors import SettingsError
from es_neardupe.groups.collate import GroupCollation, collate_group
from es_neardupe.groups.decisions import Decisions
from es_neardupe.groups.listing import GroupFilter, GroupOrder, group_overview
from es_neardupe.groups.reviewed import GroupFindings, ReviewedGroups, ReviewFilter, ReviewState, review_findings
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import shown_fields
from es_neardupe.options import Matching
from es_neardupe.pages.application import Site
from es_neardupe.pages.collation import group_file, group_page
from es_neardupe.pages.site import comparison_page, groups_page, overview_page, search_page
from es_neardupe.records import by_address
from es_neardupe.serve.answers import page_answer
from es_neardupe.similarity.pair_relation import Relation

PATIENCE = 0.3
"""Seconds that a page waits for the current states of reviews, if there are many decisions."""

_GROUPS = 50
"""Groups on a page."""

_HITS = 20
"""Hits of a search on a page."""

_Choice = TypeVar("_Choice", bound=Enum)


def site_pages(
    index_of: Callable[[Request], Index],
    fields: Sequence[str],
    site: Callable[[Request], Site],
    reviewed: ReviewedGroups,
) -> APIRouter:
    """The routes of the pages. ``index_of``: the index with the login of a request. ``fields`` are shown of
    documents."""
    routes = APIRouter(default_response_class=HTMLResponse)

    @routes.get("/")
    def overview(request: Request) -> HTMLResponse:
        current = opened(index_of(request))
        reviews = reviewed.read(current, PATIENCE)
        waiting = Decisions(current).count_waiting()
        documents, overview = documents_in_scope(current), group_overview(current)
        return page_answer(overview_page(site(request), documents, overview, reviews=reviews, waiting=waiting))

    @routes.get("/groups")
    def groups(request: Request) -> HTMLResponse:
        given, current = request.query_params, opened(index_of(request), groups=True)
        numbers = GroupFilter(
            min_size=_whole(given, "min_size", 2) or 2,
            max_size=_whole(given, "max_size", 2),
            min_similarity=_share(given, "min_similarity"),
            below=_share(given, "below"),
        )
        documents = DocumentFilter(
            text=given.get("q", "").strip(),
            values=read_values(given.getlist("value")),
            relation=_chosen(Relation, given["relation"]) if given.get("relation") else None,
        )
        state = _chosen(ReviewState, given["review"]) if given.get("review") else None
        review = ReviewFilter(state, given.get("reviewer") or None)
        order = _chosen(GroupOrder, given.get("order") or GroupOrder.LARGEST.value)
        selection = GroupSelection(numbers, documents, review, order)
        found = page_of_groups(
            current,
            selection,
            after=given.get("after"),
            size=_GROUPS,
            fields=fields,
            reviewed=reviewed,
            patience=PATIENCE,
        )
        return page_answer(
            groups_page(
                site(request).of(current),
                found,
                selection,
                values=common_values(current, fields),
                relations=list(Relation) if has_evidence(current) else [],
                reviewers=list(Decisions(current).totals()),
                first=not given.get("after"),
            )
        )

    def collated(request: Request, id: str) -> tuple[Site, GroupCollation, GroupFindings]:
        given, current = request.query_params, opened(index_of(request), texts=True)
        found = collate_group(
            current,
            id,
            shown_fields(current, fields, origin=True),
            start=_whole(given, "start") or 0,
            reference=given.get("reference") or None,
            reference_index=given.get("reference_index") or None,
            first_place=_whole(given, "places", 1) or 1,
            order=given.get("sort", ""),
        )
        texts = [row.members[0].reference for row in found.rows]
        own = site(request).of(current)
        return own, found, review_findings(current, id, found.reference.reference, texts, own.reviewer)

    @routes.get("/group")
    def group(request: Request, id: str = "") -> HTMLResponse:
        return page_answer(group_page(*collated(request, id), done=request.query_params.get("done", "")[:300]))

    @routes.get("/group/file")
    def file_of_group(request: Request, id: str = "") -> HTMLResponse:
        current, found, findings = collated(request, id)
        page = group_file(current, found, findings, datetime.now(timezone.utc).isoformat(timespec="minutes"))
        name = re.sub(r"[^\w-]", "_", found.group, flags=re.ASCII)
        headers = {"Content-Disposition": f'attachment; filename="group-{name}.html"'}
        return HTMLResponse(page, headers=headers)

    @routes.get("/compare")
    def two_documents(
        request: Request, a: str = "", b: str = "", a_index: str | None = None, b_index: str | None = None
    ) -> HTMLResponse:
        if not a or not b:
            raise SettingsError("Give the ids of two documents: a and b.")
        matching = _chosen(Matching, request.query_params.get("matching") or Matching.LITERAL.value)
        found = compare(index_of(request), by_address(a, a_index), by_address(b, b_index), fields=fields)
        return page_answer(comparison_page(site(request), found, matching))

    @routes.get("/search")
    def results(request: Request) -> HTMLResponse:
        text = request.query_params.get("q", "").strip()
        start = _whole(request.query_params, "start") or 0
        if not text:
            return page_answer(search_page(site(request), text, None))
        current = opened(index_of(request), groups=True)
        found = search(current, text, size=_HITS, start=start, fields=fields, expand=True)
        return page_answer(search_page(site(request).of(current), text, found))

    return routes


def _chosen(kind: type[_Choice], value: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        words = ", ".join(one.value for one in kind)
        raise SettingsError(f"{value!r} is not possible here. Possible: {words}.") from None


def _whole(values: Mapping[str, str], name: str, minimum: int = 0) -> int | None:
    """A whole number of a form; None if its field is empty. Raises `SettingsError` for anything else."""
    text = values.get(name, "").strip()
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,10}", text) or not minimum <= int(text) <= MAX_WHOLE:
        raise SettingsError(f"{name} must be a whole number from {minimum} to {MAX_WHOLE:,}, not {text!r}.")
    return int(text)


def _share(values: Mapping[str, str], name: str) -> float | None:
    """A number from 0 to 1 of a form; None if its field is empty. Raises `SettingsError` for anything else."""
    text = values.get(name, "").strip()
    if not text:
        return None
    if not re.fullmatch(r"[0-9]*\.?[0-9]+(e-?[0-9]{1,3})?", text) or not 0 <= float(text) <= 1:
        raise SettingsError(f"{name} must be a number from 0 to 1, not {text!r}.")
    return float(text)
