"""How servers that live for minutes are started: their code is compiled quickly rather than well."""

from __future__ import annotations

import os

__all__ = ["compile_quickly"]


def compile_quickly() -> None:
    """For the servers that this process, and those it starts, will start. Tests take two thirds of the time then."""
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
