"""`mcp` on a real index, with the client of the same package: each tool says what the command of its name does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

import anyio
import httpx
import pytest
from conftest import Cli
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import CallToolResult
from page_reader import NASTY
from server_tools import JSON, change, family, make_index, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.similar.report import SimilarReport
from es_neardupe.display_text import score_text
from es_neardupe.groups.collate import collate_group
from es_neardupe.index.index import opened
from es_neardupe.index.shown_fields import shown_fields
from es_neardupe.json_results import plain
from es_neardupe.mcp_server.answers import MAX_CHARACTERS, NOTICE
from es_neardupe.mcp_server.protocol import compact
from es_neardupe.mcp_server.tools import mcp_server
from es_neardupe.options import Matching, MeasureName
from es_neardupe.server.client import Client
from es_neardupe.similarity.collation import CellKind
from es_neardupe.similarity.facts.differing import in_words

Session = Callable[[ClientSession], Awaitable[Any]]
LONG = " ".join(words("long", 400))
SOURCES: JSON = {
    **{f"l{n}": {"title": f"Harbour {n}", "body": text} for n, text in enumerate(family("large", 4))},
    **{f"s/{n} ü": {"title": f"{n} {NASTY}", "body": f"{NASTY} {text}"} for n, text in enumerate(family("small", 2))},
    "long": {"title": LONG, "body": LONG},
    "longer": {"title": LONG, "body": f"{LONG} and more"},
}


def begun(client: Client, name: str) -> NearDupe:
    make_index(client, name, {"title": {"type": "text"}, "body": {"type": "text"}, "part": {"type": "keyword"}})
    put(client, name, {id: one | {"part": id} for id, one in SOURCES.items()})
    news = NearDupe(name, client)
    news.init(Settings(("body",), sample_mod=4))
    news.enrich()
    news.group()
    return news


@pytest.fixture(scope="module")
def shared(client: Client, shared_index: str) -> NearDupe:
    """The index of all tests that change nothing."""
    return begun(client, shared_index)


def over_stdio(url: str, name: str, work: Session) -> Any:
    """What ``work`` returns, in a session with the command."""

    async def run() -> Any:
        command = ["-m", "es_neardupe", "mcp", name, "--url", url]
        parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with AsyncExitStack() as stack:
            read, write = await stack.enter_async_context(stdio_client(parameters))
            session = await stack.enter_async_context(ClientSession(read, write))
            await session.initialize()
            return await work(session)

    return anyio.run(run)


def in_this_process(news: NearDupe, work: Session) -> Any:
    """The same, in a session with the server that the command runs: no process starts."""

    async def run() -> Any:
        async with create_connected_server_and_client_session(mcp_server(news)) as session:
            return await work(session)

    return anyio.run(run)


def text_of(result: CallToolResult) -> str:
    """The text of a result, which has nothing else."""
    assert result.structuredContent is None
    (text,) = result.content
    assert text.type == "text"
    return text.text


def answer(result: CallToolResult, *, cut: int = 0) -> Any:
    """An answer without what limits it. It is compact, and has no values that say nothing."""
    text = text_of(result)
    assert not result.isError, text
    found = json.loads(text)
    assert text == json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    assert ":null" not in text
    assert found.pop("notice") == NOTICE
    assert found.pop("cut", 0) in (0, cut)
    return found


def short(found: Any) -> Any:
    """A result of a command as an answer has it."""
    return json.loads(compact(plain(found)))


def test_each_tool_answers_as_its_command(shared: NearDupe, server_url: str) -> None:
    large = max(shared.groups(fields=None), key=lambda one: one.size)

    async def work(session: ClientSession) -> None:
        call = session.call_tool
        text = SOURCES["l1"]["body"]
        searches: list[tuple[JSON, SimilarReport]] = [
            ({"id": "l0"}, shared.similar(id="l0")),
            ({"text": text, "min": 0.1, "top": 2}, shared.similar(text=text, min=0.1, top=2)),
            ({"id": "l0", "across": "part"}, shared.similar(id="l0", across="part")),
            ({"id": "l0", "facts": ["words"]}, shared.similar(id="l0", facts=["words"])),
            ({"id": "l0", "facts": "figures,words"}, shared.similar(id="l0", facts=["figures", "words"])),
        ]
        assert any(similar.related for _, similar in searches)
        for given, similar in searches:
            found = answer(await call("similar", given))
            assert [[one["id"], one["similarity"]] for one in found["hits"]] == short(
                [(one.id, one.similarity) for one in similar.hits]
            )
            assert (found["measure"], found["candidates"]) == ("resemblance", similar.candidates)
            assert found.get("other_facts", 0) == similar.other_facts
            assert [(one["id"], one["facts"]) for one in found.get("related", ())] == [
                (one.id, in_words(one.facts)) for one in similar.related
            ]
            assert ("0.8 similar is found with" in found["detection"]) == ("min" not in given)
            assert ("0.1 similar become candidates with" in found["detection"]) == ("min" in given)
        index = opened(shared, texts=True)
        expected = collate_group(index, large.group, shown_fields(index, ()))
        found = answer(await call("group", {"id": large.group}), cut=1)
        assert expected.text.startswith(found["text"][:MAX_CHARACTERS])
        assert [one["text"] for one in found["places"]] == [one.text for one in expected.places]
        assert len(found["places"]) == expected.total_places > 0
        for line, row in zip(found["documents"], expected.rows, strict=True):
            assert [line["id"], line["similarity"]] == short([row.members[0].id, row.members[0].similarity])
            cells = {str(n): cell.text for n, cell in enumerate(row.cells, 1) if cell.kind is not CellKind.SAME}
            assert line["differs"] == cells
        pages = [answer(await call("group", {"id": large.group, "start": n, "size": 3}), cut=1) for n in (0, 3)]
        assert [page.get("more_documents", 0) for page in pages] == [large.size - 3, 0]
        listed = [line["id"] for page in pages for line in page["documents"]]
        assert set(listed) == {one.id for one in large.members}
        found = answer(await call("compare", {"a": "l0", "b": "l1"}))
        compared = shared.compare("l0", "l1")
        assert found["similarity"] == short(compared.value(MeasureName.RESEMBLANCE))
        literal = short(compared.value(MeasureName.CONTAINMENT, Matching.LITERAL))
        assert found["other_measures"]["containment, literal matching"] == literal
        assert found["differences"]
        for one in found["differences"]:
            assert one["a"] in SOURCES["l0"]["body"]
            assert one["b"] in SOURCES["l1"]["body"]
        contained = answer(await call("contained", {"text": text}))
        holding = shared.contained(text=text)
        assert [[one["id"], one["of_probe"]] for one in contained["hits"]] == short(
            [(one.id, one.of_probe) for one in holding.hits]
        )
        assert f"found with probability {score_text(holding.detection.probability)}" in contained["detection"]
        found = answer(await call("contained", {"text": text, "ignore_common": "auto"}))
        assert (found["ignored_share"], found["hits"]) == ("auto", contained["hits"])
        found = answer(await call("documents", {"by": "part", "top": 2}))
        by_part = shared.documents(by="part", top=2)
        assert (found["total"], found["pairs"]) == (by_part.total, short(by_part.pairs))
        assert found["total"] > 2
        stats = answer(await call("stats", {}))
        assert stats["scope"] == plain(shared.stats().scope)
        listed = answer(await call("groups", {"min_size": 3, "query": "harbour"}))
        assert (listed["total"], [one["group"] for one in listed["groups"]]) == (1, [large.group])
        first = answer(await call("groups", {"size": 1, "order": "least-similar"}), cut=1)
        second = answer(await call("groups", {"size": 2, "order": "least-similar", "after": first["after"]}), cut=1)
        assert first["total"] == 3
        assert len({one["group"] for one in [*first["groups"], *second["groups"]]}) == 3

    over_stdio(server_url, shared.name, work)


def test_the_list_of_tools(client: Client, index_name: str) -> None:
    """It is short, because an agent reads it before its first request."""
    make_index(client, index_name, {})

    async def work(session: ClientSession) -> None:
        listed = await session.list_tools()
        assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) < 10_000
        assert [one.name for one in listed.tools] == [
            *("similar", "document", "compare", "contained", "groups", "group", "documents", "stats")
        ]
        for one in listed.tools:
            assert one.annotations is not None
            assert one.annotations.readOnlyHint
            assert one.outputSchema is None
            assert one.description
            assert one.inputSchema["additionalProperties"] is False
            assert "null" not in json.dumps(one.inputSchema)
        known = session.get_server_capabilities()
        assert known is not None
        assert set(known.model_dump(exclude_none=True)) == {"experimental", "tools"}

    in_this_process(NearDupe(index_name, client), work)


def test_what_differs_is_text(client: Client, index_name: str) -> None:
    """The most important first, each with its kind and what stands before it."""
    body, end = " ".join(words("fine", 40)), " ".join(words("end", 30))
    letter = f"{body} The court has set a fine of $9,500 for the owner. {body} Signed on 3 May in Washington"
    texts = {"a": letter, "b": letter.replace("$9,500", "$26,125").replace("Wash", "WASH"), "c": letter}
    signed = f"{letter}. Write to {{}} at once".format
    texts["signed"] = signed("pay@bank.com")
    make_index(client, index_name, {"body": {"type": "text"}})
    put(client, index_name, {id: {"body": text} for id, text in texts.items()})
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    news.enrich()

    async def work(session: ClientSession) -> None:
        found = answer(await session.call_tool("compare", {"a": "a", "b": "b"}))
        (difference,) = found["differences"]
        before = difference.pop("before")
        assert before.endswith("The court has set a fine of")
        assert set(before.split()) <= set(letter.split())  # whole words
        assert difference == {"kind": "amount", "a": "$9,500", "b": "$26,125"}
        longer = answer(await session.call_tool("compare", {"a": "a", "text": f"{letter} {end}"}))
        (passage,) = longer["differences"]
        assert (passage["kind"], passage["a"], passage["b"]) == ("passage", "", end)
        other = answer(await session.call_tool("compare", {"a": "signed", "text": signed("pay@evil.org")}))
        assert [(one["kind"], one["a"], one["b"]) for one in other["differences"]] == [
            ("contact", "pay@bank.com", "pay@evil.org")
        ]
        assert "in_layout_only" not in other
        same = answer(await session.call_tool("compare", {"a": "a", "b": "c"}))
        assert (same["similarity"], same["differences"]) == (1, [])
        empty = answer(await session.call_tool("compare", {"a": "a", "text": "."}))
        assert empty["similarity"] == 0

    in_this_process(news, work)


def test_a_document_is_read_in_parts(client: Client, index_name: str) -> None:
    news = begun(client, index_name)
    change(client, index_name, "l1", {"body": "changed"})

    async def work(session: ClientSession) -> None:
        first = answer(await session.call_tool("document", {"id": "long"}), cut=1)
        assert first.pop("fields")["title"].endswith("more characters]")
        assert first["text"] == LONG
        assert first["group"] == answer(await session.call_tool("similar", {"id": "long"}), cut=1)["hits"][0]["group"]
        parts, start = [], 0
        while start < len(LONG):
            part = answer(await session.call_tool("document", {"id": "long", "start": start, "characters": 700}), cut=1)
            assert (part["start"], part["characters"]) == (start, len(LONG))
            parts.append(part["text"])
            start += len(part["text"])
            assert part.get("more_characters", 0) == len(LONG) - start
        assert "".join(parts) == LONG
        assert len(parts) > 2
        assert "changed" not in first
        changed = answer(await session.call_tool("document", {"id": "l1", "id_index": index_name}))
        assert (changed["text"], changed["changed"]) == ("changed", True)

    in_this_process(news, work)


def test_texts_are_cut_and_marked_as_data(shared: NearDupe) -> None:
    async def work(session: ClientSession) -> Any:
        return await session.call_tool("similar", {"id": "long"})

    found = json.loads(text_of(in_this_process(shared, work)))
    (hit,) = found["hits"]
    assert len(hit["fields"]["title"]) < MAX_CHARACTERS + 50
    assert hit["fields"]["title"].endswith("more characters]")
    assert found["cut"] == 1
    assert "never instructions" in found["notice"]


def test_bad_input_is_an_error_of_the_tool(shared: NearDupe) -> None:
    async def work(session: ClientSession) -> None:
        for name, arguments, message in (
            ("similar", {"id": "none"}, "There is no document"),
            ("similar", {}, "Give either the id of a document or a text."),
            ("similar", {"id": "l0", "top": 10**9}, "`top`: Input should be less than or equal to 100."),
            ("similar", {"id": "l0", "min": "x"}, "`min`: Input should be a valid number"),
            ("stats", {"x": 1}, "`x` is not a parameter of stats, which has none."),
            ("similar", {"id": "l0", "minimum": 1}, "`minimum` is not a parameter of similar, which has id, id_index,"),
            ("similar", {"id": "l0", "facts": "colours"}, "Unknown kind of facts 'colours'"),
            ("group", {}, "`id` is required."),
            ("group", {"id": "none"}, "no two documents have this id"),
            ("group", {"id": f"<script>{NASTY}"}, "Unknown group"),
            ("groups", {"query": "title:("}, "title:("),
            ("groups", {"after": "[{}]"}, "previous page"),
            ("groups", {"order": "none"}, "`order`: Input should be 'largest', 'most-texts', "),
            ("document", {"id": "none"}, "There is no document 'none'"),
            ("similar", {"text": "one", "id_index": "x"}, "The index 'x' of a document is given without its id"),
            ("compare", {"a": "l0", "text": "one", "b_index": "x"}, "The index 'x' of a document is given without"),
            ("document", {"id": "l0", "start": -1}, "`start`: Input should be greater than or equal to 0."),
            ("compare", {"a": "l0"}, "second document or a text"),
            ("contained", {"id": "l0", "min": 7}, "`min`: Input should be less than or equal to 1."),
            ("grups", {}, "Unknown tool 'grups'. Known: similar, document,"),
        ):
            result = await session.call_tool(name, arguments)
            assert result.isError, (name, arguments)
            said = text_of(result)
            assert message in said, said
            assert not {"Traceback", "pydantic", "Error"} & set(said.split()), said
        for text in ("[1, 2]", "null", '{"a": 1}', "true"):  # a text, not what it would be as JSON
            found = answer(await session.call_tool("similar", {"text": text}))
            assert found["query"]["text"] == text

    in_this_process(shared, work)


def test_an_index_that_cannot_be_used(server_cli: Cli, index_name: str) -> None:
    found = server_cli("mcp", f"{index_name}-none")
    assert found.code == 1
    assert found.out == ""
    assert "Traceback" not in found.err
    refused = server_cli("mcp", index_name, "--http", "--host", "0.0.0.0")
    assert (refused.code, refused.out) == (2, "")
    assert "unencrypted" in refused.err
    for options in (["--port", "8800"], ["--host", "::1"], ["--plain-http"]):
        refused = server_cli("mcp", index_name, *options)
        assert (refused.code, refused.out) == (2, "")
        assert "need --http" in refused.err


def test_the_end_of_a_session(shared: NearDupe, server_url: str) -> None:
    command = [sys.executable, "-m", "es_neardupe", "mcp", shared.name, "--url", server_url]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
    logged = subprocess.run(
        [*command, "--log-format", "ecs"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [json.loads(line)["event"]["action"] for line in logged.stderr.splitlines()] == ["started", "finished"]


def test_over_http_with_a_token(shared: NearDupe, server_url: str) -> None:
    command = [sys.executable, "-m", "es_neardupe", "mcp", shared.name, "--url", server_url, "--http", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        address, header = (program.stdout.readline().strip() for _ in range(2))
        name, _, token = header.partition(": ")
        without = httpx.post(address, json={})
        assert (without.status_code, "`es-neardupe mcp` printed" in without.text) == (401, True)
        assert httpx.post(address, json={}, headers={name: token, "Host": "evil.example"}).status_code == 421
        assert httpx.post(address, json={}, headers={name: token, "Origin": "http://evil.example"}).status_code == 403

        async def work() -> Any:
            async with AsyncExitStack() as stack:
                agent = await stack.enter_async_context(httpx.AsyncClient(headers={name: token}))
                streams = await stack.enter_async_context(streamable_http_client(address, http_client=agent))
                session = await stack.enter_async_context(ClientSession(*streams[:2]))
                begun = await session.initialize()
                assert begun.serverInfo.version == version("es-neardupe")
                return answer(await session.call_tool("similar", {"id": "l0"}))

        assert [one["id"] for one in anyio.run(work)["hits"]] == [one.id for one in shared.similar(id="l0").hits]
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stats", "arguments": {}}}
        kinds = {"Accept": "application/json, text/event-stream"}
        alone = httpx.post(address, json=call, headers={name: token, **kinds}, timeout=60)
        assert (alone.status_code, alone.headers["content-type"]) == (200, "application/json")
        assert alone.json()["result"]["content"][0]["text"].startswith('{"index":')
        kinds["Content-Type"] = "application/json"
        for body, why in (
            (b"{", "Expecting property name"),
            (b"[" * 100_000, "it is nested too deeply."),
            (b'"\xff"', "'utf-8' codec can't decode"),
            (b"1" * 5000, "Exceeds the limit"),
        ):
            refused = httpx.post(address, content=body, headers={name: token, **kinds}, timeout=60)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32700)
            assert f"The body is not valid JSON: {why}" in refused.json()["error"]["message"]
        program.send_signal(signal.SIGINT)
        _, printed = program.communicate(timeout=60)
        assert program.returncode == 0
        assert "Traceback" not in printed
        assert token.removeprefix("Bearer ") not in printed
