"""A run of a command: what it is called in logs and requests, its log options, and the summary it may leave behind."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from importlib.metadata import version
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe.cli.output import plain, show_messages, without_controls
from es_neardupe.cli.phrasing import phrase
from es_neardupe.errors import InputError, NeardupeError, SettingsError
from es_neardupe.log_events import LOGGER, fields_of, log_event, loggable_arguments, new_run
from es_neardupe.pages.files import check_file, replacing

if TYPE_CHECKING:
    from es_neardupe.server.client import Client

__all__ = ["CommandRun", "LogFormat", "LogLevel", "begin", "configure", "current", "end", "options", "reset", "result"]


class LogFormat(str, Enum):
    """How events are written."""

    TEXT = "text"
    JSON = "json"


class LogLevel(str, Enum):
    """The least level that is log_event."""

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
        log_event = {**self._context, **fields}
        words = [f"{name}={json.dumps(value, default=str)}" for name, value in log_event.items()]
        return without_controls(" ".join([_moment(record), record.levelname.lower(), event, *words]))


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")


_PANEL = "Log"


def options(
    *,
    log_format: Annotated[
        LogFormat,
        typer.Option(envvar="ES_NEARDUPE_LOG_FORMAT", help="Format of messages on stderr.", rich_help_panel=_PANEL),
    ] = LogFormat.TEXT,
    log_level: Annotated[
        LogLevel, typer.Option(envvar="ES_NEARDUPE_LOG_LEVEL", help="Minimum level to log.", rich_help_panel=_PANEL)
    ] = LogLevel.INFO,
    log_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Append the log to a file.", show_default=False, rich_help_panel=_PANEL),
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write a summary of the run as JSON, also after an error.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> None:
    """The options of a run that all commands with a connection have."""


@dataclass
class CommandRun:
    """What is known of the run under way."""

    command: str
    arguments: Mapping[str, Any]
    summary: Path | None = None
    name: str = field(default_factory=new_run)
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    clock: float = field(default_factory=time.monotonic)
    connection: Mapping[str, Any] = field(default_factory=dict)
    """The options of the connection."""
    stack: ExitStack = field(default_factory=ExitStack)
    """Closed at the end of the command, and what was opened for it."""
    client: Client | None = None
    """The connection, once it is open."""
    result: Any = None
    """The report, once there is one."""


_under_way: list[CommandRun] = []
"""The run of this process: none, or one."""


def current() -> CommandRun | None:
    """The run under way; None for a command without a connection."""
    return _under_way[0] if _under_way else None


def begin(
    command: str,
    arguments: Mapping[str, Any],
    *,
    log_format: LogFormat | str = LogFormat.TEXT,
    log_level: LogLevel | str = LogLevel.INFO,
    log_file: str | None = None,
    summary: str | None = None,
) -> CommandRun:
    """Begin a run. Raises `InputError` where its log or its summary cannot be written."""
    run = CommandRun(command, _arguments(arguments), None if summary is None else Path(summary))
    context = {"run": run.name, "command": command, "index": arguments.get("index")}
    configure(LogFormat(log_format), LogLevel(log_level), None if log_file is None else Path(log_file), context)
    if run.summary is not None:
        check_file(run.summary)
    _under_way[:] = [run]
    log_event(logging.INFO, "started", version=version("es-neardupe"), arguments=run.arguments)
    return run


def result(report: Any) -> None:
    """Keep the report of the run under way for its summary."""
    if _under_way:
        _under_way[0].result = report


def end(code: int, error: BaseException | None = None) -> None:
    """End the run under way, if there is one: log it, write its summary. Raises `InputError` if that is impossible."""
    run = current()
    _under_way.clear()
    try:
        if run is not None:
            log_event(logging.INFO, "finished", exit_code=code, seconds=_seconds(run))
            if run.summary is not None:
                _write(run.summary, _summary(run, code, error))
    finally:
        reset()


def _write(file: Path, summary: Mapping[str, Any]) -> None:
    with replacing(file) as stream:
        stream.write(json.dumps(summary, indent=2, default=str) + "\n")


def _summary(run: CommandRun, code: int, error: BaseException | None) -> dict[str, Any]:
    report = plain(run.result)
    return {
        "program": "es-neardupe",
        "version": version("es-neardupe"),
        "run": run.name,
        "command": run.command,
        "index": run.arguments.get("index"),
        "arguments": run.arguments,
        "started": run.started.isoformat(timespec="seconds"),
        "seconds": _seconds(run),
        "exit_code": code,
        "server": _server(run.client),
        "scheme": report.get("scheme") if isinstance(report, dict) else None,
        "result": report,
        "error": _error(error),
    }


def _server(client: Client | None) -> dict[str, Any] | None:
    if client is None:
        return None
    server = client.server
    return {"url": client.url, "product": server.product.value, "version": ".".join(map(str, server.version))}


def _error(error: BaseException | None) -> dict[str, Any] | None:
    if error is None:
        return None
    message = without_controls(phrase(str(error))) if isinstance(error, NeardupeError) else ""
    return {"kind": type(error).__name__, "message": message, "request": getattr(error, "request", "") or None}


def _seconds(run: CommandRun) -> float:
    return round(time.monotonic() - run.clock, 3)


def _arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments to log; without the password in a URL."""
    from es_neardupe.server.login.settings import split_url

    found = loggable_arguments(arguments)
    if "url" in found:
        try:
            found["url"] = split_url(found["url"])[0]
        except SettingsError:
            found["url"] = "(unreadable)"
    return found
