"""The content hash of texts alone: equal hash, equal tokens."""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

from es_neardupe.keys.text import chunks, normalize

__all__ = ["contents"]


def contents(texts: Sequence[str]) -> list[str]:
    """The content hash of each text, as `fingerprints` gives it: 32 hexadecimal digits, "" without tokens."""
    return [
        xxhash.xxh3_128_hexdigest(content) if content else "" for chunk in chunks(texts) for content in normalize(chunk)
    ]
