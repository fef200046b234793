"""Texts and stored fields of documents: round trips, literal forms, and rejection of values from other writers."""

from __future__ import annotations

import base64
import json
import random
import re
from typing import Any

import pytest
import xxhash
from hypothesis import assume, given
from hypothesis import strategies as st
from unit_tools import AT, JSON, SETTINGS, hits

from es_neardupe.candidates.fingerprints import read_corpus
from es_neardupe.errors import CorruptFingerprint, InputError
from es_neardupe.index.document_text import fingerprint_sources, has_any, read_text, readable_text
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.field_writes import partial_update
from es_neardupe.index.stored_fields import (
    decode,
    decode_grouping,
    encode,
    encode_grouping,
    own_group,
    stored_fields,
    timestamp,
)
from es_neardupe.index.updates import fingerprint_documents, fingerprint_fields, is_current
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.records import Fingerprint, Grouping, Hit, State


@pytest.mark.parametrize(
    ("source", "fields", "text"),
    [
        ({"text": "a b"}, ["text"], "a b"),
        ({"text": ["a", "b"]}, ["text"], "a\nb"),
        ({"text": ["a", ["b", None], []]}, ["text"], "a\nb"),
        ({"text": None}, ["text"], ""),
        ({}, ["text"], ""),
        ({"text": ""}, ["text"], ""),
        ({"text": 5}, ["text"], "5"),
        ({"text": 1.5}, ["text"], "1.5"),
        ({"text": -0.0}, ["text"], "-0.0"),
        ({"text": True}, ["text"], "true"),
        ({"text": [False, 10**20, "x"]}, ["text"], "false\n100000000000000000000\nx"),
        ({"page": {"body": "a"}}, ["page.body"], "a"),
        ({"page": [{"body": "a"}, {"note": "x"}, {"body": ["b", "c"]}]}, ["page.body"], "a\nb\nc"),
        ({"page": [[{"body": "a"}], {"body": "b"}]}, ["page.body"], "a\nb"),
        ({"page.body": "a"}, ["page.body"], "a"),
        ({"page.body": {"short": "a"}}, ["page.body.short"], "a"),
        ({"page": {"body.short": "a"}}, ["page.body.short"], "a"),
        ({"page": {"body": "a"}, "page.body": "b"}, ["page.body"], "a\nb"),
        ({"page": "not an object"}, ["page.body"], ""),
        ({"page": None}, ["page.body"], ""),
        ({"page": 5}, ["page.body"], ""),
        ({"body": "b", "title": "a"}, ["title", "body"], "a\nb"),
        ({"body": "b", "title": "a"}, ["body", "title"], "b\na"),
        ({"body": "b", "other": "x"}, ["title", "body"], "b"),
        ({"text": "a\nb"}, ["text"], "a\nb"),
        ({"text": "\ud800\x00"}, ["text"], "\ud800\x00"),
    ],
)
def test_read_text(source: dict[str, Any], fields: list[str], text: str) -> None:
    assert read_text(source, fields) == text
    assert readable_text(source, fields) == text


@pytest.mark.parametrize("value", [{}, {"a": "b"}, ["a", {"b": "c"}], [[{}]]])
def test_an_object_is_no_text(value: Any) -> None:
    with pytest.raises(InputError, match="Field text holds an object, not a text"):
        read_text({"text": value}, ["text"])
    assert readable_text({"text": value}, ["text"]) is None
    (found,) = fingerprint_sources([{"text": value}], SETTINGS, 100)
    assert found == Fingerprint(SETTINGS.scheme.id, State.FAILED, "", (), b"", 0, 0)


@pytest.mark.parametrize("path", [["text"], ["text", "inner"]])
def test_deep_nesting_is_no_text(path: list[str]) -> None:
    """A server can store arrays that are nested too deeply for Python."""
    value: Any = "end"
    for _ in range(5000):
        value = [value]
    with pytest.raises(InputError, match="nested"):
        read_text({"text": value}, [".".join(path)])
    (found,) = fingerprint_sources([{"text": value}], SETTINGS, 100)
    assert found.state is State.FAILED


LEAVES = st.none() | st.booleans() | st.integers(-99, 99) | st.text("ab ", max_size=5)
SOURCES = st.dictionaries(
    st.sampled_from(["a", "b", "a.b", "c"]),
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner)
    ),
)


@given(SOURCES, st.permutations(["a", "a.b", "c", "b.a"]), st.randoms(use_true_random=False))
def test_order_of_keys_does_not_matter(source: dict[str, Any], fields: list[str], shuffle: random.Random) -> None:
    keys = list(source)
    shuffle.shuffle(keys)
    shuffled = {key: source[key] for key in keys}
    assert readable_text(shuffled, fields) == readable_text(source, fields)
    whole = readable_text(source, fields)
    parts = [readable_text(source, [name]) for name in fields]
    if whole is None:
        assert None in parts
    else:
        there = [part for part, name in zip(parts, fields, strict=True) if part or _strings(source, name)]
        assert whole == "\n".join(part for part in there if part is not None)


def _strings(source: dict[str, Any], name: str) -> list[Any]:
    """All scalars that a dotted name refers to, found by listing every path of the source."""
    found = []

    def walk(value: Any, at: str) -> None:
        if isinstance(value, list):
            for one in value:
                walk(one, at)
        elif isinstance(value, dict):
            for key, one in value.items():
                walk(one, f"{at}.{key}" if at else key)
        elif value is not None and at == name:
            found.append(value)

    walk(source, "")
    return found


@given(SOURCES, st.sampled_from(["a", "b", "a.b", "c", "b.a"]))
def test_every_scalar_that_is_reached_is_read(source: dict[str, Any], name: str) -> None:
    text = readable_text(source, [name])
    if text is not None:
        wanted = [value if isinstance(value, str) else json.dumps(value) for value in _strings(source, name)]
        assert sorted("\n".join(wanted).split("\n")) == sorted(text.split("\n"))
        assert not wanted or has_any(source, [name])


def test_has_any() -> None:
    assert has_any({"text": None}, ["title", "text"])
    assert has_any({"page": [{"x": 1}, {"body": None}]}, ["page.body"])
    assert not has_any({"page": {"x": 1}}, ["page.body", "text"])
    assert not has_any({"page": []}, ["page.body"])


TEXTS = st.text(st.sampled_from("ab c\né漢\U0001f600\x00\ud800"), max_size=60)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_round_trip(texts: list[str]) -> None:
    for fingerprint in fingerprints(texts, SETTINGS.scheme, max_chars=40):
        fields = encode(fingerprint, AT)
        assert decode(json.loads(json.dumps(fields))) == fingerprint
        assert decode({name: value for name, value in fields.items() if value is not None}) == fingerprint
        assert set(fields) <= set(fields_mapping()["properties"])


def test_encode_literal() -> None:
    fingerprint = Fingerprint("v1-x", State.SHORT, "0" * 31 + "f", ("A2345678", "ÿ2345678"), b"\x00\xff", 3, 1)
    assert encode(fingerprint, AT) == {
        "scheme": "v1-x",
        "state": "short",
        "content": "0" * 31 + "f",
        "bands": ["A2345678", "ÿ2345678"],
        "signature": "AP8=",
        "tokens": 3,
        "features": 1,
        "numeric": None,
        "at": AT,
    }
    empty = encode(Fingerprint("v1-x", State.EMPTY, "", (), b"", 0, 0), AT)
    assert (empty["content"], empty["bands"], empty["signature"]) == (None, [], None)


@pytest.mark.parametrize(
    ("text", "numeric"),
    [
        ("12 345, 67.89 -- 0!", True),
        ("7", True),
        ("٤٢ ४२ ４２", True),
        ("12 345 a", False),
        ("a 12 345", False),
        ("1e5", False),
        ("_1", False),
        ("²", True),  # NFKC: the digit
        ("四十二", False),
        ("", False),
        ("...", False),
    ],
)
def test_numbers_only(text: str, numeric: bool) -> None:
    """True if the whole text is numbers, in the digits of any script; otherwise the field is null."""
    (found,) = fingerprint_sources([{"text": text}], SETTINGS, 100)
    assert found.numeric is numeric
    assert encode(found, AT)["numeric"] is (True if numeric else None)
    assert decode(encode(found, AT)) == found
    (hit,) = hits({"a": text})
    (document,) = fingerprint_documents([[hit]], SETTINGS, 100)
    assert is_current(document, SETTINGS)
    hit.source["neardupe"]["numeric"] = None if numeric else True
    assert not is_current(document, SETTINGS)


def test_sampled_keys_are_stored_where_the_scheme_samples() -> None:
    """Otherwise the field is omitted: the mapping of an older index does not have it."""
    sampling = Settings(("text",), sample_mod=2)
    sources: list[dict[str, Any]] = [
        {"text": "one two three four five six seven eight nine"},
        {"text": ""},
        {"text": {"no": "text"}},
    ]
    for fingerprint in fingerprint_sources(sources, sampling, 100):
        fields = encode(fingerprint, AT)
        assert fields["samples"] == list(fingerprint.samples or ())
        assert decode(json.loads(json.dumps(fields))) == fingerprint
    assert encode(SOUND_SAMPLES, AT)["samples"]
    for fingerprint in fingerprint_sources(sources, SETTINGS, 100):
        assert "samples" not in encode(fingerprint, AT)
    assert decode(encode(SOUND, AT) | {"samples": None}).samples is None
    assert decode(encode(SOUND, AT) | {"samples": "AAAA_-09"}).samples == ("AAAA_-09",)


def test_bands_and_signature_may_be_left_out() -> None:
    (fingerprint,) = fingerprints(["one two three four five six"], SETTINGS.scheme)
    fields = encode(fingerprint, AT)
    del fields["bands"], fields["signature"]
    read = decode(fields)
    assert (read.bands, read.signature, read.content) == ((), b"", fingerprint.content)


(SOUND,) = fingerprints(["one two three four five six"], SETTINGS.scheme)
(SOUND_SAMPLES,) = fingerprints(["one two three four five six"], Settings(("text",), sample_mod=1).scheme)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scheme", None),
        ("scheme", 5),
        ("state", None),
        ("state", "SIGNED"),
        ("state", []),
        ("content", None),
        ("content", ""),
        ("content", 5),
        ("content", "f" * 31),
        ("content", "f" * 33),
        ("content", "g" * 32),
        ("content", "F" * 32),
        ("content", "0x" + "f" * 30),
        ("content", "f_" * 15 + "ff"),
        ("content", " " + "f" * 31),
        ("content", "\uff10" * 32),
        ("content", "f" * 32 + "\n"),
        ("bands", {"a": 1}),
        ("bands", 8),
        ("bands", ["1234567"]),
        ("bands", ["123456789"]),
        ("bands", ["1234567\u0100"]),
        ("bands", ["12345678", None]),
        ("bands", ["12345678", ["12345678"]]),
        ("samples", {"a": 1}),
        ("samples", 8),
        ("samples", "1234567"),
        ("samples", ["123456789"]),
        ("samples", ["1234567+"]),
        ("samples", ["1234567\n"]),
        ("samples", ["12345678", None]),
        ("signature", "not base64"),
        ("signature", "AAA"),
        ("signature", 5),
        ("signature", ["AAAA"]),
        ("tokens", None),
        ("tokens", -1),
        ("tokens", True),
        ("tokens", "6"),
        ("tokens", 6.0),
        ("tokens", 2**31),
        ("features", None),
        ("features", -1),
        ("features", []),
        ("numeric", "true"),
        ("numeric", [True]),
    ],
)
def test_corrupt(name: str, value: Any) -> None:
    fields = encode(SOUND, AT)
    assert decode(fields) == SOUND
    with pytest.raises(CorruptFingerprint):
        decode(fields | {name: value})


def valid(fingerprint: Fingerprint) -> bool:
    """An independent check of a fingerprint."""
    return (
        isinstance(fingerprint.scheme, str)
        and isinstance(fingerprint.state, State)
        and (fingerprint.content == "" or re.fullmatch("[0-9a-f]{32}", fingerprint.content, re.ASCII) is not None)
        and isinstance(fingerprint.bands, tuple)
        and all(len(key) == 8 and max(map(ord, key)) < 256 for key in fingerprint.bands)
        and (fingerprint.samples is None or all(re.fullmatch("[\\w-]{8}", key, re.A) for key in fingerprint.samples))
        and isinstance(fingerprint.signature, bytes)
        and type(fingerprint.tokens) is int
        and type(fingerprint.features) is int
        and type(fingerprint.numeric) is bool
        and min(fingerprint.tokens, fingerprint.features) >= 0
        and max(fingerprint.tokens, fingerprint.features) < 2**31
        and (fingerprint.content != "") == (fingerprint.state in (State.SIGNED, State.SHORT))
    )


NAMES = [*fields_mapping()["properties"], *["other"] * 5]


@given(st.sets(st.sampled_from(NAMES), max_size=3), st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3))
def test_any_json_is_read_or_refused(missing: set[str], wrong: dict[str, Any]) -> None:
    stored = {name: value for name, value in encode(SOUND, AT).items() if name not in missing} | wrong
    try:
        read = decode(stored)
    except CorruptFingerprint:
        return
    assert valid(read)


ONE_WRONG = st.tuples(
    st.sampled_from(["scheme", "state", "content", "bands", "samples", "signature", "tokens", "features", "numeric"]),
    JSON,
)


@given(ONE_WRONG)
def test_any_json_in_one_field(wrong: tuple[str, Any]) -> None:
    """Every accepted fingerprint can be stored in columns with all others."""
    stored = encode(SOUND, AT) | dict([wrong])
    read: Fingerprint | None
    try:
        read = decode(stored)
    except CorruptFingerprint:
        read = None
    assert read is None or valid(read)
    hit = Hit("i", "1", None, 1, 1, {"neardupe": stored})
    corpus = read_corpus([[hit]], "neardupe", SETTINGS.scheme.bands)
    assert len(corpus) + len(corpus.corrupt) == 1
    assert read is not None or len(corpus) == 0


@given(JSON)
def test_any_json_in_the_place_of_the_object(value: Any) -> None:
    """Encoders and decoders handle any value in the place of the `neardupe` object."""
    sound = {"text": "one two three four five six"}
    hit = Hit("i", "1", None, 1, 1, {**sound, "neardupe": value})
    fields = stored_fields(hit.source, "neardupe")
    assert fields == (value if isinstance(value, dict) else {})
    (document,) = fingerprint_documents([[hit]], SETTINGS, 100)
    assert not is_current(document, SETTINGS)
    body = fingerprint_fields(document, SETTINGS, AT)
    assert isinstance(body["group"], str)
    assert body["content"] == SOUND.content
    corpus = read_corpus([[hit]], "neardupe", SETTINGS.scheme.bands)
    assert corpus.corrupt == [("i", "1")]


ANY = JSON | st.floats() | st.booleans()
GROUP_IDS = st.from_regex(r"[A-Za-z0-9_-]{16}", fullmatch=True)
GROUPINGS = {"group": GROUP_IDS | ANY, "principal": st.booleans() | ANY, "similarity": st.floats(0, 1) | ANY}


@given(st.fixed_dictionaries({}, optional=GROUPINGS) | st.fixed_dictionaries(GROUPINGS))
def test_any_grouping_is_read_or_none(stored: dict[str, Any]) -> None:
    read = decode_grouping(stored)
    if read is not None:
        assert encode_grouping(read) == stored
        assert 0 <= read.similarity <= 1


@given(GROUP_IDS, st.booleans(), st.floats(0, 1))
def test_grouping_round_trip(group: str, principal: bool, similarity: float) -> None:
    grouping = Grouping(group, principal, similarity)
    fields = encode_grouping(grouping)
    assert decode_grouping(json.loads(json.dumps(fields))) == grouping
    assert set(fields) == {"group", "principal", "similarity"}
    for name in fields:
        assert decode_grouping(fields | {name: None}) is None


@pytest.mark.parametrize("similarity", [True, "1.0", float("nan"), float("inf"), -0.5, 1.5, 10**400])
def test_similarities_that_are_none(similarity: Any) -> None:
    assert decode_grouping({"group": "g" * 16, "principal": False, "similarity": similarity}) is None


def test_own_group_golden() -> None:
    """Group ids outlive the code: these may never change."""
    assert own_group("news", "4711") == "_a0BgI4dkBs_mWsr"
    assert own_group("news", "4711", 1) == "wErVSOjvzpQpGUU-"
    assert own_group("i", "\ud800é") == "T-afjIe7JhGCYQEp"
    digest = xxhash.xxh3_128_digest(b"news\x004711")
    assert own_group("news", "4711") == base64.urlsafe_b64encode(digest[:12]).decode()


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.integers(0, 3))
def test_own_group(index: str, id: str, other_index: str, other_id: str, attempt: int) -> None:
    assume("\0" not in index + other_index)
    assert re.fullmatch("[A-Za-z0-9_-]{16}", own_group(index, id, attempt))
    assert len({own_group(index, id, number) for number in range(4)}) == 4
    same = (index, id) == (other_index, other_id)
    assert (own_group(index, id) == own_group(other_index, other_id)) == same


def test_fingerprints_are_in_the_order_of_their_documents() -> None:
    """Documents without a readable text do not shift the others."""
    texts = ["one two three four five", {"no": "text"}, "", "x" * 101, "six seven", {"no": "text"}, "漢 字 た ち い"]
    settings = SETTINGS
    found = list(fingerprint_sources([{"text": text} for text in texts], settings, 100))
    states = ["signed", "failed", "empty", "too_large", "short", "failed", "signed"]
    assert [one.state.value for one in found] == states
    for text, one in zip(texts, found, strict=True):
        if isinstance(text, str):
            assert [one] == fingerprints([text], settings.scheme, max_chars=100)


def test_timestamp() -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", timestamp())


KEPT = "a-group_id_of_16"


def test_renewal() -> None:
    """An unchanged document is current; with another text or scheme, or without a group, it waits for ``group``."""
    (hit,) = hits({"1": "one two three four five six"})
    fields = hit.source["neardupe"]

    def document(**changed: Any) -> Any:
        source = {"text": changed.pop("text", hit.source["text"]), "neardupe": fields | changed}
        (one,) = fingerprint_documents([[Hit("i", "1", "r", 3, 2, source)]], SETTINGS, 1000)
        return one

    assert is_current(document(), SETTINGS)
    assert is_current(document(text="One, two: three four five SIX!"), SETTINGS)
    others: list[dict[str, Any]] = [
        {"text": "else"},
        {"scheme": "v1-0"},
        *({"group": group} for group in (None, "", "lease", "x" * 17, ["A" * 16])),
        {"state": "short"},
        {"content": "0" * 32},
    ]
    for other in others:
        assert not is_current(document(**other), SETTINGS)
    changed = document(group=KEPT, text="else")
    body = fingerprint_fields(changed, SETTINGS, AT)
    action = partial_update(changed.hit, SETTINGS, body)
    assert (action.op, action.address, action.routing) == ("update", ("i", "1"), "r")
    assert (action.seq_no, action.primary_term) == (3, 2)
    assert action.body == {"doc": {"neardupe": body}}
    assert (body["group"], body["principal"], body["similarity"], body["at"]) == (KEPT, None, None, AT)
    assert decode(body) == fingerprints(["else"], SETTINGS.scheme)[0]
    rewritten = fingerprint_fields(document(), SETTINGS, AT)
    assert not {"group", "principal", "similarity"} & set(rewritten)
    founded = fingerprint_fields(document(group=None), SETTINGS, AT)
    assert founded["group"] == own_group("i", "1")
