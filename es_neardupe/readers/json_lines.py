"""JSON of a line of an input file, with limits that are checked before it is parsed.

A short text can become large when it is parsed: an empty array is two bytes of text and 56 bytes in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from es_neardupe.options import no_constant
from es_neardupe.server.numbers import literal_number

_MAX_DEPTH = 100
"""Levels of arrays and objects: servers reject deeper objects, and Python cannot parse much deeper arrays."""
_MAX_MARKS = 2_000_000
"""Commas and opening brackets outside of strings: each begins a value, and so many values need up to 250 MB."""
_PIECE = 2**20


def parsed_line(line: bytes, encoding: str) -> Any:
    """The JSON value of a line, with the literals of its numbers (`literal_number`). Raises `ValueError` for one that
    servers reject, or that exceeds a limit."""
    _check_size(line)
    text = line.rstrip(b"\r\n").decode(encoding)
    return json.loads(text, parse_constant=no_constant, parse_float=literal_number)


def invalid_json(error: json.JSONDecodeError) -> str:
    """Why a line is no JSON, and where."""
    return f"invalid JSON ({error.msg.removesuffix(' at')} at column {error.colno})"


def _check_size(line: bytes) -> None:
    """Raises `ValueError` for too many values or levels. Invalid JSON is not noticed here."""
    brackets = line.count(b"[") + line.count(b"{")
    if brackets <= _MAX_DEPTH and brackets + line.count(b",") <= _MAX_MARKS:
        return  # even if none of these characters is part of a string
    number, depth = 0, 0
    for marks in _marks(line):
        number += marks.count(b",") + marks.count(b"[") + marks.count(b"{")
        if number > _MAX_MARKS:
            raise ValueError(f"more than {_MAX_MARKS:,} commas and brackets")
        levels = list(accumulate(map(_STEPS.__getitem__, marks), initial=depth))
        if max(levels) > _MAX_DEPTH:
            raise ValueError(f"nested deeper than {_MAX_DEPTH} levels")
        depth = levels[-1]


_STEPS = {**dict.fromkeys(b",", 0), **dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}
_OTHERS = bytes(set(range(256)) - set(b",[]{}"))


def _marks(line: bytes) -> Iterator[bytes]:
    """The commas and brackets of a line that are not part of a string, piece by piece."""
    without_escapes = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    in_string = False
    for begin in range(0, len(without_escapes), _PIECE):
        parts = without_escapes[begin : begin + _PIECE].split(b'"')
        yield b"".join(parts[in_string::2]).translate(None, _OTHERS)
        in_string ^= len(parts) % 2 == 0
