"""The program of docs/async.md, with the asynchronous client of each driver."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import opensearchpy
import opensearchpy.helpers
import pytest
from docs_pages import blocks
from server_tools import TEXT, family, make_index, ours, require_driver_for

from es_neardupe import NearDupe, Settings
from es_neardupe.records import Product
from es_neardupe.server.client import Client
from es_neardupe.server.search import refresh

PAGE = Path(__file__).parents[2] / "docs" / "async.md"
COPIES = family("async", 3)


@pytest.fixture
def program(client: Client, index_name: str) -> Iterator[dict[str, Any]]:
    """The names of the program on the page, run with this server and a new index."""
    require_driver_for(client)
    make_index(client, index_name, TEXT)
    (block,) = blocks(PAGE, "python")
    for written, here in (("http://localhost:9200", client.url), ('"news"', repr(index_name))):
        assert written in block
        block = block.replace(written, here)
    names: dict[str, Any] = {}
    exec(compile(block, PAGE.name, "exec"), names)
    if client.server.product is Product.OPENSEARCH:
        names |= {"AsyncElasticsearch": opensearchpy.AsyncOpenSearch, "async_bulk": opensearchpy.helpers.async_bulk}
    names["news"].init(Settings(("text",)))
    yield names
    names["news"].close()


# The drivers send the body of a bulk request as bytes.
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
@pytest.mark.product("each")
def test_the_program_of_the_page(program: dict[str, Any], client: Client, index_name: str) -> None:
    texts = [*COPIES, *(f"{COPIES[0]} {' '.join(f'other{n}{k}' for k in range(100))}" for n in range(400))]
    actions = [{"_id": f"d{n}", "text": text} for n, text in enumerate(texts)]

    async def run() -> Any:
        assert await program["index"](actions) == (len(texts), [])
        refresh(client, index_name)
        return await program["similar"](COPIES[0])

    found = asyncio.run(run())
    assert {one.id for one in found.hits} == {"d0", "d1", "d2"}
    stored = ours(client, index_name)
    assert len({stored[id]["group"] for id in ("d0", "d1", "d2")}) == 1


def test_keys_without_a_thread(program: dict[str, Any], client: Client, index_name: str) -> None:
    news: NearDupe = program["news"]

    async def run() -> Any:
        async with program["AsyncElasticsearch"](client.url) as there:
            actions = ({"_id": f"d{n}", "text": text} for n, text in enumerate(COPIES))
            return await program["async_bulk"](there, news.fingerprinted(actions), index=index_name, refresh=True)

    assert asyncio.run(run()) == (3, [])
    assert news.enrich(check=True).writes.unchanged == 3
    assert news.group().groups.count == 1


def test_the_packages_that_the_page_names() -> None:
    named = re.findall(r"pip install '([\w-]+)\[async\]'", PAGE.read_text("utf-8"))
    assert named == ["elasticsearch", "opensearch-py"]
    for package in named:
        assert any(one.startswith("aiohttp") and "async" in one for one in requires(package) or ())
