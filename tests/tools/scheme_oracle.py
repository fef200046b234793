"""Independent implementation of scheme v1, slow and in plain Python."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

import xxhash

from es_neardupe.keys.scheme import Scheme
from es_neardupe.records import Fingerprint, State

M64, M32 = 2**64 - 1, 2**32 - 1


GOLDEN, MULTIPLIER = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95


BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def mix64(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & M64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & M64
    return x ^ x >> 31


@lru_cache
def unicode_table() -> dict[str, set[str]]:
    data = json.loads((files("es_neardupe.keys") / "unicode_v1.json").read_text("ascii"))
    names = ("word", "single", "mark", "digit")
    return {name: {chr(p) for a, b in data[name] for p in range(a, b + 1)} for name in names}


@lru_cache
def unicode_mapping() -> dict[str, str]:
    data = json.loads((files("es_neardupe.keys") / "unicode_v1.json").read_text("ascii"))
    found = {chr(p): chr(p) for a, b in data["word"] for p in range(a, b + 1)}
    found |= {chr(p): chr(p + delta) for a, b, step, delta in data["mapped"] for p in range(a, b + 1, step)}
    found |= {chr(p): target for p, target in data["expanded"]}
    return found | {chr(p): "" for a, b in data["removed"] for p in range(a, b + 1)}


def without_dots_of_i(text: str) -> str:
    """Without a dot above after an i, alone or with marks that the dot can be reordered across."""
    kept, dotted = "", False
    for char in text:
        if char == "\u0307" and dotted:
            continue
        if unicodedata.combining(char) in (0, 230):
            dotted = char in "i\u012f\u1e2d\u1ecb"
        kept += char
    return kept


def oracle_tokens(text: str) -> list[str]:
    mapping, table = unicode_mapping(), unicode_table()
    tokens: list[list[str]] = [[]]
    in_word, closed = False, True
    mapped = without_dots_of_i("".join(mapping.get(char, " ") for char in text))
    for char in unicodedata.normalize("NFC", mapped):
        mark = char in table["mark"]
        in_word = char in table["word"] and (in_word or not mark)
        if not in_word:
            closed = True
        elif mark and char not in table["single"]:
            tokens[-1].append(char)
        elif closed or char in table["single"]:
            tokens.append([char])
            closed = char in table["single"]
        else:
            tokens[-1].append(char)
    return ["".join(token) for token in tokens[1:]]


def oracle_token_hash(token: str) -> int:
    octets = token.encode()
    words = [int.from_bytes(octets[i : i + 8], "little") for i in range(0, len(octets), 8)]
    return sum(mix64(w + GOLDEN * (len(octets) + 2**32 * j) & M64) for j, w in enumerate(words)) & M64


def oracle_features(tokens: list[str], size: int) -> set[int]:
    size = min(size, len(tokens))
    hashes = [oracle_token_hash(token) for token in tokens]
    found = set()
    for start in range(len(tokens) - size + 1 if tokens else 0):
        h = size
        for token_hash in hashes[start : start + size]:
            h = h * MULTIPLIER + token_hash & M64
        found.add(mix64(h))
    return found


def oracle_signature(found: set[int], scheme: Scheme) -> bytes:
    def stream(i: int) -> int:
        return mix64(scheme.seed + GOLDEN * i & M64)

    half = (scheme.permutations + 1) // 2
    minimum, greatest = [], []
    for p in range(half):
        shift, multiplier = stream(1 + p % 8) >> 32, stream(9 + p) >> 32 | 1
        permuted = [((x & M32) + shift) * multiplier & M32 for x in found]
        minimum.append(min(permuted))
        greatest.append(max(permuted) ^ M32)
    return bytes(map(oracle_slot, (minimum + greatest)[: scheme.permutations]))


def oracle_slot(v: int) -> int:
    v ^= v >> 16
    v = v * 0x85EBCA6B & M32
    v ^= v >> 13
    v = v * 0xC2B2AE35 & M32
    return v >> 24


def oracle_bands(signature: bytes, scheme: Scheme) -> tuple[str, ...]:
    keys = []
    for band in range(scheme.bands):
        h = 0
        for slot in signature[band * scheme.rows : (band + 1) * scheme.rows]:
            h = h * MULTIPLIER + slot + 1 & M64
        h = mix64(h) >> 22
        place = BASE64[band] if band < 64 else chr(0xC0 + band - 64)
        keys.append(place + "".join(BASE64[h >> shift & 63] for shift in range(36, -1, -6)))
    return tuple(keys)


def oracle_samples(found: set[int], scheme: Scheme) -> tuple[str, ...] | None:
    if scheme.sample_mod == 0:
        return None
    chosen = [x >> 16 for x in sorted(found) if x % scheme.sample_mod == 0]
    return tuple("".join(BASE64[x >> shift & 63] for shift in range(42, -1, -6)) for x in chosen)


SHAPES = {
    "a": "0ao\u00e0\u00e1\u00e2\u00e3\u00e4\u00e5"
    "\u00f2\u00f3\u00f4\u00f5\u00f6\u00f8\u0101\u0103\u0105\u014d\u014f\u0151",
    "b": "68bh\u0125",
    "c": "ce\u00e7\u00e8\u00e9\u00ea\u00eb\u0107\u0109\u010b\u010d\u0113\u0115\u0117\u0119\u011b",
    "d": "d\u010f\u0111",
    "f": "1fijlt\u00ec\u00ed\u00ee\u00ef\u0129\u012b\u012d\u012f\u0135\u013a\u013c\u013e\u0142\u0163\u0165",
    "g": "9gq\u011d\u011f\u0121\u0123",
    "k": "k\u0137",
    "n": "nu\u00f1\u00f9\u00fa\u00fb\u00fc\u0144\u0146\u0148\u0169\u016b\u016d\u016f\u0171\u0173",
    "r": "r\u0155\u0157\u0159",
    "s": "5s\u015b\u015d\u015f\u0161",
    "v": "vy\u00fd\u00ff\u0177",
    "w": "w\u0175",
    "z": "2z\u017a\u017c\u017e",
}
"""Shape -> the characters that have it; all others are their own."""


def oracle_units(tokens: list[str], scheme: Scheme) -> list[str]:
    """What the shingles of a text consist of."""
    if scheme.unit == "word":
        return tokens
    found = list("".join(tokens))
    if scheme.unit == "character":
        return found
    return oracle_shapes(found)


def oracle_shapes(characters: Iterable[str]) -> list[str]:
    return [next((shape for shape, alike in SHAPES.items() if one in alike), one) for one in characters]


def oracle(text: str, scheme: Scheme, max_chars: int = 10_000_000) -> Fingerprint:
    if len(text) > max_chars:
        return Fingerprint(scheme.id, State.TOO_LARGE, "", (), b"", 0, 0, samples=oracle_samples(set(), scheme))
    tokens = oracle_tokens(text)
    if not tokens:
        return Fingerprint(scheme.id, State.EMPTY, "", (), b"", 0, 0, samples=oracle_samples(set(), scheme))
    units = oracle_units(tokens, scheme)
    found = oracle_features(units, scheme.shingle)
    signature = oracle_signature(found, scheme)
    return Fingerprint(
        scheme.id,
        State.SIGNED if len(units) >= scheme.shingle else State.SHORT,
        xxhash.xxh3_128_hexdigest(" ".join(tokens).encode()),
        oracle_bands(signature, scheme),
        signature,
        len(tokens),
        len(found),
        all(char in unicode_table()["digit"] for token in tokens for char in token),
        oracle_samples(found, scheme),
    )
