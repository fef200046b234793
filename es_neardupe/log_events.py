"""Log events: records of the logger ``es_neardupe``, each with the name of its event and fields.

A program that uses this package configures that logger to see them; the command line does so with ``--log-format`` and
``--log-level``. No event contains a secret or the content of a document.
"""

from __future__ import annotations

import logging
import os
from typing import Any

__all__ = ["LOGGER", "fields_of", "is_logged", "log_event", "new_run"]

LOGGER = logging.getLogger("es_neardupe")
LOGGER.addHandler(logging.NullHandler())  # silent unless configured


def new_run() -> str:
    """A random name for a run, which marks its requests and log lines: 8 hexadecimal digits."""
    return os.urandom(4).hex()


def is_logged(level: int) -> bool:
    """Whether events of this level are logged."""
    return LOGGER.isEnabledFor(level)


def log_event(level: int, event: str, **fields: Any) -> None:
    """Log an event. Its message is ``event name=value ...``; ``record.event`` and ``record.fields`` hold the parts."""
    if is_logged(level):
        words = " ".join([event, *(f"{name}={value!r}" for name, value in fields.items())])
        LOGGER.log(level, "%s", words, extra={"event": event, "fields": fields}, stacklevel=2)


def fields_of(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """Event name and fields of a log record. A record of other code is an event ``log`` with its message."""
    if event := getattr(record, "event", None):
        return event, record.__dict__["fields"]
    return "log", {"message": record.getMessage()}
