"""Our fields in an index of our own beside the user's, for indices that may not be written."""

from es_neardupe.sidecar.joining import Names, TooMany, ids_clause
from es_neardupe.sidecar.mirror import Mirrored, mirror
from es_neardupe.sidecar.names import REFERENCE, sidecar_mapping, sidecar_name, writes_group
from es_neardupe.sidecar.opening import (
    kept_beside,
    must_be_stored,
    open_inline,
    opened,
    over,
    sidecars_of,
    telling_mappings,
    with_source_modes,
)
from es_neardupe.sidecar.view import View

__all__ = [
    "REFERENCE",
    "Mirrored",
    "Names",
    "TooMany",
    "View",
    "ids_clause",
    "kept_beside",
    "mirror",
    "must_be_stored",
    "open_inline",
    "opened",
    "over",
    "sidecar_mapping",
    "sidecar_name",
    "sidecars_of",
    "telling_mappings",
    "with_source_modes",
    "writes_group",
]
