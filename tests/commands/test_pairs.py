"""`pairs`: each pair of documents once, the most similar first."""

from __future__ import annotations

import pytest
from bad_input import fill, refused
from conftest import Cli
from server_tools import make_index, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client

SETTINGS = Settings(("text",))


def test_what_is_printed(client: Client, index_name: str, server_cli: Cli) -> None:
    """The most similar pairs first, with their titles; JSON has a line for each."""
    text = words("bridge", 60)
    texts = {"1": text, "2": [*text[:59], "tunnel"], "3": text, "4": words("ferry", 60)}
    make_index(client, index_name, {"title": {"type": "text"}, "text": {"type": "text"}})
    put(client, index_name, {id: {"title": f"Title {id}", "text": " ".join(some)} for id, some in texts.items()})
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    run = server_cli("pairs", index_name, "--min", "0.9")
    assert run.code == 0
    header, *rows = (line.split() for line in run.out.splitlines() if line.strip(" ─"))
    assert header == ["a", "title", "of", "a", "b", "title", "of", "b", "resemblance"]
    assert rows == [
        ["1", "Title", "1", "3", "Title", "3", "1.0000"],
        ["1", "Title", "1", "2", "Title", "2", "0.9649"],
        ["2", "Title", "2", "3", "Title", "3", "0.9649"],
    ]
    assert "3 pairs at least 0.9 similar, from 1 verified candidate pair of different texts" in run.err
    shown = server_cli("pairs", index_name, "--min", "0.9", "--top", "1", "--json").json
    assert (shown["a"]["id"], shown["b"]["id"], shown["resemblance"]) == ("1", "3", 1.0)


@pytest.fixture
def filled(client: Client, index_name: str) -> str:
    fill(client, index_name)
    return index_name


def test_group_and_pairs_with_a_wrong_min(client: Client, filled: str, server_cli: Cli) -> None:
    NearDupe(filled, client).init(SETTINGS)
    for command in ("group", "pairs"):
        for minimum in ("0", "1.5", "nan"):
            refused(server_cli(command, filled, "--min", minimum), "--min", "(0, 1]", code=2)


def test_documents_that_are_not_enriched_are_counted(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, {"text": {"type": "text"}})
    put(client, index_name, {id: {"text": " ".join(words("bridge", 60))} for id in "123"})
    news = NearDupe(index_name, client)
    news.init(SETTINGS)
    news.enrich(query={"ids": {"values": ["1"]}})
    found = news.pairs()
    assert (len(found), found.unprocessed) == (0, 2)
    shown = server_cli("pairs", index_name)
    assert f"2 documents are not enriched and are in no pair: run `es-neardupe enrich {index_name}" in shown.err
    news.enrich()
    assert (len(news.pairs()), news.pairs().unprocessed) == (3, 0)
    assert "not enriched" not in server_cli("pairs", index_name).err
