"""What is said of large buckets and of common shingles."""

from __future__ import annotations

from collections.abc import Sequence

from es_neardupe.cli.output import say, warn
from es_neardupe.pipeline.common import CommonUsed
from es_neardupe.stages.candidates import Bucket

__all__ = ["tell_of_common", "tell_of_large_buckets"]

_BUCKETS = 3
"""Passages of large buckets that are shown."""


def tell_of_large_buckets(large: Sequence[Bucket]) -> None:
    """Say what was not compared, and what the texts of the largest buckets share."""
    skipped = sum(one.skipped for one in large)
    if not skipped:
        return
    warn(
        f"{len(large):,} keys are shared by more distinct texts than --max-bucket: {skipped:,} comparisons in them "
        f"were left out."
    )
    passages = {one.passage: one for one in reversed(large) if one.passage}
    largest = sorted(passages.values(), key=lambda one: -one.documents)[:_BUCKETS]
    for one in largest:
        say(f"  {one.documents:,} documents share: '{one.passage}' ({one.skipped:,} left out by key {one.key})")


def tell_of_common(common: CommonUsed | None) -> None:
    """Say which shingles were ignored, and in a dry run what that changes."""
    if common is None:
        return
    say(
        f"{common.shingles:,} shingles were ignored: more than {common.share:g} of {common.documents:,} random "
        f"documents have them (list {common.version} of {common.at})."
    )
    if common.texts:
        say(f"{common.texts:,} documents have no other shingles, and keep them.")
    if (effect := common.effect) is not None:
        say(f"Without that {effect.without:,} pairs match; it gains {effect.gained:,} and loses {effect.lost:,}.")
        for example in effect.examples:
            say(f"  ignored: '{example}'")
