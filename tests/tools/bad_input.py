"""Rejected commands, and an index with fields of several types to try them on."""

from __future__ import annotations

from conftest import Run
from server_tools import family, make_index, one_line, put

from es_neardupe.server.client import Client


def refused(done: Run, *words: str, code: int = 1) -> str:
    """The one line of a failed command, which contains these words."""
    line = one_line(done.err) if done.err.startswith("error") else " ".join(done.err.replace("│", " ").split())
    assert (done.code, done.out) == (code, "")
    for word in words:
        assert word in line
    return line


def fill(client: Client, index: str) -> None:
    """An index with four similar texts."""
    make_index(
        client,
        index,
        {
            "text": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
            "body": {"properties": {"en": {"type": "text"}}},
            "kind": {"type": "keyword"},
        },
    )
    put(client, index, {f"d{n}": {"text": text, "kind": "k"} for n, text in enumerate(family("bad", 4))})
