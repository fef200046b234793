"""All command functions by their names."""

from __future__ import annotations

from es_neardupe.commands.audit.audit import audit
from es_neardupe.commands.bands import bands
from es_neardupe.commands.clean import clean
from es_neardupe.commands.compare import compare
from es_neardupe.commands.contained import contained
from es_neardupe.commands.distribution.distribution import distribution
from es_neardupe.commands.doctor.doctor import doctor
from es_neardupe.commands.duplicates.duplicates import duplicates
from es_neardupe.commands.enrich.enrich import enrich
from es_neardupe.commands.group import group
from es_neardupe.commands.groups import group_history, groups, suggest_keep
from es_neardupe.commands.init.init import init
from es_neardupe.commands.load.load import load
from es_neardupe.commands.migrate.migrate import migrate
from es_neardupe.commands.moved.moved import moved, moved_all
from es_neardupe.commands.pairs import pairs
from es_neardupe.commands.search.request import search_request
from es_neardupe.commands.search.search import search
from es_neardupe.commands.similar import similar
from es_neardupe.commands.stats import stats
from es_neardupe.commands.version import version
from es_neardupe.commands.watch import watch
from es_neardupe.commands.what_if import what_if

__all__ = [
    "audit",
    "bands",
    "clean",
    "compare",
    "contained",
    "distribution",
    "doctor",
    "duplicates",
    "enrich",
    "group",
    "group_history",
    "groups",
    "init",
    "load",
    "migrate",
    "moved",
    "moved_all",
    "pairs",
    "search",
    "search_request",
    "similar",
    "stats",
    "suggest_keep",
    "version",
    "watch",
    "what_if",
]
