"""Functions as tools of the Model Context Protocol: what a client can call, and what it is answered.

An answer is compact JSON as a text, which every client shows to its model. Tools have no output schemas: these would be
most of what a client reads before it calls any, and the protocol then wants each answer twice, also as a text.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from es_neardupe.display_text import validation_message
from es_neardupe.errors import NeardupeError


class Tool:
    """A function whose parameters are those of a tool, and its docstring the description."""

    def __init__(self, function: Callable[..., Mapping[str, Any]]) -> None:
        self._function = function
        self.name = function.__name__
        given = inspect.signature(function, eval_str=True).parameters.values()
        parts: dict[str, Any] = {
            one.name: (one.annotation, ... if one.default is one.empty else one.default) for one in given
        }
        self._arguments: type[BaseModel] = create_model(self.name, __config__=ConfigDict(extra="forbid"), **parts)

    @property
    def described(self) -> types.Tool:
        """The tool as a client lists it."""
        return types.Tool(
            name=self.name,
            description=inspect.getdoc(self._function),
            inputSchema=_shortened(self._arguments.model_json_schema()),
            annotations=types.ToolAnnotations(readOnlyHint=True, openWorldHint=False),
        )

    async def call(self, given: Mapping[str, Any]) -> str:
        """What the function returns, as compact JSON, made in a thread. Raises `ToolError` for wrong arguments, and if
        the function raises a `NeardupeError`."""
        try:
            arguments = self._arguments.model_validate(given)
            values = {name: getattr(arguments, name) for name in type(arguments).model_fields}
            return compact(await anyio.to_thread.run_sync(lambda: self._function(**values)))
        except ValidationError as error:
            wrong = dict.fromkeys(map(self._wrong, error.errors()))
            raise ToolError(f"{'; '.join(wrong)}.") from None
        except NeardupeError as error:
            raise ToolError(str(error)) from None

    def _wrong(self, error: Any) -> str:
        name = str(error["loc"][0]) if error["loc"] else "arguments"
        if error["type"] == "extra_forbidden":
            has = ", ".join(self._arguments.model_fields) or "none"
            return f"`{name}` is not a parameter of {self.name}, which has {has}"
        if error["type"] == "missing":
            return f"`{name}` is required"
        return f"`{name}`: {validation_message(error)}"


class ToolError(Exception):
    """What a client is answered instead of a result."""


def server_of(functions: Sequence[Callable[..., Mapping[str, Any]]], instructions: str) -> Server[Any, Any]:
    """A server with these functions as its tools."""
    logging.getLogger("mcp").setLevel(logging.ERROR)  # a wrong request is answered, and nothing for the log
    server: Server[Any, Any] = Server("es-neardupe", version("es-neardupe"), instructions)
    tools = {one.name: one for one in map(Tool, functions)}

    @server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
    async def listed() -> list[types.Tool]:
        return [one.described for one in tools.values()]

    @server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]
    async def called(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
        if name not in tools:
            raise ToolError(f"Unknown tool {name!r}. Known: {', '.join(tools)}.")
        return [types.TextContent(type="text", text=await tools[name].call(arguments))]

    return server


def run_over_stdio(server: Server[Any, Any]) -> None:
    """Answer a client over stdin and stdout, until it ends."""

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def http_application(server: Server[Any, Any]) -> Starlette:
    """An application that answers clients at ``/mcp`` (streamable HTTP). It does not check hosts and origins.

    No tool remembers anything, so there are no sessions, which a restart would end: each request is answered alone.
    """
    sessions = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    return Starlette(routes=[Route("/mcp", _Endpoint(sessions))], lifespan=lambda app: sessions.run())


class _Endpoint:
    """An object, because a route takes a function as one that answers with a response."""

    def __init__(self, sessions: StreamableHTTPSessionManager) -> None:
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a body that is not JSON itself: the library takes some kinds of errors for its own."""
        body = await Request(scope, receive).body()
        try:
            if scope["method"] == "POST":
                json.loads(body)
        except (ValueError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            wrong = types.ErrorData(code=types.PARSE_ERROR, message=f"The body is not valid JSON: {why}.")
            answer = {"jsonrpc": "2.0", "id": None, "error": wrong.model_dump(exclude_none=True)}
            await JSONResponse(answer, 400)(scope, receive, send)
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._sessions.handle_request(scope, replay, send)


def compact(value: Any) -> str:
    """JSON without spaces and without values that are None. Numbers have four decimal places; only 1 itself is 1."""
    text = json.dumps(_short(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()  # a document can have half of a surrogate pair


def _short(value: Any) -> Any:
    if isinstance(value, float):
        rounded = round(value, 4)
        return 0.9999 if rounded == 1 > value else rounded
    if isinstance(value, Mapping):
        return {name: _short(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_short(one) for one in value]
    return value


def _shortened(schema: Any) -> Any:
    """A JSON schema without titles, and without null where a parameter can be omitted."""
    if isinstance(schema, list):
        return [_shortened(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    shorter = {name: _shortened(one) for name, one in schema.items() if not (name == "title" and isinstance(one, str))}
    if shorter.get("default", ...) is None:
        del shorter["default"]
        kinds = [one for one in shorter.pop("anyOf", ()) if one != {"type": "null"}]
        shorter = {**(kinds[0] if len(kinds) == 1 else {"anyOf": kinds}), **shorter}
    return shorter
