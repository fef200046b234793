"""Tools of the benchmarks: texts, timing, and indices on a server."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from typing import Any, TextIO, TypeVar

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import NotFound
from es_neardupe.index.hidden_indices import HiddenIndex
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.records import Action
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client, path
from es_neardupe.server.search import refresh

T = TypeVar("T")


def pin_to_one_core() -> None:
    """Pin the process to one core. Call this before anything that starts threads is imported."""
    os.environ.setdefault("DAFT_RUNNER", "native")
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def read_texts(path: Path, count: int, field: str = "text") -> list[str]:
    """The first ``count`` texts of a file of JSON lines."""
    openers: dict[str, Callable[..., TextIO]] = {".xz": lzma.open, ".gz": gzip.open}
    with openers.get(path.suffix, open)(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)[field] for line in islice(lines, count)]


def make_texts(count: int, words: int = 280, seed: int = 1) -> list[str]:
    """Texts of about 1.6 kB from a seeded word model (Zipf); a third of them contain accents and quotes."""
    chance = random.Random(seed)
    vocabulary = ["".join(chance.choices("etaoinshrdlucmfwygpbvk", k=chance.randint(2, 9))) for _ in range(8000)]
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    texts = []
    for number in range(count):
        picked = chance.choices(vocabulary, weights, k=chance.randint(words // 2, words * 3 // 2))
        if number % 3 == 0:
            picked[::20] = [f"“{word}é”" for word in picked[::20]]
        sentences = [" ".join(picked[i : i + 12]).capitalize() for i in range(0, len(picked), 12)]
        texts.append(". ".join(sentences))
    return texts


_VOCABULARY = ["".join(letters) for letters in product("bcdfghklmnprstvz", "aeiou", "bdfgklmnprst", "aeiou", "lnrst")]
_FAMILIES = (0, 2, 5, 9, 14)
"""Of each hundred documents, the first two are a family, the next three, and so on; the other 86 are alone."""


def synthetic_text(number: int) -> str:
    """A text of 100 random words. Those of a family differ in one word from each other's common text."""
    hundred, place = divmod(number, 100)
    first = max(one for one in _FAMILIES if one <= place) if place < _FAMILIES[-1] else place
    words = random.Random(100 * hundred + first).choices(_VOCABULARY, k=100)
    words[7 * (place - first)] = f"member{place - first}"
    return " ".join(words)


def write_synthetic(file: Path, numbers: range) -> None:
    """JSON lines with these documents, for ``load``. The id is the number, so that it is found again."""
    with file.open("w", encoding="utf-8") as lines:
        for number in numbers:
            lines.write(json.dumps({"id": f"{number:08}", "text": synthetic_text(number)}) + "\n")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds that a function takes, and its result."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def create_index(client: Client, index: str, texts: Iterable[str], more: Mapping[str, Any] = {}) -> None:
    """Create an index of these texts, with the field ``text``, ``more`` fields and consecutive ids. An index of this
    name is replaced."""
    drop_index(client, index)
    client.request("PUT", path(index), body={"mappings": {"properties": {"text": {"type": "text"}}}})
    actions = (Action("index", index, f"{number:06}", {"text": text, **more}) for number, text in enumerate(texts))
    for outcome in write(client, actions):
        assert outcome.done, outcome
    refresh(client, index)


def settle(client: Client, index: str) -> None:
    """Merge the segments now, so that the server does not merge them during a measurement."""
    client.request("POST", path(index, "_forcemerge"), params={"max_num_segments": 1})


def wait_for_merges(client: Client, index: str) -> None:
    """Wait until the server merges no segments, so that a measurement has not to pay for the writes before it."""
    while client.request("GET", path(index, "_stats", "merge"))["_all"]["total"]["merges"]["current"]:
        time.sleep(0.1)


def drop_index(client: Client, index: str) -> None:
    """Delete an index and its hidden indices, if they exist."""
    for name in (index, *(f"{index}-{DEFAULT_PREFIX}-{kind.value}" for kind in HiddenIndex)):
        with suppress(NotFound):
            client.request("DELETE", path(name))


def loaded(client: Client, index: str, documents: Iterable[Mapping[str, str]]) -> NearDupe:
    """A new index with these documents and their keys. Its text field is ``text``."""
    drop_index(client, index)
    found = NearDupe(index, client)
    found.init(Settings(("text",)), create=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "documents.jsonl"
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(one) + "\n" for one in documents)
        found.load([str(file)])
    return found
