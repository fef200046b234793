"""Near-duplicates inside the Elasticsearch or OpenSearch index you already run.

`NearDupe` is the way in; `Settings` says what ``init`` decides; everything raised on purpose is a `NeardupeError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from es_neardupe.api import NearDupe
    from es_neardupe.errors import NeardupeError
    from es_neardupe.keys import Scheme, estimate, features, fingerprints, tokenize
    from es_neardupe.measures import resemblance
    from es_neardupe.settings import Settings

__all__ = [
    "NearDupe",
    "NeardupeError",
    "Scheme",
    "Settings",
    "estimate",
    "features",
    "fingerprints",
    "resemblance",
    "tokenize",
]

_MODULES = {"NearDupe": "api", "NeardupeError": "errors", "Settings": "settings", "resemblance": "measures"}


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is: a local server's process needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'keys')}"), name)
