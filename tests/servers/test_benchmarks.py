"""Benchmarks run to their end: what they replace to measure without it still exists, and their expectations hold."""

from __future__ import annotations

import bench_writes
from bench_tools import drop_index, make_texts

from es_neardupe.server.client import Client


def test_the_benchmark_of_writes(client: Client) -> None:
    try:
        for variant in bench_writes.VARIANTS.values():
            measured = bench_writes.measure(client, make_texts(10) * 2, variant())
            assert measured.keys() == {"enrich", "group"}
    finally:
        drop_index(client, bench_writes.INDEX)
