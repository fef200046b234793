"""Numbers in JSON: literals that a 64-bit float does not hold are recognised and preserved."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.errors import InputError
from es_neardupe.readers.json_lines import parsed_line
from es_neardupe.server.numbers import UnheldNumber, document_json, has_unheld, loads

DIGITS = st.text("0123456789", min_size=1, max_size=25)
FRACTIONS = st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), st.integers(0, 10**20), DIGITS)
EXPONENTS = st.builds("{}{}{}".format, FRACTIONS, st.sampled_from(["e", "E", "e+", "E-"]), st.integers(0, 400))
INTEGERS = st.integers(-(10**30), 10**30).map(str)
LITERALS = st.one_of(FRACTIONS, EXPONENTS, INTEGERS, st.floats(allow_nan=False, allow_infinity=False).map(repr))


def text_of(literals: list[str]) -> str:
    """A document that contains the literals at several depths."""
    inside = f'"all":[{",".join(literals)}],"nested":[[{{"one":{literals[0]}}}]]'
    return '{"text":"1E400 é \\ud800",' + inside + "}"


@given(st.lists(LITERALS, min_size=1, max_size=5))
def test_every_number_keeps_its_value(literals: list[str]) -> None:
    source = loads(text_of(literals))
    written = json.loads(document_json(source), parse_float=Decimal, parse_int=Decimal)
    assert written["all"] == [Decimal(one) for one in literals]
    assert written["nested"] == [[{"one": Decimal(literals[0])}]]
    assert written["text"] == "1E400 é \ud800"


def kinds(value: Any) -> Any:
    """The value with the type and literal of each number."""
    if isinstance(value, dict):
        return {name: kinds(one) for name, one in value.items()}
    return [kinds(one) for one in value] if isinstance(value, list) else (type(value), repr(value))


VALUES = st.recursive(
    st.one_of(LITERALS, st.sampled_from(["null", "true", '"1.5e3"', '"\\ud800"', "-0", "-0.0", "NaN"])),
    lambda inner: st.one_of(
        st.lists(inner).map(lambda some: f"[{','.join(some)}]"),
        st.dictionaries(st.sampled_from("abc"), inner).map(
            lambda one: "{" + ",".join(f'"{name}":{value}' for name, value in one.items()) + "}"
        ),
    ),
    max_leaves=6,
)


@given(VALUES)
def test_bytes_are_read_like_text(text: str) -> None:
    """Bytes without fractions are parsed by another library."""
    assert kinds(loads(text.encode())) == kinds(loads(text))


@given(st.lists(LITERALS, min_size=1, max_size=5))
def test_literals_of_files(literals: list[str]) -> None:
    """A line of a file is written with its literals, and each number is its nearest float."""
    source = parsed_line(text_of(literals).encode(), "utf-8")
    written = json.loads(document_json(source), parse_float=str, parse_int=str)
    assert written["all"] == ["0" if one == "-0" else one for one in literals]
    assert source["all"] == [float(one) if set(".eE") & set(one) else int(one) for one in literals]


@given(LITERALS)
def test_what_a_float_does_not_hold(literal: str) -> None:
    """The definition, by decimal arithmetic: the shortest literal of the nearest float is another number."""
    number = loads(f"[{literal}]")[0]
    if isinstance(number, int):
        held = True
    elif abs(float(literal)) < 2.2250738585072014e-308:
        held = Decimal(literal) == 0
    else:
        held = float(literal) not in (float("inf"), -float("inf")) and Decimal(repr(float(literal))) == Decimal(literal)
    assert isinstance(number, UnheldNumber) != held
    assert number == (int(literal) if isinstance(number, int) else float(literal))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", False),
        ('{"a":[1.10,1e5,-0.0,123456789012345678901234567890]}', False),
        ('{"a":"0.12345678901234567890123"}', False),
        ('{"a":[[],[{}, {"b":[[0.12345678901234567890123]]}]]}', True),
        ('{"a":1e99999999999999999999}', True),
        ('{"a":1e-99999999999999999999}', True),
        ('{"a":0.000e99999999999999999999}', False),
    ],
)
def test_found_at_any_depth(text: str, found: bool) -> None:
    assert has_unheld(loads(text)) is found
    assert has_unheld(loads(text.encode())) is found


def test_nested_too_deeply_to_be_written() -> None:
    deep: Any = UnheldNumber("1E400")
    for _ in range(3000):
        deep = [deep]
    assert has_unheld([deep])
    with pytest.raises(InputError, match="nested too deeply"):
        document_json({"a": deep})
