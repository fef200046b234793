"""Connection settings resolved from flags, environment variables and profiles.

The rule for secrets: credentials are sent to the server that their own source names. Credentials from a source without
a server are sent to a server named by a source of higher precedence, never to one named by a source of lower
precedence, and never to a local server that was found running.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from platformdirs import user_config_dir

from es_neardupe.errors import SettingsError
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.server.login.options import CONNECTION_DEFAULTS, ConnectionOptions
from es_neardupe.server.login.settings import (
    AwsLogin,
    ConnectionSettings,
    ConnectionWarning,
    more_than_one_login,
    split_url,
)
from es_neardupe.wording import option

_T = TypeVar("_T")


def profiles_path() -> Path:
    """The profile file on this system."""
    return Path(user_config_dir("es-neardupe")) / "profiles.toml"


@with_defaults(CONNECTION_DEFAULTS)
def resolve_settings(
    *,
    run: str | None = None,
    environ: Mapping[str, str] | None = None,
    profiles_file: Path | None = None,
    **connection: Unpack[ConnectionOptions],
) -> ConnectionSettings:
    """The settings. Sources by precedence: flags, the profile named by a flag, ``ES_NEARDUPE_*``, the profile named
    there, common variables (``ES_URL``, say), the profile ``default``.

    ``url`` is None in the result if no source names a server. ``run`` names the run in its requests.
    May warn (``ConnectionWarning``). Raises ``SettingsError`` for contradictions, and for a secret that could be sent
    to the wrong server.
    """
    environ = os.environ if environ is None else environ
    file = profiles_file or profiles_path()
    settings = _settled(_ordered(_of_flags(connection), connection["profile"], environ, file))
    given = {name: _absolute(name, value) for name, value in connection.items() if value is not None}
    return replace(settings, run=run, options={**given, "url": settings.url, "run": run})


_FILES = ("api_key_file", "password_file", "bearer_token_file", "ca_certs", "client_cert", "client_key")


def _absolute(name: str, value: object) -> object:
    """The value of an option, for a process in another folder."""
    return str(Path(str(value)).expanduser().absolute()) if name in _FILES else value


def _of_flags(given: ConnectionOptions) -> Source:
    """The options as a source. Raises ``SettingsError`` for a secret that cannot be read."""
    source = Source(
        name="the command line",
        url=given["url"],
        api_key=first_line(given["api_key_file"]),
        username=given["username"],
        password=first_line(given["password_file"]),
        bearer_token=first_line(given["bearer_token_file"]),
        aws_region=given["aws_region"],
        aws_service=given["aws_service"],
        aws_profile=given["aws_profile"],
        ca_certs=given["ca_certs"],
        cert_fingerprint=given["cert_fingerprint"],
        client_cert=given["client_cert"],
        client_key=given["client_key"],
        insecure=given["insecure"] or None,
        timeout=given["timeout"],
    )
    return completed(source)


def _ordered(flags: Source, profile: str | None, environ: Mapping[str, str], file: Path) -> list[Source]:
    """The sources by precedence."""
    own, usual = own_source(environ), usual_sources(environ)
    named = profile_source(file, profile) if profile else None
    in_environment = environ.get("ES_NEARDUPE_PROFILE")
    if profile:
        order = [flags, named, own, *usual]
    elif in_environment:
        order = [flags, own, profile_source(file, in_environment), *usual]
    else:
        order = [flags, own, *usual, profile_source(file, None)]
    return [source for source in order if source is not None]


def _settled(sources: Sequence[Source]) -> ConnectionSettings:
    """The settings from sources by precedence."""
    chosen = next((source for source in sources if source.names_server), None)
    if chosen is None:
        return _without_server(sources)
    matching = [s for s in sources if not s.names_server or _same_server(s, chosen)]
    for source in matching:
        if source.problem:
            raise SettingsError(source.problem)
    trust = next((s for s in matching if s.names_trust), chosen)
    presented = next((s for s in matching if s.client_cert or s.client_key), chosen)
    return ConnectionSettings(
        url=chosen.url,
        cloud_id=chosen.cloud_id,
        ca_certs=None if trust.insecure else trust.ca_certs,
        cert_fingerprint=None if trust.insecure else trust.cert_fingerprint,
        client_cert=presented.client_cert,
        client_key=presented.client_key,
        verify=not trust.insecure,
        timeout=_timeout(matching),
        **_login(matching, chosen),
    )


def _without_server(sources: Sequence[Source]) -> ConnectionSettings:
    flags = sources[0]
    if flags.problem:
        raise SettingsError(flags.problem)
    if flags.has_secret:
        raise SettingsError(f"The command line has credentials, but no server. Give {option('url')}.")
    return ConnectionSettings(timeout=_timeout(sources))


def _login(matching: Sequence[Source], chosen: Source) -> dict[str, Any]:
    username = _first(matching, lambda s: s.username)
    for source in matching:
        if (source.api_key or source.bearer_token) and not _names_user_before(matching, source):
            _check_precedence(matching, source, chosen)
            return {"api_key": source.api_key, "bearer_token": source.bearer_token}
        if source.aws and not _names_user_before(matching, source):
            return {"aws": source.aws}
        if source.password and source.username in {None, username}:
            _check_precedence(matching, source, chosen)
            return {"username": username, "password": source.password}
    return {"username": username} if username else {}


def _names_user_before(matching: Sequence[Source], source: Source) -> bool:
    """Whether a source of higher precedence has a user name, so that this key or token does not apply."""
    return any(other.username for other in matching[: matching.index(source)])


def _check_precedence(matching: Sequence[Source], source: Source, chosen: Source) -> None:
    """Raise `SettingsError` if only a source of lower precedence than that of the credentials names the server."""
    if matching.index(source) < matching.index(chosen):
        raise SettingsError(
            f"The credentials come from {source.name}, but only {chosen.name} names the server. "
            "Give both in the same place, so that no secret is sent to the wrong server."
        )


def _same_server(one: Source, other: Source) -> bool:
    return (one.url, one.cloud_id) == (other.url, other.cloud_id)


def _first(sources: Sequence[Source], get: Callable[[Source], _T | None]) -> _T | None:
    return next((value for source in sources if (value := get(source)) is not None), None)


def _timeout(sources: Sequence[Source]) -> float:
    timeout = _first(sources, lambda s: s.timeout)
    return ConnectionSettings().timeout if timeout is None else timeout


@dataclass(frozen=True, slots=True)
class Source:
    """The settings of one source. ``name`` is for messages; ``problem`` is an error only if the source is used."""

    name: str
    url: str | None = None
    cloud_id: str | None = None
    api_key: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    bearer_token: str | None = field(default=None, repr=False)
    aws_region: str | None = None
    aws_service: str | None = None
    aws_profile: str | None = None
    ca_certs: str | None = None
    cert_fingerprint: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    insecure: bool | None = None
    timeout: float | None = None
    problem: str | None = None

    @property
    def names_server(self) -> bool:
        return self.url is not None or self.cloud_id is not None

    @property
    def has_secret(self) -> bool:
        return bool(self.api_key or self.password or self.bearer_token)

    @property
    def aws(self) -> AwsLogin | None:
        """The login by signatures of AWS, if it names one."""
        one = AwsLogin(self.aws_region, self.aws_profile, self.aws_service)
        return None if one == AwsLogin() else one

    @property
    def names_trust(self) -> bool:
        """Whether it has settings for checking the server's certificate."""
        return bool(self.ca_certs or self.cert_fingerprint) or self.insecure is not None


def own_source(environ: Mapping[str, str]) -> Source:
    """The variables of es-neardupe. Raises ``SettingsError`` for invalid values."""

    def value(name: str) -> str | None:
        return environ.get(f"ES_NEARDUPE_{name}") or None

    source = Source(
        name="ES_NEARDUPE_*",
        url=value("URL"),
        cloud_id=value("CLOUD_ID"),
        api_key=secret(value("API_KEY"), value("API_KEY_FILE"), "ES_NEARDUPE_API_KEY"),
        username=value("USERNAME"),
        password=secret(value("PASSWORD"), value("PASSWORD_FILE"), "ES_NEARDUPE_PASSWORD"),
        bearer_token=secret(value("BEARER_TOKEN"), value("BEARER_TOKEN_FILE"), "ES_NEARDUPE_BEARER_TOKEN"),
        aws_region=value("AWS_REGION"),
        aws_service=value("AWS_SERVICE"),
        aws_profile=value("AWS_PROFILE"),
        ca_certs=value("CA_CERTS"),
        cert_fingerprint=value("CERT_FINGERPRINT"),
        client_cert=value("CLIENT_CERT"),
        client_key=value("CLIENT_KEY"),
        insecure=_yes_or_no(value("INSECURE"), "ES_NEARDUPE_INSECURE"),
        timeout=_seconds(value("TIMEOUT"), "ES_NEARDUPE_TIMEOUT"),
    )
    return completed(source)


def usual_sources(environ: Mapping[str, str]) -> list[Source]:
    """The variables that other tools use, and those of Elastic's ``start-local``."""
    settings: dict[str, str | None] = {}
    problems: list[str] = []
    for setting, names in _USUAL_NAMES.items():
        values = {name: environ[name] for name in names if environ.get(name)}
        settings[setting] = next(iter(values.values()), None)
        if len(set(values.values())) > 1:
            problems.append(f"{' and '.join(values)} differ: unset one of them, or use ES_NEARDUPE_URL.")
    usual = Source("the environment", **settings, problem=next(iter(problems), None))  # type: ignore[arg-type]
    return [completed(usual), *_start_local(environ)]


_USUAL_NAMES = {
    "url": ("ES_URL", "ELASTICSEARCH_URL", "OPENSEARCH_URL"),
    "cloud_id": ("ES_CLOUD_ID", "ELASTIC_CLOUD_ID"),
    "api_key": ("ES_API_KEY", "ELASTICSEARCH_API_KEY"),
    "username": ("ES_USERNAME", "ELASTICSEARCH_USERNAME", "OPENSEARCH_USERNAME"),
    "password": ("ES_PASSWORD", "ELASTICSEARCH_PASSWORD", "OPENSEARCH_PASSWORD"),
}


def _start_local(environ: Mapping[str, str]) -> Iterable[Source]:
    """The variables of ``start-local``: an API key and a password of the same server. The key is preferred."""
    if not environ.get("ES_LOCAL_URL"):
        return
    source = Source("ES_LOCAL_*", url=environ["ES_LOCAL_URL"], api_key=environ.get("ES_LOCAL_API_KEY") or None)
    password = environ.get("ES_LOCAL_PASSWORD")
    if password and not source.api_key:
        source = replace(source, username="elastic", password=password)
    yield completed(source)


def completed(source: Source) -> Source:
    """The source with the credentials of its URL as user name and password, and with its ``problem``, if any."""
    if source.url is None:
        return _with_contradiction(source)
    try:
        url, username, password = split_url(source.url)
    except SettingsError as error:
        return replace(source, url="", problem=source.problem or f"In {source.name}: {error}")
    if username is None and password is None:
        return _with_contradiction(replace(source, url=url))
    problem = None
    if source.has_secret or source.username:
        problem = f"The URL in {source.name} contains credentials, and others are given too: keep one of them."
    return replace(source, url=url, username=username, password=password, problem=source.problem or problem)


def _with_contradiction(source: Source) -> Source:
    problem = None
    if more := more_than_one_login(source):
        problem = f"In {source.name}, {more} are given: keep one of them."
    elif source.url and source.cloud_id:
        problem = f"In {source.name}, both a URL and a cloud ID are given: keep one of them."
    return replace(source, problem=source.problem or problem)


def secret(value: str | None, file: str | None, name: str) -> str | None:
    """A secret, given as a value or as a file. Raises ``SettingsError`` if both are given."""
    if value and file:
        raise SettingsError(f"{name} is given as a value and as a file: keep one of them.")
    return value or first_line(file)


def first_line(file: str | None) -> str | None:
    """The secret in the first line of a file. Raises ``SettingsError`` if it cannot be read or is empty."""
    if file is None:
        return None
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SettingsError(f"The secret in {file} cannot be read: {_reason(error)}.") from error
    line = text.partition("\n")[0].rstrip("\r")
    if not line:
        raise SettingsError(f"The first line of {file} must contain a secret, but is empty.")
    return line


def _reason(error: Exception) -> str:
    """The system's message, or the kind of error; never the content of the file."""
    return str(error.strerror or error) if isinstance(error, OSError) else type(error).__name__


def _yes_or_no(value: str | None, name: str) -> bool | None:
    if value is None:
        return None
    if value.lower() in {"1", "true", "yes", "on"}:
        return True
    if value.lower() in {"0", "false", "no", "off"}:
        return False
    raise SettingsError(f"{name} must be true or false.")


def _seconds(value: str | None, name: str) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        raise SettingsError(f"{name} must be a number of seconds.") from None


_PROFILE_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(["url", "cloud_id", "api_key", "api_key_file", "username"], (str,)),
    **dict.fromkeys(["password", "password_file", "bearer_token", "bearer_token_file"], (str,)),
    **dict.fromkeys(["aws_region", "aws_service", "aws_profile", "ca_certs", "cert_fingerprint"], (str,)),
    **dict.fromkeys(["client_cert", "client_key"], (str,)),
    "insecure": (bool,),
    "timeout": (int, float),
}
_SECRETS = ("api_key", "password", "bearer_token")


def profile_source(file: Path, name: str | None) -> Source | None:
    """The profile with this name, which must exist; without a name, the profile ``default``, if there is one.

    Warns (``ConnectionWarning``) if other users can read a secret in the file.
    Raises ``SettingsError`` if the file or the profile is invalid.
    """
    profiles = _profiles(file)
    if name is not None and name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise SettingsError(f"There is no profile '{name}' in {file} (available: {known}).")
    table = profiles.get(name or "default")
    if table is None:
        return None
    words = _checked_profile(table, f"Profile '{name or 'default'}' in {file}")
    if words.keys() & set(_SECRETS):
        _warn_if_readable(file)
    label = f"profile '{name or 'default'}'"
    secrets = {key: secret(words.get(key), words.pop(f"{key}_file", None), f"{key} of {label}") for key in _SECRETS}
    return completed(Source(**{**words, **secrets, "name": label}))


def _profiles(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
        profiles: dict[str, Any] = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"The profiles in {file} cannot be read: {_reason(error)}.") from error
    except RecursionError as error:
        raise SettingsError(f"The profiles in {file} are nested too deeply.") from error
    except ValueError as error:  # of tomllib and Unicode: they name the place, not the content
        raise SettingsError(f"The profiles in {file} cannot be read: {error}.") from error
    return profiles


def _checked_profile(table: object, name: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise SettingsError(f"{name} is not a table ([name], then key = value).")
    for key, value in table.items():
        if key not in _PROFILE_TYPES:
            raise SettingsError(f"{name}: unknown key '{key}'. Allowed keys: {', '.join(sorted(_PROFILE_TYPES))}.")
        types = _PROFILE_TYPES[key]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise SettingsError(f"{name}: {key} must be of type {types[-1].__name__}.")
    return dict(table)


def _warn_if_readable(file: Path) -> None:
    if sys.platform != "win32" and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        warnings.warn(
            f"{file} contains a secret, and other users can read it: use chmod 600.",
            ConnectionWarning,
            stacklevel=2,
        )
