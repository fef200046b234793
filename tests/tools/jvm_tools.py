"""JVM options for servers that live for minutes: code is compiled quickly rather than well."""

from __future__ import annotations

import os

__all__ = ["compile_quickly"]


def compile_quickly() -> None:
    """Set the options for servers started by this process and its children. Tests take two thirds of the time then."""
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
