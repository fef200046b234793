"""The keys of a text: tokens, features, signature, band keys, content hash.

Scheme v1
=========
Keys outlive the code that made them. This is all that is needed to write the scheme again; the vectors in
``tests/golden/scheme_v1.json`` tell whether it was understood, and ``tests/test_keys_oracle.py`` is a
plain program of it. All arithmetic is on unsigned numbers of 64 bits (32 where said), modulo 2^64 (2^32);
bytes are read little-endian.

::

    GOLDEN     = 9E3779B97F4A7C15 (hex)    MULTIPLIER = D1342543DE82EF95 (hex)
    mix64(x):    x ^= x >> 30;  x *= BF58476D1CE4E5B9;
                 x ^= x >> 27;  x *= 94D049BB133111EB;  x ^= x >> 31
    stream(i):   mix64(seed + GOLDEN * i)  for i = 1, 2, 3, ...       (splitmix64)

**Tokens.** ``unicode_v1.json`` lists the word characters (``word``: first and last code point), those that
are tokens by themselves (``single``) and the lower-case forms (``lower``: first, last, step, and what is
added to the code point). All other code points separate, lone surrogates and NUL among them. Each code
point is lower-cased alone. A token is a longest run of word characters that are not single, or one single.

**Content hash.** ``xxh3_128`` of the tokens joined by single spaces, in UTF-8, as 32 hexadecimal digits.

**Token hash.** A token of n UTF-8 bytes is padded with zeros to words of 8 bytes w(0), w(1), ...::

    T = sum over j of mix64(w(j) + GOLDEN * (n + 2^32 * j))

**Features.** Each window of k = ``shingle`` tokens gives ``mix64(h)`` with ``h = k`` and, for each token,
``h = h * MULTIPLIER + T``. A text of fewer tokens, but at least one, gives a single one, of all k tokens
that it has. The features are the set of these numbers. A text without tokens has none, and no keys.

**Signature.** With ``permutations`` = m, and n = m / 2, rounded up::

    c(k) = stream(1 + k) >> 32             for k = 0 .. 7                      (32 bits)
    a(p) = (stream(9 + p) >> 32) | 1       for p = 0 .. n - 1                  (32 bits)
    y(p) = (x + c(p mod 8)) * a(p)         for each feature, x = its lower 32 bits (32 bits)
    v(p)     = least y(p) of all features
    v(p + n) = greatest y(p) of all features, all bits inverted    (if p + n < m)
    v ^= v >> 16;  v *= 85EBCA6B;  v ^= v >> 13;  v *= C2B2AE35               (32 bits)
    slot = v >> 24

**Band keys.** Band i has the slots ``i * rows`` to ``i * rows + rows - 1``. ``h = 0``; for each of them
``h = h * MULTIPLIER + slot + 1``; the key is the character of the position i followed by the 42 bits
``mix64(h) >> 22`` as seven characters of URL-safe base64, highest first. Positions 0 to 63 are the
characters of URL-safe base64, 64 to 127 are U+00C0 to U+00FF.

``agree`` decides no key: two texts are candidates if so many of their keys are equal.

**Sampled keys**, with ``sample_mod`` = K above 0 only: of each feature x with ``x mod K = 0`` the upper 48 bits,
``x >> 16``, as eight characters of URL-safe base64, highest first. K is at most 2^16, so these bits are not those
that decide; nothing needs to be mixed before, since x comes out of ``mix64``.
"""

from __future__ import annotations

from es_neardupe.keys.bands import band_keys
from es_neardupe.keys.estimation import Estimate, estimate, estimate_of, exact_share
from es_neardupe.keys.fingerprint import fingerprints, stream_fingerprints, without_keys
from es_neardupe.keys.scheme import Scheme, choose_bands
from es_neardupe.keys.shingling import features, token_hashes, window_hashes
from es_neardupe.keys.signature import signatures
from es_neardupe.keys.text import spans, tokenize

__all__ = [
    "Estimate",
    "Scheme",
    "band_keys",
    "choose_bands",
    "estimate",
    "estimate_of",
    "exact_share",
    "features",
    "fingerprints",
    "signatures",
    "spans",
    "stream_fingerprints",
    "token_hashes",
    "tokenize",
    "window_hashes",
    "without_keys",
]
