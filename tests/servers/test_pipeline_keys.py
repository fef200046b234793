"""The keys that the script of a pipeline makes on a server are those of Python."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest
from golden_vectors import FOLDER, golden_text
from server_tools import JSON, runs_painless

from es_neardupe.errors import UnsupportedServer
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.index import Index
from es_neardupe.index.on_server.ingest_pipeline import check_painless, check_texts, differences, pipeline_body
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import encode, own_group
from es_neardupe.index.updates import waiting
from es_neardupe.keys.unicode import EXPANDS, MARK, SECOND, WORD, table
from es_neardupe.keys.unit import Unit
from es_neardupe.server.client import Client

pytestmark = [pytest.mark.server, pytest.mark.product("opensearch")]

SETTINGS = {
    "words": Settings(("text", "title"), group_field="story"),
    "many bands": Settings(("text",), shingle=1, permutations=201, bands=100, rows=2, prefix="mine"),
    "characters": Settings(("text",), shingle=5, unit=Unit.CHARACTER),
    "shapes": Settings(("text",), shingle=7, permutations=240, bands=80, rows=3, unit=Unit.SHAPE),
    "samples": Settings(("text",), shingle=2, sample_mod=3),
    "long shingles": Settings(("text",), shingle=40, permutations=256, sample_mod=1),
}
LENGTHS = (1, 2, 3, 5, 9, 20, 60, 200)


def random_texts(number: int) -> list[str]:
    """Texts of several kinds of characters: ASCII, all words, all marks, one script, anything, digits, dots of i."""
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
        lambda: ord(rng.choice("iiIİıįịḭía\u0301\u0307\u0307\u0307\u0323\u0330\u0328\u00adﬁ𝚤\U0001d165")),
    ]
    texts = []
    for count in range(number):
        one = kinds[count % len(kinds)]
        tokens = ("".join(chr(one()) for _ in range(rng.randrange(1, 20))) for _ in range(rng.choice(LENGTHS)))
        texts.append(rng.choice([" ", "\n", "\u200b", "-"]).join(tokens))
    return texts


@pytest.mark.product("elasticsearch")
def test_a_server_without_painless_is_refused_with_advice(client: Client) -> None:
    if runs_painless(client):
        pytest.skip("this server runs Painless scripts")
    with pytest.raises(UnsupportedServer, match=r"runs no Painless scripts.*make them with `enrich`"):
        check_painless(client)


def check_keys(client: Client, name: str, number: int) -> None:
    """Golden vectors, the texts of the check, and random texts."""
    golden = json.loads((FOLDER / "scheme_v1.json").read_text("ascii"))
    texts = [*map(golden_text, golden["cases"]), *check_texts(), *random_texts(number)]
    settings = SETTINGS[name]
    body = pipeline_body("news", settings)
    assert list(differences(Index("news", client), settings, body, texts)) == []


@pytest.mark.parametrize("name", SETTINGS)
def test_golden_and_random_texts_have_the_keys_of_python(painless: Client, name: str) -> None:
    check_keys(painless, name, 2000 // len(SETTINGS))


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["words"])
def test_golden_and_random_texts_have_the_keys_of_python_on_older_servers(painless: Client, name: str) -> None:
    check_keys(painless, name, 2000 // len(SETTINGS))


def test_the_check_sees_a_script_that_makes_other_keys(painless: Client) -> None:
    settings = SETTINGS["words"]
    body = pipeline_body("news", settings)
    script = body["processors"][0]["script"]
    script["source"] = script["source"].replace("y *= -1028477387;", "y *= -1028477389;")
    found = list(differences(Index("news", painless), settings, body, check_texts()))
    assert len(found) > 40
    assert {name for name, value in found[0].expected.items() if value != found[0].found[name]} == {
        "signature",
        "bands",
    }


SOURCES: list[JSON] = [
    {"title": {"a": "an object"}, "more": {"text": "words"}},
    {"title": ["words", {"a": "b"}], "more": {"text": "words"}},
    {"title": ["words", [[True, [False, 7]]], None, -12345678901234567], "more": {"text": ""}},
    {"title": "one", "more": [{"text": "two"}, {"text": ["three", None]}, {"other": 1}]},
    {"title": "one", "more.text": "two"},
    {"title": "one", "more.text": "three", "more": {"text": "two"}},
    {"title": "one", "more": {"text": "two"}, "neardupe": {"bands": ["forged"], "group": "x", "scheme": None}},
]


def test_sources_that_are_not_one_text_have_the_keys_of_python(painless: Client) -> None:
    """Arrays, objects, numbers, dotted names: joined as by `read_text`."""
    settings = Settings(("title", "more.text"))
    docs = [{"_index": "news", "_id": "1", "_source": source} for source in SOURCES]
    request = {"pipeline": pipeline_body("news", settings), "docs": docs}
    answers = painless.request("POST", "/_ingest/pipeline/_simulate", body=request)["docs"]
    made = fingerprint_sources(SOURCES, settings, 10_000_000)
    for source, answer, fingerprint in zip(SOURCES, answers, made, strict=True):
        found = answer["doc"]["_source"]
        stored = found.pop("neardupe")
        assert found == {name: value for name, value in source.items() if name != "neardupe"}
        assert stored == {**encode(fingerprint, stored["at"]), **waiting(own_group("news", "1"))}, source
