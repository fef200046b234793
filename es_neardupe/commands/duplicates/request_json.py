"""Requests as JSON: examples, schema, strict reading, and errors with the place in the request."""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from es_neardupe.commands.duplicates.request_model import Request
from es_neardupe.display_text import validation_message
from es_neardupe.errors import SettingsError

_FIELDS = "sourceFields"
"""Component of an example request with the fields that it compares."""

_EXAMPLE_LENGTH = 250
"""``maxValueLength`` of the fields that are given for an example."""

_MAX_DEPTH = 50
"""Maximum nesting of objects and arrays. No request needs more, and much more exceeds the recursion limit of Python."""

_INTEGER_LIMIT = 2**64
"""No field of a server holds larger integers."""

_MAX_DIGITS = 20
"""Digits of the largest integer below the limit. Python takes long to parse thousands of digits."""

_MAX_SHOWN = 60
"""Characters of a value in a message."""

_MAX_NAMES = 12
"""Names in a message."""

_ALLOWED = {
    "bool_type": "true or false",
    "string_type": "a string",
    "string_too_short": "a non-empty string",
    "list_type": "an array of strings",
    "dict_type": "an object",
    "model_type": "an object",
}
"""Allowed values by the error types of pydantic; `_allowed` derives the others from the error."""

_WITHOUT_TYPE = ("union_tag_not_found", "model_attributes_type")
"""Error types of pydantic for a value that should be an object with a ``type``."""

Step = str | int
"""Property of an object, or index of an array."""


def names() -> list[str]:
    """The names of the example requests, sorted."""
    return list(_examples())


def example(name: str, fields: Sequence[str] = ()) -> str:
    """The JSON text of an example request, with other ``fields`` to compare and to read, if any are given.

    Raises `SettingsError` for an unknown name, and for fields of an example that compares each in another way.
    """
    if name not in _examples():
        raise SettingsError(f"Unknown example {name!r}. Available: {', '.join(names())}.")
    text = _examples()[name]
    if not fields:
        return text
    request = json.loads(text)
    if _FIELDS not in request["components"]:
        raise SettingsError(
            f"The example {name!r} compares several fields, each in another way: print it and replace them there."
        )
    request["components"][_FIELDS]["fields"] = list(dict.fromkeys(fields))
    for stage in request["stages"].values():
        if stage["type"] == "documentContent":
            stage["fields"]["fields"] = {field: {"maxValueLength": _EXAMPLE_LENGTH} for field in fields}
    return json.dumps(request, indent=2, ensure_ascii=False) + "\n"


@cache
def _examples() -> dict[str, str]:
    """Name -> JSON text."""
    folder = files("es_neardupe.commands.duplicates") / "examples"
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".json")}
    return {name.removesuffix(".json"): texts[name] for name in sorted(texts)}


def schema() -> dict[str, Any]:
    """The JSON schema of requests (draft 2020-12), for editors that check and complete while typing."""
    made = Request.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "Request for duplicates"}


# Messages


def invalid(path: Sequence[Step], problem: str) -> SettingsError:
    """The error of an invalid request."""
    return SettingsError(f"Invalid request: {_path_text(path)} {problem}")


def _path_text(path: Sequence[Step]) -> str:
    """A path as in JavaScript: ``stages.similarPairs.fields[0]``."""
    parts = [f".{step}" if _is_identifier(step) else f"[{shown(step)}]" for step in path]
    return "".join(parts).removeprefix(".") or "the request"


def _is_identifier(step: Step) -> bool:
    return isinstance(step, str) and step.isidentifier() and len(step) <= _MAX_SHOWN


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """Names as JSON strings; of more than `_MAX_NAMES`, the first ones and the number of the others."""
    more = [f"{len(names) - _MAX_NAMES:,} more"] if len(names) > _MAX_NAMES else []
    return separator.join([*map(shown, names[:_MAX_NAMES]), *more])


def shown(value: object) -> str:
    """A value as JSON, truncated."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


# Reading


def read_request(request: str | Mapping[str, Any]) -> Request:
    """The request as a model. Raises `SettingsError` for invalid JSON, then for the first value that is not allowed."""
    return _checked(_read_json(request))


class _Object(dict[str, Any]):
    """A JSON object that remembers a name that occurs twice in it."""

    twice: str | None = None


def _read_json(request: str | Mapping[str, Any]) -> dict[str, Any]:
    """The request as plain dicts, lists, strings and numbers. Raises `SettingsError`."""
    value = _parsed(request) if isinstance(request, str) else request
    if not isinstance(value, Mapping):
        raise SettingsError(f"A request is a JSON object, not {shown(value)}.")
    plain = _plain(value, ())
    assert isinstance(plain, dict)
    return plain


def _parsed(text: str) -> object:
    text = text.removeprefix("\ufeff")  # some editors on Windows write a byte order mark
    if not text.strip():
        raise SettingsError("The request is empty. Print an example with `es-neardupe duplicates --example NAME`.")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise SettingsError(
            f"The request is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from error
    except RecursionError as error:
        raise SettingsError(f"The request is nested deeper than {_MAX_DEPTH} levels.") from error


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        made.twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return made


def _integer(text: str) -> float:
    return int(text) if len(text) <= _MAX_DIGITS else math.inf


def _plain(value: object, path: tuple[Step, ...]) -> Any:
    """A copy in plain types. Raises `SettingsError` for a value that JSON, a server or a terminal cannot represent."""
    if len(path) > _MAX_DEPTH:
        raise invalid(path[:3], f"is nested deeper than {_MAX_DEPTH} levels.")
    if isinstance(value, Mapping):
        if twice := getattr(value, "twice", None):
            raise invalid((*path, twice), "occurs twice; allowed: once.")
        return {_name(name, path): _plain(one, (*path, str(name))) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, (*path, place)) for place, one in enumerate(value)]
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return _number(value, path)
    raise invalid(path, f"is of the Python type {type(value).__name__}; allowed: JSON values.")


def _name(name: object, path: tuple[Step, ...]) -> str:
    if not isinstance(name, str):
        raise invalid(path, f"has the property name {name!r}; allowed: strings.")
    return _text(name, path)


def _text(value: str, path: tuple[Step, ...]) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise invalid(path, "contains half of a surrogate pair; allowed: valid Unicode.") from error
    return value


def _number(value: float, path: tuple[Step, ...]) -> float:
    if abs(value) >= _INTEGER_LIMIT if isinstance(value, int) else not math.isfinite(value):
        raise invalid(path, "is not a valid number; allowed: finite numbers, and integers of up to 64 bits.")
    return value


def _checked(request: Mapping[str, Any]) -> Request:
    """The request as a model. Raises `SettingsError` with the first problem."""
    errors = _errors(request)
    if not errors:
        return Request.model_validate(request)
    first, path = errors[0], _path(request, errors[0])
    if "[key]" in first["loc"][-1:]:
        raise invalid(path[:-1], "has an empty property name; allowed: non-empty names.")
    if first["type"] == "property":
        context = first["ctx"]
        raise invalid(
            (*path, context["name"]), f"is {context['problem']}; allowed properties: {', '.join(context['known'])}."
        )
    if first["type"] in _WITHOUT_TYPE:
        errors = _errors(_with_empty_type(request, path))
    value = _at(request, path)
    same_place = [error for error in errors if _path(request, error) == path]
    allowed = " or ".join(dict.fromkeys(map(_allowed, same_place)))
    if same_place[0]["type"] == "union_tag_invalid":
        raise _wrong_type(path, value, allowed)
    raise invalid(path, f"is {shown(value)}; allowed: {allowed}.")


def _errors(request: Mapping[str, Any]) -> list[Any]:
    try:
        Request.model_validate(request)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


def _wrong_type(path: Sequence[Step], value: object, allowed: str) -> SettingsError:
    """The error of an object whose ``type`` is missing or not allowed, or of a value that is not an object."""
    if not isinstance(value, dict):
        return invalid(path, f"is {shown(value)}; allowed: an object with one of the types {allowed}.")
    problem = f"is {shown(value['type'])}" if "type" in value else "is missing"
    return invalid((*path, "type"), f"{problem}; allowed: {allowed}.")


def _with_empty_type(request: Mapping[str, Any], path: Sequence[Step]) -> dict[str, Any]:
    """The request with an object of an unknown type at the path, for which pydantic lists the allowed types."""
    changed: Any = copy.deepcopy(dict(request))
    _at(changed, path[:-1])[path[-1]] = {"type": ""}
    return changed  # type: ignore[no-any-return]


def _path(request: Any, error: Mapping[str, Any]) -> tuple[Step, ...]:
    """The path of an error in the request, without the names of types that pydantic inserts."""
    path: list[Step] = []
    value = request
    for step in error["loc"]:
        inside = step in value if isinstance(value, dict) else isinstance(value, list) and isinstance(step, int)
        if inside:
            path.append(step)
            value = value[step]
    return tuple(path)


def _at(request: Any, path: Sequence[Step]) -> Any:
    for step in path:
        request = request[step]
    return request


def _allowed(error: Mapping[str, Any]) -> str:
    """The allowed values at the path of an error."""
    context = error.get("ctx", {})
    if "allowed" in context:  # errors of request_model
        return str(context["allowed"])
    if error["type"] == "union_tag_invalid":
        return str(context["expected_tags"]).replace("'", "")
    if error["type"] == "literal_error":
        return str(context["expected"]).replace("'", '"')
    if error["type"] == "too_short":
        return f"a non-empty {'array' if context['field_type'] == 'List' else 'object'}"
    return _ALLOWED.get(error["type"], validation_message(error))
