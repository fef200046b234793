"""Near-duplicates inside the Elasticsearch or OpenSearch index you already run.

`NearDupe` is the way in; `Settings` says what ``init`` decides; everything raised on purpose is a `NeardupeError`.
"""

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
