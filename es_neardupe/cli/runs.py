"""A run of a command: what it is called in logs and requests, its log options, and the summary it may leave behind."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from es_neardupe.cli.logs import LogFormat, LogLevel, configure, reset
from es_neardupe.cli.output import plain, without_controls
from es_neardupe.clients import Client
from es_neardupe.clients.settings import split_url
from es_neardupe.errors import NeardupeError, SettingsError
from es_neardupe.events import new_run, told
from es_neardupe.report.files import check_file, replacing

__all__ = ["Run", "begin", "current", "end", "options", "result"]

_PANEL = "Log"

_SECRET = re.compile("password|passphrase|secret|token|api_key|header")
"""Options with such names hold what nobody else may read, unless they name the file with it."""

_TEXTS = {"text"}
"""Options that are texts."""


def options(
    *,
    log_format: Annotated[
        LogFormat,
        typer.Option(envvar="ES_NEARDUPE_LOG_FORMAT", help="How stderr is written.", rich_help_panel=_PANEL),
    ] = LogFormat.TEXT,
    log_level: Annotated[
        LogLevel, typer.Option(envvar="ES_NEARDUPE_LOG_LEVEL", help="What is told at least.", rich_help_panel=_PANEL)
    ] = LogLevel.INFO,
    log_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append the log to a file.", show_default=False, rich_help_panel=_PANEL),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write how the run ended, as JSON.", show_default=False, rich_help_panel=_PANEL
        ),
    ] = None,
) -> None:
    """The options of a run that all commands with a connection have."""


@dataclass
class Run:
    """What is known of the run under way."""

    command: str
    arguments: Mapping[str, Any]
    summary: Path | None = None
    name: str = field(default_factory=new_run)
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    clock: float = field(default_factory=time.monotonic)
    client: Client | None = None
    """The connection, once it is open."""
    result: Any = None
    """The report, once there is one."""


_under_way: list[Run] = []
"""The run of this process: none, or one."""


def current() -> Run | None:
    """The run under way; None for a command without a connection."""
    return _under_way[0] if _under_way else None


def begin(
    command: str,
    arguments: Mapping[str, Any],
    *,
    log_format: LogFormat = LogFormat.TEXT,
    log_level: LogLevel = LogLevel.INFO,
    log_file: Path | None = None,
    summary: Path | None = None,
) -> Run:
    """Begin a run. Raises `InputError` where its log or its summary cannot be written."""
    run = Run(command, _harmless(arguments), summary)
    context = {"run": run.name, "command": command, "index": arguments.get("index")}
    configure(log_format or LogFormat.TEXT, log_level or LogLevel.INFO, log_file, context)
    if summary is not None:
        check_file(summary)
    _under_way[:] = [run]
    told(logging.INFO, "started", version=version("es-neardupe"), arguments=run.arguments)
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
            told(logging.INFO, "finished", exit_code=code, seconds=_seconds(run))
            if run.summary is not None:
                _write(run.summary, _summary(run, code, error))
    finally:
        reset()


def _write(file: Path, summary: Mapping[str, Any]) -> None:
    with replacing(file) as stream:
        stream.write(json.dumps(summary, indent=2, default=str) + "\n")


def _summary(run: Run, code: int, error: BaseException | None) -> dict[str, Any]:
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
    message = without_controls(str(error)) if isinstance(error, NeardupeError) else ""
    return {"kind": type(error).__name__, "message": message, "request": getattr(error, "request", "") or None}


def _seconds(run: Run) -> float:
    return round(time.monotonic() - run.clock, 3)


def _harmless(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given, without logins and without texts, which may be those of documents."""
    given = {name: _told(name, plain(value)) for name, value in arguments.items() if value not in (None, (), [])}
    return json.loads(json.dumps(given, default=str))  # type: ignore[no-any-return]


def _told(name: str, value: Any) -> Any:
    if name == "url":
        try:
            return split_url(value)[0]
        except SettingsError:
            return "(unreadable)"
    if _SECRET.search(name) and not name.endswith("_file"):
        return "(hidden)"
    return f"({len(value)} characters)" if name in _TEXTS and isinstance(value, str) else value
