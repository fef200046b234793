"""Where the events of a run go: JSON or text, one line each, on stderr or at the end of a file."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime, timezone
from enum import Enum
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any

from es_neardupe.cli.output import show_messages, without_controls
from es_neardupe.errors import InputError
from es_neardupe.events import LOGGER, fields_of

__all__ = ["LogFormat", "LogLevel", "configure", "reset"]


class LogFormat(str, Enum):
    """How events are written."""

    TEXT = "text"
    JSON = "json"


class LogLevel(str, Enum):
    """The least level that is told."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """As Python's logging counts them."""
        return int(logging.getLevelName(self.value.upper()))


def configure(format: LogFormat, level: LogLevel, file: Path | None, context: Mapping[str, Any]) -> None:
    """Send events where the options say, each with the fields of ``context``. Raises `InputError` for a file that
    cannot be written.

    In JSON all that is said on stderr is an event. In text messages stay as people read them, and the other events
    stand beside them with the level ``debug`` only; a file has all of them.
    """
    reset()
    formatter = _JsonLines(context) if format is LogFormat.JSON else _TextLines(context)
    if file is not None:
        _add(_file_handler(file), formatter)
    elif format is LogFormat.JSON:
        _add(logging.StreamHandler(), formatter)
        show_messages(None)
        LOGGER.setLevel(level.number)
        return
    elif level is LogLevel.DEBUG:
        handler = logging.StreamHandler()
        handler.addFilter(lambda record: getattr(record, "event", "") not in {"message", "error"})
        _add(handler, formatter)
    show_messages(level.number)
    if LOGGER.handlers[1:]:  # besides the one that does nothing
        LOGGER.setLevel(level.number)


def reset() -> None:
    """As if nothing had been configured."""
    for handler in LOGGER.handlers[:]:
        if not isinstance(handler, logging.NullHandler):
            LOGGER.removeHandler(handler)
            handler.close()
    LOGGER.setLevel(logging.NOTSET)
    show_messages(logging.INFO)


def _add(handler: logging.Handler, formatter: logging.Formatter) -> None:
    handler.setFormatter(formatter)
    LOGGER.addHandler(handler)


def _file_handler(file: Path) -> logging.Handler:
    """Appends, and opens the file anew when something like logrotate has moved it."""
    try:
        return WatchedFileHandler(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"--log-file {file} cannot be written: {error.strerror or error}.") from error


class _JsonLines(logging.Formatter):
    """One JSON object, in ASCII: nothing in it can steer a terminal or end the line."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        super().__init__()
        self._context = dict(context)

    def format(self, record: logging.LogRecord) -> str:
        event, fields = fields_of(record)
        head = {"time": _moment(record), "level": record.levelname.lower(), "event": event}
        return json.dumps({**head, **self._context, **fields}, default=str)


class _TextLines(_JsonLines):
    """Time, level, event and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = fields_of(record)
        told = {**self._context, **fields}
        words = [f"{name}={json.dumps(value, default=str)}" for name, value in told.items()]
        return without_controls(" ".join([_moment(record), record.levelname.lower(), event, *words]))


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
