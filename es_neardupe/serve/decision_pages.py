"""Pages on which reviewers decide, see what was decided, take it back, and export it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from es_neardupe.commands.decide import DecisionReport, decide, withdraw
from es_neardupe.commands.group_pages import next_to_review, read_after, titles_of
from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.groups.decisions import Decisions, Verdict
from es_neardupe.groups.reviewed import ReviewedGroups
from es_neardupe.index.index import Index, opened
from es_neardupe.index.permissions import check_sees_all
from es_neardupe.index.shown_fields import ShownFields, shown_fields
from es_neardupe.json_results import decision_json
from es_neardupe.pages.application import Site
from es_neardupe.pages.decisions import DecisionRequest, decision_preview_page, decisions_page
from es_neardupe.records import Address
from es_neardupe.serve.answers import page_answer
from es_neardupe.serve.guard import same
from es_neardupe.serve.site_pages import PATIENCE
from es_neardupe.server.bulk import chunked
from es_neardupe.tables import Cell, Table, check_format, has_format

REVIEWER = "es-neardupe-reviewer"
"""Cookie with the name of the reviewer, percent-encoded."""

_DECISIONS = 100
"""Decisions on a page."""

_EXPORTS = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
"""Format -> media type."""

_YEAR = 365 * 24 * 3600


def decision_pages(
    index_of: Callable[[Request], Index],
    fields: Sequence[str],
    site: Callable[[Request], Site],
    reviewed: ReviewedGroups,
) -> APIRouter:
    """The routes. ``index_of``: the index with the login of a request. ``fields`` are shown of documents."""
    routes = APIRouter(default_response_class=HTMLResponse)

    @routes.post("/decide")
    def preview(
        request: Request,
        *,
        verdict: Annotated[str, Form()],
        group: Annotated[str, Form()],
        reference: Annotated[str, Form()],
        csrf: Annotated[str, Form()] = "",
        member: Annotated[list[str] | None, Form()] = None,
        note: Annotated[str, Form()] = "",
        page: Annotated[str, Form()] = "",
        confirmed: Annotated[bool, Form()] = False,
    ) -> Response:
        current = site(request)
        _check(request, current, csrf, group, page)
        asked = _asked(verdict, reference, member or [], group=group, page=page, note=note)
        report = decide(
            index_of(request),
            asked.verdict,
            asked.document,
            asked.others,
            author=current.reviewer,
            note=asked.note,
            seen=asked.seen,
            dry_run=not confirmed,
        )
        if confirmed:
            done = f"{report.stored} stored" if report.stored else "already decided"
            return RedirectResponse(current.group_link(group, page, done=done), 303)
        return _preview(current, opened(index_of(request), groups=True), fields, asked, report)

    @routes.post("/withdraw")
    def take_back(
        request: Request,
        decision: Annotated[list[str], Form()],
        csrf: Annotated[str, Form()] = "",
        group: Annotated[str, Form()] = "",
        page: Annotated[str, Form()] = "",
    ) -> Response:
        current = site(request)
        _check(request, current, csrf, group, page)
        withdrawn = withdraw(index_of(request), decision)
        if not group:
            return RedirectResponse(current.link("/decisions"), 303)
        names = current.of(opened(index_of(request), groups=True)).names(withdrawn)
        return RedirectResponse(current.group_link(group, page, done=f"Withdrawn: {names}"), 303)

    @routes.post("/claim")
    def claim(
        request: Request,
        group: Annotated[str, Form()],
        csrf: Annotated[str, Form()] = "",
        page: Annotated[str, Form()] = "",
    ) -> Response:
        current = site(request)
        _check(request, current, csrf, group, page)
        Decisions(opened(index_of(request), groups=True)).claim(group, current.reviewer)
        return RedirectResponse(current.group_link(group, page), 303)

    @routes.post("/reviewer")
    def reviewer(request: Request, name: Annotated[str, Form()], csrf: Annotated[str, Form()] = "") -> Response:
        _check(request, site(request), csrf)
        name = " ".join(name.split())[:100]
        if not name or not name.isprintable():
            raise SettingsError("The name of a reviewer must have 1 to 100 printable characters.")
        answer = RedirectResponse(site(request).link("/"), 303)
        path = request.scope.get("root_path") or "/"
        secure = request.scope["scheme"] == "https"
        answer.set_cookie(
            REVIEWER, quote(name), max_age=_YEAR, httponly=True, samesite="strict", secure=secure, path=path
        )
        return answer

    @routes.get("/next")
    def next_group(request: Request, after: str = "") -> Response:
        current = site(request)
        found = next_to_review(index_of(request), reviewed, after or None, current.reviewer, PATIENCE)
        there = current.link("/groups", review="open") if found is None else current.link("/group", id=found)
        return RedirectResponse(there, 303)

    @routes.get("/decisions")
    def listed(
        request: Request,
        author: str = "",
        verdict: str = "",
        state: Annotated[str, Query(pattern="^(|holding|withdrawn)$")] = "",
        after: str = "",
    ) -> HTMLResponse:
        current = opened(index_of(request), groups=True)
        check_sees_all(current, "the list of decisions")
        store = Decisions(current)
        found = store.page(
            author=author or None,
            verdict=_verdict(verdict) if verdict else None,
            withdrawn=None if not state else state == "withdrawn",
            after=read_after(after),
            size=_DECISIONS,
        )
        documents = [two for one in found.decisions for two in one.documents]
        titles = titles_of(current, shown_fields(current, fields), documents)
        given = {"author": author, "verdict": verdict, "state": state}
        following = None if found.after is None else json.dumps(found.after)
        return page_answer(
            decisions_page(
                site(request).of(current),
                found,
                titles,
                given=given,
                authors=store.totals(),
                after=following,
                parquet=has_format("parquet"),
            )
        )

    @routes.get("/decisions/export")
    def export(
        request: Request, form: Annotated[str, Query(pattern="^(csv|jsonl|parquet)$", alias="format")]
    ) -> Response:
        check_format(form)
        current = opened(index_of(request), groups=True)
        check_sees_all(current, "the list of decisions")
        lines = decisions_jsonl(current) if form == "jsonl" else None
        exported = lines or decisions_table(current, shown_fields(current, fields)).encoded(form)
        headers = {"Content-Disposition": f'attachment; filename="decisions.{form}"'}
        return StreamingResponse(exported, media_type=_EXPORTS[form], headers=headers)

    return routes


def _check(request: Request, current: Site, csrf: str, group: str = "", page: str = "") -> None:
    """Raises `Forbidden` if a form is from elsewhere. The page of an error has a link back to the page of the group."""
    request.state.back = current.group_link(group, page) if group else None
    if not same(csrf, current.csrf):
        raise Forbidden("The form is not from this application: open the page again.", status=403)


def _preview(
    site: Site, index: Index, fields: Sequence[str], asked: DecisionRequest, report: DecisionReport
) -> HTMLResponse:
    """The page of a decision that is not stored yet, with the fields to show of its documents."""
    seen = {address for one in report.decisions for address in one.documents}
    titles = titles_of(index, shown_fields(index, fields), sorted(seen))
    return page_answer(decision_preview_page(site.of(index), asked, report, titles))


def _verdict(name: str) -> Verdict:
    try:
        return Verdict(name)
    except ValueError:
        raise SettingsError(f"Unknown verdict {name!r}. Known: {', '.join(one.value for one in Verdict)}.") from None


def _asked(
    verdict: str, reference: str, members: Sequence[str], *, group: str, page: str, note: str
) -> DecisionRequest:
    """What the form asks for. Each document is given as ``CONTENT INDEX ID``, with the content hash that the reviewer
    saw."""
    chosen = _verdict(verdict)
    first, *others = dict.fromkeys([reference, *members])
    if chosen in (Verdict.KEEP, Verdict.NOTE) and others:
        first, *others = others  # about the chosen document, not about the principal
    if chosen is Verdict.KEEP and len(members) > 1:
        raise SettingsError("Choose the one document to keep.")
    if chosen.decides and not others:
        raise SettingsError("Choose at least one document besides the reference document.")
    given = [_document(one) for one in (first, *others)]
    document, *further = dict.fromkeys(address for address, _ in given)
    seen: dict[str | Address, str] = dict(given)
    return DecisionRequest(chosen, group, page, document, further, note.strip() or None, seen)


def _document(given: str) -> tuple[Address, str]:
    content, _, address = given.partition(" ")
    index, _, id = address.partition(" ")
    if not (content and index and id):
        raise SettingsError("The form is not complete: open the page again.")
    return Address(index, id), content


_OWN = ("verdict", "author", "at", "withdrawn", "similarity", "measure", "note")
_SIDES = ("index", "id", "title", "content")
_COLUMNS: dict[str, type] = {
    **dict.fromkeys(_OWN, str),
    "similarity": float,
    **dict.fromkeys((f"{end}_{side}" for end in "ab" for side in _SIDES), str),
}


def decisions_jsonl(index: Index) -> Iterator[str]:
    """All decisions, also withdrawn ones, as JSON lines."""
    for one in Decisions(index).all():
        yield json.dumps(decision_json(one), ensure_ascii=False) + "\n"


def decisions_table(index: Index, shown: ShownFields) -> Table:
    """All decisions, also withdrawn ones, with the titles of their documents ``a`` and ``b``; ``b`` is None of a
    decision about only one document."""
    return Table(_COLUMNS, _rows(index, shown))


def _rows(index: Index, shown: ShownFields) -> Iterator[list[Cell]]:
    for chunk in chunked(Decisions(index).all(), 500):
        titles = titles_of(index, shown, [two for one in chunk for two in one.documents])
        for one in chunk:
            row: dict[str, Cell] = dict.fromkeys(_COLUMNS)
            row |= {name: getattr(one, name) for name in _OWN} | {"verdict": one.verdict.value}
            for end, address, content in zip("ab", one.documents, one.contents, strict=False):
                title = next((value for value in titles.get(address, {}).values() if value), "")
                sides = (address.index, address.id, title, content)
                row |= {f"{end}_{side}": value for side, value in zip(_SIDES, sides, strict=True)}
            yield list(row.values())
