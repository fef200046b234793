"""Feature frequencies of an index: computed from a sample, and cached for a day in the cache folder of the user."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import xxhash

from es_neardupe import folders
from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.document_text import TextFields
from es_neardupe.index.index import Index
from es_neardupe.index.slices import random_hits
from es_neardupe.index.stored_fields import count_of, stored_fields, timestamp
from es_neardupe.records import Reference
from es_neardupe.similarity.features import spelled
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Measure, Prepared, weights_of
from es_neardupe.verification.current_texts import current_hits, prepared

SAMPLE = 2000
"""Maximum number of documents in the sample."""

_MAX_TOKENS = 10_000_000
"""Maximum number of tokens in the sample: about 80 MB of features."""

_DAY = timedelta(days=1)
_FORM = "2"
"""Version of the file format."""

_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, EOFError),
    *(RuntimeError, zipfile.BadZipFile, zlib.error),  # RuntimeError: unsupported compression
)
"""Errors of a truncated or overwritten file."""


@dataclass(frozen=True)
class Frequencies:
    """The weights of features, and when they were computed (UTC, whole seconds)."""

    weights: Weights
    at: str


def frequencies(index: Index, measure: Measure, *, renew: bool = False) -> Frequencies:
    """The frequencies of the features of ``measure`` in an index, cached for a day. ``renew`` recomputes them.

    Raises `SettingsError` if the cache folder cannot be written.
    """
    file = _file(index, measure)
    cached = None if renew else _read(file)
    if cached is not None and _age(cached.at) < _DAY:
        return cached
    computed = Frequencies(sample_weights(index, measure), timestamp())
    _write(file, computed)
    return computed


def _file(index: Index, measure: Measure) -> Path:
    """The cache file, named by a hash of everything that determines the frequencies: an index that was created again
    has another uuid, and another user may read other documents."""
    indices = sorted(f"{concrete} {uuid}" for concrete, uuid in index.target.uuids.items())
    parts = [
        _FORM,
        index.client.login,
        *indices,
        index.scheme_id,
        *index.settings.fields,
        *map(spelled, measure.sources),
        f"{SAMPLE}",
    ]
    return folders.cache() / "frequencies" / f"{xxhash.xxh3_128_hexdigest(chr(0).join(parts).encode())}.npz"


def _age(at: str) -> timedelta:
    taken = datetime.strptime(at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    return abs(datetime.now(timezone.utc) - taken)


def sample_weights(index: Index, measure: Measure) -> Weights:
    """Count in how many documents of a random sample each feature occurs."""
    fields = TextFields.of(index.settings)
    documents: list[Prepared] = []
    for hits in current_hits(index.client, sampled(index), measure.fields(fields.names)):
        documents += prepared(measure, [hit.source for hit in hits], fields)
    return weights_of(documents)


def sampled(index: Index) -> list[Reference]:
    """Random documents with keys; always the same ones as long as the index does not change."""
    index.documents.refresh_if_allowed()
    keyed = {"exists": {"field": index.fields.content}}
    scope = queries.all_of(queries.fingerprinted(index.fields, index.scheme_id), keyed)
    size = min(SAMPLE, index.target.max_result_window)
    chosen: list[Reference] = []
    tokens = 0
    for hit in random_hits(index.documents, scope, size, [index.fields.tokens]):
        tokens += count_of(stored_fields(hit.source, index.settings.prefix), "tokens")
        if chosen and tokens > _MAX_TOKENS:
            break
        chosen.append(hit.reference)
    return chosen


def _write(file: Path, computed: Frequencies) -> None:
    weights = computed.weights
    try:
        folders.make_private(file.parent)
        with folders.replaced(file) as draft, draft.open("wb") as opened:
            np.savez(
                opened,
                at=np.array(computed.at),
                documents=np.array(weights.documents),
                features=weights.features,
                frequencies=weights.frequencies,
            )
    except OSError as error:
        raise SettingsError(
            f"Cannot store the feature frequencies in {file.parent} ({error.strerror}): set ES_NEARDUPE_CACHE to a "
            f"writable folder."
        ) from error


def _read(file: Path) -> Frequencies | None:
    """Read the output of `_write`; None if the file does not exist or is invalid."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            at, number, features, counts = (stored[name] for name in ("at", "documents", "features", "frequencies"))
            cached = Frequencies(Weights(int(number), features, counts), str(at))
        _age(cached.at)
    except _UNREADABLE:
        return None
    return cached if _is_valid(cached.weights) else None


def _is_valid(weights: Weights) -> bool:
    features, counts = weights.features, weights.frequencies
    return (
        features.dtype == np.uint64
        and counts.dtype == np.int64
        and features.shape == counts.shape == (len(features),)
        and bool((features[1:] > features[:-1]).all())
        and bool(((counts >= 1) & (counts <= weights.documents)).all())
    )
