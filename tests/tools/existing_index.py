"""Index of an application, with a mapping, settings and documents of its own."""

from __future__ import annotations

from server_tools import JSON, family, make_index, put, words

from es_neardupe.server.client import Client


def corpus() -> dict[str, JSON]:
    """Eight families, exact copies, unique documents, short ones, and one without words."""
    texts = {f"f{n}-{k}": text for n in range(8) for k, text in enumerate(family(n, 3 + n % 3))}
    texts |= {f"alone-{n}": " ".join(words(f"alone{n}", 60)) for n in range(6)}
    texts |= {"copy-a": " ".join(words("copy", 50)), "copy-b": " ".join(words("copy", 50)).upper()}
    texts |= {"short-a": "Hello world", "short-b": "hello, WORLD!", "short-c": "hello moon", "empty": " ... "}
    return {id: {"title": f"Title of {id}", "text": text, "n": {"x": 1.50}} for id, text in texts.items()}


USER_META = {"owner": "team ä", "rate": 0.1, "big": 12345678901234567890, "list": [3, 1, 2], "z": 1, "a": {"b": None}}


USER_MAPPING: JSON = {
    "text": {"type": "text", "fields": {"raw": {"type": "keyword", "ignore_above": 100}}},
    "title": {"type": "keyword"},
}


def existing_index(client: Client, index: str) -> dict[str, JSON]:
    """Create an index as it may have existed for years; returns its documents."""
    template = {"strings": {"match_mapping_type": "string", "mapping": {"type": "keyword"}}}
    make_index(client, index, USER_MAPPING, _meta=USER_META, dynamic_templates=[template])
    documents = corpus()
    put(client, index, documents)
    return documents
