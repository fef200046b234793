"""Sizes of documents, measured by the server before they are read.

A script of the search adds up the lengths of the strings in each document. The server loads one document at a time for
it, and returns numbers only, so this is safe for documents of any size.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from es_neardupe.errors import RequestError, UnexpectedAnswer
from es_neardupe.log_events import log_event
from es_neardupe.records import Product
from es_neardupe.server.pacing import may_pass
from es_neardupe.server.request_sizes import Connection, answer_limit, is_too_large

_SCRIPT = """
if (params.left.bytes <= 0) { return 0L; }
long size = 0;
long steps = 0;
List values = new ArrayList();
values.add(params._source);
while (!values.isEmpty() && steps < params.steps) {
  def value = values.remove(values.size() - 1);
  size += 24;
  if (value instanceof String) {
    size += 3L * value.length();
  } else if (value instanceof List) {
    steps += value.size();
    values.addAll(value);
  } else if (value instanceof Map && (steps += value.size()) < params.steps) {
    for (def entry : value.entrySet()) {
      size += 3L * entry.getKey().length();
      values.add(entry.getValue());
    }
  }
}
if (!values.isEmpty()) { size = params.left.bytes + 1; }
params.left.bytes -= size;
return size;
"""
"""Returns 3 bytes for each UTF-16 unit, as many as UTF-8 needs at most. ``left`` is shared by the documents of a
request on one node: it bounds the work for them. A document after the end of it has the size 0."""

_STEPS = 200_000
"""Maximum number of values in a document: scripts may loop a million times."""

_LOOKS_AHEAD = 3
"""Bytes to measure for each byte that may be read: the documents of several shards share them."""

_LIMIT = 8_000_000
"""Maximum size in bytes of an answer with sizes."""

_PARAMS = {"allow_partial_search_results": False, "filter_path": "hits.hits.fields"}
_PAGE_ONLY = {"_source", "docvalue_fields", "fields", "seq_no_primary_term", "version"}


def number_that_fits(client: Connection, search: Mapping[str, Any], maximum: int) -> int:
    """How many of the first documents of a search with a point in time have at most ``maximum`` bytes together; may be
    less. 0 if the server does not permit scripts, or is short of memory, and for Elasticsearch: its scripts are not
    tested, since the server installed by pip has none.

    Raises `UnexpectedAnswer` for an answer without sizes.
    """
    if client.server.product is not Product.OPENSEARCH or not client.pace.measures:
        return 0
    params = {"left": {"bytes": _LOOKS_AHEAD * maximum}, "steps": _STEPS}
    script = {"lang": "painless", "source": _SCRIPT, "params": params}
    body = {name: value for name, value in search.items() if name not in _PAGE_ONLY}
    body |= {"stored_fields": "_none_", "script_fields": {"size": {"script": script}}}
    try:
        with answer_limit(_LIMIT):
            answer = client.request("POST", "/_search", params=_PARAMS, body=body)
    except RequestError as error:
        if is_too_large(error):
            return 0
        if error.status == 404 or may_pass(error):
            raise
        log_event(logging.INFO, "no_sizes", error=type(error).__name__, reason=error.reason)
        client.pace.measures = False
        return 0
    number = 0
    for hit in answer["hits"]["hits"] if answer else ():  # the filter leaves nothing of an answer without hits
        size = _size(hit, client)
        maximum -= size
        if maximum < 0 or not size:
            break
        number += 1
    return number


def _size(hit: Mapping[str, Any], client: Connection) -> int:
    match hit.get("fields"):
        case {"size": [int(size)]} if size is not True:
            return size
    raise UnexpectedAnswer(
        f"{client.url}: the answer lacks the sizes of documents. Check any proxy in front of the server, and that its "
        "version is supported."
    )
