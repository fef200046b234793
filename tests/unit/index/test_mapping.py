"""The mapping of the `neardupe` fields, and its conflicts with existing mappings."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.errors import SettingsError
from es_neardupe.index.mapping import (
    TEXT_TYPES,
    Fields,
    conflicts,
    field_types,
    fields_mapping,
    is_mapped,
    missing,
    text_mapping,
)
from es_neardupe.index.settings import Settings

SETTINGS = Settings(("text",))
COPIED = Settings(("text",), group_field="story")

MAPPING: dict[str, Any] = {
    "dynamic": "strict",
    "properties": {
        "scheme": {"type": "keyword"},
        "state": {"type": "keyword"},
        "content": {"type": "keyword"},
        "bands": {"type": "keyword", "doc_values": False},
        "samples": {"type": "keyword", "doc_values": False},
        "signature": {"type": "binary"},
        "tokens": {"type": "integer"},
        "features": {"type": "integer"},
        "numeric": {"type": "boolean"},
        "group": {"type": "keyword"},
        "principal": {"type": "boolean"},
        "similarity": {"type": "float"},
        "at": {"type": "date"},
        "checked": {"type": "binary"},
    },
}


def test_mapping_literal() -> None:
    assert fields_mapping() == MAPPING


def test_names() -> None:
    fields = Fields("nd")
    assert {getattr(fields, name) for name in MAPPING["properties"]} == {f"nd.{name}" for name in MAPPING["properties"]}
    with pytest.raises(AttributeError):
        fields.band  # noqa: B018


def present(**changed: Any) -> dict[str, Any]:
    properties = copy.deepcopy(MAPPING["properties"])
    return {"text": {"type": "text"}, "neardupe": {"dynamic": "strict", "properties": {**properties, **changed}}}


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({}, []),
        ({"neardupe": {"type": "object"}}, []),
        (present(), []),
        (present(signature={"type": "binary", "doc_values": False}), []),
        (present(bands={"type": "text"}), ["neardupe.bands is mapped as text, not as keyword"]),
        (present(bands={"type": "keyword"}), ["neardupe.bands has doc values"]),
        (present(group={"type": "keyword", "doc_values": False}), ["neardupe.group has no doc values"]),
        (present(bands={"type": "keyword", "doc_values": False, "index": False}), ["neardupe.bands is not indexed"]),
        (
            present(
                scheme={"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
                at={"properties": {"x": {"type": "text"}}},
            ),
            ["neardupe.scheme is mapped as text, not as keyword", "neardupe.at is mapped as object, not as date"],
        ),
        (present(content={"type": "keyword", "ignore_above": 10}), ["neardupe.content has ignore_above"]),
        (present(group={"type": "keyword", "normalizer": "lowercase"}), ["neardupe.group has a normalizer"]),
        (present(tokens={"type": "long"}), ["neardupe.tokens is mapped as long, not as integer"]),
        ({"neardupe": {"type": "keyword"}}, ["neardupe is mapped as keyword, not as an object"]),
        ({"neardupe": {"type": "text"}}, ["neardupe is mapped as text, not as an object"]),
        ({"neardupe": {"type": "nested", **present()["neardupe"]}}, ["neardupe is mapped as nested, not as an object"]),
        ({"neardupe": {"type": "object", "enabled": False}}, ["neardupe is disabled (enabled: false)"]),
        ({"neardupe": {"type": "flattened"}}, ["neardupe is mapped as flattened, not as an object"]),
    ],
)
def test_conflicts(properties: dict[str, Any], said: list[str]) -> None:
    assert conflicts({"properties": properties}, SETTINGS) == said


@pytest.mark.parametrize(
    ("story", "said"),
    [
        ({"type": "keyword"}, []),
        ({"type": "text"}, ["story is mapped as text, not as keyword"]),
        ({"type": "alias", "path": "neardupe.group"}, ["story is mapped as alias, not as keyword"]),
        ({"type": "keyword", "doc_values": False}, ["story has no doc values"]),
        ({"type": "keyword", "ignore_above": 10}, ["story has ignore_above"]),
        ({"properties": {"x": {"type": "keyword"}}}, ["story is mapped as object, not as keyword"]),
    ],
)
def test_conflicts_of_the_group_field(story: dict[str, Any], said: list[str]) -> None:
    mapping = {"properties": {**present(), "story": story}}
    assert conflicts(mapping, COPIED) == said
    assert conflicts(mapping, SETTINGS) == []


def test_runtime_fields_that_would_hide_others() -> None:
    runtime = {name: {"type": "keyword"} for name in ("neardupe", "neardupe.group", "story", "neardupes", "stories")}
    said = [f"{name} is a runtime field" for name in ("neardupe", "neardupe.group", "story")]
    assert conflicts({"runtime": runtime}, COPIED) == said


def test_missing() -> None:
    every = [f"neardupe.{name}" for name in MAPPING["properties"] if name != "samples"]
    assert missing({}, "neardupe") == every
    assert missing({"neardupe": {"type": "object"}}, "neardupe") == every
    assert missing(present(), "neardupe") == []
    there = present()
    del there["neardupe"]["properties"]["similarity"]
    assert missing(there, "neardupe") == ["neardupe.similarity"]
    assert conflicts({"properties": there}, SETTINGS) == []
    assert missing(present(), "other", sampled=True) == [f"other.{name}" for name in MAPPING["properties"]]
    older = present()
    del older["neardupe"]["properties"]["samples"]
    assert missing(older, "neardupe") == []
    assert missing(older, "neardupe", sampled=True) == ["neardupe.samples"]


def test_text_mapping_of_dotted_names() -> None:
    assert text_mapping(("title", "page.body", "page.note.short", "x")) == {
        "title": {"type": "text"},
        "page": {
            "properties": {"body": {"type": "text"}, "note": {"properties": {"short": {"type": "text"}}}},
        },
        "x": {"type": "text"},
    }


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a"), ("a.b", "x", "a.b.c.d")])
def test_text_and_object_at_once(names: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match=r"a(\.b)? cannot be both a text and an object"):
        text_mapping(names)


NAMES = st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=3).map(".".join)


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True))
def test_text_mapping_holds_exactly_the_names(names: list[str]) -> None:
    clash = any(one != other and other.startswith(f"{one}.") for one in names for other in names)
    if clash:
        with pytest.raises(SettingsError):
            text_mapping(tuple(names))
    else:
        assert sorted(field_types(text_mapping(tuple(names)))) == sorted((name, "text") for name in names)


def test_field_types() -> None:
    properties = {
        "title": {"type": "text", "fields": {"raw": {"type": "keyword"}, "stem": {"type": "text"}}},
        "page": {"properties": {"body": {"type": "match_only_text"}, "size": {"type": "integer"}}},
        "parts": {"type": "nested", "properties": {"text": {"type": "text"}}},
        "empty": {"type": "object"},
        "free": {"type": "flattened"},
    }
    assert dict(field_types(properties)) == {
        "title": "text",
        "title.raw": "multi-field",
        "title.stem": "multi-field",
        "page.body": "match_only_text",
        "page.size": "integer",
        "parts.text": "text",
        "free": "flattened",
    }
    assert {"text", "match_only_text"} <= TEXT_TYPES
    assert not TEXT_TYPES & {"keyword", "multi-field", "integer"}


@pytest.mark.parametrize(
    ("name", "mapped"),
    [
        ("text", True),
        ("part", True),
        ("part.body", True),
        ("off", True),
        ("a.b", True),
        ("body", False),
        ("part.x", False),
    ],
)
def test_what_is_mapped(name: str, mapped: bool) -> None:
    """Objects too, empty ones and disabled ones; names that contain a dot."""
    properties = {
        "text": {"type": "text"},
        "part": {"properties": {"body": {"type": "text"}}},
        "off": {"type": "object", "enabled": False},
        "a.b": {"type": "text"},
    }
    assert is_mapped(properties, name) == mapped
