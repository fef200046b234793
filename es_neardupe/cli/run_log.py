"""Log and summary of a run of a command: its name, its log options, and its events."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe.cli.output import printable, show_messages, without_controls
from es_neardupe.errors import InputError, NeardupeError, SettingsError
from es_neardupe.folders import check_file, replacing
from es_neardupe.json_results import plain
from es_neardupe.log_events import LOGGER, fields_of, is_logged, log_event, loggable_arguments, new_run

if TYPE_CHECKING:
    from es_neardupe.server.client import Client


class LogFormat(str, Enum):
    """Format of events."""

    TEXT = "text"
    JSON = "json"
    ECS = "ecs"


class LogLevel(str, Enum):
    """Minimum level to log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """The number of the level in `logging`."""
        return int(logging.getLevelName(self.value.upper()))


def configure(format: LogFormat, level: LogLevel, file: Path | None, context: Mapping[str, Any]) -> None:
    """Log events to stderr or to a file, each with the fields of ``context``. Raises `InputError` for a file that
    cannot be written.

    In JSON and ECS everything on stderr is an event. In text, messages are printed as they are, and the other events
    only with the level ``debug``. A file has all events.
    """
    reset()
    formatters = {LogFormat.TEXT: _TextLines, LogFormat.JSON: _JsonLines, LogFormat.ECS: _EcsLines}
    formatter = formatters[format](context)
    if file is not None:
        _add(_file_handler(file), formatter)
    elif format is not LogFormat.TEXT:
        _add(logging.StreamHandler(), formatter)
        show_messages(None)
        LOGGER.setLevel(level.number)
        return
    elif level is LogLevel.DEBUG:
        handler = logging.StreamHandler()
        handler.addFilter(lambda record: getattr(record, "event", "") not in {"message", "error"})
        _add(handler, formatter)
    show_messages(level.number)
    if LOGGER.handlers[1:]:  # in addition to the NullHandler
        LOGGER.setLevel(level.number)


def reset() -> None:
    """Undo `configure`."""
    for handler in LOGGER.handlers[:]:
        if not isinstance(handler, logging.NullHandler):
            LOGGER.removeHandler(handler)
            handler.close()
    LOGGER.setLevel(logging.NOTSET)
    LOGGER.propagate = True
    show_messages(logging.INFO)


def _add(handler: logging.Handler, formatter: logging.Formatter) -> None:
    handler.setFormatter(formatter)
    LOGGER.addHandler(handler)
    LOGGER.propagate = False  # the package of `mcp` adds a handler of its own to the root


def _file_handler(file: Path) -> logging.Handler:
    """Appends, and opens the file again when something like logrotate has moved it."""
    from logging.handlers import WatchedFileHandler

    try:
        return WatchedFileHandler(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"--log-file {file} cannot be written: {error.strerror or error}.") from error


class _JsonLines(logging.Formatter):
    """Formats an event as one line of JSON, in ASCII and without control characters."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        super().__init__()
        self._context = dict(context)

    def format(self, record: logging.LogRecord) -> str:
        event, fields = fields_of(record)
        head = {"time": _moment(record), "level": record.levelname.lower(), "event": event}
        return json.dumps({**head, **self._context, **fields}, default=str)


class _TextLines(_JsonLines):
    """Formats an event as time, level, name and fields."""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = fields_of(record)
        words = [f"{name}={json.dumps(value, default=str)}" for name, value in {**self._context, **fields}.items()]
        return without_controls(" ".join([_moment(record), record.levelname.lower(), event, *words]))


_ECS_NAMES = {
    "message": "message",
    "version": "service.version",
    "exit_code": "process.exit_code",
    "kind": "error.type",
    "error": "error.type",
    "request": "http.request.id",
    "method": "http.request.method",
    "path": "url.path",
    "status": "http.response.status_code",
}
"""Fields of events that Elastic Common Schema has, with their names there."""

_NANOSECONDS = {"seconds": 10**9, "milliseconds": 10**6}


class _EcsLines(_JsonLines):
    """Formats an event as one line of JSON with the fields of Elastic Common Schema.

    All other fields have names that begin with ``es_neardupe``, so that their types cannot conflict with those of ECS.
    """

    def __init__(self, context: Mapping[str, Any]) -> None:
        from ecs_logging import StdlibFormatter

        super().__init__(context)
        self._ecs = StdlibFormatter(exclude_fields=["log.original", "log.origin", "process.name", "process.thread"])

    def format(self, record: logging.LogRecord) -> str:
        event, fields = fields_of(record)
        known = {name: value for name, value in vars(record).items() if name not in ("event", "fields")}
        line = self._ecs.format_to_ecs(logging.makeLogRecord(known))
        _set(line, "event.action", event)
        _set(line, "service.name", "es-neardupe")
        for name, value in {**self._context, **fields}.items():
            if name == "run":
                _set(line, "trace.id", value)
            elif name in _NANOSECONDS:
                _set(line, "event.duration", round(value * _NANOSECONDS[name]))
            elif name == "arguments":  # options of several commands have the same name and different types
                _set(line, "es_neardupe.arguments", json.dumps(value, default=str))
            elif value is not None:
                _set(line, _ECS_NAMES.get(name, f"es_neardupe.{name}"), value)
        return json.dumps(line, default=str, sort_keys=True)  # with the time at the beginning


def _set(line: dict[str, Any], name: str, value: Any) -> None:
    """Set a field by its dotted name."""
    *parents, leaf = name.split(".")
    for parent in parents:
        line = line.setdefault(parent, {})
    line[leaf] = value


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
    """The log options of all commands with a connection."""


@dataclass
class CommandRun:
    """The current run."""

    command: str
    arguments: Mapping[str, Any]
    summary: Path | None = None
    name: str = field(default_factory=new_run)
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    clock: float = field(default_factory=time.monotonic)
    connection: Mapping[str, Any] = field(default_factory=dict)
    """The options of the connection."""
    stack: ExitStack = field(default_factory=ExitStack)
    """Closed at the end of the command, with the resources entered into it."""
    client: Client | None = None
    """The connection; None until it is open."""
    result: Any = None
    """The report; None until the command has one."""


_under_way: list[CommandRun] = []
"""The current run of this process, if any."""


def program_version() -> str:
    """The version of the installed package."""
    from importlib.metadata import version  # takes a tenth of the time of --help

    return version("es-neardupe")


def current() -> CommandRun | None:
    """The current run; None for a command without a connection."""
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
    """Begin a run. Raises `InputError` if its log or its summary cannot be written."""
    run = CommandRun(command, _arguments(arguments), None if summary is None else Path(summary))
    context = {"run": run.name, "command": command, "index": run.arguments.get("index")}
    configure(LogFormat(log_format), LogLevel(log_level), None if log_file is None else Path(log_file), context)
    if run.summary is not None:
        check_file(run.summary)
    _under_way[:] = [run]
    if is_logged(logging.INFO):
        log_event(logging.INFO, "started", version=program_version(), arguments=run.arguments)
    return run


def result(report: Any) -> None:
    """Keep the report of the current run for its summary."""
    if _under_way:
        _under_way[0].result = report


def end(code: int, error: BaseException | None = None) -> None:
    """End the current run, if any: log its end and write its summary. Raises `InputError` if that fails."""
    run = current()
    _under_way.clear()
    try:
        if run is not None:
            log_event(logging.INFO, "finished", exit_code=int(code), seconds=_seconds(run))
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
        "version": program_version(),
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
    message = printable(str(error)) if isinstance(error, NeardupeError) else ""
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
