"""Trust in a server's certificate, client certificates, and the credentials that the server receives; both drivers."""

from __future__ import annotations

import logging
import ssl
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_fixtures
import pytest
import truststore
from fake_servers import ROOT, Fake, error, opened, reply
from tls_tools import Pem, Shown, authority, forged, issue, locked

from es_neardupe.errors import CertificateRefused, LoginRefused, NeardupeError, SettingsError, Unreachable
from es_neardupe.records import Product
from es_neardupe.server.client import Client
from es_neardupe.server.login.settings import ConnectionSettings, ConnectionWarning
from es_neardupe.server.login.tls import context


@pytest.fixture(scope="module")
def shown() -> Shown:
    return authority("127.0.0.1")


@pytest.fixture
def pem(shown: Shown, tmp_path: Path) -> Pem:
    return issue(shown.ca, "anna", tmp_path)


Serve = Callable[..., Fake]


start, product = fake_fixtures.start, fake_fixtures.product


@pytest.fixture
def serve(start: Callable[..., Fake], shown: Shown, product: Product, tmp_path: Path) -> Serve:
    """Start a server with this certificate, which may require one of its clients."""

    def run(files: tuple[bytes, bytes] = shown.files, *, demand: bool = False) -> Fake:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for name, content in zip(("cert", "key"), files, strict=True):
            (tmp_path / name).write_bytes(content)
        context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
        if demand:
            context.verify_mode = ssl.CERT_REQUIRED
            shown.ca.configure_trust(context)
        fake = start(context)
        fake.on("GET /", ROOT[product])
        fake.on("GET /x", reply({"a": 1}))
        return fake

    return run


def answers(client: Client, product: Product) -> bool:
    assert client.server.product is product
    try:
        return bool(client.request("GET", "/x") == {"a": 1})
    finally:
        client.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only OpenSSL finds authorities by a variable")
def test_authorities_of_the_system(
    serve: Serve, shown: Shown, product: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server is trusted while the system trusts its authority, and by a file in addition to it; no other authority,
    such as those in a package, is trusted."""
    other = authority("127.0.0.1")
    system, files = tmp_path / "system.pem", tmp_path / "files.pem"
    system.write_bytes(other.ca.cert_pem.bytes())
    files.write_bytes(shown.ca.cert_pem.bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(system))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    fake, fake_of_other = serve(), serve(other.files)
    with pytest.raises(CertificateRefused, match=r"unable to get local issuer|self.signed"):
        opened(fake, api_key="key")
    assert fake.seen == []
    assert answers(opened(fake, ca_certs=str(files)), product)
    assert answers(opened(fake_of_other, ca_certs=str(files)), product)
    assert answers(opened(fake, cert_fingerprint=shown.of_authority), product)
    with pytest.raises(CertificateRefused, match="another fingerprint"):  # although the system trusts it
        opened(fake_of_other, cert_fingerprint=shown.of_authority)
    system.write_bytes(files.read_bytes())
    assert answers(opened(fake), product)
    with pytest.raises(CertificateRefused):
        opened(fake_of_other)


def test_only_the_authorities_of_the_system_are_asked() -> None:
    """On macOS and Windows, it is the system that checks."""
    made: Any = context(ConnectionSettings("https://search.example"))
    assert isinstance(made.inner, truststore.SSLContext)
    assert made.inner.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("whose", ["of_server", "of_authority"])
@pytest.mark.parametrize("colons", [False, True])
def test_fingerprints(serve: Serve, shown: Shown, product: Product, whose: str, colons: bool) -> None:
    wanted: str = getattr(shown, whose)
    if colons:
        wanted = ":".join(wanted[k : k + 2] for k in range(0, 64, 2)).upper()
    assert answers(opened(serve(), cert_fingerprint=wanted), product)


def test_another_fingerprint(serve: Serve, shown: Shown) -> None:
    fake = serve()
    with pytest.raises(CertificateRefused, match=f"another fingerprint: {shown.of_server}"):
        opened(fake, cert_fingerprint="ab" * 32, api_key="key")
    assert fake.seen == []  # no request was sent, so no credentials


def test_an_authority_vouches_for_names_too(serve: Serve, shown: Shown, product: Product) -> None:
    """Another server of the same authority is not accepted; with the server's own fingerprint, its name does not
    matter."""
    other = Shown(shown.ca, shown.ca.issue_cert("elsewhere.example"))
    fake = serve(other.files)
    with pytest.raises(CertificateRefused, match="mismatch"):
        opened(fake, cert_fingerprint=shown.of_authority)
    assert fake.seen == []
    assert answers(opened(fake, cert_fingerprint=other.of_server), product)


def test_who_shows_the_certificate_of_an_authority_is_not_it(serve: Serve, shown: Shown) -> None:
    fake = serve(forged(shown, "127.0.0.1"))
    with pytest.raises(CertificateRefused, match="signature"):
        opened(fake, cert_fingerprint=shown.of_authority, api_key="key")
    assert fake.seen == []


@pytest.mark.parametrize("trust", ["file", "fingerprint", "none"])
def test_a_client_certificate(
    serve: Serve, shown: Shown, pem: Pem, product: Product, trust: str, tmp_path: Path
) -> None:
    """It is presented however the server is trusted; without it, the message names the requirement."""
    fake = serve(demand=True)
    shown.ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    by: dict[str, dict[str, Any]] = {"file": {"ca_certs": str(tmp_path / "ca.pem")}, "none": {"verify": False}}
    settings = by.get(trust, {"cert_fingerprint": shown.of_authority})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert answers(opened(fake, **settings, client_cert=str(pem.cert), client_key=str(pem.key)), product)
        pem.cert.write_bytes(pem.cert.read_bytes() + pem.key.read_bytes())  # both in one file
        assert answers(opened(fake, **settings, client_cert=str(pem.cert)), product)
        seen = len(fake.seen)
        with pytest.raises((CertificateRefused, Unreachable)):  # if the connection is closed before its reason is read
            opened(fake, **settings)
    assert len(fake.seen) == seen


def test_files_that_cannot_be_used(serve: Serve, pem: Pem, shown: Shown, tmp_path: Path) -> None:
    fake = serve()
    other = issue(shown.ca, "berta", tmp_path)
    for cert, key in ((pem.cert, other.key), (tmp_path / "none", pem.key), (pem.key, None), (pem.cert, None)):
        with pytest.raises(SettingsError, match="cannot be used") as refused:
            opened(fake, cert_fingerprint=shown.of_server, client_cert=str(cert), client_key=key and str(key))
        assert "PRIVATE" not in str(refused.value)
    locked(pem.key, b"password")
    with pytest.raises(SettingsError, match="encrypted"):  # instead of a prompt at the terminal
        opened(fake, client_cert=str(pem.cert), client_key=str(pem.key), cert_fingerprint=shown.of_server)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"cert_fingerprint": "ab"}, "64 hexadecimal"),
        ({"cert_fingerprint": "xy" * 32}, "64 hexadecimal"),
        ({"cert_fingerprint": "ab" * 32, "verify": False}, "keep one"),
        ({"client_key": "x"}, "without the certificate"),
        ({"url": "http://h", "client_cert": "x"}, "needs TLS"),
        ({"url": "http://h", "cert_fingerprint": "ab" * 32}, "needs TLS"),
        ({"bearer_token": "SECRET", "api_key": "SECRET"}, "An API key and a bearer token are given"),
        ({"bearer_token": "SECRET", "username": "u", "password": "SECRET"}, "keep one"),
        ({"bearer_token": "SECRET\n"}, "character"),
    ],
)
def test_contradictions(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words) as refused:
        ConnectionSettings(**{"url": "https://h", **wrong})
    assert "SECRET" not in str(refused.value)


LOGINS = [
    ({"bearer_token": "s3cret.to-ken_"}, "Bearer s3cret.to-ken_"),
    ({"api_key": "czNjcmV0OmtleQ=="}, "ApiKey czNjcmV0OmtleQ=="),
    ({"api_key": "s3cret-id:s3cret-key"}, "ApiKey czNjcmV0LWlkOnMzY3JldC1rZXk="),
    ({"username": "änna", "password": "s3cret pässword"}, "Basic w6RubmE6czNjcmV0IHDDpHNzd29yZA=="),
]


@pytest.mark.parametrize(("login", "header"), LOGINS)
def test_what_the_server_receives(
    start: Callable[..., Fake], product: Product, login: dict[str, str], header: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The credentials in the header of each request, and in no driver log at any level."""
    caplog.set_level(logging.DEBUG)
    fake = start()
    fake.on("GET /", ROOT[product])
    fake.on("GET /x", None, reply({"a": 1}), error(401, "security_exception"))
    client = opened(fake, **login)
    assert client.request("GET", "/x") == {"a": 1}
    with pytest.raises(LoginRefused) as refused:
        client.request("GET", "/x")
    client.close()
    assert {headers.get("authorization") for _, headers, _ in fake.seen} == {header}
    shown = caplog.text + "".join(traceback.format_exception(refused.value)) + repr(client)
    assert len(caplog.records) > 3
    words = {word for value in (*login.values(), header.partition(" ")[2]) for word in value.split(":")} - {"änna"}
    assert [word for word in words if word in shown] == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("where", ["GET /", "GET /x"])
def test_redirects_are_not_followed(start: Callable[..., Fake], product: Product, where: str, status: int) -> None:
    """The other server receives nothing, so no credentials."""
    fake, other = start(), start()
    other.on("GET /", ROOT[product])
    fake.on("GET /", ROOT[product])
    fake.on(where, reply(b"", status, {"Location": f"{other.url}{where.partition(' ')[2]}"}))

    def use() -> None:
        opened(fake, api_key="s3cret-id:s3cret-key").request("GET", "/x")

    with pytest.raises(NeardupeError):
        use()
    assert fake.count(where) >= 1
    assert other.seen == []


@pytest.mark.parametrize("version", ["TLSv1_1", "TLSv1_2"])
def test_versions_of_tls(start: Callable[..., Fake], shown: Shown, tmp_path: Path, version: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name, content in zip(("cert", "key"), shown.files, strict=True):
        (tmp_path / name).write_bytes(content)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    fake = start(context)
    fake.on("GET /", ROOT[Product.OPENSEARCH])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConnectionWarning)
        if version == "TLSv1_2":
            opened(fake, verify=False).close()
            return
        with pytest.raises(Unreachable):
            opened(fake, verify=False)
