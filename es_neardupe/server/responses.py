"""Answers of a server, and the exceptions for errors and incomplete answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import (
    Blocked,
    Conflict,
    Forbidden,
    IncompleteAnswer,
    LoginRefused,
    NeardupeError,
    NotFound,
    RequestError,
    UnexpectedAnswer,
)
from es_neardupe.records import Hit
from es_neardupe.wording import option

_ELASTICSEARCH = re.compile(
    r"action \[(?P<action>.+?)\] is unauthorized for (?P<who>.+?)"
    r"(?: with effective roles \[[^\]]*\]| with assigned roles \[[^\]]*\])?"
    r"(?: on (?:restricted )?indices \[(?P<indices>[^\]]+)\])?"
    r", this action is granted by the (?P<scope>index|cluster) privileges \[(?P<names>[^\]]+)\]"
)
_OPENSEARCH = re.compile(r"no permissions for \[(?P<action>[^\]]+)\] and User \[name=(?P<who>[^,\]]+)")

_GRANTED = {
    "cluster": ("monitor",),
    "index": (
        *("read", "view_index_metadata", "index", "maintenance"),
        *("create_index", "delete", "delete_index", "monitor", "manage"),
    ),
}
"""The privileges that docs/roles.md grants. If several would suffice, messages name the first of these."""


def lacking(reason: str) -> str:
    """The user and the missing privilege in one sentence; empty if the server names none."""
    if found := _ELASTICSEARCH.search(reason):
        names = [name.strip() for name in found["names"].split(",")]
        named = next((one for one in _GRANTED[found["scope"]] if one in names), names[0])
        place = f" on {found['indices']}" if found["indices"] else ""
        return f"{_who(found['who'])} lacks the {found['scope']} privilege '{named}'{place} ({found['action']})."
    if found := _OPENSEARCH.search(reason):
        return f"{found['who']} lacks the permission '{found['action']}'."
    return ""


def _who(text: str) -> str:
    """``user [anna]`` becomes anna; an API key is named by its id and its user."""
    only = re.fullmatch(r"user \[([^\]]+)\]", text)
    return only[1] if only else text.replace("[", "").replace("]", "")


_KINDS: dict[int, type[RequestError]] = {403: Forbidden, 404: NotFound, 409: Conflict, 410: NotFound}
"""410: Elastic Cloud Serverless does not offer this path."""
_ADVICE = {
    403: "The user lacks a privilege for this.",
    413: "The request is larger than the server allows (http.max_content_length): send smaller requests.",
    429: "The server is overloaded: try again later, or with less load.",
}
_GRANT = "Ask an administrator to grant it; `es-neardupe doctor` lists the privileges that each command needs."
_BLOCKED = "cluster_block_exception"
_CLOSED = "index_closed_exception"
_BLOCK = re.compile(r"index \[([^\]]+)\] blocked by: \[\w+/(\d+)/")
_BLOCK_SETTINGS = {"5": "read_only", "7": "read", "8": "write", "9": "metadata", "12": "read_only_allow_delete"}
"""Number of a block of an index -> the setting that makes it, after ``index.blocks.``"""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. ``headers`` have lower-case names; ``body`` is parsed JSON, text, or None."""

    status: int
    headers: Mapping[str, str]
    body: Any
    request: str = ""
    """The name of its request (``X-Opaque-Id``)."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


def refusal(answer: Answer, doing: str) -> NeardupeError:
    """The exception for an answer outside 2xx; ``doing`` is method, URL and path, without secrets."""
    type_, reason = _cause(answer.body)
    if answer.status == 401 and reason.endswith("is not allowed."):  # a path that Amazon offers on no domain
        return NotFound(f"{doing}: {reason}", status=404, type=type_, reason=reason)
    if answer.status == 401:
        return LoginRefused(
            f"{doing}: authentication failed (401). Check the API key, the token, or user name and password; "
            "credentials configured for another server are not sent."
        )
    kind = Blocked if _is_block(answer.body) else _KINDS.get(answer.status, RequestError)
    words = ": ".join(filter(None, [type_, reason])) or "no reason given"
    if kind is Forbidden and (missing := lacking(str(_error(answer.body).get("reason") or ""))):
        return kind(f"{doing}: 403. {missing} {_GRANT}", status=answer.status, type=type_, reason=reason)
    words = words.rstrip(";")
    message = f"{doing}: {answer.status} {words}{'' if words.endswith(('.', '?')) else '.'}"
    advice = _advice(kind, answer)
    return kind(f"{message} {advice}".rstrip(), status=answer.status, type=type_, reason=reason)


class _Object(dict[str, Any]):
    """An object of an answer. A missing field is an error of the answer."""

    __slots__ = ("doing",)
    doing: str

    def __missing__(self, name: str) -> Any:
        raise UnexpectedAnswer(f"{self.doing}: the answer lacks {name!r}. {_CHECK_PROXY}")


def _object(value: Any, doing: str) -> _Object:
    if not isinstance(value, dict):
        raise UnexpectedAnswer(f"{doing}: the answer has an unexpected form. {_CHECK_PROXY}")
    found = _Object(value)  # without a constructor in Python: there is one for each document
    found.doing = doing
    return found


_CHECK_PROXY = "Check any proxy in front of the server, and that its version is supported."


def expected(body: Any, path: str, doing: str) -> Any:
    """The answer; if it lacks a field that is read, or has an unexpected form, ``UnexpectedAnswer`` is raised.

    That holds for the objects of the first two levels, hits, documents read by id, and the items of a bulk request.
    """
    if path.startswith("/_cat/"):
        return body
    answer = _object(body, doing)
    for name, value in answer.items():
        if type(value) is dict:
            answer[name] = _object(value, doing)
    if "/_search" in path and "hits" in answer:
        hits = answer["hits"] = _object(answer["hits"], doing)
        if "hits" in hits:
            hits["hits"] = _objects(hits["hits"], doing)
        if isinstance(hits.get("total"), dict):
            hits["total"] = _object(hits["total"], doing)
    elif path == "/_mget":
        answer["docs"] = _objects(answer["docs"], doing)
    elif path == "/_bulk" and "items" in answer:
        answer["items"] = [_item(one, doing) for one in _objects(answer["items"], doing)]
    return answer


def _objects(values: Any, doing: str) -> list[_Object]:
    if not isinstance(values, list):
        raise UnexpectedAnswer(f"{doing}: the answer has an unexpected form. {_CHECK_PROXY}")
    return [_object(value, doing) for value in values]


def _item(item: Mapping[str, Any], doing: str) -> dict[str, Any]:
    """An item of a bulk request: one operation with its result."""
    results = {operation: _object(result, doing) for operation, result in item.items()}
    if len(results) != 1 or not all(isinstance(result["status"], int) for result in results.values()):
        raise UnexpectedAnswer(f"{doing}: the answer has an unexpected form. {_CHECK_PROXY}")
    return results


def check_complete(body: Any, doing: str) -> None:
    """Raise ``IncompleteAnswer`` if the answer, or one in its ``responses`` (msearch), is incomplete."""
    if not isinstance(body, dict):
        return
    for response in [body, *_dicts(body.get("responses"))]:
        _check_one(response, doing)


def _check_one(body: Mapping[str, Any], doing: str) -> None:
    if body.get("timed_out") is True:
        raise IncompleteAnswer(f"{doing}: the request timed out before it was complete. Request less, or try again.")
    shards = body.get("_shards")
    # A single written document ("result") reports replicas here: it is stored all the same.
    if not isinstance(shards, dict) or not shards.get("failed") or "result" in body:
        return
    type_, why = next((_cause({"error": f.get("reason")}) for f in _dicts(shards.get("failures"))), ("", ""))
    total = shards.get("total", "?")
    raise IncompleteAnswer(
        f"{doing}: {shards['failed']} of {total} {'shard' if total == 1 else 'shards'} failed"
        f"{f' ({why})' if why else ''}. Check the health of the cluster, then try again.",
        type=type_,
    )


def _cause(body: Any) -> tuple[str, str]:
    """The type and the reason in an error body; of a failed search, only the reason of the root cause.

    The causes of a reason are added: they often name what is wrong, such as an unknown field in an invalid filter.
    What a query string that cannot be read should have had instead is left out: it is a list of all its symbols.
    """
    if isinstance(body, dict):
        # A proxy, and Amazon in front of a domain, answer with a text under another name.
        for name in ("error", "Message", "message"):
            if isinstance(body.get(name), str):
                return "", _one_line(body[name])
    error = _error(body)
    root = next(iter(_dicts(error.get("root_cause"))), {})
    vague = error.get("type") == "search_phase_execution_exception"
    reason = (root.get("reason") if vague else None) or error.get("reason") or root.get("reason") or ""
    known = (reason, root.get("reason"), _of_the_shard(error))
    parts = [str(one).partition("\nWas expecting")[0] for one in known if one]
    reasons = [one for place, one in enumerate(parts) if not any(one in other for other in parts[:place])]
    return str(error.get("type") or ""), _one_line(": ".join(reasons))


def _error(body: Any) -> dict[str, Any]:
    """The error object in a body; empty if there is none."""
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def _of_the_shard(error: Mapping[str, Any]) -> str:
    """The innermost cause that the first failed shard of an error reports."""
    reason = next(iter(_dicts(error.get("failed_shards"))), {}).get("reason")
    cause = reason.get("caused_by") if isinstance(reason, dict) else None
    return str(cause.get("reason") or "") if isinstance(cause, dict) else ""


def _is_block(body: Any) -> bool:
    error = _error(body)
    return any(e.get("type") == _BLOCKED for e in [error, *_dicts(error.get("root_cause"))])


def _advice(kind: type[RequestError], answer: Answer) -> str:
    if kind is Blocked:
        block = _BLOCK.search(_cause(answer.body)[1])
        if block and (setting := _BLOCK_SETTINGS.get(block[2])):
            return f'To remove the block: PUT /{block[1]}/_settings {{"index.blocks.{setting}": null}}'
        return "Remove the block (read-only index, full disk, no elected master) first."
    if 300 <= answer.status < 400:
        return "The address redirects elsewhere: give the URL of the server itself."
    of_amazon = _advice_of_amazon(_cause(answer.body)[1])
    return advice_on(_error(answer.body)) or of_amazon or _ADVICE.get(answer.status, "")


def _advice_of_amazon(reason: str) -> str:
    """The way out of an error of Amazon, by what it contains; "" if it is another one."""
    advice = {
        "security token included in the request is expired": "The credentials of AWS have expired: log in again.",
        "signature we calculated does not match": "Check the secret key of AWS, and the region of the domain.",
        "Signature expired": "Set the clock of this machine: a signature of AWS is valid for five minutes.",
        "anonymous is not authorized": f"Sign the requests: name a profile of AWS by {option('aws_profile')}.",
        "is not authorized to perform": "Ask an administrator to grant it in the access policy of the domain.",
        "Document ID is not supported": _NO_IDS,
    }
    return next((way for words, way in advice.items() if words in reason), "")


_NO_IDS = "Collections of this type accept no document ids, so keys cannot be stored: use a collection of type SEARCH."


def advice_on(error: Mapping[str, Any]) -> str:
    """The way out of an error of one index; "" if there is none that always helps."""
    if error.get("type") != _CLOSED:
        return ""
    return f"Open it with `POST /{_one_line(str(error.get('index') or 'INDEX'))}/_open`, then run the command again."


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_MAX_LINE = 300
"""Maximum number of characters of a reason."""


def _one_line(text: str) -> str:
    """One line; a long text loses its middle: a reason begins with the request, and often ends with the cause."""
    line = re.sub(r"\s+", " ", text).strip()
    half = _MAX_LINE // 2
    return line if len(line) <= _MAX_LINE else f"{line[: half - 1]}…{line[-half:]}"


def hit_of(raw: Mapping[str, Any], shard: int | None = None) -> Hit:
    """A document in the answer of a search (of one ``shard``) or a read by id; requested ``fields`` are added to its
    source."""
    source, fields = raw.get("_source", {}), raw.get("fields")
    return Hit(
        index=raw["_index"],
        id=raw["_id"],
        routing=raw.get("_routing"),
        seq_no=raw.get("_seq_no"),
        primary_term=raw.get("_primary_term"),
        source={**source, **fields} if fields else source,
        score=raw.get("_score"),
        version=raw.get("_version"),
        shard=shard,
    )
