"""Sources of connection settings, and the servers to which secrets are sent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from es_neardupe.errors import SettingsError
from es_neardupe.server.login.resolve import resolve_settings
from es_neardupe.server.login.settings import ConnectionSettings, ConnectionWarning

NOWHERE = Path("/nonexistent/profiles.toml")


def resolved(environ: dict[str, str] | None = None, file: Path = NOWHERE, **flags: Any) -> ConnectionSettings:
    return resolve_settings(environ=environ or {}, profiles_file=file, **flags)


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    return str(file)


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    file = tmp_path / "profiles.toml"
    file.write_text(
        '[default]\nurl = "http://default:9200"\napi_key = "default-key"\n'
        '[prod]\nurl = "https://prod"\nusername = "bob"\npassword = "bobpw"\ntimeout = 5\n'
        '[login]\napi_key = "login-key"\n'
    )
    file.chmod(0o600)
    return file


def shown(settings: ConnectionSettings) -> tuple[str | None, str | None, str | None, str | None]:
    return settings.url, settings.api_key, settings.username, settings.password


@pytest.mark.parametrize(
    ("environ", "flags", "expected"),
    [
        ({}, {}, (None, None, None, None)),
        ({}, {"url": "http://h:9200/"}, ("http://h:9200", None, None, None)),
        ({}, {"url": "https://u:p%40w@h/es/"}, ("https://h/es", None, "u", "p@w")),
        ({"ES_API_KEY": "k"}, {"url": "http://h"}, ("http://h", "k", None, None)),
        ({"ES_URL": "http://h", "ES_API_KEY": "k"}, {}, ("http://h", "k", None, None)),
        ({"ELASTICSEARCH_URL": "http://h"}, {}, ("http://h", None, None, None)),
        (
            {"OPENSEARCH_URL": "http://h", "OPENSEARCH_USERNAME": "u", "OPENSEARCH_PASSWORD": "p"},
            {},
            ("http://h", None, "u", "p"),
        ),
        ({"ES_NEARDUPE_URL": "http://a", "ES_URL": "http://b"}, {}, ("http://a", None, None, None)),
        # The key belongs to the server of the same source, not to the one of the flag...
        (
            {"ES_URL": "http://h", "ES_API_KEY": "k"},
            {"url": "http://evil"},
            ("http://evil", None, None, None),
        ),
        # ...unless it is the same one.
        ({"ES_URL": "http://h", "ES_API_KEY": "k"}, {"url": "http://H/"}, ("http://h", "k", None, None)),
        (
            {"ES_NEARDUPE_URL": "http://a", "ES_URL": "http://b", "ES_USERNAME": "u", "ES_PASSWORD": "p"},
            {},
            ("http://a", None, None, None),
        ),
        (
            {"ES_NEARDUPE_API_KEY": "mine", "ES_API_KEY": "other"},
            {"url": "http://h"},
            ("http://h", "mine", None, None),
        ),
        (
            {"ES_NEARDUPE_PASSWORD": "p"},
            {"url": "http://h", "username": "u"},
            ("http://h", None, "u", "p"),
        ),
        (  # a flag's user name is not combined with the password of another source, or with a key
            {"ES_NEARDUPE_PASSWORD": "p", "ES_API_KEY": "k", "ES_NEARDUPE_USERNAME": "bob"},
            {"url": "http://u:pw@h"},
            ("http://h", None, "u", "pw"),
        ),
        ({"ES_API_KEY": "k"}, {}, (None, None, None, None)),  # no server to send it to
        ({"ES_LOCAL_API_KEY": "k"}, {"url": "http://h"}, ("http://h", None, None, None)),
        (
            {"ES_LOCAL_URL": "http://l:9200", "ES_LOCAL_API_KEY": "k", "ES_LOCAL_PASSWORD": "p"},
            {},
            ("http://l:9200", "k", None, None),
        ),
        (
            {"ES_LOCAL_URL": "http://l:9200", "ES_LOCAL_PASSWORD": "p"},
            {},
            ("http://l:9200", None, "elastic", "p"),
        ),
        ({"ES_URL": "", "ES_API_KEY": ""}, {}, (None, None, None, None)),
        ({"ES_URL": "rubbish"}, {"url": "http://h"}, ("http://h", None, None, None)),
    ],
)
def test_sources(environ: dict[str, str], flags: dict[str, Any], expected: tuple[str | None, ...]) -> None:
    assert shown(resolved(environ, **flags)) == expected


@pytest.mark.parametrize(
    ("environ", "flags", "words"),
    [
        ({"ES_NEARDUPE_API_KEY": "SECRET", "ES_URL": "http://h"}, {}, "only the environment names the server"),
        ({"ES_URL": "http://h", "ES_API_KEY": "SECRET", "ES_PASSWORD": "SECRET"}, {}, "keep one of them"),
        ({"ES_NEARDUPE_URL": "http://u:SECRET@h", "ES_NEARDUPE_API_KEY": "k"}, {}, "keep one of them"),
        ({"ES_URL": "http://a", "OPENSEARCH_URL": "http://b"}, {}, "ES_URL and OPENSEARCH_URL differ"),
        ({"ES_URL": "http://a", "ES_CLOUD_ID": "x:y"}, {}, "cloud ID"),
        ({"ES_URL": "localhost:9200"}, {}, "must look like"),
        ({"ES_URL": "http://u:SECRET@host:port"}, {}, "is invalid: its host or its port"),
        ({}, {"url": "http://h/?x=1"}, "without"),
        ({}, {"url": "http://h", "username": "u"}, "The password is missing"),
        ({"ES_USERNAME": "bob", "ES_PASSWORD": "SECRET"}, {"url": "http://h", "username": "u"}, "missing"),
        ({}, {"url": "http://h", "timeout": 0}, "more than 0"),
        ({"ES_NEARDUPE_TIMEOUT": "soon"}, {}, "number of seconds"),
        ({"ES_NEARDUPE_INSECURE": "maybe"}, {}, "true or false"),
        ({}, {"url": "http://h", "api_key_file": "/nonexistent"}, "(?i)no such file"),
        ({}, {"url": "https://h", "ca_certs": "/nonexistent"}, "PEM"),
        ({}, {"url": "http://h", "profile": "nope"}, "no profile 'nope'"),
        ({"ES_NEARDUPE_PASSWORD": "SECRET", "ES_NEARDUPE_PASSWORD_FILE": "f"}, {}, "keep one of them"),
    ],
)
def test_refused(environ: dict[str, str], flags: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        resolved(environ, **flags)
    assert "SECRET" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_key_file_goes_with_the_url_of_the_command_line(key_file: str) -> None:
    assert resolved(url="http://h", api_key_file=key_file).api_key == "from-file"


def test_key_file_does_not_go_to_a_server_of_the_environment(key_file: str) -> None:
    with pytest.raises(SettingsError, match="the same place"):
        resolved({"ES_URL": "http://h"}, api_key_file=key_file)


def test_key_file_without_any_server(key_file: str) -> None:
    with pytest.raises(SettingsError, match="Give `url`"):
        resolved(api_key_file=key_file)


def test_empty_key_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\n")
    with pytest.raises(SettingsError, match="empty"):
        resolved(url="http://h", api_key_file=str(tmp_path / "key"))


@pytest.mark.parametrize(
    ("environ", "flags", "expected"),
    [
        ({}, {}, ("http://default:9200", "default-key", None, None)),
        ({"ES_URL": "http://e"}, {}, ("http://e", None, None, None)),
        ({"ES_URL": "http://e"}, {"profile": "prod"}, ("https://prod", None, "bob", "bobpw")),
        ({"ES_NEARDUPE_PROFILE": "prod"}, {}, ("https://prod", None, "bob", "bobpw")),
        (
            {"ES_NEARDUPE_PROFILE": "prod"},
            {"profile": "default"},
            ("http://default:9200", "default-key", None, None),
        ),
        ({}, {"profile": "login", "url": "http://h"}, ("http://h", "login-key", None, None)),
        ({}, {"url": "http://h"}, ("http://h", None, None, None)),
    ],
)
def test_profiles(
    profiles: Path, environ: dict[str, str], flags: dict[str, Any], expected: tuple[str | None, ...]
) -> None:
    assert shown(resolved(environ, profiles, **flags)) == expected


def test_other_settings_of_a_profile(profiles: Path) -> None:
    assert resolved(file=profiles, profile="prod").timeout == 5
    assert resolved({"ES_NEARDUPE_TIMEOUT": "7"}, profiles, profile="default").timeout == 7
    assert resolved(file=profiles).timeout == 60


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[default\n", "line 1"),
        ('[default]\nurll = "http://h"\n', "unknown key 'urll'"),
        ("[default]\nurl = 3\n", "must be of type str"),
        ("[default]\ntimeout = true\n", "must be of type float"),
        ("default = 3\n", "is not a table"),
    ],
)
def test_bad_profiles(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "profiles.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=words):
        resolved(file=file)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_warns_of_a_profile_that_others_can_read(profiles: Path) -> None:
    profiles.chmod(0o644)
    with pytest.warns(ConnectionWarning, match="chmod 600"):
        resolved(file=profiles)


def test_insecure_flag_beats_certificates_of_the_environment() -> None:
    settings = resolved({"ES_NEARDUPE_CA_CERTS": "/nonexistent"}, url="https://h", insecure=True)
    assert (settings.verify, settings.ca_certs) == (False, None)


def test_insecure_beats_certificates_of_the_same_source() -> None:
    own = {"URL": "https://a", "CA_CERTS": "ca.pem", "CERT_FINGERPRINT": "ab" * 32, "INSECURE": "true"}
    found = resolved({f"ES_NEARDUPE_{name}": value for name, value in own.items()})
    assert (found.verify, found.ca_certs, found.cert_fingerprint) == (False, None, None)


def test_secrets_are_not_shown() -> None:
    settings = [
        ConnectionSettings("http://h", api_key="SECRET"),
        ConnectionSettings("http://h", username="u", password="SECRET"),
        ConnectionSettings("http://u:SECRET@h"),
    ]
    assert "SECRET" not in repr(settings)
    assert settings[2].password == "SECRET"


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://u:SECRET@h", "api_key": "k"},
        {"url": "http://h", "api_key": "k", "username": "u", "password": "SECRET"},
        {"url": "http://h", "password": "SECRET"},
        {"url": "http://h", "api_key": "SECRET\n"},
        {"url": "http://h", "cloud_id": "x"},
        {"url": "ftp://h"},
        {"url": "https://h", "verify": False, "ca_certs": "x"},
    ],
)
def test_contradictions(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        ConnectionSettings(**wrong)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "flags", "token"),
    [
        ({"ES_NEARDUPE_URL": "https://h", "ES_NEARDUPE_BEARER_TOKEN": "t"}, {}, "t"),
        ({"ES_NEARDUPE_BEARER_TOKEN": "t"}, {"url": "https://h"}, "t"),
        ({"ES_NEARDUPE_URL": "https://h", "ES_NEARDUPE_BEARER_TOKEN": "t"}, {"url": "https://other"}, None),
        ({"ES_URL": "https://h", "ES_API_KEY": "k", "ES_NEARDUPE_BEARER_TOKEN": "t"}, {"url": "https://h"}, "t"),
        ({"ES_NEARDUPE_BEARER_TOKEN": "t"}, {"url": "https://u:p@h"}, None),
        ({}, {"profile": "token"}, "profile-token"),
    ],
)
def test_bearer_tokens(environ: dict[str, str], flags: dict[str, Any], token: str | None, tmp_path: Path) -> None:
    """As API keys: sent to the server of the same source, or of one with higher precedence."""
    file = tmp_path / "profiles.toml"
    (tmp_path / "token").write_text("profile-token\n")
    file.write_text(f'[token]\nurl = "https://h"\nbearer_token_file = "{tmp_path / "token"}"\n')
    settings = resolved(environ, file, **flags)
    assert (settings.bearer_token, settings.api_key) == (token, None)


def test_bearer_token_file(key_file: str) -> None:
    assert resolved(url="http://h", bearer_token_file=key_file).bearer_token == "from-file"
    with pytest.raises(SettingsError, match="an API key and a bearer token are given"):
        resolved(url="http://h", bearer_token_file=key_file, api_key_file=key_file)


def test_certificates_of_a_profile_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "profiles.toml"
    file.write_text(
        f'[p]\nurl = "https://h"\nclient_cert = "a.pem"\nclient_key = "a.key"\ncert_fingerprint = "{"AB" * 32}"\n'
    )
    settings = resolved(file=file, profile="p")
    assert (settings.client_cert, settings.client_key, settings.cert_fingerprint) == ("a.pem", "a.key", "ab" * 32)
    stronger = resolved({"ES_NEARDUPE_CLIENT_CERT": "b.pem"}, file, profile="p")
    assert stronger.client_cert == "a.pem"
    environ = {
        "ES_NEARDUPE_CLIENT_CERT": "b.pem",
        "ES_NEARDUPE_CERT_FINGERPRINT": "cd" * 32,
        "ES_NEARDUPE_URL": "https://e",
    }
    flags: dict[str, Any] = {"client_cert": "c.pem", "client_key": "c.key"}
    settings = resolved(environ, file, **flags)
    assert (settings.client_cert, settings.client_key, settings.cert_fingerprint) == ("c.pem", "c.key", "cd" * 32)
    assert resolved(environ, file).client_key is None
    assert resolved(environ, file, insecure=True).cert_fingerprint is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
@pytest.mark.parametrize("secret", ["api_key", "password", "bearer_token"])
def test_warns_of_each_secret_that_others_can_read(tmp_path: Path, secret: str) -> None:
    file = tmp_path / "profiles.toml"
    name = '\nusername = "u"' if secret == "password" else ""
    file.write_text(f'[default]\nurl = "https://h"\n{secret} = "s"{name}\n')
    file.chmod(0o640)
    with pytest.warns(ConnectionWarning, match="chmod 600"):
        resolved(file=file)
    file.chmod(0o600)
    assert resolved(file=file).url == "https://h"
