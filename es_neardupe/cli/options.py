"""Options that several commands share, and the connection that most of them need."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import typer

from es_neardupe.cli import run_log
from es_neardupe.cli.output import warn
from es_neardupe.errors import IncompleteAnswer, NeardupeError, RequestError, SettingsError, Unreachable
from es_neardupe.index.settings import Settings
from es_neardupe.index.tuning import TuningWarning
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.resolve import resolve_settings
from es_neardupe.server.login.settings import ConnectionWarning
from es_neardupe.similarity.alignment import Matching
from es_neardupe.verification.criterion import DECIDING

__all__ = [
    "AsJson",
    "Batch",
    "DryRun",
    "IndexName",
    "MaxBucket",
    "MaxChars",
    "Min",
    "Prefix",
    "Query",
    "ShowRequests",
    "Tune",
    "Workers",
    "connect_to",
    "connectable",
    "connected",
    "deciding",
    "listed",
    "parameters_of",
    "parse_query",
    "resumable",
    "writing",
]


T = TypeVar("T", int, float)

_CONNECTION = "Connection"
_IN_THE_LIST = (
    "The URL on the command line holds a password, which the list of processes and the shell's history show: "
    "give it by --password-file or ES_NEARDUPE_PASSWORD."
)
_AGAIN = "Run the same command again: it goes on where it stopped."

IndexName = Annotated[
    str, typer.Argument(metavar="INDEX", help="Index, alias, data stream or pattern.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Prefix = Annotated[str, typer.Option("--prefix", help="Name of our object field in the documents.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Do everything but write.")]
ShowRequests = Annotated[
    int,
    typer.Option(
        "--show-requests", min=0, metavar="N", help="With --dry-run: show the first N requests, word for word."
    ),
]
Workers = Annotated[int, typer.Option("--workers", min=1, max=64, help="Bulk requests under way at a time.")]
Batch = Annotated[int, typer.Option("--batch", min=1, max=10_000, help="Documents in a bulk request.")]
Tune = Annotated[bool, typer.Option("--tune", help="Lower refresh interval and replicas for the run; needs `manage`.")]
MaxChars = Annotated[int, typer.Option("--max-chars", min=1, help="Longer texts get the state too_large, no keys.")]
Query = Annotated[
    str | None,
    typer.Option("--query", metavar="JSON", help="Scope as a query of the server's DSL, or @FILE.", show_default=False),
]
Min = Annotated[
    float | None,
    typer.Option("--min", help="Least exact similarity, in (0, 1].", show_default="the threshold of the index"),
]
MaxBucket = Annotated[
    int,
    typer.Option(
        "--max-bucket",
        min=2,
        help="Of more distinct texts sharing a key, compare each with about this many, and count what is left out.",
    ),
]

_Url = Annotated[str | None, typer.Option("--url", help="Address of the server.", rich_help_panel=_CONNECTION)]


def _connect(
    *,
    url: _Url = None,
    api_key_file: Annotated[
        str | None, typer.Option(help="File with the API key.", metavar="FILE", rich_help_panel=_CONNECTION)
    ] = None,
    username: Annotated[str | None, typer.Option(help="User name.", rich_help_panel=_CONNECTION)] = None,
    password_file: Annotated[
        str | None, typer.Option(help="File with the password.", metavar="FILE", rich_help_panel=_CONNECTION)
    ] = None,
    bearer_token_file: Annotated[
        str | None, typer.Option(help="File with a bearer token.", metavar="FILE", rich_help_panel=_CONNECTION)
    ] = None,
    ca_certs: Annotated[
        str | None, typer.Option(help="Certificates to trust (PEM).", metavar="FILE", rich_help_panel=_CONNECTION)
    ] = None,
    cert_fingerprint: Annotated[
        str | None,
        typer.Option(
            help="Trust only the certificate with this SHA-256, the server's or its authority's.",
            metavar="HEX",
            rich_help_panel=_CONNECTION,
        ),
    ] = None,
    client_cert: Annotated[
        str | None, typer.Option(help="Certificate to show (PEM).", metavar="FILE", rich_help_panel=_CONNECTION)
    ] = None,
    client_key: Annotated[
        str | None,
        typer.Option(help="Its key, if in another file (PEM).", metavar="FILE", rich_help_panel=_CONNECTION),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Do not check the server's certificate.", rich_help_panel=_CONNECTION)
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds to wait for an answer.", show_default="60", rich_help_panel=_CONNECTION),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Named settings of the profile file.", rich_help_panel=_CONNECTION)
    ] = None,
) -> Client:
    """Open the connection that the options, the environment or a profile describe, else to the local node."""
    return connect_to(
        url=url,
        api_key_file=api_key_file,
        username=username,
        password_file=password_file,
        bearer_token_file=bearer_token_file,
        ca_certs=ca_certs,
        cert_fingerprint=cert_fingerprint,
        client_cert=client_cert,
        client_key=client_key,
        insecure=insecure,
        timeout=timeout,
        profile=profile,
        local_url=_local_url,
    )


def connect_to(*, local_url: Callable[[], str | None], **flags: Any) -> Client:
    """A client as `resolve_settings` finds it, else on the node at ``local_url``; warnings become messages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConnectionWarning)
        run = run_log.current()
        settings = replace(resolve_settings(**flags), run=run.name if run else None)
        if urlsplit(flags.get("url") or "").password:
            warn(_IN_THE_LIST)
        client = connect(settings, local_url=local_url)
    for warning in caught:
        if issubclass(warning.category, ConnectionWarning):
            warn(str(warning.message))
    return client


def _local_url() -> str | None:
    from es_neardupe.local_server import control  # late: pydantic, which most commands do not need

    return next((one.url for one in control.running()), None)


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the connection options; its first parameter becomes the open client."""

    @wraps(command)
    def opened(open: Callable[[], Client], **given: Any) -> None:
        command(open(), **given)

    return connectable(opened)


def connectable(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that may do without a server: its first parameter becomes what opens the client."""
    own = parameters_of(command)[1:]
    connection, of_run = parameters_of(_connect), parameters_of(run_log.options)

    @wraps(command)
    def run(**given: Any) -> None:
        how = {one.name: given.pop(one.name) for one in of_run}
        begun = run_log.begin(command.__name__.replace("_", "-"), given, **how)
        options = {one.name: given.pop(one.name) for one in connection}
        with ExitStack() as stack:
            stack.enter_context(_telling())

            def open() -> Client:
                begun.client = stack.enter_context(closing(_connect(**options)))
                return begun.client

            command(open, **given)

    keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *connection, *of_run)]
    run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in keyword_only}
    return run


@contextmanager
def _telling() -> Iterator[None]:
    """Warnings about settings that an earlier run has lowered become messages."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", TuningWarning)
        shown = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, TuningWarning):
                warn(str(message))
            else:
                shown(message, category, *rest, **more)

        warnings.showwarning = tell
        yield


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters with their annotations as types. (`get_type_hints` of Python 3.10 hides options in Optional.)"""
    return list(inspect.signature(function, eval_str=True).parameters.values())


@contextmanager
def resumable() -> Iterator[None]:
    """Work that may be started again at any time: where the server fails it, the error says so."""
    try:
        yield
    except (Unreachable, IncompleteAnswer) as error:
        raise _of_same_request(type(error)(f"{error.args[0]} {_AGAIN}"), error) from error
    except RequestError as error:
        if error.status < 500:
            raise
        again = RequestError(f"{error.args[0]} {_AGAIN}", status=error.status, type=error.type, reason=error.reason)
        raise _of_same_request(again, error) from error


def _of_same_request(error: NeardupeError, before: NeardupeError) -> NeardupeError:
    error.request = before.request
    return error


def parse_query(text: str | None) -> dict[str, Any] | None:
    """The JSON object of ``--query``, given as it is or as ``@FILE``. Raises `SettingsError`."""
    if text is None:
        return None
    try:
        given = Path(text[1:]).read_text("utf-8") if text.startswith("@") else text
        query = json.loads(given, parse_constant=_no_constant)
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"--query cannot be read: {error}.") from error
    if isinstance(query, dict) and set(query) == {"query"}:
        query = query["query"]  # as a search body has it
    if not isinstance(query, dict) or not query:
        raise SettingsError('--query must be a JSON object such as {"term": {"language": "en"}}.')
    return query


def listed(kind: Callable[[str], T], what: str) -> Callable[[str | None], list[T] | None]:
    """A parser of numbers with commas between them."""

    def parse(text: str | None) -> list[T] | None:
        if text is None:
            return None
        try:
            return [kind(part) for part in text.split(",")]
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} is no list of {what} with commas between them.") from error

    return parse


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_PANEL = "Load on the cluster"


def _limits(
    *,
    max_rate: Annotated[
        float | None,
        typer.Option(help="Documents written a second at most.", show_default="no limit", rich_help_panel=_PANEL),
    ] = None,
    max_load: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Documents under way at most; fewer after refusals.",
            show_default="no limit",
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> None:
    """The options: see `Pace.limit`."""


def writing(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its load; its client keeps to them."""
    own, limits = parameters_of(command), parameters_of(_limits)

    @wraps(command)
    def run(client: Client, **given: Any) -> None:
        client.pace.limit(**{one.name: given.pop(one.name) for one in limits})
        command(client, **given)

    run.__signature__ = inspect.Signature([*own, *limits])  # type: ignore[attr-defined]
    return run


BY_THRESHOLD = {
    name: str(getattr(Settings, name)) for name in ("threshold", "detection", "shingle", "permutations", "agree")
}
Threshold = Annotated[
    float | None,
    typer.Option(help="Resemblance from which pairs must be found, in (0, 1].", show_default=BY_THRESHOLD["threshold"]),
]
Detection = Annotated[
    float | None,
    typer.Option(
        help="Share of the pairs exactly at the threshold that must be found.", show_default=BY_THRESHOLD["detection"]
    ),
]
Shingle = Annotated[int | None, typer.Option(help="Words in a shingle.", show_default=BY_THRESHOLD["shingle"])]
Permutations = Annotated[
    int | None,
    typer.Option(
        help="Slots of the signature: one byte each in every document.", show_default=BY_THRESHOLD["permutations"]
    ),
]
Agree = Annotated[
    int | None,
    typer.Option(
        help="Bands that candidates have to share; with --bands and --rows.", show_default=BY_THRESHOLD["agree"]
    ),
]
Bands = Annotated[int | None, typer.Option(help="Bands, instead of the chosen ones; with --rows.", show_default=False)]
Rows = Annotated[int | None, typer.Option(help="Rows of a band; with --bands.", show_default=False)]


_MEASURE = "Measure"

Max = Annotated[float, typer.Option("--max", help="Greatest exact similarity, in (0, 1].")]
MeasureName = Annotated[
    str,
    typer.Option(
        "--measure", metavar="|".join(one.value for one in DECIDING), help="What decides.", rich_help_panel=_MEASURE
    ),
]
MatchingName = Annotated[
    str | None,
    typer.Option(
        "--matching",
        metavar="|".join(one.value for one in Matching),
        help="How common passages are found, for jaccard and the containments.",
        show_default="literal",
        rich_help_panel=_MEASURE,
    ),
]
Features = Annotated[
    list[str],
    typer.Option(
        "--features",
        metavar="[FIELD:]SOURCE",
        help="For resemblance, weighted and bag: other features than shingles. Repeatable.",
        default_factory=list,
        show_default=False,
        rich_help_panel=_MEASURE,
    ),
]
Ngram = Annotated[
    int | None,
    typer.Option("--ngram", help="For bag: words in an n-gram, 1 to 7.", show_default="1", rich_help_panel=_MEASURE),
]
Whitespace = Annotated[
    bool,
    typer.Option("--whitespace", help="For bag: words as they stand between blanks.", rich_help_panel=_MEASURE),
]
Renew = Annotated[
    bool,
    typer.Option("--renew", help="Take the frequencies of features anew, where they count.", rich_help_panel=_MEASURE),
]
IgnoreCommon = Annotated[
    float | None,
    typer.Option(
        "--ignore-common",
        metavar="SHARE",
        help="Shingles that more than this share of the documents have do not count.",
        show_default=False,
        rich_help_panel=_MEASURE,
    ),
]


def _choice(
    *,
    measure: MeasureName = "resemblance",
    matching: MatchingName = None,
    min: Min = None,
    max: Max = 1.0,
    features: Features,
    ngram: Ngram = None,
    whitespace: Whitespace = False,
    renew: Renew = False,
    ignore_common: IgnoreCommon = None,
) -> None:
    """The options that say what decides: see `deciding`."""


def deciding(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of what decides, but for some, where its own parameters have ``choice``; it gets
    all of them in that, by their names."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        own = parameters_of(command)
        options = [parameter for parameter in parameters_of(_choice) if parameter.name not in without]
        place = next(number for number, parameter in enumerate(own) if parameter.name == "choice")

        @wraps(command)
        def run(client: Client, **given: Any) -> None:
            choice = {parameter.name: given.pop(parameter.name) for parameter in options}
            command(client, choice=choice, **given)

        run.__signature__ = inspect.Signature([*own[:place], *options, *own[place + 1 :]])  # type: ignore[attr-defined]
        return run

    return decorated
