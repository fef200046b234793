"""Slices: disjoint parts of the documents of an index, several of which are read at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial

from es_neardupe.index.handle import IndexHandle
from es_neardupe.records import Hit
from es_neardupe.server.parallel import in_threads

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
