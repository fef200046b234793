"""EnrichResult indices for tests of evidence."""

from __future__ import annotations

from server_tools import make_index, put

from es_neardupe import NearDupe, Settings
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.target import Definitions, open_target
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.server.client import Client


def prepared(client: Client, index: str, texts: dict[str, str], threshold: float = 0.6) -> str:
    """An enriched index with these texts; returns the name of its evidence."""
    make_index(client, index)
    put(client, index, {id: {"text": text, "part": number % 2} for number, (id, text) in enumerate(texts.items())})
    NearDupe(index, client).init(Settings(("text",), threshold=threshold))
    NearDupe(index, client).enrich()
    return hidden_index_name(open_target(Definitions(client, index), DEFAULT_PREFIX), HiddenIndex.PAIRS)
