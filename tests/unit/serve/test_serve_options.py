"""Options of `serve` that decide who can reach it. No server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Cli

from es_neardupe.cli.serving import Serving
from es_neardupe.errors import SettingsError


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_no_tls(host: str) -> None:
    Serving(host, 0, None, None, None, None, plain_http=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "reviews.example", ""])
def test_other_hosts_need_tls_or_the_override(host: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--tls-cert and --tls-key, or --plain-http"):
        Serving(host, 0, None, None, None, None, plain_http=False)
    Serving(host, 0, None, None, None, None, plain_http=True)
    file = tmp_path / "one.pem"
    file.touch()
    Serving(host, 0, None, None, file, file, plain_http=False)


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="belong together"):
        Serving("0.0.0.0", 0, None, None, tmp_path, None, plain_http=False)
    with pytest.raises(SettingsError, match="is not a file"):
        Serving("0.0.0.0", 0, None, None, tmp_path, tmp_path, plain_http=False)


@pytest.mark.parametrize("token", ["", "short", "0123456789abcde", "with a line\nbreak in it", "ümlaut-0123456789"])
def test_weak_tokens_are_refused(token: str) -> None:
    with pytest.raises(SettingsError, match="at least 16 printable ASCII"):
        Serving("127.0.0.1", 0, token, None, None, None, plain_http=False)


def test_tokens_do_not_appear_in_messages(cli: Cli) -> None:
    ran = cli("serve", "news", "--url", "http://127.0.0.1:1", "--token", "secret-0123456789", "--log-level", "info")
    assert ran.code == 1
    assert "secret-0123456789" not in ran.out + ran.err
