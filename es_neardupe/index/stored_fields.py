"""Stored fields: encoding and decoding of fingerprints and groups in documents.

The decoders check all values, since any client can write to an index.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeGuard

import xxhash

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.records import Fingerprint, Grouping, State

KEY_LENGTH = 8
_HASH = re.compile(r"[0-9a-f]{32}")
_SAMPLE = re.compile(r"[A-Za-z0-9_-]{8}")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_GROUP = re.compile(r"[A-Za-z0-9_-]{16}")


def timestamp() -> str:
    """The current time, in UTC and whole seconds."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def own_group(index: str, id: str, attempt: int = 0) -> str:
    """The id of a new group of a document: 96 bits of a hash of its address, as 16 characters of URL-safe base64.

    ``attempt``: a number to add to the hashed address if another group already has the id.
    """
    address = "\0".join((index, id) if attempt == 0 else (index, id, str(attempt)))
    digest = xxhash.xxh3_128_digest(address.encode("utf-8", "surrogatepass"))
    return binascii.b2a_base64(digest[:12], newline=False).translate(_URL_SAFE).decode("ascii")


def random_group() -> str:
    """A random group id, in the form of `own_group`, for a document whose address is not known yet."""
    return secrets.token_urlsafe(12)


def encode(fingerprint: Fingerprint, at: str) -> dict[str, Any]:
    """The stored fields of a fingerprint, without those of the group.

    Fields without a value are null, not omitted, so that a partial update clears the former value. ``samples`` is
    omitted without sampled keys, since indices whose scheme has none may lack the field.
    """
    samples = {} if fingerprint.samples is None else {"samples": list(fingerprint.samples)}
    return {
        "scheme": fingerprint.scheme,
        "state": fingerprint.state.value,
        "content": fingerprint.content or None,
        "bands": list(fingerprint.bands),
        **samples,
        "signature": binascii.b2a_base64(fingerprint.signature, newline=False).decode("ascii") or None,
        "tokens": fingerprint.tokens,
        "features": fingerprint.features,
        "numeric": fingerprint.numeric or None,
        "at": at,
    }


def stored_fields(source: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """The object under the prefix in a document; empty if there is none, or if the value is not an object."""
    stored = source.get(prefix)
    return stored if isinstance(stored, dict) else {}


def decode(stored: Mapping[str, Any]) -> Fingerprint:
    """Decode a stored fingerprint. ``bands``, ``samples`` and ``signature`` can be missing if they were not requested.

    Raises `CorruptFingerprint` if `encode` cannot have written it.
    """
    try:
        state = State(stored["state"])
        return Fingerprint(
            scheme=_string(stored["scheme"]),
            state=state,
            content=_content(stored.get("content"), state),
            bands=_bands(stored.get("bands") or ()),
            signature=decode_signature(stored),
            tokens=_count(stored["tokens"]),
            features=_count(stored["features"]),
            numeric=_flag(stored.get("numeric")),
            samples=decode_samples(stored),
        )
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise CorruptFingerprint(f"A stored fingerprint cannot be read: {error!r}.") from error


def decode_signature(stored: Mapping[str, Any]) -> bytes:
    """Decode only the signature. Raises `CorruptFingerprint`."""
    try:
        return base64.b64decode(stored.get("signature") or "", validate=True)
    except (TypeError, ValueError) as error:
        raise CorruptFingerprint(f"A stored signature cannot be read: {error!r}.") from error


def signature_of(stored: Mapping[str, Any]) -> bytes:
    """A stored signature; empty for any other value."""
    try:
        return decode_signature(stored)
    except CorruptFingerprint:
        return b""


def decode_samples(stored: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Decode only the sampled keys; None if there are none. Raises `CorruptFingerprint`."""
    value = stored.get("samples")
    keys = [value] if isinstance(value, str) else value
    if keys is None:
        return None
    if not isinstance(keys, list) or not all(isinstance(key, str) and _SAMPLE.fullmatch(key) for key in keys):
        raise CorruptFingerprint(f"Stored sampled keys cannot be read: {value!r:.40}.")
    return tuple(keys)


def encode_grouping(grouping: Grouping) -> dict[str, Any]:
    """The stored fields of the group of a document."""
    return {"group": grouping.group, "principal": grouping.principal, "similarity": grouping.similarity}


def group_of(stored: Mapping[str, Any]) -> str | None:
    """The stored group id; None for any value that `own_group` cannot have returned. Such a value would not be a valid
    id in the registry, or the id of another document there."""
    group = stored.get("group")
    return group if isinstance(group, str) and _GROUP.fullmatch(group) else None


def decode_grouping(stored: Mapping[str, Any]) -> Grouping | None:
    """Decode what `encode_grouping` wrote; None for a document that was not grouped since it last changed."""
    group, principal, similarity = group_of(stored), stored.get("principal"), stored.get("similarity")
    if group is None or not isinstance(principal, bool) or isinstance(similarity, bool):
        return None
    if not isinstance(similarity, int | float) or not 0 <= similarity <= 1:
        return None
    return Grouping(group, principal, float(similarity))


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not a string")
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{value!r:.40} is not a count")
    return value


def count_of(stored: Mapping[str, Any], name: str) -> int:
    """A stored count; 0 for any other value."""
    try:
        return _count(stored.get(name))
    except ValueError:
        return 0


def is_hash(value: object) -> TypeGuard[str]:
    """Whether a value is a content hash, or the hash of another text: 32 hexadecimal digits."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def content_of(stored: Mapping[str, Any]) -> str:
    """The stored content hash; "" for any other value."""
    content = stored.get("content")
    return content if is_hash(content) else ""


def text_bytes(tokens: int) -> int:
    """Approximate size in bytes of a text with this number of words."""
    return 8 * tokens


def _flag(value: object) -> bool:
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{value!r:.40} is neither true nor false")
    return bool(value)


def _content(value: object, state: State) -> str:
    """The content hash. Only documents with keys have one."""
    if not state.has_keys:
        if value:
            raise ValueError(f"a content hash in state {state.value}")
        return ""
    if not is_hash(text := _string(value)):
        raise ValueError(f"{text!r:.40} is not a content hash")
    return text


def _bands(value: object) -> tuple[str, ...]:
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, Sequence):
        raise TypeError("bands is not a list")
    for key in keys:
        if len(_string(key).encode("latin-1")) != KEY_LENGTH:
            raise ValueError(f"a band key whose length is not {KEY_LENGTH}")
    return tuple(keys)
