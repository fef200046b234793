"""Exceptions of this package, in one tree.

::

    NeardupeError
    ├── SettingsError             a setting is out of range, or settings contradict each other
    ├── InputError                a file, line or document is not valid input
    ├── ConnectError              no usable connection to a server
    │   ├── NoServer              no server was given, and none is running
    │   ├── Unreachable           no answer at the address, or not in time
    │   ├── CertificateRefused    TLS could not be verified
    │   ├── LoginRefused          authentication failed (401)
    │   └── UnsupportedServer     not Elasticsearch or OpenSearch, or too old
    ├── RequestError              the server rejected a request (status, type, reason)
    │   ├── NotFound              404
    │   ├── Forbidden             403
    │   ├── Conflict              409
    │   └── Blocked               cluster_block_exception: read-only index, full disk
    ├── IncompleteAnswer          shards failed or the search timed out
    ├── UnexpectedAnswer          the answer lacks what every such answer has
    │   └── AnswerTooLarge        the answer is larger than its limit
    ├── DocumentTooLarge          one document does not fit into memory
    ├── IndexUnusable             the index cannot be used in its current state
    │   ├── MappingConflict       a neardupe field is mapped with another type
    │   ├── NotInitialised        the index has no scheme yet
    │   │   └── RolledOver        a new index of the alias, which enrich prepares
    │   ├── SchemeMismatch        the index has another scheme than requested
    │   ├── BeingMigrated         the index is being migrated to another scheme
    │   ├── NameTaken             another index has the name of a hidden index
    │   └── IndexReplaced         the index was deleted and created again during the run
    ├── LeaseHeld                 another run writes the groups of the index
    ├── LeaseLost                 another run took over from this one
    ├── CorruptFingerprint        a stored fingerprint is damaged, or not written by this package
    ├── EngineError               the workers of a run cannot be used, or were lost
    └── NodeError                 a local server could not be installed, started or stopped

Each message is one or two sentences with the cause and how to fix it; none contains a credential.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_neardupe.display_text import without_passwords

__all__ = [
    "AnswerTooLarge",
    "BeingMigrated",
    "Blocked",
    "CertificateRefused",
    "Conflict",
    "ConnectError",
    "CorruptFingerprint",
    "DocumentTooLarge",
    "EngineError",
    "Forbidden",
    "IncompleteAnswer",
    "IndexReplaced",
    "IndexUnusable",
    "InputError",
    "LeaseHeld",
    "LeaseLost",
    "LoginRefused",
    "MappingConflict",
    "NameTaken",
    "NeardupeError",
    "NoServer",
    "NodeError",
    "NotFound",
    "NotInitialised",
    "RequestError",
    "RolledOver",
    "SchemeMismatch",
    "SettingsError",
    "UnexpectedAnswer",
    "Unreachable",
    "UnsupportedServer",
]


class NeardupeError(Exception):
    """Base class of all errors of this package.

    Attribute: ``request``, the id of the failed request as in the server's logs (``X-Opaque-Id``), or empty; the
    message ends with it.
    """

    request: str = ""

    def __init__(self, message: str = "") -> None:
        super().__init__(without_passwords(message))

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} [request {self.request}]" if self.request else message

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors of workers are pickled. By default, that works only if every argument is positional."""
        return _restored, (type(self), self.args, vars(self))


def _restored(kind: type[NeardupeError], args: tuple[Any, ...], attributes: Mapping[str, Any]) -> NeardupeError:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


class SettingsError(NeardupeError):
    """A setting is out of its range, or two settings contradict each other."""


class InputError(NeardupeError):
    """A file, a line or a document is not valid input."""


class ConnectError(NeardupeError):
    """There is no usable connection to a server."""


class NoServer(ConnectError):
    """No server was given, and no local server is running."""


class Unreachable(ConnectError):
    """The address does not answer, or not in time."""


class CertificateRefused(ConnectError):
    """The server's TLS certificate could not be verified."""


class LoginRefused(ConnectError):
    """Authentication failed (401)."""


class UnsupportedServer(ConnectError):
    """The server is not Elasticsearch or OpenSearch, or it is too old."""


class RequestError(NeardupeError):
    """The server rejected a request.

    Attributes: ``status`` (HTTP status), ``type`` (the server's error type, may be empty), ``reason`` (the server's
    message, may be empty).
    """

    def __init__(self, message: str, *, status: int, type: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.reason = without_passwords(reason)


class NotFound(RequestError):
    """404: no such index, document or path."""


class Forbidden(RequestError):
    """403: the user lacks a privilege."""


class Conflict(RequestError):
    """409: another client changed the document, or it already exists."""


class Blocked(RequestError):
    """The index or the cluster is blocked for writing; retries do not help."""


class IncompleteAnswer(NeardupeError):
    """Shards failed, the search timed out, or decisions are still being read: the answer is incomplete.

    Attributes: ``type`` (the server's error type of the first failure, may be empty).
    """

    def __init__(self, message: str, *, type: str = "") -> None:
        super().__init__(message)
        self.type = type


class UnexpectedAnswer(NeardupeError):
    """The answer lacks what every answer to such a request has."""


class AnswerTooLarge(UnexpectedAnswer):
    """The answer is larger than its limit."""


class DocumentTooLarge(NeardupeError):
    """A document does not fit into the memory of the server or of this program."""


class IndexUnusable(NeardupeError):
    """The index cannot be used in its current state."""


class MappingConflict(IndexUnusable):
    """A neardupe field is already mapped, with another type."""


class NotInitialised(IndexUnusable):
    """The index has no scheme yet: run ``init`` first."""


class RolledOver(NotInitialised):
    """An index created by a rollover has no scheme yet: ``enrich`` gives it the scheme of the others."""


class SchemeMismatch(IndexUnusable):
    """The index has another scheme than the requested one."""


class BeingMigrated(IndexUnusable):
    """The index is being migrated to another scheme: the command must wait until the migration ends."""


class NameTaken(IndexUnusable):
    """Another index has the name of a hidden index: it is not read, written or deleted."""


class IndexReplaced(IndexUnusable):
    """The index was deleted and created again during the run: its versions began again."""


class LeaseHeld(NeardupeError):
    """Another run is writing the groups of the index."""


class LeaseLost(NeardupeError):
    """Another run took over, because this one did not renew its lease in time."""


class CorruptFingerprint(NeardupeError):
    """A stored fingerprint is damaged, or was not written by this package."""


class EngineError(NeardupeError):
    """The workers of a run cannot be used, or were lost."""


class NodeError(NeardupeError):
    """A local server could not be installed, started or stopped."""


class TuningWarning(UserWarning):
    """Warns that settings lowered by an earlier run were restored, or could not be."""
