"""The keys that the script of a pipeline makes on a server are those of Python."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest
from golden_vectors import FOLDER, golden_text

from es_neardupe.errors import UnsupportedServer
from es_neardupe.index.ingest_pipeline import check_painless, check_texts, differences, pipeline_body
from es_neardupe.index.settings import Settings
from es_neardupe.keys.scheme import Unit
from es_neardupe.keys.unicode import EXPANDS, MARK, SECOND, WORD, table
from es_neardupe.server.client import Client
from es_neardupe.server.search import knows

pytestmark = pytest.mark.server

SETTINGS = {
    "words": Settings(("text", "more.text")),
    "many bands": Settings(("text",), shingle=3, permutations=201, bands=100, rows=2, prefix="mine"),
    "characters": Settings(("text",), shingle=5, unit=Unit.CHARACTER),
    "samples": Settings(("text",), shingle=3, sample_mod=3),
    "long shingles": Settings(("text",), shingle=40, permutations=256, sample_mod=1),
}
LENGTHS = (1, 2, 3, 5, 9, 20, 60, 200)


def random_texts(number: int) -> list[str]:
    """Texts of several kinds of characters: ASCII, all words, all marks, one script, anything, digits."""
    rng, entries = random.Random(17), table().entries
    words = np.flatnonzero(entries & (WORD | EXPANDS)).tolist()
    marks = np.flatnonzero(entries & (MARK | SECOND)).tolist()
    kinds: list[Callable[[], int]] = [
        lambda: rng.randrange(33, 127),
        lambda: rng.choice(words),
        lambda: rng.choice(marks) if rng.random() < 0.5 else rng.randrange(0x41, 0x250),
        lambda: rng.randrange(0xE00, 0xE80) if rng.random() < 0.6 else rng.randrange(0x1000, 0x1200),
        lambda: rng.choice((rng.randrange(0xD800), rng.randrange(0xE000, 0x32000))),
        lambda: rng.choice([0x30, 0x37, 0x20, 0x663, 0x96A]),
    ]
    texts = []
    for count in range(number):
        one = kinds[count % len(kinds)]
        tokens = ("".join(chr(one()) for _ in range(rng.randrange(1, 20))) for _ in range(rng.choice(LENGTHS)))
        texts.append(rng.choice([" ", "\n", "\u200b", "-"]).join(tokens))
    return texts


def runs_painless(client: Client) -> bool:
    return knows(client, "POST", "/_scripts/painless/_execute", {"script": {"source": "1 + 1"}})


def test_a_server_without_painless_is_refused_with_advice(client: Client) -> None:
    if runs_painless(client):
        pytest.skip("this server runs Painless scripts")
    with pytest.raises(UnsupportedServer, match=r"runs no Painless scripts.*make them with `enrich`"):
        check_painless(client)


@pytest.fixture
def painless(client: Client) -> Client:
    """A server with Painless; Elasticsearch from pip has none."""
    if not runs_painless(client):
        pytest.skip("this server runs no Painless scripts")
    return client


@pytest.mark.parametrize("name", SETTINGS)
def test_golden_and_random_texts_have_the_keys_of_python(painless: Client, name: str) -> None:
    golden = json.loads((FOLDER / "scheme_v1.json").read_text("ascii"))
    texts = [*map(golden_text, golden["cases"]), *check_texts(), *random_texts(2000 // len(SETTINGS))]
    settings = SETTINGS[name]
    body = pipeline_body("news", settings)
    assert list(differences(painless, "news", settings, body, texts)) == []


def test_the_check_sees_a_script_that_makes_other_keys(painless: Client) -> None:
    settings = SETTINGS["words"]
    body = pipeline_body("news", settings)
    script = body["processors"][0]["script"]
    script["source"] = script["source"].replace("y *= -1028477387;", "y *= -1028477389;")
    found = list(differences(painless, "news", settings, body, check_texts()))
    assert len(found) > 40
    assert {name for name, value in found[0].expected.items() if value != found[0].found[name]} == {
        "signature",
        "bands",
    }
