"""Requests signed by AWS Signature Version 4: a proxy checks each, in front of the local OpenSearch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from botocore.credentials import Credentials
from conftest import Cli
from managed_proxies import DomainProxy
from server_tools import family, put
from signature_proxy import REGION, served

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Forbidden, NotFound, SettingsError
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.resolve import resolve_settings
from es_neardupe.server.login.settings import AwsLogin, ConnectionSettings, Retries

pytestmark = [pytest.mark.server, pytest.mark.product("opensearch")]

AWS = AwsLogin(REGION, None)


@pytest.fixture
def proxy(server_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[DomainProxy]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKID",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_SESSION_TOKEN": "a-token",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    with served(DomainProxy(server_url)) as proxy:
        proxy.keys["AKID"] = Credentials("AKID", "a-secret", "a-token")
        yield proxy


def signed(proxy: DomainProxy, aws: AwsLogin = AWS) -> Client:
    return connect(ConnectionSettings(proxy.url, aws=aws, retries=Retries(attempts=1)))


def test_every_command(proxy: DomainProxy, index_name: str, client: Client, server_cli: Cli, tmp_path: Path) -> None:
    """No request is refused, of those with lists, blanks and signs in their queries neither."""
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"id": f"a b/{n}+ä", "text": t}) + "\n" for n, t in enumerate(family("x", 4))))
    login = ("--url", proxy.url, "--aws-region", REGION)
    for words in (
        ("init", index_name, "--field", "text", "--create"),
        ("load", index_name, str(file)),
        ("enrich", index_name),
        ("group", index_name),
        ("groups", index_name),
        ("similar", index_name, "--id", "a b/0+ä"),
        ("search", index_name, "x y"),
        ("pairs", index_name),
        ("stats", index_name),
        ("doctor", index_name),
        ("audit", index_name),
        ("clean", index_name, "--yes"),
    ):
        done = server_cli(*words, *login)
        assert done.code == 0, (words, done.err)
    done = server_cli("stats", index_name, *login, "--log-level", "debug", "--log-format", "json")
    assert '"request"' in done.err
    assert not any(secret in done.out + done.err for secret in ("a-secret", "a-token", "AWS4-HMAC", "Signature="))
    assert (proxy.refused, set(proxy.used)) == ([], {"AKID"})


def test_credentials_that_expire_are_renewed(
    proxy: DomainProxy, index_name: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of the user prints keys, others each time; each is valid for one request only."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    count = tmp_path / "count"
    program = tmp_path / "program.sh"
    soon = (datetime.now(timezone.utc) + timedelta(minutes=3)).isoformat()  # renewed before each request from then on
    program.write_text(
        f"""#!/bin/sh
echo >> {count}
number=$(wc -l < {count} | tr -d ' ')
cat <<END
{{"Version": 1, "AccessKeyId": "K$number", "SecretAccessKey": "s", "SessionToken": "t",
 "Expiration": "{soon}"}}
END
"""
    )
    program.chmod(0o700)
    (tmp_path / "config").write_text(f"[profile short]\ncredential_process = {program}\nregion = {REGION}\n")
    proxy.keys = {f"K{number}": Credentials(f"K{number}", "s", "t") for number in range(1, 100)}
    proxy.most_uses = 1
    opened = signed(proxy, AwsLogin(None, "short"))
    put(client, index_name, {"a": {"text": "one two three four five six"}})
    NearDupe(index_name, opened).init(Settings(("text",)))
    NearDupe(index_name, opened).enrich()
    assert proxy.refused == []
    assert len(proxy.used) > 10
    proxy.most_uses = 0
    with pytest.raises(Forbidden, match="have expired: log in again"):
        opened.request("GET", "/_all/_mapping")
    opened.close()


def test_errors_say_what_to_do(proxy: DomainProxy) -> None:
    opened = signed(proxy)
    for keys, fast, advice in (
        ({}, 0, "have expired: log in again"),
        ({"AKID": Credentials("AKID", "other", "a-token")}, 0, "Check the secret key of AWS, and the region"),
        ({"AKID": Credentials("AKID", "a-secret", "a-token")}, 6, "Set the clock of this machine"),
    ):
        proxy.keys, proxy.fast = keys, timedelta(minutes=fast)
        with pytest.raises(Forbidden, match=advice) as refused:
            opened.request("GET", "/_all/_mapping")
        assert "a-secret" not in str(refused.value)
    opened.close()


def test_a_document_that_is_too_large(
    proxy: DomainProxy, index_name: str, client: Client, server_cli: Cli, tmp_path: Path
) -> None:
    """It is counted; the others of its request are written."""
    file = tmp_path / "texts.jsonl"
    texts = {"small": {"text": "one two"}, "large": {"text": "one two three", "other": "x" * 11_000_000}}
    file.write_text("".join(json.dumps({"id": id, **one}) + "\n" for id, one in texts.items()))
    login = ("--url", proxy.url, "--aws-region", REGION)
    assert server_cli("init", index_name, "--field", "text", "--create", *login).code == 0
    done = server_cli("load", index_name, str(file), "--json", *login)
    assert (done.json["writes"]["written"], done.json["writes"]["refused"]) == (1, 1), done.err
    assert "Request size exceeded 10485760 bytes" in done.out


def test_the_settings_of_a_profile(tmp_path: Path) -> None:
    file = tmp_path / "profiles.toml"
    file.write_text(f'[search]\nurl = "http://a"\naws_region = "{REGION}"\naws_service = "aoss"\naws_profile = "p"\n')
    settings = resolve_settings(environ={}, profiles_file=file, profile="search")
    assert settings.aws == AwsLogin(REGION, "p", "aoss")
    assert settings.options is not None  # for the workers of an engine, which find the keys by themselves
    assert resolve_settings(environ={}, profiles_file=file, **settings.options).aws == settings.aws


def test_unsigned_requests(proxy: DomainProxy) -> None:
    with pytest.raises(Forbidden, match="Sign the requests: name a profile of AWS by `aws_profile`"):
        connect(ConnectionSettings(proxy.url, retries=Retries(attempts=1)))


def test_a_path_that_the_service_does_not_offer_is_missing(proxy: DomainProxy) -> None:
    """Amazon answers 401 for it, which is no refused login."""
    opened = signed(proxy)
    with pytest.raises(NotFound, match="is not allowed"):
        opened.request("GET", "/_plugins/_security/authinfo")
    opened.close()


def test_settings_of_aws(proxy: DomainProxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert AwsLogin().region_of("https://search-news-abc.us-gov-west-1.es.amazonaws.com:443") == "us-gov-west-1"
    assert AwsLogin().region_of("https://search.example:443") is None
    assert AwsLogin().service_of("https://abc.eu-central-1.aoss.amazonaws.com:443") == "aoss"
    assert AwsLogin().service_of("https://search.example:443") == "es"
    own = {"ES_NEARDUPE_URL": "http://a", "ES_NEARDUPE_AWS_PROFILE": "p"}
    assert resolve_settings(environ=own, profiles_file=tmp_path / "none").aws == AwsLogin(None, "p")
    with pytest.raises(SettingsError, match="An API key and signatures of AWS are given"):
        ConnectionSettings("http://a", api_key="x", aws=AWS)
    with pytest.raises(SettingsError, match=r"`aws_service` must be es .* not 'ec2'"):
        AwsLogin(REGION, None, "ec2")
    with pytest.raises(SettingsError, match="give `aws_region`"):
        signed(proxy, AwsLogin(None, None))
    with pytest.raises(SettingsError, match="The config profile"):
        signed(proxy, AwsLogin(REGION, "unknown"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(SettingsError, match="There are no credentials of AWS"):
        signed(proxy)
