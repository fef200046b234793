"""Web application to review the groups of an index, with an HTTP interface for programs: see `asgi`.

Needs the extra ``[serve]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from es_neardupe.serve.application import asgi

__all__ = ["asgi"]


def __getattr__(name: str) -> Any:
    """Import the application when it is first used: MCP needs other modules of this package, without the extra."""
    if name != "asgi":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from es_neardupe.serve.application import asgi

    return asgi
