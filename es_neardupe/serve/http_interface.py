"""HTTP interface: what the commands return, as JSON, read-only, with an OpenAPI document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from es_neardupe.commands.contained import contained
from es_neardupe.commands.decide import decide, withdraw
from es_neardupe.commands.documents import documents
from es_neardupe.commands.groups import groups as groups_of
from es_neardupe.commands.similar import similar
from es_neardupe.commands.stats import stats
from es_neardupe.display_text import validation_message
from es_neardupe.errors import LoginRefused, NeardupeError, SettingsError
from es_neardupe.groups.collate import MAX_MEMBERS, collate_group
from es_neardupe.groups.decisions import Decisions
from es_neardupe.groups.read import unknown_group
from es_neardupe.groups.reviewed import ReviewedGroups
from es_neardupe.index.index import Index, opened
from es_neardupe.index.permissions import check_sees_all
from es_neardupe.index.shown_fields import shown_fields
from es_neardupe.json_models import (
    AddressQuery,
    CollationAnswer,
    ComparisonAnswer,
    ContainedAnswer,
    ContainedQuery,
    DecisionAnswer,
    DecisionQuery,
    DecisionReportAnswer,
    DecisionsAnswer,
    DocumentAnswer,
    DocumentsAnswer,
    GroupAnswer,
    GroupsAnswer,
    PartsQuery,
    ProblemAnswer,
    SimilarAnswer,
    SimilarQuery,
    StatsAnswer,
    VerdictQuery,
)
from es_neardupe.json_results import group_json, groups_json, plain, similar_json
from es_neardupe.match_options import MatchOptions
from es_neardupe.records import Address
from es_neardupe.serve import parameters
from es_neardupe.serve.answers import PROBLEM_JSON, problem, refusal
from es_neardupe.serve.guard import INTERFACE
from es_neardupe.serve.large_work import large_work
from es_neardupe.signatures import defaults_of
from es_neardupe.similarity.comparison import MAX_CHARS
from es_neardupe.verification.texts_to_compare import compared, read_texts
from es_neardupe.views.document_pages import by_address, part_of_document
from es_neardupe.views.group_pages import page_of_groups, read_after

_PROBLEM: dict[str, Any] = {
    "description": "Problem JSON (RFC 9457)",
    "content": {PROBLEM_JSON: {"schema": {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}}},
}
_TOKEN = {"token": {"type": "http", "scheme": "bearer", "description": "The token that `es-neardupe serve` printed."}}
_LOGINS = {
    "password": {"type": "http", "scheme": "basic", "description": "User and password of the search server."},
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token of the search server."},
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`ApiKey ` and an API key of the search server.",
    },
}
_SIMILAR, _CONTAINED, _DOCUMENTS = defaults_of(similar), defaults_of(contained), defaults_of(documents)


class _Request(Request):
    """A request whose JSON has each name of an object once."""

    async def json(self) -> Any:
        return json.loads(await self.body(), object_pairs_hook=_object)


class _Route(APIRoute):
    """A route that reads bodies so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_Request(request.scope, request.receive))

        return handler


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    _check_once(name for name, _ in pairs)
    return dict(pairs)


def _check_once(names: Iterable[str]) -> None:
    """Refuse a name that is given several times, of which only the last value would count."""
    for name, number in Counter(names).items():
        if number > 1:
            raise SettingsError(f"{name!r} is given {number} times: give it once.")


class _Described(FastAPI):
    """An application whose OpenAPI document names the form of errors and the ways to log in."""

    def __init__(self, schemes: Mapping[str, Any], **settings: Any) -> None:
        """``schemes``: security schemes, of which a request needs one."""
        super().__init__(**settings, generate_unique_id_function=lambda route: route.name)
        self.router.route_class = _Route
        self._schemes = schemes

    def openapi(self) -> dict[str, Any]:
        """The document."""
        if self.openapi_schema is None:
            document = super().openapi()
            document["components"]["schemas"][ProblemAnswer.__name__] = ProblemAnswer.model_json_schema()
            document["components"]["securitySchemes"] = dict(self._schemes)
            for path in document["paths"].values():
                for operation in path.values():
                    operation["security"] = [{name: []} for name in self._schemes]
        return super().openapi()


def _check_names(request: Request) -> None:
    """Refuse a parameter that the path does not have, such as a misspelled one, and several values of a single one."""
    operation = request.app.openapi()["paths"][request.scope["route"].path][request.method.lower()]
    known = {one["name"]: one["schema"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    if unknown := [name for name in request.query_params if name not in known]:
        has = f"Its parameters: {', '.join(known)}." if known else "It has none."
        raise SettingsError(f"{unknown[0]!r} is not a parameter of this path. {has}")
    lists = {
        name for name, one in known.items() if any(kind.get("type") == "array" for kind in one.get("anyOf", [one]))
    }
    _check_once(name for name, _ in request.query_params.multi_items() if name not in lists)


_UNREADABLE = {UnicodeDecodeError: "it is not valid UTF-8", RecursionError: "it is nested too deeply"}
"""Kind of error by which FastAPI does not read a body -> why."""


def _answer_errors(app: FastAPI, *, allow_decisions: bool, logins: bool) -> None:
    """Answer each request that fails with problem JSON."""

    @app.exception_handler(NeardupeError)
    def error(request: Request, error: NeardupeError) -> JSONResponse:
        return refusal(error, status=401 if logins and isinstance(error, LoginRefused) else None)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        wrong = dict.fromkeys(map(_said_wrong, error.errors()))
        return problem(400, "; ".join(wrong), SettingsError.__name__)

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 404:
            return problem(404, f"There is no {request.url.path} here: {INTERFACE}/openapi.json lists all paths.")
        if isinstance(error.__cause__, SettingsError):
            return refusal(error.__cause__)
        if why := next((why for kind, why in _UNREADABLE.items() if isinstance(error.__cause__, kind)), None):
            return problem(400, f"body: {why}", SettingsError.__name__)
        if error.status_code != 405:
            answer = problem(error.status_code, str(error.detail))
            answer.headers.update(error.headers or {})
            return answer
        allowed = ", ".join(sorted(_methods(app, request)))
        detail = f"This path has no {request.method}, only {allowed}."
        if not allow_decisions and "/decisions" in request.url.path:
            detail = "Programs may read decisions only: start `es-neardupe serve` with --allow-decisions."
        answer = problem(405, detail)
        answer.headers["Allow"] = (
            allowed  # that of the error names the methods of one route, and a path may have several
        )
        return answer

    @app.exception_handler(Exception)
    def failed(request: Request, error: Exception) -> JSONResponse:
        return problem(500, "es-neardupe failed: what it logged says why.")


def http_interface(
    index_of: Callable[[Request], Index],
    name: str,
    fields: Sequence[str],
    reviewed: ReviewedGroups,
    *,
    allow_decisions: bool = False,
    logins: bool = False,
) -> FastAPI:
    """The application below ``/api``. ``name`` is that of the index, and ``index_of`` the index with the login of a
    request; ``logins``: each request carries its own. Errors are problem JSON (RFC 9457). ``allow_decisions``: programs
    may store and withdraw decisions."""
    how = "your login of the search server" if logins else "the token as Authorization: Bearer TOKEN"
    app = _Described(
        _LOGINS if logins else _TOKEN,
        title=f"es-neardupe: {name}",
        description=f"Near-duplicates in one index. Send {how}.",
        version=version("es-neardupe"),
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        responses={"4XX": _PROBLEM, "5XX": _PROBLEM},
        dependencies=[Depends(_check_names)],
        redirect_slashes=False,
    )

    _answer_errors(app, allow_decisions=allow_decisions, logins=logins)

    @app.get("/groups", response_model=GroupsAnswer, summary="Page of groups, from the registry")
    def groups(request: Request, query: Annotated[parameters.GroupsQuery, Query()]) -> Any:
        selection, after, size = query.selection, query.after, query.size
        return groups_json(
            page_of_groups(index_of(request), selection, after=after, size=size, fields=fields, reviewed=reviewed)
        )

    @app.get(
        "/groups/{group}",
        response_model=GroupAnswer,
        response_model_exclude_unset=True,
        summary="One group: `groups --group ID`",
    )
    def group(request: Request, group: parameters.Group) -> Any:
        index = index_of(request)
        found = groups_of(index, group=group, fields=fields)
        if not found:
            raise unknown_group(opened(index, groups=True), group)
        return group_json(found[0])

    @app.get(
        "/groups/{group}/collation",
        response_model=CollationAnswer,
        summary="What differs in a page of the members of a group, as a text and a table",
    )
    def collation(
        request: Request,
        *,
        group: parameters.Group,
        start: parameters.Start = 0,
        size: parameters.Members = MAX_MEMBERS,
        reference: parameters.Reference = None,
        reference_index: parameters.ReferenceIndex = None,
        places: parameters.FirstPlace = 1,
        sort: parameters.Sort = "",
    ) -> Any:
        current = opened(index_of(request), texts=True)
        return plain(
            collate_group(
                current,
                group,
                shown_fields(current, fields, origin=True),
                start=start,
                size=size,
                reference=by_address(reference, reference_index),
                first_place=places,
                order=sort,
            )
        )

    @app.get("/document", response_model=DocumentAnswer, summary="A document with its text")
    def document(
        request: Request,
        id: parameters.Id,
        index: parameters.ConcreteIndex = None,
        start: parameters.FirstCharacter = 0,
        characters: parameters.Characters = MAX_CHARS,
    ) -> Any:
        found = part_of_document(index_of(request), by_address(id, index), fields, start=start, size=characters)
        return plain(found)

    @app.get("/compare", response_model=ComparisonAnswer, summary="Two documents: `compare`")
    def compare_documents(
        request: Request,
        a: parameters.Id,
        b: parameters.Id,
        a_index: parameters.ConcreteIndex = None,
        b_index: parameters.ConcreteIndex = None,
    ) -> Any:
        return _compared(index_of(request), by_address(a, a_index), by_address(b, b_index), fields)

    @app.get(
        "/similar",
        response_model=SimilarAnswer,
        response_model_exclude_unset=True,
        summary="Near-duplicates of a document: `similar --id`",
    )
    def similar_to_document(
        request: Request,
        *,
        id: parameters.Id,
        index: parameters.ConcreteIndex = None,
        min: parameters.Minimum = None,
        top: parameters.Top = _SIMILAR["top"],
        within: parameters.Within = None,
        across: parameters.Across = None,
        facts: parameters.Facts = None,
    ) -> Any:
        document, current = by_address(id, index), index_of(request)
        rules: MatchOptions = {"min": min, "within": within, "across": across, "facts": facts}
        found = similar(current, id=document, top=top, fields=fields, **rules)
        return plain(similar_json(found))

    @app.get("/documents", response_model=DocumentsAnswer, summary="Documents with chunks in common: `documents`")
    def documents_of_chunks(
        request: Request,
        by: parameters.By,
        min: parameters.Minimum = None,
        top: parameters.TopPairs = _DOCUMENTS["top"],
    ) -> Any:
        return plain(documents(index_of(request), by=by, min=min, top=top))

    @app.post(
        "/similar",
        response_model=SimilarAnswer,
        response_model_exclude_unset=True,
        summary="Near-duplicates of a text: `similar --text`",
    )
    def similar_to_text(request: Request, query: SimilarQuery) -> Any:
        current, text = index_of(request), query.text
        found = similar(current, text=text, min=query.min, top=query.top, facts=query.facts, fields=fields)
        return plain(similar_json(found))

    @app.get("/contained", response_model=ContainedAnswer, summary="Contained documents: `contained --id`")
    def contained_in_document(
        request: Request,
        *,
        id: parameters.Id,
        index: parameters.ConcreteIndex = None,
        min: parameters.MinimumShare = _CONTAINED["min"],
        top: parameters.Top = _CONTAINED["top"],
        ignore_common: parameters.IgnoreCommon = None,
    ) -> Any:
        document = by_address(id, index)
        return plain(contained(index_of(request), id=document, min=min, top=top, ignore_common=ignore_common))

    @app.post("/contained", response_model=ContainedAnswer, summary="Contained documents: `contained --text`")
    def contained_in_text(request: Request, query: ContainedQuery) -> Any:
        minimum, common = _CONTAINED["min"] if query.min is None else query.min, query.ignore_common
        return plain(contained(index_of(request), text=query.text, min=minimum, top=query.top, ignore_common=common))

    @app.get("/stats", response_model=StatsAnswer, summary="Documents and groups: `stats`")
    def statistics(request: Request) -> Any:
        return plain(stats(index_of(request)))

    @app.get("/decisions", response_model=DecisionsAnswer, summary="Page of decisions of reviewers, newest first")
    def decisions(
        request: Request,
        *,
        author: parameters.Author = None,
        verdict: parameters.ByVerdict = None,
        withdrawn: parameters.Withdrawn = None,
        after: parameters.After = None,
        size: parameters.Size = 50,
    ) -> Any:
        current = opened(index_of(request), groups=True)
        check_sees_all(current, "the list of decisions")
        store = Decisions(current)
        found = store.page(author=author, verdict=verdict, withdrawn=withdrawn, after=read_after(after), size=size)
        return {
            "total": found.total,
            "decisions": plain(found.decisions),
            "after": None if found.after is None else json.dumps(found.after),
        }

    if allow_decisions:

        @app.post("/decisions", response_model=DecisionReportAnswer, summary="Store a decision")
        def store_decision(request: Request, query: DecisionQuery) -> Any:
            said: dict[str, Any]
            if isinstance(query, PartsQuery):
                said = {"parts": [[_document(one) for one in part] for part in query.parts]}
            else:
                others = [_document(one) for one in query.others]
                said = {"verdict": query.verdict, "id": _document(query.id), "others": others}
            return plain(decide(index_of(request), **said, author=query.author, note=query.note, dry_run=query.dry_run))

        @app.delete("/decisions/{id}", response_model=DecisionAnswer, summary="Withdraw a decision")
        def withdraw_decision(request: Request, id: parameters.DecisionId) -> Any:
            return plain(withdraw(index_of(request), [id])[0])

    return app


_TYPES = {
    "str",
    "constrained-str",
    "constrained-float",
    "literal['auto']",
    *(one.__name__ for one in (AddressQuery, VerdictQuery, PartsQuery)),
}


def _compared(index: Index, a: str | Address, b: str | Address, fields: Sequence[str]) -> Any:
    current = opened(index, texts=True)
    texts = read_texts(current, a, b, fields)
    with large_work(texts.characters):
        return plain(compared(current, texts))


def _document(given: str | AddressQuery) -> str | Address:
    return given if isinstance(given, str) else given.address


def _methods(app: FastAPI, request: Request) -> set[str]:
    """The methods of all routes with the path of a request."""
    routes = (one for one in app.routes if isinstance(one, Route) and one.matches(request.scope)[0] is not Match.NONE)
    return {method for one in routes for method in one.methods or ()}


def _said_wrong(error: Mapping[str, Any]) -> str:
    place = _place(error["loc"])
    if place == "body" and error["type"] == "model_attributes_type":
        return "body: it must be a JSON object, sent with Content-Type: application/json"
    return f"{place}: {validation_message(error)}"


def _place(parts: Sequence[str | int]) -> str:
    """The part of a request that is wrong: its name, without those of the types that were tried."""
    names = [str(one) for one in parts[1:] if one not in _TYPES]
    return ".".join(names) if names and not names[0].isdecimal() else "body"
