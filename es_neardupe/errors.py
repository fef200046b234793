"""Everything that this package raises on purpose, in one tree.

::

    NeardupeError
    ├── SettingsError             a setting out of its range, or settings that contradict each other
    ├── InputError                a file, a line or a document that cannot be read as what it should be
    ├── ConnectError              no usable connection to a server
    │   ├── NoServer              no server was named and none is running
    │   ├── Unreachable           nothing answers there, or not in time
    │   ├── CertificateRefused    TLS could not be verified
    │   ├── LoginRefused          401
    │   └── UnsupportedServer     not Elasticsearch or OpenSearch, or too old
    ├── RequestError              the server refused a request (status, type, reason)
    │   ├── NotFound              404
    │   ├── Forbidden             403
    │   ├── Conflict              409
    │   └── Blocked               cluster_block_exception: read-only index, full disk
    ├── IncompleteAnswer          shards failed or the search timed out: the answer is not whole
    ├── IndexUnusable             the index cannot be worked on as it is
    │   ├── MappingConflict       a field of ours is there with another type
    │   ├── NotInitialised        the index has no scheme yet
    │   │   └── RolledOver        a new index behind the name, which enrich prepares
    │   ├── SchemeMismatch        the index has another scheme than the one asked for
    │   └── BeingMigrated         the index is on its way to another scheme
    ├── LeaseHeld                 another run writes the groups of the index
    ├── LeaseLost                 another run took over from this one
    ├── CorruptFingerprint        a stored fingerprint that our code cannot have written
    └── NodeError                 the local server could not be installed, started or stopped

Each message is one or two sentences that name the cause and the way out; none holds a credential.
"""

from __future__ import annotations

__all__ = [
    "BeingMigrated",
    "Blocked",
    "CertificateRefused",
    "Conflict",
    "ConnectError",
    "CorruptFingerprint",
    "Forbidden",
    "IncompleteAnswer",
    "IndexUnusable",
    "InputError",
    "LeaseHeld",
    "LeaseLost",
    "LoginRefused",
    "MappingConflict",
    "NeardupeError",
    "NoServer",
    "NodeError",
    "NotFound",
    "NotInitialised",
    "RequestError",
    "RolledOver",
    "SchemeMismatch",
    "SettingsError",
    "Unreachable",
    "UnsupportedServer",
]


class NeardupeError(Exception):
    """Base of all errors of this package.

    Attribute: ``request``, the name of the request that failed, as the server's logs have it (empty: none did); the
    message ends with it.
    """

    request: str = ""

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} [request {self.request}]" if self.request else message


class SettingsError(NeardupeError):
    """A setting is out of its range, or two settings contradict each other."""


class InputError(NeardupeError):
    """A file, a line or a document cannot be read as what it should be."""


class ConnectError(NeardupeError):
    """There is no usable connection to a server."""


class NoServer(ConnectError):
    """No server is named and none is running."""


class Unreachable(ConnectError):
    """Nothing answers at the address, or not in time."""


class CertificateRefused(ConnectError):
    """The server's TLS certificate could not be verified."""


class LoginRefused(ConnectError):
    """The server answered 401."""


class UnsupportedServer(ConnectError):
    """The server is not Elasticsearch or OpenSearch, or it is too old."""


class RequestError(NeardupeError):
    """The server refused a request.

    Attributes: ``status`` (HTTP status), ``type`` (the server's name of the error, may be empty),
    ``reason`` (the server's words, may be empty).
    """

    def __init__(self, message: str, *, status: int, type: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.reason = reason


class NotFound(RequestError):
    """404: no such index, document or path."""


class Forbidden(RequestError):
    """403: the user may not do this."""


class Conflict(RequestError):
    """409: the document was changed by somebody else, or exists already."""


class Blocked(RequestError):
    """The index or the cluster is blocked for writing; trying again does not help."""


class IncompleteAnswer(NeardupeError):
    """Shards failed or the search timed out: what came back is not the whole answer."""


class IndexUnusable(NeardupeError):
    """The index cannot be worked on as it is."""


class MappingConflict(IndexUnusable):
    """A field of ours is mapped already, with another type."""


class NotInitialised(IndexUnusable):
    """The index has no scheme yet: ``init`` comes first."""


class RolledOver(NotInitialised):
    """An index that a rollover put behind the name has no scheme yet: ``enrich`` gives it that of the others."""


class SchemeMismatch(IndexUnusable):
    """The index has another scheme than the one asked for."""


class BeingMigrated(IndexUnusable):
    """The index is on its way to another scheme: what is asked for must wait for the end of that."""


class LeaseHeld(NeardupeError):
    """Another run writes the groups of the index at this moment."""


class LeaseLost(NeardupeError):
    """Another run took over from this one, which was out of touch for longer than its lease."""


class CorruptFingerprint(NeardupeError):
    """A stored fingerprint that our code cannot have written."""


class NodeError(NeardupeError):
    """The local server could not be installed, started or stopped."""
