"""JVM options for servers that live for minutes: code is compiled quickly rather than well, and little is spent on
collecting garbage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:MetaspaceSize=192m -XX:ReservedCodeCacheSize=240m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Compile once; no full collection of garbage because classes are loaded or code is compiled; trust the code of the
jars, whose checksums are known, without checking each class."""


def start_quickly() -> None:
    """Set the options for servers started by this process and its children. Tests take two thirds of the time then."""
    os.environ.setdefault("JAVA_TOOL_OPTIONS", QUICK)


@contextmanager
def with_a_large_heap() -> Iterator[None]:
    """Start servers with the simplest garbage collector, which needs the least processor time if the heap is so large
    that it has little to do; and without the full collection that JPype requests after nearly every small one."""
    with pytest.MonkeyPatch.context() as patched:
        # The virtual machine reads this variable after its command line, and so replaces the collector chosen there.
        patched.setenv("_JAVA_OPTIONS", "-XX:-UseG1GC -XX:+UseSerialGC -XX:+DisableExplicitGC")
        yield
