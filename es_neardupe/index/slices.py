"""Slices: disjoint parts of the documents of an index, several of which are read at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xxhash

from es_neardupe.errors import Forbidden
from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.keys.arrays import U64
from es_neardupe.records import Hit, Reference
from es_neardupe.server.documents import Documents
from es_neardupe.server.parallel import in_threads
from es_neardupe.server.responses import hit_of

MAX_DEFAULT = 4
"""Maximum number of slices by default: each has a search running all the time, also on a server with few cores."""

Part = tuple[int, int]
"""Number of a part, from 0, and the number of parts; see ``Client.pages``."""


def read_slices(
    index: IndexHandle,
    read: Callable[[int | None, Part | None], Iterator[list[Hit]]],
    number: int | None,
    *,
    shards: Sequence[int | None] = (None,),
    part: Part | None = None,
) -> Generator[list[Hit], None, None]:
    """The pages of an opened index, read in a ``number`` of slices at a time, in any order. None: as many as shards,
    at most 4.

    ``read`` returns the pages of a shard (None: of all shards), and a part of it. ``shards``: those to read. ``part``:
    only this part of the documents. The caller must close the generator.
    """
    number = number or min(index.target.shards, MAX_DEFAULT)
    parts: list[Part | None] = [part]
    if part is None and number > len(shards) > 0:
        each = -(-number // len(shards))
        parts = [(one, each) for one in range(each)]
    return in_threads([partial(read, shard, one) for shard in shards for one in parts], number)


_SEED = 1


def random_hits(documents: Documents, scope: Mapping[str, Any], size: int, source: Sequence[str] | bool) -> list[Hit]:
    """Random documents of the scope, chosen by the server: the same ones as long as the index does not change."""
    body = queries.sample(scope, size, _SEED) | {"_source": source if isinstance(source, bool) else list(source)}
    return [
        Hit(hit["_index"], hit["_id"], hit.get("_routing"), None, None, hit.get("_source", {}))
        for hit in documents.search(body)["hits"]["hits"]
    ]


_LOOKED_AT = 200
"""Documents whose versions are looked at."""


def external_version(documents: Documents, window: int) -> Hit | None:
    """A document with a version that the server has not given it; None if none of some documents has one, or if this
    user may not search. ``window``: maximum number of hits of the index.

    Each write of the server counts a version and a sequence number of the shard, so versions of other systems are
    greater, unless they are small counters too."""
    body = {"size": min(_LOOKED_AT, window), "sort": ["_doc"], "_source": False}
    body = {**body, "version": True, "seq_no_primary_term": True}
    try:
        hits = map(hit_of, documents.search(body)["hits"]["hits"])
    except Forbidden:
        return None
    numbered = (hit for hit in hits if hit.version is not None and hit.seq_no is not None and hit.seq_no >= 0)
    return next((hit for hit in numbered if (hit.version or 0) > (hit.seq_no or 0) + 1), None)


def address_hashes(references: Iterable[Reference], seed: int = 0) -> U64:
    """A hash of the address of each document, by a seed (uint64, one per reference).

    The documents with the lowest hashes are a random sample; a smaller sample is a subset of a larger one.
    """
    addresses = ("\0".join(reference[:2]).encode("utf-8", "surrogatepass") for reference in references)
    return np.array([xxhash.xxh3_64_intdigest(address, seed) for address in addresses], np.uint64)
