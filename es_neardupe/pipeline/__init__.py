"""The main flows, one function for each command; its lines are the stages."""

from es_neardupe.pipeline.audit import audit
from es_neardupe.pipeline.bands import bands
from es_neardupe.pipeline.clean import clean
from es_neardupe.pipeline.compare import compare
from es_neardupe.pipeline.contained import contained
from es_neardupe.pipeline.distribution import distribution
from es_neardupe.pipeline.doctor import doctor
from es_neardupe.pipeline.duplicates import duplicates
from es_neardupe.pipeline.enrich import enrich
from es_neardupe.pipeline.group import group
from es_neardupe.pipeline.groups import group_history, groups
from es_neardupe.pipeline.init import init
from es_neardupe.pipeline.keeping import suggest_keep
from es_neardupe.pipeline.load import load
from es_neardupe.pipeline.migrate import migrate
from es_neardupe.pipeline.moved import moved, moved_all
from es_neardupe.pipeline.pairs import pairs
from es_neardupe.pipeline.search import search
from es_neardupe.pipeline.search_body import search_request
from es_neardupe.pipeline.similar import similar
from es_neardupe.pipeline.stats import stats
from es_neardupe.pipeline.version import version
from es_neardupe.pipeline.watch import watch
from es_neardupe.pipeline.what_if import what_if

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
