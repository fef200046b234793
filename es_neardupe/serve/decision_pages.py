"""Pages on which reviewers decide, see what was decided, take it back, and export it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from es_neardupe.commands.decide import DecisionReport, decide, withdraw
from es_neardupe.errors import SettingsError
from es_neardupe.groups.decisions import Decisions, Verdict
from es_neardupe.groups.reviewed import ReviewedGroups, is_open
from es_neardupe.index.index import Index, opened
from es_neardupe.index.permissions import check_sees_all
from es_neardupe.index.shown_fields import ShownFields, shown_fields
from es_neardupe.json_results import plain
from es_neardupe.pages.application import Site
from es_neardupe.pages.decisions import DecisionRequest, decision_preview_page, decisions_page
from es_neardupe.records import Address
from es_neardupe.serve.answers import page_answer
from es_neardupe.serve.guard import check_form
from es_neardupe.serve.site_pages import PATIENCE
from es_neardupe.server.bulk import chunked
from es_neardupe.tables import Cell, Table, check_format, has_format
from es_neardupe.views.group_pages import next_to_review, read_after, titles_of

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
    def store(
        request: Request,
        *,
        verdict: Annotated[str, Form()],
        group: Annotated[str, Form()] = "",
        document: Annotated[list[str], Form()],
        part: Annotated[list[str] | None, Form()] = None,
        chosen: Annotated[list[str] | None, Form()] = None,
        csrf: Annotated[str, Form()] = "",
        note: Annotated[str, Form()] = "",
        page: Annotated[str, Form()] = "",
        confirmed: Annotated[str, Form()] = "",
        following: Annotated[str, Form()] = "",
    ) -> Response:
        """A decision about two texts is stored at once; for one about more, the answer is a preview, unless it is
        ``confirmed``: the page has shown one. Then the page with the ``following`` documents of the group is shown, or
        the next open group; after a decision about two of many texts, their group as long as it is open."""
        current = site(request)
        _check(request, current, csrf, group, page)
        asked = _asked(verdict, document, part or [], chosen or [], group=group, page=page, note=note)
        at_once = bool(confirmed) or asked.verdict in ("keep", "note") or len(asked.documents) == 2
        index = index_of(request)
        report = _decide(index, asked, current.reviewer, dry_run=True)
        if not at_once or report.contradictions:
            return _preview(current, opened(index, groups=True), fields, asked, report)
        report = _decide(index, asked, current.reviewer)
        made = report.decisions[0].id
        if asked.verdict in ("keep", "note") or not group:
            return RedirectResponse(current.back_link(page, group, stored=made, of=group), 303)
        if len(asked.documents) == 2 and is_open(opened(index, groups=True), group):
            return RedirectResponse(current.link("/group", id=group, stored=made, of=group), 303)
        if following:
            return RedirectResponse(current.back_link(following, group, stored=made, of=group), 303)
        return RedirectResponse(current.link("/next", after=group, stored=made), 303)

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
        if not (group or page):
            return RedirectResponse(current.link("/decisions"), 303)
        return RedirectResponse(current.back_link(page, group, withdrawn=withdrawn[0].id), 303)

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
        return RedirectResponse(current.back_link(page, group), 303)

    @routes.post("/reviewer")
    def reviewer(request: Request, name: Annotated[str, Form()], csrf: Annotated[str, Form()] = "") -> Response:
        _check(request, site(request), csrf)
        return _named(request, name, site(request).link("/"))

    @routes.get("/next")
    def next_group(request: Request, after: str = "", stored: str = "") -> Response:
        current = site(request)
        found = next_to_review(index_of(request), reviewed, after or None, current.reviewer, PATIENCE)
        just = {"stored": stored, "of": after if stored else ""}
        if found is None:
            return RedirectResponse(current.link("/groups", review="open", **just), 303)
        return RedirectResponse(current.link("/group", id=found, **just), 303)

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
                authors=store.totals(withdrawn=True),
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


def _named(request: Request, name: str, there: str) -> Response:
    """A redirection that sets the cookie with the name of the reviewer."""
    name = " ".join(name.split())[:100]
    if not name or not name.isprintable():
        raise SettingsError("The name of a reviewer must have 1 to 100 printable characters.")
    answer = RedirectResponse(there, 303)
    path, secure = request.scope.get("root_path") or "/", request.scope["scheme"] == "https"
    answer.set_cookie(REVIEWER, quote(name), max_age=_YEAR, httponly=True, samesite="strict", secure=secure, path=path)
    return answer


def _check(request: Request, current: Site, csrf: str, group: str = "", page: str = "") -> None:
    """Raises `Forbidden` if a form is from elsewhere. The page of an error has a link back to the page of the form."""
    request.state.back = current.back_link(page, group) if group or page else None
    check_form(csrf, current.csrf)


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
    verdict: str,
    documents: Sequence[str],
    numbers: Sequence[str],
    chosen: Sequence[str],
    *,
    group: str,
    page: str,
    note: str,
) -> DecisionRequest:
    """What the form asks for. Each document is given as by `Site.form_value`; ``chosen`` are contents; ``numbers`` the
    parts of the documents of a split."""
    given = [_document(one) for one in documents]
    seen: dict[str | Address, str] = dict(given)
    some = [address for address, content in given if content in chosen]
    others = [address for address, content in given if content not in chosen]
    if verdict == "keep" and len(some) > 1:
        raise SettingsError("Choose the one document to keep.")
    if verdict == "split":
        if len(numbers) != len(given):
            raise _incomplete()
        by_part: dict[str, list[Address]] = {}
        for (address, _), number in zip(given, numbers, strict=True):
            if number:
                by_part.setdefault(number, []).append(address)
        parts = list(by_part.values())
    elif verdict in ("keep", "note"):
        parts = [some or [given[0][0]]]
    elif verdict == "same":
        parts = [[address for address, _ in given]]
    elif verdict == "different" and some and others:
        parts = [others, some]
    elif verdict in ("different", "apart"):
        parts = [[address] for address, _ in given]
    else:
        raise SettingsError(f"Unknown verdict {verdict!r}. Known: same, different, apart, split, keep, note.")
    return DecisionRequest(verdict, group, page, parts, note.strip() or None, seen)


def _decide(index: Index, asked: DecisionRequest, author: str, *, dry_run: bool = False) -> DecisionReport:
    if asked.verdict in ("keep", "note"):
        document, *others = asked.documents
        return decide(
            index,
            asked.verdict,
            document,
            others,
            author=author,
            note=asked.note,
            seen=asked.seen,
            dry_run=dry_run,
        )
    return decide(index, parts=asked.parts, author=author, note=asked.note, seen=asked.seen, dry_run=dry_run)


def _incomplete() -> SettingsError:
    return SettingsError("The form is not complete: open the page again.")


def _document(given: str) -> tuple[Address, str]:
    content, _, address = given.partition(" ")
    index, _, id = address.partition(" ")
    if not (content and index and id):
        raise _incomplete()
    return Address(index, unquote(id)), content


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
        yield json.dumps(plain(one), ensure_ascii=False) + "\n"


def decisions_table(index: Index, shown: ShownFields) -> Table:
    """All decisions, also withdrawn ones, with the titles of their documents ``a`` and ``b``; ``b`` is None of a
    decision about only one document. One about parts has a row for each pair of its texts."""
    return Table(_COLUMNS, _rows(index, shown))


def _rows(index: Index, shown: ShownFields) -> Iterator[list[Cell]]:
    for chunk in chunked(Decisions(index).all(), 500):
        titles = titles_of(index, shown, [two for one in chunk for two in one.documents])
        for one in chunk:
            row: dict[str, Cell] = dict.fromkeys(_COLUMNS)
            row |= {name: getattr(one, name) for name in _OWN} | {"verdict": one.verdict.value}
            pairs = [*one.pairs()] if len(one.contents) > 2 else [(one.contents, one.verdict)]
            for contents, verdict in pairs:
                row["verdict"] = verdict.value
                for end, content in zip("ab", contents, strict=False):
                    address = one.document(content)
                    title = next((value for value in titles.get(address, {}).values() if value), "")
                    sides = (address.index, address.id, title, content)
                    row |= {f"{end}_{side}": value for side, value in zip(_SIDES, sides, strict=True)}
                yield list(row.values())
