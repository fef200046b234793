"""Reading a request: its plan, or one message with the place of the problem, the value there and what is allowed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from es_neardupe.commands.duplicates.request_json import Step, invalid, read_json, shown
from es_neardupe.commands.duplicates.request_model import Request
from es_neardupe.commands.duplicates.request_plan import (
    RequestPlan,
    plan_of,
)
from es_neardupe.errors import SettingsError

__all__ = ["checked", "example", "names", "parse_request", "schema"]


_ALLOWED = {
    "bool_type": "true or false",
    "string_type": "a text",
    "string_too_short": "a text that is not empty",
    "list_type": "a list of texts",
    "dict_type": "an object",
    "model_type": "an object",
}
"""By the names of pydantic; see `_allowed` for those that know more."""

_WITHOUT_TYPE = ("union_tag_not_found", "model_attributes_type")


def checked(request: Mapping[str, Any]) -> Request:
    """The request as a model. Raises `SettingsError` with the first problem."""
    errors = _errors(request)
    if not errors:
        return Request.model_validate(request)
    first, path = errors[0], _path(request, errors[0])
    if "[key]" in first["loc"][-1:]:
        raise invalid(path[:-1], "has a name that is empty.")
    if first["type"] == "property":
        context = first["ctx"]
        raise invalid(
            (*path, context["name"]), f"is {context['problem']}; allowed there: {', '.join(context['known'])}."
        )
    if first["type"] in _WITHOUT_TYPE:
        errors = _errors(_with_a_type(request, path))
    value = _at(request, path)
    same = [one for one in errors if _path(request, one) == path]
    allowed = " or ".join(dict.fromkeys(map(_allowed, same)))
    if same[0]["type"] == "union_tag_invalid":
        raise _of_another_type(path, value, allowed)
    raise invalid(path, f"is {shown(value)}; allowed: {allowed}.")


def _errors(request: Mapping[str, Any]) -> list[Any]:
    try:
        Request.model_validate(request)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


def _of_another_type(path: Sequence[Step], value: object, allowed: str) -> SettingsError:
    """The error of an object whose type is missing or none of the allowed ones."""
    if not isinstance(value, dict):
        return invalid(path, f"is {shown(value)}; allowed: an object whose type is one of {allowed}.")
    state = f"is {shown(value['type'])}" if "type" in value else "is missing"
    return invalid((*path, "type"), f"{state}; allowed: {allowed}.")


def _with_a_type(request: Mapping[str, Any], path: Sequence[Step]) -> dict[str, Any]:
    """The request with an object of no known type in a place: pydantic then says which types there are."""
    changed: Any = copy.deepcopy(dict(request))
    _at(changed, path[:-1])[path[-1]] = {"type": ""}
    return changed  # type: ignore[no-any-return]


def _path(request: Any, error: Mapping[str, Any]) -> tuple[Step, ...]:
    """The place of an error: without the names of types and checks that pydantic puts between the steps."""
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
    """The values allowed in the place of an error."""
    context = error.get("ctx", {})
    if "allowed" in context:  # by a check of ours
        return str(context["allowed"])
    if error["type"] == "union_tag_invalid":
        return str(context["expected_tags"]).replace("'", "")
    if error["type"] == "literal_error":
        return str(context["expected"]).replace("'", '"')
    if error["type"] == "too_short":
        return f"{'a list' if context['field_type'] == 'List' else 'an object'} that is not empty"
    return _ALLOWED.get(error["type"], str(error["msg"]))


@cache
def _all() -> dict[str, str]:
    folder = files("es_neardupe.commands.duplicates") / "examples"
    found = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".json")}
    return {name.removesuffix(".json"): found[name] for name in sorted(found)}


def names() -> list[str]:
    """The names of the ready requests, sorted."""
    return list(_all())


def example(name: str) -> str:
    """The JSON text of a ready request. Raises `SettingsError`, with the names that there are."""
    if name not in _all():
        raise SettingsError(f"There is no ready request {name!r}. There are: {', '.join(names())}.")
    return _all()[name]


def parse_request(request: str | Mapping[str, Any]) -> RequestPlan:
    """Read a request: its JSON text, or the same as objects.

    Raises `SettingsError` for whatever cannot be used: one message with the JSON path and what is allowed there.
    """
    return plan_of(checked(read_json(request)))


def schema() -> dict[str, Any]:
    """The JSON schema of requests (draft 2020-12), for editors that check while one types."""
    made = Request.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "Request for duplicates"}
