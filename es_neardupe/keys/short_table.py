"""The code-point table of `es_neardupe.keys.unicode` in the form that the kernel reads fastest."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from es_neardupe.keys.arrays import U16, U32, Octets
from es_neardupe.keys.unicode import DOTTED, EXPANDS, FIRST, MARK, SECOND, SINGLE, TARGET, WORD, table


@lru_cache(maxsize=1)
def short_table() -> tuple[U16, U32, Octets]:
    """The table in two levels, for the kernel: the block of each 256 code points (uint16[0x1100]), and of each code
    point in a block the UTF-8 of the one that replaces it (uint32) and flags: 1 `SINGLE`, 2 needs the whole table, 4
    `FIRST`, 8 `WORD`, 128 `DOTTED`, and 16 times the number of bytes."""
    numbers: dict[bytes, int] = {}
    blocks = table().entries.reshape(-1, 256)
    block = np.array([numbers.setdefault(one.tobytes(), len(numbers)) for one in blocks], np.uint16)
    entries = np.frombuffer(b"".join(numbers), np.uint32)
    target = entries & np.uint32(TARGET)
    tail = np.uint32(0x80) | (target & np.uint32(0x3F))
    middle = np.uint32(0x80) | (target >> np.uint32(6) & np.uint32(0x3F))
    upper = np.uint32(0x80) | (target >> np.uint32(12) & np.uint32(0x3F))
    forms = [
        target,
        np.uint32(0xC0) | target >> np.uint32(6) | tail << np.uint32(8),
        np.uint32(0xE0) | target >> np.uint32(12) | middle << np.uint32(8) | tail << np.uint32(16),
        np.uint32(0xF0)
        | target >> np.uint32(18)
        | upper << np.uint32(8)
        | middle << np.uint32(16)
        | tail << np.uint32(24),
    ]
    size = np.searchsorted(np.array([0x80, 0x800, 0x10000]), target, side="right").astype(np.uint32)
    octets = np.choose(size, forms)
    flags = (size + np.uint32(1)) << np.uint32(4)
    for bit, names in ((1, SINGLE), (2, EXPANDS | MARK | SECOND), (4, FIRST), (8, WORD), (128, DOTTED)):
        flags |= np.where(entries & np.uint32(names), np.uint32(bit), np.uint32(0))
    return block, octets, flags.astype(np.uint8)
