"""What happens, as records of Python's logging: one logger, each record with the name of its event and its fields.

A program that uses this package sees them by configuring the logger ``es_neardupe``; the command line does so with
``--log-format`` and ``--log-level``. No event holds a secret or the content of a document.
"""

from __future__ import annotations

import logging
import os
from typing import Any

__all__ = ["LOGGER", "fields_of", "is_logged", "log_event", "new_run"]

LOGGER = logging.getLogger("es_neardupe")
LOGGER.addHandler(logging.NullHandler())  # who configures nothing sees nothing


def new_run() -> str:
    """The name of a run, by which its requests and its log lines are found: 8 hex digits."""
    return os.urandom(4).hex()


def is_logged(level: int) -> bool:
    """Whether anybody looks at events of this level."""
    return LOGGER.isEnabledFor(level)


def log_event(level: int, event: str, **fields: Any) -> None:
    """Log an event. Its message is ``event name=value ...``; handlers find the parts as ``record.event`` and
    ``record.fields``."""
    if is_logged(level):
        words = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
        LOGGER.log(level, "%s", words, extra={"event": event, "fields": fields}, stacklevel=2)


def fields_of(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """Name and fields of a record's event; a record of anybody else is an event ``log`` with its message."""
    if event := getattr(record, "event", None):
        return event, record.__dict__["fields"]
    return "log", {"message": record.getMessage()}
