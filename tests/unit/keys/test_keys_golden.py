"""The frozen vectors of scheme v1. Changed keys make indices unusable: never fix a failure by new vectors."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import xxhash
from golden_vectors import FOLDER, golden_text

from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.text import tokenize

pytestmark = pytest.mark.usefixtures("inner_loops")

GOLDEN = json.loads((FOLDER / "scheme_v1.json").read_text("ascii"))
CHARACTERS = json.loads((FOLDER / "characters_v1.json").read_text("ascii"))
SHAPES = json.loads((FOLDER / "shapes_v1.json").read_text("ascii"))
SAMPLES = json.loads((FOLDER / "samples_v1.json").read_text("ascii"))


@pytest.mark.parametrize("name", GOLDEN["schemes"])
def test_scheme_ids(name: str) -> None:
    expected = GOLDEN["schemes"][name]
    assert Scheme.from_dict(expected["settings"]).id == expected["id"]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_fingerprints(case: dict[str, Any]) -> None:
    text = golden_text(case)
    if "normalized" in case:
        assert " ".join(tokenize(text)) == case["normalized"]
    for name, expected in case["fingerprints"].items():
        scheme = Scheme.from_dict(GOLDEN["schemes"][name]["settings"])
        (made,) = fingerprints([text], scheme)
        assert made.scheme == scheme.id
        assert {
            "state": made.state.value,
            "content": made.content,
            "tokens": made.tokens,
            "features": made.features,
            "bands": "".join(made.bands),
            "signature": made.signature.hex(),
        } == expected


@pytest.mark.parametrize("name", SAMPLES["schemes"])
def test_sampled_keys(name: str) -> None:
    """The same texts in schemes with sampled keys; everything else is as in the scheme without."""
    expected = SAMPLES["schemes"][name]
    scheme = Scheme.from_dict(expected["settings"])
    plain = Scheme.from_dict({key: value for key, value in expected["settings"].items() if key != "sample_mod"})
    assert scheme.id == expected["id"] != plain.id
    texts = [golden_text(case) for case in GOLDEN["cases"]]
    made = fingerprints(texts, scheme)
    assert [replace(one, scheme=plain.id, samples=None) for one in made] == fingerprints(texts, plain)
    for case, one in zip(GOLDEN["cases"], made, strict=True):
        keys = one.samples or ()
        digest = xxhash.xxh3_128_hexdigest("".join(keys).encode())
        assert {"keys": len(keys), "first": list(keys[:4]), "xxh3_128": digest} == SAMPLES["samples"][case["name"]][
            name
        ]


@pytest.mark.parametrize(
    ("vectors", "name"), [(vectors, name) for vectors in (CHARACTERS, SHAPES) for name in vectors["schemes"]]
)
def test_shingles_of_characters_or_shapes(vectors: dict[str, Any], name: str) -> None:
    """The same texts in schemes of such shingles. Content hash and tokens are those of word shingles."""
    expected = vectors["schemes"][name]
    scheme = Scheme.from_dict(expected["settings"])
    assert scheme.id == expected["id"]
    cases = [case for case in GOLDEN["cases"] if case["name"] in vectors["fingerprints"]]
    made = fingerprints([golden_text(case) for case in cases], scheme)
    for case, one in zip(cases, made, strict=True):
        assert (one.content, one.tokens) == tuple(case["fingerprints"]["default"][key] for key in ("content", "tokens"))
        assert vectors["fingerprints"][case["name"]][name] == {
            "state": one.state.value,
            "features": one.features,
            "bands": "".join(one.bands),
            "signature": one.signature.hex(),
        }
