"""The fingerprint in Painless: a script of an ingest pipeline, or of an update by query, which gives the same keys as
Python.

``fingerprint.painless`` has the functions, ``ingest.painless`` and ``update.painless`` the programs that use them.
Their constants are filled in from a scheme, and their parameters are the fields of the text and the table of
`es_neardupe.keys.unicode`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import numpy as np

from es_neardupe.errors import SettingsError
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.keys.hashing import stream
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shapes import SHAPES
from es_neardupe.keys.unicode import DIGIT, DOTTED, EXPANDS, MARK, SECOND, SINGLE, TARGET, WORD, table
from es_neardupe.keys.unit import Unit

MAX_SCRIPT = 65_535
"""Maximum size of a script on a server, in bytes."""
MAX_CHARS = 1_000_000
"""Maximum length of a text, in UTF-16. Documents with longer texts get no keys from the script."""

_FLAGS = ((WORD, 1), (SINGLE, 2), (MARK, 4), (DIGIT, 8), (SECOND, 16), (DOTTED, 32))
_MAPPED = 96
_COMPOSES = 128
_PAGE = 128
_LANES = 8
_TOGETHER = 4
"""Permutations computed in one loop: with more, the server's compiler makes slow code."""


class Script(NamedTuple):
    """A script with its parameters."""

    source: str
    params: dict[str, Any]


class UpdateParams(NamedTuple):
    """What the script of an update by query needs to know of its run."""

    at: str
    """Its time, for the fields."""
    alone: bool
    """Whether new documents get a group of their own at once. Otherwise they wait for ``group``."""


def fingerprint_script(
    scheme: Scheme,
    fields: Sequence[str],
    *,
    prefix: str = "neardupe",
    group_field: str | None = None,
    update: UpdateParams | None = None,
) -> Script:
    """The script that stores the fingerprint of a document under ``prefix``.

    ``group_field``: a field at the top level that gets a copy of the group id. ``update``: for a script of an update by
    query, instead of one of an ingest pipeline. Raises `SettingsError` if the script of this scheme is larger than
    servers accept.
    """
    half = (scheme.permutations + 1) // 2
    functions = _permutations(scheme, half)
    copied = f"{'ctx' if update is None else 'source'}[params.group_field] = made['group'];" if group_field else ""
    sampled = f"if (Long.remainderUnsigned(h, {scheme.sample_mod}L) == 0L) samples.add(h);"
    characters = (
        "t = new long[bytes + 1]; units = 0;\n"
        "for (int i = 0; i < bytes; i += 65536) units = characters(w, i, Integer.min(bytes, i + 65536), t, units);"
    )
    shaped = (
        "if (size < 3) {\n"
        "      int p = size == 1 ? b : ((b & 31) << 6) | ((int) (c >>> 8) & 63);\n"
        f"      int s = p < {len(SHAPES)} ? (int) '{SHAPES}'.charAt(p) : 32;\n"
        "      if (s != 32) { c = s; size = 1; }\n"
        "    }"
    )
    programs = ("fingerprint.painless", "ingest.painless" if update is None else "update.painless")
    program = "".join(files(__package__).joinpath(one).read_text("utf-8") for one in programs)
    source = Template(program).substitute(
        PERMUTATIONS="\n".join(functions),
        PERMUTE=" ".join(f"p{number}(x, i, e, v);" for number in range(len(functions))),
        SHINGLE=scheme.shingle,
        HALF=half,
        DOUBLED=2 * half,
        SLOTS=scheme.permutations,
        BANDS=scheme.bands,
        ROWS=scheme.rows,
        CHARACTERS="" if scheme.unit is Unit.WORD else characters,
        SHAPED=shaped if scheme.unit is Unit.SHAPE else "",
        SAMPLED=sampled if scheme.sample_mod else "",
        SAMPLES_STORED="made['samples'] = new ArrayList();" if scheme.sample_mod else "",
        SAMPLES=(
            "List sampleKeys = (List) made['samples'];\n"
            "samples.sort((a, b) -> Long.compareUnsigned((long) a, (long) b));\n"
            "for (def one : samples) sampleKeys.add(sample((long) one));"
            if scheme.sample_mod
            else ""
        ),
        GROUP_REMOVED="ctx.remove(params.group_field);" if group_field else "",
        GROUP_COPIED=copied,
        GROUP_FIELD="params.group_field" if group_field else "null",
    )
    if (size := len(source.encode())) > MAX_SCRIPT:
        raise SettingsError(
            f"The script of scheme {scheme.id} has {size:,} bytes; servers accept {MAX_SCRIPT:,}. "
            "Use fewer permutations, or make the keys with `enrich`."
        )
    params: dict[str, Any] = {
        "scheme": scheme.id,
        "prefix": prefix,
        "known": list(fields_mapping()["properties"]),
        "fields": list(fields),
        "newline": "\n",
        "zero": "\0",
        **_unicode_params(),
    }
    params |= {"group_field": group_field} if group_field else {}
    return Script(source, params | (update._asdict() if update else {}))


def _permutations(scheme: Scheme, half: int) -> list[str]:
    """Functions that compute the extremes of a few permutations with a common shift. 2^31 is added to the shift: the
    multipliers are odd, so the comparison of signed numbers is that of the unsigned ones."""
    drawn = (stream(scheme.seed, _LANES + half) >> np.uint64(32)).tolist()
    shifts, multipliers = drawn[:_LANES], [one | 1 for one in drawn[_LANES:]]
    functions: list[str] = []
    for lane, shift in enumerate(shifts):
        numbers = range(lane, half, _LANES)
        for start in range(0, len(numbers), _TOGETHER):
            some = numbers[start : start + _TOGETHER]
            begin = " ".join(f"int a{p} = v[{p}], b{p} = v[{half + p}];" for p in some)
            body = "\n".join(
                f"    y = s * {_signed(multipliers[p])}; a{p} = Integer.min(a{p}, y); b{p} = Integer.max(b{p}, y);"
                for p in some
            )
            end = " ".join(f"v[{p}] = a{p}; v[{half + p}] = b{p};" for p in some)
            functions.append(
                f"void p{len(functions)}(int[] x, int from, int to, int[] v) {{\n"
                f"  int s, y; {begin}\n"
                f"  for (int k = from; k < to; ++k) {{\n    s = x[k] + {_signed(shift + 2**31)};\n{body}\n  }}\n"
                f"  {end}\n}}"
            )
    return functions


def _signed(number: int) -> int:
    number %= 2**32
    return number - 2**32 if number >= 2**31 else number


@lru_cache(maxsize=1)
def _unicode_params() -> dict[str, str]:
    """The table of code points as strings: an index of pages, the distinct pages, and the mappings."""
    entries, pool = table().entries, table().pool.tolist()
    points = np.arange(len(entries), dtype=np.uint32)
    flags = np.zeros(len(entries), np.uint32)
    for flag, small in _FLAGS:
        flags |= np.where((entries & flag) != 0, np.uint32(small), np.uint32(0))
    values = np.where(entries & np.uint32(WORD), flags, 0) + np.uint32(32)
    changed = (entries & EXPANDS) != 0
    changed |= ((entries & WORD) != 0) & ((entries & TARGET) != points)
    made, places = "", dict[tuple[int, ...], int]()
    for point in np.flatnonzero(changed).tolist():
        target = int(entries[point] & TARGET)
        mapping = (target,)
        if entries[point] & EXPANDS:
            several = entries[pool[target + 1 : target + 1 + pool[target]]]
            mapping = tuple((several & TARGET).tolist())
        if mapping not in places:
            places[mapping] = len(made.encode("utf-16-le")) // 2
            text = "".join(map(chr, mapping))
            composes = any(entries[one] & (MARK | SECOND) for one in mapping)
            made += chr(32 + len(text.encode("utf-16-le")) // 2 + _COMPOSES * composes) + text
        values[point] = _MAPPED + places[mapping]
        assert values[point] < 0xD800
    return _paged(values, made)


def _paged(values: Any, pool: str) -> dict[str, str]:
    numbers: dict[bytes, int] = {}
    pages = []
    distinct: list[str] = []
    for start in range(0, len(values), _PAGE):
        page = values[start : start + _PAGE]
        if (number := numbers.setdefault(page.tobytes(), len(numbers))) == len(distinct):
            distinct.append("".join(map(chr, page.tolist())))
        pages.append(chr(32 + number))
    ascii_text = "".join(chr(p).lower() if chr(p).isalnum() or chr(p) == "_" else " " for p in range(128))
    return {"pages": "".join(pages), "entries": "".join(distinct), "pool": pool, "ascii": ascii_text}
