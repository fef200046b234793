"""The bar with the decisions, below one document or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from es_neardupe.groups.decisions import Decision
from es_neardupe.groups.listing import QueuePlace
from es_neardupe.records import Address


@dataclass(frozen=True)
class Said:
    """What the bar says was done just before, and how it is taken back."""

    words: str
    verdict: str
    about: str
    decision: str | None = None
    """Its id, if it can be taken back."""
    group: str = ""
    """The group that it is about."""


@dataclass(frozen=True)
class DecisionBar:
    """What can be decided on the page of one document or two."""

    page: str
    """Path and query string of the page."""
    group: str
    """"" for none."""
    queue: QueuePlace | None
    documents: Sequence[tuple[Address, str]]
    """Those that can be decided about, with the content hashes of their texts."""
    pair: bool
    """Whether it can be decided that two texts are the same or different."""
    last: Sequence[Decision]
    """What *undo* takes back, unless something was just stored."""
    said: Said | None
