"""Settings: checks of values, and the round trip through a mapping."""

from __future__ import annotations

import copy
import json
import shlex
from dataclasses import replace
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import JSON

from es_neardupe.cli.app import app
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index.settings import Settings
from es_neardupe.keys.scheme import Scheme
from es_neardupe.options import MeasureName

NAN = float("nan")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": ()}, "Name at least one text field"),
        ({"fields": ("a", "")}, "Name at least one text field"),
        ({"fields": ("a", "b", "a")}, "named twice: a, b, a"),
        ({"fields": "body"}, "must be a list, not one text"),
        ({"threshold": 0}, r"above 0 and at most 1, not 0|\(0, 1\]"),
        ({"threshold": -0.1}, "not -0.1"),
        ({"threshold": 1.0001}, "not 1.0001"),
        ({"threshold": NAN}, "not nan"),
        ({"threshold": 0, "bands": 4, "rows": 4}, "not 0"),
        ({"threshold": NAN, "bands": 4, "rows": 4}, "not nan"),
        ({"detection": 0}, "not 0"),
        ({"detection": 1}, "not 1"),
        ({"detection": NAN}, "not nan"),
        ({"detection": 7, "bands": 4, "rows": 4}, "not 7"),
        ({"threshold": 0.01}, "128 permutations cannot find pairs at 0.01"),
        ({"bands": 4}, "belong together"),
        ({"rows": 4}, "belong together"),
        ({"bands": 17, "rows": 8}, "136 is over the 128 slots"),
        ({"bands": 0, "rows": 4}, "bands must be 1 to 128, not 0"),
        ({"bands": 4, "rows": 0}, "rows must be at least 1, not 0"),
        ({"shingle": 0}, "shingle must be 1 to 1000000, not 0"),
        ({"permutations": 7, "bands": 1, "rows": 1}, "permutations must be 8 to 256, not 7"),
        ({"permutations": 257}, "permutations must be 8 to 256, not 257"),
        ({"prefix": ""}, "is not valid"),
        ({"prefix": "a.b"}, "is not valid"),
        ({"prefix": "_meta"}, "is not valid"),
        ({"prefix": "1st"}, "is not valid"),
        ({"prefix": "a\n"}, "is not valid"),
        ({"prefix": "a" * 65}, "is not valid"),
        ({"fields": ("neardupe",)}, "Fields under the prefix"),
        ({"fields": ("neardupe.text",)}, "Fields under the prefix"),
        ({"group_field": "a.b"}, "The group field 'a.b' is not valid"),
        ({"group_field": ""}, "The group field '' is not valid"),
        ({"group_field": "neardupe"}, "in use by another field"),
        ({"fields": ("page.body",), "group_field": "page"}, "in use by another field"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Settings(**{"fields": ("text",)} | options)


def test_defaults_and_derived_scheme() -> None:
    settings = Settings(("title", "body"))
    assert (settings.threshold, settings.detection, settings.prefix) == (0.8, 0.99, "neardupe")
    assert settings.scheme == Scheme(shingle=5, permutations=128, bands=16, rows=6)
    assert Settings(("neardupes", "near")).fields == ("neardupes", "near")  # only looks like one of ours


def test_fields_may_be_any_sequence() -> None:
    assert Settings(["title", "body"]) == Settings(("title", "body"))  # type: ignore[arg-type]  # a typing error that works


VALID = st.builds(
    Settings,
    fields=st.lists(st.text("abc.é", min_size=1, max_size=5), min_size=1, max_size=4, unique=True).map(tuple),
    threshold=st.floats(0.3, 1),
    detection=st.floats(0.01, 0.99),
    shingle=st.integers(1, 9),
    permutations=st.sampled_from([64, 128, 200, 256]),
    sample_mod=st.sampled_from([0, 1, 2, 7, 2**16]),
    prefix=st.sampled_from(["neardupe", "nd", "a-1_B"]),
)


@given(VALID)
def test_meta_round_trip(settings: Settings) -> None:
    meta = json.loads(json.dumps(settings.to_meta()))
    again = Settings.from_meta(meta, settings.prefix)
    assert again.differences(settings) == [] == settings.differences(again)
    assert again.scheme == settings.scheme
    assert (again.fields, again.threshold, again.detection, again.prefix) == (
        settings.fields,
        settings.threshold,
        settings.detection,
        settings.prefix,
    )
    assert again.to_meta() == settings.to_meta()


INIT: Any = typer.main.get_command(app).commands["init"]  # type: ignore[attr-defined]


def chosen_by(options: str) -> Settings:
    """The settings that `init` chooses by its options."""
    given = INIT.make_context("init", ["news", *shlex.split(options)]).params
    names = ["preset", "threshold", "detection", "shingle", "permutations", "bands", "rows", "agree", "sample_mod"]
    chosen = {name: given[name] for name in [*names, "clean", "mask", "group_field"]}
    return Settings.chosen(tuple(given["fields"]), **chosen, relations=tuple(given["relations"] or ()))


@given(VALID)
def test_options_of_init(settings: Settings) -> None:
    assert chosen_by(settings.as_options()).differences(replace(settings, prefix="neardupe")) == []


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (Settings(("a b",)), "--field 'a b'"),
        (Settings(("a",), threshold=0.01, bands=4, rows=1), "--field a --threshold 0.01 --bands 4 --rows 1"),
        (Settings(("a",), bands=6, rows=14, agree=2), "--field a --agree 2 --bands 6 --rows 14"),
        (Settings.chosen(("a",), preset="reader"), "--field a --preset reader"),
        (Settings.chosen(("a",), preset="scans"), None),
        (Settings.chosen(("a",), preset="supershingles"), None),
        (Settings.chosen(("a",), preset="logs"), None),
        (
            Settings(("a",), clean="mail", relations=("x", "y"), group_field="g"),
            "--field a --clean mail --relation x --relation y --group-field g",
        ),
    ],
)
def test_options_of_certain_settings(settings: Settings, options: str | None) -> None:
    assert options in (settings.as_options(), None)
    assert chosen_by(settings.as_options()) == settings


def test_options_of_bands_chosen_by_lengths() -> None:
    """An index keeps its bands, so `init` needs the measure and its threshold."""
    settings = Settings(("a",), threshold=0.3, shingle=2, bands=42, rows=2, measure=MeasureName.JACCARD, min=0.6)
    assert settings.as_options() == "--field a --measure jaccard --threshold 0.6 --shingle 2"


def test_meta_literal() -> None:
    settings = Settings(("title", "body"), threshold=0.5)
    assert settings.to_meta() == {
        "id": settings.scheme.id,
        "scheme": {"version": 1, "shingle": 5, "permutations": 128, "bands": 35, "rows": 3, "seed": 1},
        "fields": ["title", "body"],
        "threshold": 0.5,
        "detection": 0.99,
    }


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("id",), "v1-00000000"),
        (("id",), None),
        (("scheme",), None),
        (("scheme",), [1, 2]),
        (("scheme",), "v1"),
        (("scheme", "bands"), 15),
        (("scheme", "bands"), "16"),
        (("scheme", "rows"), 600),
        (("scheme", "seed"), 2),
        (("scheme", "version"), 2),
        (("scheme", "extra"), 1),
        (("fields",), None),
        (("fields",), []),
        (("fields",), "body"),
        (("fields",), ["a", "a"]),
        (("fields",), ["a", 5]),
        (("threshold",), 1.5),
        (("threshold",), "much"),
        (("threshold",), None),
        (("detection",), None),
        (("detection",), 5),
    ],
)
def test_tampered_meta_is_refused(path: tuple[str, ...], value: Any) -> None:
    meta = Settings(("text",)).to_meta()
    level: Any = meta
    for name in path[:-1]:
        level = level[name]
    level[path[-1]] = value
    with pytest.raises(IndexUnusable):
        Settings.from_meta(meta, "neardupe")


@pytest.mark.parametrize("name", ["id", "scheme", "fields", "threshold", "detection"])
def test_incomplete_meta_is_refused(name: str) -> None:
    meta = Settings(("text",)).to_meta()
    del meta[name]
    with pytest.raises(IndexUnusable, match=r"_meta\.neardupe cannot be read"):
        Settings.from_meta(meta, "neardupe")


def test_scheme_of_another_seed_is_refused_even_with_its_id() -> None:
    """The seed is not a setting: this program cannot rebuild a scheme with another one."""
    meta = Settings(("text",)).to_meta()
    meta["scheme"]["seed"] = 2
    meta["id"] = Scheme.from_dict(meta["scheme"]).id
    with pytest.raises(IndexUnusable, match="another version"):
        Settings.from_meta(meta, "neardupe")


@given(JSON)
def test_any_json_as_meta(meta: Any) -> None:
    with pytest.raises(IndexUnusable):
        Settings.from_meta(meta, "neardupe")


@given(VALID, st.sampled_from(["id", "scheme", "fields", "threshold", "detection"]), JSON | VALID)
def test_any_json_in_a_part_of_meta(settings: Settings, name: str, value: Any) -> None:
    """It is refused, or decoded to the stored value: never to another one."""
    meta = copy.deepcopy(settings.to_meta())
    meta[name] = value.to_meta()[name] if isinstance(value, Settings) else value
    try:
        read = Settings.from_meta(meta, settings.prefix)
    except IndexUnusable:
        return
    assert read.to_meta() == meta


def test_sampling_is_a_part_of_the_scheme() -> None:
    settings = Settings(("text",), sample_mod=12)
    assert settings.scheme.sample_mod == 12
    assert Settings.from_meta(settings.to_meta(), "neardupe") == replace(settings, bands=16, rows=6)
    assert settings.differences(Settings(("text",))) == ["sample_mod: 12, not 0"]
    assert Settings(("text",)).differences(settings) == ["sample_mod: 0, not 12"]


def test_a_threshold_in_another_measure() -> None:
    settings = Settings(("text",), threshold=0.3, bands=42, rows=2, measure=MeasureName.JACCARD, min=0.6)
    assert settings.to_meta().items() >= {"measure": "jaccard", "min": 0.6, "threshold": 0.3}.items()
    assert Settings.from_meta(settings.to_meta(), "neardupe") == settings
    assert [settings.threshold_of(one) for one in (MeasureName.JACCARD, MeasureName.BAG)] == [0.6, 0.3]
    assert settings.differences(replace(settings, min=0.7)) == ["min: 0.6, not 0.7"]
    for wrong in ({"min": 0.6}, {"measure": MeasureName.JACCARD}, {"measure": MeasureName.JACCARD, "min": 1.5}):
        with pytest.raises(SettingsError, match=r"`min`|threshold must lie"):
            Settings(("text",), **wrong)
    for name, value in (("measure", "unknown"), ("min", "high"), ("min", float("nan"))):
        with pytest.raises(IndexUnusable):
            Settings.from_meta({**settings.to_meta(), name: value}, "neardupe")


def test_differences() -> None:
    one = Settings(("a", "b"), threshold=0.8)
    assert one.differences(Settings(("a", "b"))) == []
    assert one.differences(Settings(("b", "a"), threshold=0.5, shingle=3)) == [
        "fields: a+b, not b+a",
        "threshold: 0.8, not 0.5",
        "shingle: 5, not 3",
        "bands: 16, not 35",
        "rows: 6, not 3",
    ]
    assert one.differences(Settings(("a", "b"), bands=16, rows=6)) == []
    assert Settings(("a",), prefix="x").differences(Settings(("a",), prefix="y")) == []


def test_what_a_preset_has_is_said_as_its_option() -> None:
    message = "The preset logs has mask source,url,email,uuid,time,ip,path,pod,hex,digits, not none: leave out either"
    with pytest.raises(SettingsError, match=message):
        Settings.chosen(("a",), preset="logs", mask="none")
