"""Near-duplicates inside the Elasticsearch or OpenSearch index you already run.

`NearDupe` is the entry point, `Settings` holds the settings of ``init``, and every error is a `NeardupeError`.

Programs import from this package and three of its modules: `es_neardupe.reports` (the types of results),
`es_neardupe.errors`, and `es_neardupe.local` (local servers). All other modules may change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from es_neardupe.api import NearDupe
    from es_neardupe.commands.bands import bands
    from es_neardupe.commands.distinct import distinct
    from es_neardupe.commands.moved.report import moved_table
    from es_neardupe.commands.shingles import shingles_of
    from es_neardupe.errors import NeardupeError
    from es_neardupe.index.settings import Settings
    from es_neardupe.keys.fingerprint import fingerprints
    from es_neardupe.keys.minhash import estimate
    from es_neardupe.keys.scheme import Scheme
    from es_neardupe.keys.shingles import features
    from es_neardupe.keys.text import tokenize
    from es_neardupe.pages.page import compare_page
    from es_neardupe.records import Address
    from es_neardupe.serve.application import asgi
    from es_neardupe.similarity.comparison import compare_texts
    from es_neardupe.similarity.formulas import resemblance

__version__: str

__all__ = [
    "Address",
    "NearDupe",
    "NeardupeError",
    "Scheme",
    "Settings",
    "asgi",
    "bands",
    "compare_page",
    "compare_texts",
    "distinct",
    "estimate",
    "features",
    "fingerprints",
    "moved_table",
    "resemblance",
    "shingles_of",
    "tokenize",
]

_MODULES = {
    "Address": "records",
    "NearDupe": "api",
    "NeardupeError": "errors",
    "Scheme": "keys.scheme",
    "Settings": "index.settings",
    "asgi": "serve.application",
    "bands": "commands.bands",
    "compare_page": "pages.page",
    "compare_texts": "similarity.comparison",
    "distinct": "commands.distinct",
    "estimate": "keys.minhash",
    "features": "keys.shingles",
    "fingerprints": "keys.fingerprint",
    "moved_table": "commands.moved.report",
    "resemblance": "similarity.formulas",
    "shingles_of": "commands.shingles",
    "tokenize": "keys.text",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, to start fast."""
    if name == "__version__":
        from importlib.metadata import version

        return version("es-neardupe")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
