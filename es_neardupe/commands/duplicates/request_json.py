"""Requests as JSON: strict reading, and error messages with the place in the request."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from es_neardupe.errors import SettingsError

__all__ = ["invalid", "listed", "path_to", "read_json", "shown"]


DEEPEST = 50
"""Levels of objects and lists; no request needs more, and Python cannot follow much deeper ones."""


_LARGEST = 2**64
"""Whole numbers beyond are of no field of a server."""


_DIGITS = 20
"""Digits that a smaller one has at most; Python takes long to read thousands of them."""


_SHOWN = 60
"""Characters of a value in a message."""


_NAMED = 12
"""Names in a message."""


Step = str | int


class _Object(dict[str, Any]):
    """A JSON object that knows which name it has twice."""

    twice: str | None = None


def read_json(request: str | Mapping[str, Any]) -> dict[str, Any]:
    """The request as plain objects, lists, texts and numbers. Raises `SettingsError`."""
    value = _parsed(request) if isinstance(request, str) else request
    if not isinstance(value, Mapping):
        raise SettingsError(f"A request is a JSON object, not {shown(value)}.")
    plain = _plain(value, ())
    assert isinstance(plain, dict)
    return plain


def invalid(path: Sequence[Step], problem: str) -> SettingsError:
    """The error of a request: where, and what is wrong there."""
    return SettingsError(f"The request cannot be used: {path_to(path)} {problem}")


def path_to(path: Sequence[Step]) -> str:
    """A place in a request as it is written in programs: ``stages.similarPairs.fields[0]``."""
    parts = [f".{step}" if _plain_name(step) else f"[{shown(step)}]" for step in path]
    return "".join(parts).removeprefix(".") or "the request"


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Names of the request in a message; of very many, the first."""
    more = [f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else []
    return between.join([*map(shown, names[:_NAMED]), *more])


def shown(value: object) -> str:
    """A value of the request in a message: as JSON, not longer than a line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _plain_name(step: Step) -> bool:
    return isinstance(step, str) and step.isidentifier() and len(step) <= _SHOWN


def _parsed(text: str) -> object:
    text = text.removeprefix("\ufeff")  # editors of Windows begin files with it
    if not text.strip():
        raise SettingsError("The request is empty: print one to begin with by `es-neardupe duplicates --example NAME`.")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise SettingsError(
            f"The request is no JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from error
    except RecursionError as error:
        raise SettingsError(f"The request is nested deeper than {DEEPEST} levels.") from error


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        made.twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return made


def _whole(text: str) -> float:
    return int(text) if len(text) <= _DIGITS else math.inf


def _plain(value: object, path: tuple[Step, ...]) -> Any:
    """A copy without what JSON, a server or a terminal has no room for."""
    if len(path) > DEEPEST:
        raise invalid(path[:3], f"is nested deeper than {DEEPEST} levels.")
    if isinstance(value, Mapping):
        if twice := getattr(value, "twice", None):
            raise invalid((*path, twice), "is there twice: keep one of them.")
        return {_text(name, path): _plain(one, (*path, str(name))) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, (*path, place)) for place, one in enumerate(value)]
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return _number(value, path)
    raise invalid(path, f"is no JSON value, but of the type {type(value).__name__}.")


def _text(value: object, path: tuple[Step, ...]) -> str:
    if not isinstance(value, str):
        raise invalid(path, f"has a name that is no text: {value!r}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise invalid(path, "holds half of a character (a lone surrogate), which no server takes.") from error
    return value


def _number(value: float, path: tuple[Step, ...]) -> float:
    if abs(value) >= _LARGEST if isinstance(value, int) else not math.isfinite(value):
        raise invalid(path, "is no number that a server takes: allowed are finite ones, whole ones with 64 bits.")
    return value
