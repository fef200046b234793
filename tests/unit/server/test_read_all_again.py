"""Documents that a reading has already returned are skipped when it begins again, and no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.records import Hit
from es_neardupe.server.read_all import SeenDocuments

ADDRESSES = st.lists(st.tuples(st.sampled_from(["one", "two", "one\0"]), st.text(max_size=3)), max_size=30, unique=True)


def read(seen: SeenDocuments, addresses: list[tuple[str, str]], size: int) -> list[tuple[str, str]]:
    """The documents not seen before, read in pages."""
    hits = [Hit(index, id, None, 1, 1, {}) for index, id in addresses]
    return [hit.address for start in range(0, len(hits), size) for hit in seen.fresh(hits[start : start + size])]


@given(st.lists(ADDRESSES, min_size=1, max_size=4), st.integers(1, 7))
def test_each_document_once_over_several_beginnings(snapshots: list[list[tuple[str, str]]], size: int) -> None:
    seen, given_out = SeenDocuments(), set[tuple[str, str]]()
    for addresses in snapshots:
        assert read(seen, addresses, size) == [one for one in addresses if one not in given_out]
        given_out |= set(addresses)
        seen.begin_again()
