"""From flags, environment and profiles to one :class:`ConnectionSettings`.

The rule for secrets: a login goes to the server that its own source names. A login from a source that names
no server goes to a server named by the same or a stronger source, never to one named by a weaker source, and
never to a local node that was merely found.
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
    """Where profiles are looked for, on this system."""
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

    ``url`` is None in the result where nothing names a server. ``run`` names the run in its requests.
    May warn (``ConnectionWarning``). Raises ``SettingsError`` for contradictions, and rather than send a secret where
    it may not belong.
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
    fitting = [s for s in sources if not s.names_server or _same_server(s, chosen)]
    for source in fitting:
        if source.problem:
            raise SettingsError(source.problem)
    trust = next((s for s in fitting if s.names_trust), chosen)
    shown = next((s for s in fitting if s.client_cert or s.client_key), chosen)
    return ConnectionSettings(
        url=chosen.url,
        cloud_id=chosen.cloud_id,
        ca_certs=None if trust.insecure else trust.ca_certs,
        cert_fingerprint=None if trust.insecure else trust.cert_fingerprint,
        client_cert=shown.client_cert,
        client_key=shown.client_key,
        verify=not trust.insecure,
        timeout=_timeout(fitting),
        **_login(fitting, chosen),
    )


def _without_server(sources: Sequence[Source]) -> ConnectionSettings:
    flags = sources[0]
    if flags.problem:
        raise SettingsError(flags.problem)
    if flags.has_secret:
        raise SettingsError("The command line gives a login, but nothing names the server: give --url.")
    return ConnectionSettings(timeout=_timeout(sources))


def _login(fitting: Sequence[Source], chosen: Source) -> dict[str, Any]:
    username = _first(fitting, lambda s: s.username)
    for source in fitting:
        if (source.api_key or source.bearer_token) and not _names_user_before(fitting, source):
            _refuse_weaker(fitting, source, chosen)
            return {"api_key": source.api_key, "bearer_token": source.bearer_token}
        if source.password and source.username in {None, username}:
            _refuse_weaker(fitting, source, chosen)
            return {"username": username, "password": source.password}
    return {"username": username} if username else {}


def _names_user_before(fitting: Sequence[Source], source: Source) -> bool:
    """A stronger source wants a login by name, so this key or token is not what is meant."""
    return any(stronger.username for stronger in fitting[: fitting.index(source)])


def _refuse_weaker(fitting: Sequence[Source], source: Source, chosen: Source) -> None:
    if fitting.index(source) < fitting.index(chosen):
        raise SettingsError(
            f"The login comes from {source.name}, but the server is named by {chosen.name} only: "
            "name both in the same place, so that no secret goes to the wrong server."
        )


def _same_server(one: Source, other: Source) -> bool:
    return (one.url, one.cloud_id) == (other.url, other.cloud_id)


def _first(sources: Sequence[Source], what: Callable[[Source], _T | None]) -> _T | None:
    return next((value for source in sources if (value := what(source)) is not None), None)


def _timeout(sources: Sequence[Source]) -> float:
    found = _first(sources, lambda s: s.timeout)
    return ConnectionSettings().timeout if found is None else found
