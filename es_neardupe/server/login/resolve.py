"""Connection settings resolved from flags, environment variables and profiles.

The rule for secrets: a login is sent to the server that its own source names. A login from a source that names no
server is sent to a server named by a stronger source, never to one named by a weaker source, and never to a local
server that was found running.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from platformdirs import user_config_dir

from es_neardupe.errors import SettingsError
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.login.sources import Source, completed, first_line, own_source, profile_source, usual_sources

__all__ = ["profiles_path", "resolve_settings"]

_T = TypeVar("_T")


def profiles_path() -> Path:
    """The profile file on this system."""
    return Path(user_config_dir("es-neardupe")) / "profiles.toml"


def resolve_settings(
    *,
    url: str | None = None,
    api_key_file: str | None = None,
    username: str | None = None,
    password_file: str | None = None,
    bearer_token_file: str | None = None,
    ca_certs: str | None = None,
    cert_fingerprint: str | None = None,
    client_cert: str | None = None,
    client_key: str | None = None,
    insecure: bool = False,
    timeout: float | None = None,
    profile: str | None = None,
    run: str | None = None,
    environ: Mapping[str, str] | None = None,
    profiles_file: Path | None = None,
) -> ConnectionSettings:
    """The settings. Strongest source first: flags, the profile named by a flag, ``ES_NEARDUPE_*``, the
    profile named there, the usual variables, the profile called default.

    ``url`` is None in the result if no source names a server. ``run`` names the run in its requests.
    May warn (``ConnectionWarning``). Raises ``SettingsError`` for contradictions, and for a secret that could be sent
    to the wrong server.
    """
    environ = os.environ if environ is None else environ
    file = profiles_file or profiles_path()
    flags = Source(
        name="the command line",
        url=url,
        api_key=first_line(api_key_file),
        username=username,
        password=first_line(password_file),
        bearer_token=first_line(bearer_token_file),
        ca_certs=ca_certs,
        cert_fingerprint=cert_fingerprint,
        client_cert=client_cert,
        client_key=client_key,
        insecure=insecure or None,
        timeout=timeout,
    )
    return replace(_settled(_ordered(completed(flags), profile, environ, file)), run=run)


def _ordered(flags: Source, profile: str | None, environ: Mapping[str, str], file: Path) -> list[Source]:
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
    chosen = next((source for source in sources if source.names_server), None)
    if chosen is None:
        return _without_server(sources)
    matching = [s for s in sources if not s.names_server or _same_server(s, chosen)]
    for source in matching:
        if source.problem:
            raise SettingsError(source.problem)
    trust = next((s for s in matching if s.names_trust), chosen)
    shown = next((s for s in matching if s.client_cert or s.client_key), chosen)
    return ConnectionSettings(
        url=chosen.url,
        cloud_id=chosen.cloud_id,
        ca_certs=None if trust.insecure else trust.ca_certs,
        cert_fingerprint=None if trust.insecure else trust.cert_fingerprint,
        client_cert=shown.client_cert,
        client_key=shown.client_key,
        verify=not trust.insecure,
        timeout=_timeout(matching),
        **_login(matching, chosen),
    )


def _without_server(sources: Sequence[Source]) -> ConnectionSettings:
    flags = sources[0]
    if flags.problem:
        raise SettingsError(flags.problem)
    if flags.has_secret:
        raise SettingsError("The command line gives a login, but no server: give `url`.")
    return ConnectionSettings(timeout=_timeout(sources))


def _login(matching: Sequence[Source], chosen: Source) -> dict[str, Any]:
    username = _first(matching, lambda s: s.username)
    for source in matching:
        if (source.api_key or source.bearer_token) and not _names_user_before(matching, source):
            _refuse_weaker(matching, source, chosen)
            return {"api_key": source.api_key, "bearer_token": source.bearer_token}
        if source.password and source.username in {None, username}:
            _refuse_weaker(matching, source, chosen)
            return {"username": username, "password": source.password}
    return {"username": username} if username else {}


def _names_user_before(matching: Sequence[Source], source: Source) -> bool:
    """Whether a stronger source gives a user name, so that this key or token is not meant."""
    return any(stronger.username for stronger in matching[: matching.index(source)])


def _refuse_weaker(matching: Sequence[Source], source: Source, chosen: Source) -> None:
    if matching.index(source) < matching.index(chosen):
        raise SettingsError(
            f"The login comes from {source.name}, but only {chosen.name} names the server: "
            "give both in the same place, so that no secret is sent to the wrong server."
        )


def _same_server(one: Source, other: Source) -> bool:
    return (one.url, one.cloud_id) == (other.url, other.cloud_id)


def _first(sources: Sequence[Source], what: Callable[[Source], _T | None]) -> _T | None:
    return next((value for source in sources if (value := what(source)) is not None), None)


def _timeout(sources: Sequence[Source]) -> float:
    found = _first(sources, lambda s: s.timeout)
    return ConnectionSettings().timeout if found is None else found
