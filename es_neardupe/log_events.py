"""Log events: records of the logger ``es_neardupe``, each with the name of its event and fields.

A program that uses this package configures that logger to see them; the command line does so with ``--log-format`` and
``--log-level``. No event contains a secret or the content of a document.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Protocol

from es_neardupe.display_text import without_credentials, without_passwords
from es_neardupe.wording import counted

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
        fields = {name: _masked(value) for name, value in fields.items()}
        words = " ".join([event, *(f"{name}={json.dumps(value, default=str)}" for name, value in fields.items())])
        LOGGER.log(level, "%s", words, extra={"event": event, "fields": fields}, stacklevel=2)


def _masked(value: Any) -> Any:
    return without_passwords(value) if isinstance(value, str) else value


def fields_of(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """Event name and fields of a log record. A record of other code is an event ``log`` with its message."""
    if event := getattr(record, "event", None):
        return event, record.__dict__["fields"]
    return "log", {"message": record.getMessage()}


_SECRET = re.compile("password|passphrase|secret|token|api_key|header")
"""Names of arguments whose values are credentials, unless they name the file with them."""

_TEXTS = {"text", "request", "note"}
"""Arguments that may be texts."""

_FILES = {"files", "paths"}
"""Arguments that may be URLs of files, with credentials in any part of them."""

_CONTENTS = {"actions", "addresses"}
"""Arguments with many values, or with documents."""


def loggable_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The given arguments of a command as JSON types, without credentials, texts, documents and callbacks."""
    given = {name: _loggable(name, value) for name, value in arguments.items() if name not in _CONTENTS}
    return {name: value for name, value in given.items() if value not in (None, [])}


def _loggable(name: str, value: Any) -> Any:
    if value is not None and _SECRET.search(name) and not name.endswith("_file"):
        return "(hidden)"
    if name in _FILES and isinstance(value, list | tuple):
        return [without_credentials(str(one)) for one in value]
    return f"({counted(len(value), 'character')})" if name in _TEXTS and isinstance(value, str) else _plain(value)


def _plain(value: Any) -> Any:
    """A value as JSON types; None for any other object."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PurePath):
        return _masked(str(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if not one.name.startswith("_")}
    if isinstance(value, Mapping):
        return {_masked(str(key)): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return _masked(value) if isinstance(value, str | bool | int | float) else None


_PROGRESS_INTERVAL = 10.0
"""Seconds between two events about the progress of a stage."""


class _Progress(Protocol):
    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def logged_progress(
    clock: Callable[[], float] = time.monotonic, context: Mapping[str, Any] = MappingProxyType({})
) -> _Progress:
    """A progress callback that logs each stage at its beginning, every ten seconds, and at its end.

    ``context``: further fields of each event.
    """
    last: dict[str, float] = {}

    def logged(stage: str, done: int, total: int | None) -> None:
        if total == 0:
            return
        now = clock()
        if stage not in last or now - last[stage] >= _PROGRESS_INTERVAL or done == total:
            last[stage] = now
            log_event(logging.INFO, "progress", **context, stage=stage, done=done, total=total)

    return logged
