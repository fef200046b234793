"""Pages for people: overview, groups, one group, search."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from http import HTTPStatus
from typing import TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from starlette.datastructures import QueryParams

from es_neardupe.commands.search import search
from es_neardupe.commands.stats.counts import documents_in_scope
from es_neardupe.display_text import beginning
from es_neardupe.errors import NeardupeError, NotFound, RequestError, SettingsError
from es_neardupe.groups.collate import CollatedTexts, read_collated
from es_neardupe.groups.decisions import Decision, Decisions
from es_neardupe.groups.heaviest import KINDS, HeaviestDifferences
from es_neardupe.groups.listing import GroupFilter, GroupOrder, group_overview, queue_place
from es_neardupe.groups.read import end_of_group, known_records
from es_neardupe.groups.reviewed import (
    GroupFindings,
    ReviewedGroups,
    ReviewFilter,
    ReviewState,
    TitledPage,
    review_findings,
)
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import shown_fields
from es_neardupe.pages.application import Site
from es_neardupe.pages.bar import Said
from es_neardupe.pages.group import MAX_RELATED, group_file, group_page
from es_neardupe.pages.site import Offered, error_page, groups_error_page, groups_page, overview_page, search_page
from es_neardupe.serve.answers import page_answer, status_of
from es_neardupe.similarity.pair_relation import Relation
from es_neardupe.views.document_pages import by_address
from es_neardupe.views.group_pages import (
    MAX_WHOLE,
    DocumentFilter,
    GroupSelection,
    common_values,
    has_evidence,
    page_of_groups,
    read_values,
    titles_of,
    titles_of_groups,
)

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
    heaviest = HeaviestDifferences()

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
        offered = Offered(
            values=common_values(current, fields),
            relations=list(Relation) if has_evidence(current) else [],
            reviewers=list(Decisions(current).totals()),
        )
        own = site(request).of(current)
        try:
            selection = _selection(given)
            found = page_of_groups(
                current,
                selection,
                after=given.get("after"),
                size=_GROUPS,
                fields=fields,
                reviewed=reviewed,
                patience=PATIENCE,
                heaviest=heaviest,
            )
        except NeardupeError as error:
            if status_of(error) != HTTPStatus.BAD_REQUEST:
                raise
            values = {**given, "value": given.getlist("value")}
            return page_answer(groups_error_page(own, values, offered, _why(error)), 400)
        said = said_before(current, own, fields, given.get("stored", ""), given.get("of", ""))
        decided = _all_decided(current, selection, found)
        return page_answer(
            groups_page(own, found, selection, offered, first=not given.get("after"), all_decided=decided, said=said)
        )

    def collated(request: Request, current: Index, id: str) -> tuple[Site, CollatedTexts, GroupFindings]:
        given = request.query_params
        found = read_collated(
            current,
            id,
            shown_fields(current, fields, origin=True),
            start=_whole(given, "start") or 0,
            reference=by_address(given.get("reference") or None, given.get("reference_index")),
        )
        texts = [row.members[0].reference for row in found.rows]
        own = site(request).of(current)
        return own, found, review_findings(current, id, found.reference.reference, texts, own.reviewer)

    @routes.get("/group")
    def group(request: Request, id: str = "", stored: str = "", withdrawn: str = "", of: str = "") -> HTMLResponse:
        current = opened(index_of(request), texts=True)
        try:
            own, found, findings = collated(request, current, id)
        except NotFound as error:
            return _without_group(site(request), current, id, error)
        known = found.page.known or known_records(current, [id]).get(id)  # also if a document was deleted since
        place = queue_place(current, id, known.size) if known is not None and known.texts > 1 else None
        said = said_before(current, own, fields, stored or withdrawn, of)
        others = [*found.page.related[:MAX_RELATED], *found.page.same_form[:MAX_RELATED]]
        titles = titles_of_groups(current, shown_fields(current, fields), others)
        return page_answer(group_page(own, found, findings, titles=titles, queue=place, said=said))

    @routes.get("/group/file")
    def file_of_group(request: Request, id: str = "") -> HTMLResponse:
        current, found, findings = collated(request, opened(index_of(request), texts=True), id)
        page = group_file(current, found, findings, datetime.now(timezone.utc).isoformat(timespec="minutes"))
        return HTMLResponse(page, headers=_as_file(found.page.group))

    @routes.get("/search")
    def results(request: Request) -> HTMLResponse:
        text = request.query_params.get("q", "").strip()
        start = _whole(request.query_params, "start") or 0
        if not text:
            return page_answer(search_page(site(request), text, None))
        current = opened(index_of(request), groups=True)
        try:
            found = search(current, text, size=_HITS, start=start, fields=fields, expand=True)
        except NeardupeError as error:
            if status_of(error) != HTTPStatus.BAD_REQUEST:
                raise
            return page_answer(search_page(site(request), text, None, error=_why(error)), 400)
        return page_answer(search_page(site(request).of(current), text, found))

    return routes


def _without_group(site: Site, index: Index, group: str, error: NotFound) -> HTMLResponse:
    """The page of a group that does not exist, with links to the list and to the group that it is a part of now."""
    links = {"The list of groups": site.link("/groups")}
    end = end_of_group(index, group)
    if end is not None and end.group is not None:
        links["The group it was merged into"] = site.link("/group", id=end.group)
    return page_answer(error_page(site, str(error), links=links), 404)


def _as_file(group: str) -> dict[str, str]:
    """The header of an answer that is stored as a file."""
    name = re.sub(r"[^\w-]", "_", group, flags=re.ASCII)
    return {"Content-Disposition": f'attachment; filename="group-{name}.html"'}


def _why(error: NeardupeError) -> str:
    """Why a form has no answer."""
    if not isinstance(error, RequestError) or not error.reason:
        return str(error)
    return f"The query cannot be read. {error.reason}"


def _selection(given: QueryParams) -> GroupSelection:
    """The groups that a form asks for. Raises `SettingsError` for values that are not possible."""
    numbers = GroupFilter(
        min_size=_whole(given, "min_size", 2) or 2,
        max_size=_whole(given, "max_size", 2),
        min_similarity=_share(given, "min_similarity"),
        below=_share(given, "below"),
    )
    documents = DocumentFilter(
        text=given.get("q", "").strip(),
        values=read_values(given.getlist("value")),
        relation=chosen(Relation, given["relation"]) if given.get("relation") else None,
    )
    state = chosen(ReviewState, given["review"]) if given.get("review") else None
    review = ReviewFilter(state, given.get("reviewer") or None)
    order = chosen(GroupOrder, given.get("order") or GroupOrder.LARGEST.value)
    return GroupSelection(numbers, documents, review, order, _difference(given.get("difference", "")))


def _all_decided(index: Index, selection: GroupSelection, found: TitledPage) -> int:
    """The number of groups with different texts if all of them are asked for, and none is open."""
    asked = GroupSelection(review=ReviewFilter(ReviewState.OPEN), order=selection.order)
    if selection != asked or found.page.total or found.reading is not None:
        return 0
    return group_overview(index).different


def said_before(index: Index, site: Site, fields: Sequence[str], id: str, group: str) -> Said | None:
    """What the page says about the decision with this id, which its reviewer has just stored or withdrawn."""
    one = Decisions(index).get([id]).get(id) if id else None
    if one is None or one.author != site.reviewer:
        return None
    titles = titles_of(index, shown_fields(index, fields), one.documents[:1])
    title = next(filter(None, titles.get(one.documents[0], {}).values()), site.name(one.documents[0]))
    if one.withdrawn is not None:
        return Said("Taken back:", _words(one), site.names([one]).partition(": ")[2])
    return Said("Stored", _words(one), beginning(title, 60), one.id, group)


def _words(one: Decision) -> str:
    return one.verdict.value if one.parts is None else f"{max(one.parts)} parts"


def _difference(kind: str) -> str | None:
    if kind not in ("", *KINDS):
        raise SettingsError(f"{kind!r} is not possible here. Possible: {', '.join(KINDS)}.")
    return kind or None


def chosen(kind: type[_Choice], value: str) -> _Choice:
    """A value of a form. Raises `SettingsError` for one that is not possible."""
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
