"""With which code the program ends, and what each says."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """The exit codes; `docs/operations.md` explains them."""

    DONE = 0
    """All was done; there may be warnings."""
    FAILED = 1
    """An error, said in one line; or documents were refused or left; or a question was answered no."""
    USAGE = 2
    """An unknown command or option, or a value that cannot be one: nothing was begun."""
    INTERRUPTED = 130
    """Ctrl-C: the same command goes on where it stopped."""
    CLOSED = 141
    """Whoever read our output closed it, as `head` does."""
