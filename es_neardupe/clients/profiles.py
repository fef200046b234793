"""Profiles: named servers in a TOML file of the user's."""

from __future__ import annotations

import stat
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from es_neardupe.clients.settings import ConnectionWarning
from es_neardupe.clients.sources import Source, completed, os_words, secret
from es_neardupe.errors import SettingsError

__all__ = ["profile_source"]

_tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_PROFILE_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(["url", "cloud_id", "api_key", "api_key_file", "username"], (str,)),
    **dict.fromkeys(["password", "password_file", "bearer_token", "bearer_token_file"], (str,)),
    **dict.fromkeys(["ca_certs", "cert_fingerprint", "client_cert", "client_key"], (str,)),
    "insecure": (bool,),
    "timeout": (int, float),
}
_SECRETS = ("api_key", "password", "bearer_token")


def profile_source(file: Path, name: str | None) -> Source | None:
    """The profile of that name, which must exist; without a name, the one called default, if there is one.

    Warns (``ConnectionWarning``) if others may read a secret in the file.
    Raises ``SettingsError`` if the file or the profile is not as it should be.
    """
    profiles = _profiles(file)
    if name is not None and name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise SettingsError(f"There is no profile '{name}' in {file} (there: {known}).")
    table = profiles.get(name or "default")
    if table is None:
        return None
    words = _checked_profile(table, f"Profile '{name or 'default'}' in {file}")
    if words.keys() & set(_SECRETS):
        _warn_if_open(file)
    label = f"profile '{name or 'default'}'"
    secrets = {key: secret(words.get(key), words.pop(f"{key}_file", None), f"{key} of {label}") for key in _SECRETS}
    return completed(Source(**{**words, **secrets, "name": label}))


def _profiles(file: Path) -> dict[str, Any]:
    try:
        profiles: dict[str, Any] = _tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"The profiles in {file} cannot be read: {os_words(error)}.") from error
    except RecursionError as error:
        raise SettingsError(f"The profiles in {file} are nested too deeply.") from error
    except ValueError as error:  # of tomllib and Unicode: they say where, not what stands there
        raise SettingsError(f"The profiles in {file} cannot be read: {error}.") from error
    return profiles


def _checked_profile(table: object, name: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise SettingsError(f"{name} is not a table ([name], then key = value).")
    for key, value in table.items():
        if key not in _PROFILE_TYPES:
            raise SettingsError(f"{name}: unknown key '{key}'; known are {', '.join(sorted(_PROFILE_TYPES))}.")
        wanted = _PROFILE_TYPES[key]
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise SettingsError(f"{name}: {key} must be of type {wanted[-1].__name__}.")
    return dict(table)


def _warn_if_open(file: Path) -> None:
    if sys.platform != "win32" and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        warnings.warn(
            f"{file} holds a secret and other users may read it: chmod 600 it.",
            ConnectionWarning,
            stacklevel=2,
        )
