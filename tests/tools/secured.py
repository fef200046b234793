"""Real Elasticsearch with security: TLS, users, roles, document-level security. Installed by pip alone, by any user.

It is the distribution that Elastic makes for its own integration tests: the server with the modules of HTTP and
security, and nothing else. It has neither scripts nor analysis-common, so native users and API keys cannot be created.
It uses TLS only, and authenticates by a password, or by a client certificate whose common name is a user name.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ports import claimed_ports
from tls_tools import Pem, Shown, authority, issue

from es_neardupe import folders
from es_neardupe.errors import NodeError
from es_neardupe.local_server import control, download, state
from es_neardupe.local_server.process import require_extra
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

VERSION = "8.19.21"
MODULES = ("transport-netty4", "x-pack-core", "x-pack-security")
_ROOT = f"elasticsearch-{VERSION}"
_START_TIMEOUT = 240.0
_CLOSE_TIMEOUT = 30.0
_ROUNDS = 1000


@dataclass(frozen=True)
class User:
    """A user, with password and role."""

    name: str
    password: str
    roles: tuple[str, ...]


@dataclass(frozen=True)
class Secured:
    """A running server with security."""

    url: str
    users: Mapping[str, User]
    tls: Shown
    ca_file: Path
    certificates: Mapping[str, Pem]

    @contextlib.contextmanager
    def client(self, name: str) -> Iterator[Client]:
        """A connection as one of the users."""
        settings = ConnectionSettings(
            url=self.url, username=name, password=self.users[name].password, ca_certs=str(self.ca_file)
        )
        opened = connect(settings)
        try:
            yield opened
        finally:
            opened.close()

    def environment(self, name: str) -> dict[str, str]:
        """The environment variables with which a command authenticates as one of the users."""
        password = self.users[name].password
        parts = {"URL": self.url, "USERNAME": name, "PASSWORD": password, "CA_CERTS": str(self.ca_file)}
        return {f"ES_NEARDUPE_{part}": value for part, value in parts.items()}


@contextlib.contextmanager
def secured(home: Path, users: Sequence[User], roles: Mapping[str, Any]) -> Iterator[Secured]:
    """Start the server in an empty folder for a ``with`` block, after which the folder is removed.

    Each user can also authenticate by a client certificate.

    ``roles`` are name -> role in the form of Elasticsearch's API; they and the users are fixed at the start.

    Raises `NodeError` if it cannot be downloaded or does not start.
    """
    require_extra()
    _unpack(_DISTRIBUTION.file(), home)
    _write_users(home / "config", users, roles)
    tls = authority("127.0.0.1", "localhost")
    ca_file, certificates = _write_certificates(home / "config", tls, users)
    log = home / "secured.log"
    try:
        with (
            claimed_ports(1) as (port,),
            running("secured_process.py", [str(home), VERSION, str(port)], home, log),
        ):
            if skipped := re.findall(r"ERROR (.*skipping role.*)", log.read_text("utf-8", "replace")):
                raise NodeError(f"the secured Elasticsearch cannot read a role: {skipped[0]}")
            yield Secured(f"https://127.0.0.1:{port}", {user.name: user for user in users}, tls, ca_file, certificates)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def running(script: str, arguments: Sequence[str], home: Path, log: Path) -> Iterator[None]:
    """The process of a server, which reports when it has started. Raises `NodeError` if it does not."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=home, start_new_session=True
        )
    late = threading.Timer(_START_TIMEOUT, process.kill)  # ends the wait for its first line
    late.start()
    try:
        if not _says_started(process):
            raise NodeError(f"the secured server could not be started. {control.ending(log)}")
        late.cancel()
        yield
    finally:
        late.cancel()
        _end(process)


def _says_started(process: subprocess.Popen[bytes]) -> bool:
    assert process.stdout is not None
    return any(line.strip() == b"started" for line in process.stdout)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.communicate(timeout=_CLOSE_TIMEOUT)  # closes its stdin first
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


@dataclass(frozen=True)
class Archive:
    """A file that is downloaded once into the cache."""

    coordinates: str
    sha256: str

    def file(self) -> Path:
        """The path of the file. Raises `NodeError` if it cannot be downloaded."""
        cache = folders.cache() / "distributions"
        name = "-".join(self.coordinates.split(":")[1:3])
        with state.hold(cache / "lock", timeout=600, doing=f"fetching {name}"):
            file = cache / f"{name}.zip"
            if not file.exists() or download.sha256(file) != self.sha256:
                _fetch(self.coordinates, cache / "repository", file)
                if download.sha256(file) != self.sha256:
                    raise NodeError(f"{file} was not downloaded completely. Try again.")
        return file


_DISTRIBUTION = Archive(
    f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{VERSION}::zip",
    "215d5f3dbf0609a149f6218a9e47b6ae2df34ebbff3c5754e35f15a5e5393c8a",
)


def _fetch(coordinates: str, repository: Path, file: Path) -> None:
    shutil.rmtree(repository, ignore_errors=True)
    (found,) = download.download([coordinates], repository)
    found.replace(file)
    shutil.rmtree(repository, ignore_errors=True)


def _unpack(archive: Path, home: Path) -> None:
    """Lay out the server and its modules. As in `local_server.process`, these are not Java modules: the descriptors
    that declare them so are for a server started as a Java module."""
    wanted = re.compile(rf"{_ROOT}/(lib/[^/]+\.jar|config/.+|modules/({'|'.join(MODULES)})/.+)")
    (home / "plugins").mkdir(parents=True)
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            if wanted.fullmatch(member.filename) and not member.is_dir():
                member.filename = member.filename.removeprefix(f"{_ROOT}/")
                packed.extract(member, home)
    for descriptor in home.glob("modules/*/plugin-descriptor.properties"):
        lines = descriptor.read_text("utf-8").splitlines(keepends=True)
        descriptor.write_text("".join(line for line in lines if not line.startswith("modulename=")), "utf-8")


def _write_users(config: Path, users: Sequence[User], roles: Mapping[str, Any]) -> None:
    """The files of the file realm."""
    lines = (f"{name}: {json.dumps(role)}\n" for name, role in roles.items())  # it reads each role separately
    (config / "roles.yml").write_text("".join(lines), "utf-8")
    (config / "users").write_text("".join(f"{one.name}:{_hashed(one.password)}\n" for one in users), "utf-8")
    named = sorted({role for one in users for role in one.roles})
    holders = {role: ",".join(one.name for one in users if role in one.roles) for role in named}
    (config / "users_roles").write_text("".join(f"{role}:{names}\n" for role, names in holders.items()), "utf-8")


def _write_certificates(config: Path, tls: Shown, users: Sequence[User]) -> tuple[Path, dict[str, Pem]]:
    """Write the files that the settings of `secured_process` name; returns that of the authority, and those of the
    users."""
    ca_file = tls.write(config, "http")
    certificates = {user.name: issue(tls.ca, user.name, config) for user in users}
    roles = {
        role: [certificates[u.name].subject for u in users if role in u.roles] for one in users for role in one.roles
    }
    (config / "role_mapping.yml").write_text(json.dumps(roles), "utf-8")  # JSON is YAML
    return ca_file, certificates


def _hashed(password: str) -> str:
    """A password as the server stores it: ``{PBKDF2}rounds$salt$hash``, SHA-512, 32 bytes each."""
    salt = hashlib.sha256(password.encode()).digest()
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ROUNDS, 32)
    return f"{{PBKDF2}}{_ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"
