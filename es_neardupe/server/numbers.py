"""Literals of numbers in JSON: answers are read with those that a 64-bit float does not hold, files with all that are
written in another way than Python does; documents are written with them.

A server that updates a document in part, or by a script, parses and writes all of its numbers. Integers of any size
stay as they are. A literal with a fraction or an exponent becomes the shortest one of the nearest 64-bit float (Java's
``Double.toString``): ``1.10`` becomes ``1.1``, which is the same number, but ``0.12345678901234567890123`` loses
digits, and ``1E400`` becomes the string "Infinity".
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson

from es_neardupe.errors import InputError
from es_neardupe.server.client import to_json

if TYPE_CHECKING:
    from typing_extensions import Self


_ALWAYS_HELD = 16
"""Length of a literal without an exponent that has at most 15 digits: no two such numbers are nearest to the same
float, so the shortest literal of that float is the same number."""

_NOT_ZERO = re.compile("[1-9]")


class LiteralNumber(float):
    """The 64-bit float nearest to a number, with the literal of that number."""

    __slots__ = ("literal",)

    def __new__(cls, literal: str) -> Self:
        number = super().__new__(cls, literal)
        number.literal = literal
        return number

    literal: str


class UnheldNumber(LiteralNumber):
    """A number that is no 64-bit float."""

    __slots__ = ()


def literal_number(literal: str) -> float:
    """The value of a literal with a fraction or an exponent; with the literal, unless Python writes the same one."""
    number = float(literal)
    return number if repr(number) == literal else LiteralNumber(literal)


def _number(literal: str) -> float:
    """The value of a literal with a fraction or an exponent."""
    if len(literal) <= _ALWAYS_HELD and "e" not in literal and "E" not in literal:
        return float(literal)
    number = float(literal)
    return number if _is_held(literal, number) else UnheldNumber(literal)


def _is_held(literal: str, nearest: float) -> bool:
    """Whether the shortest literal of the nearest float is the same number. Other numbers than zero below the smallest
    normal float count as not held: for some of them Java writes other digits than Python."""
    if abs(nearest) < sys.float_info.min:
        return not _NOT_ZERO.search(literal.lower().partition("e")[0])
    shortest = repr(nearest)
    return shortest == literal or (abs(nearest) <= sys.float_info.max and Decimal(literal) == Decimal(shortest))


_DECODER = json.JSONDecoder(parse_float=_number)


def loads(text: str | bytes) -> Any:
    """As ``json.loads``, with `UnheldNumber` for numbers that a 64-bit float does not hold."""
    if isinstance(text, str):
        return _DECODER.decode(text)
    with suppress(orjson.JSONDecodeError):  # for a lone surrogate, say
        value = orjson.loads(text)  # much faster; numbers that are no 64-bit integers are floats
        if not _contains([value], {float}):
            return value
    return _DECODER.decode(str(text, json.detect_encoding(text), "surrogatepass"))


def has_unheld(value: Mapping[str, Any] | Sequence[Any]) -> bool:
    """Whether a parsed object or array contains an `UnheldNumber`, at any depth."""
    return _contains(value, {UnheldNumber})


def _contains(value: Mapping[str, Any] | Sequence[Any], wanted: set[type]) -> bool:
    waiting: list[Any] = [value]
    while waiting:
        inside = waiting.pop()
        for one in inside.values() if isinstance(inside, dict) else inside:
            kind = type(one)
            if kind is dict or kind is list:
                waiting.append(one)
            elif kind in wanted:
                return True
    return False


def document_json(source: Mapping[str, Any]) -> bytes:
    """One line of JSON, with the literal of each `LiteralNumber`: all other numbers are read back unchanged. Raises
    ``InputError`` for a document that is nested too deeply."""
    if not _contains(source, {LiteralNumber, UnheldNumber}):
        return to_json(source)
    try:
        return _with_literals(source).encode("ascii")
    except RecursionError:
        raise InputError("The document is nested too deeply to be written.") from None


def _with_literals(value: Any) -> str:
    if isinstance(value, LiteralNumber):
        return value.literal
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{_with_literals(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_with_literals, value)) + "]"
    return json.dumps(value)
