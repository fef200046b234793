"""The log file of a server."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ending", "rotate", "tells_of_taken_port"]

_LINES = 12
_LAST_BYTES = 64 * 1024
_FRAME = ("\tat ", "\t... ")
_TAKEN = ("Address already in use", "BindHttpException")


def rotate(log: Path) -> None:
    """Put the log of the last run aside, as NAME.log.old."""
    if log.exists():
        log.replace(log.with_name(log.name + ".old"))


def ending(log: Path) -> str:
    """The end of a log in words, for an error message; without stack frames: the reason stands above them."""
    lines = [line for line in _last(log).splitlines() if line.strip() and not line.startswith(_FRAME)]
    if not lines:
        return f"its log {log} is empty"
    return "\n".join([f"the last lines of {log}:", *(f"  {line}" for line in lines[-_LINES:])])


def tells_of_taken_port(log: Path) -> bool:
    """Whether the server says that it could not have its port; who took it may have left it again since."""
    return any(words in _last(log) for words in _TAKEN)


def _last(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LAST_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
