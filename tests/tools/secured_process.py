"""Process of a secured Elasticsearch: ``python secured_process.py HOME VERSION PORT``, until its stdin ends.

It ends with its parent process, however that ends. Its only line on stdout reports that it answers; the log goes to
stderr.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from es_neardupe.local_server.process import start_elasticsearch, start_java

HEAP = "384m"
SETTINGS = {
    "cluster.name": "es-neardupe-secured",
    "node.name": "secured",
    "discovery.type": "single-node",
    "network.host": "127.0.0.1",
    "transport.port": "9400-9499",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "xpack.security.enabled": "true",
    "xpack.security.http.ssl.enabled": "true",
    "xpack.security.http.ssl.key": "http.key",
    "xpack.security.http.ssl.certificate": "http.pem",
    "xpack.security.http.ssl.certificate_authorities": "ca.pem",
    "xpack.security.http.ssl.client_authentication": "optional",
    "xpack.security.authc.realms.file.passwords.order": "0",
    "xpack.security.authc.realms.pki.certificates.order": "1",
    "xpack.security.authc.realms.pki.certificates.username_pattern": "CN=(.*?)(?:,|$)",
    "xpack.security.autoconfiguration.enabled": "false",
    "xpack.security.enrollment.enabled": "false",
    "xpack.license.self_generated.type": "trial",  # document-level security, and client certificates
}


def main(home: Path, version: str, port: str) -> None:
    """Start the server in a prepared folder, report it, and wait until stdin ends."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the server logs to its stdout, which nobody reads
    start_java(HEAP, sorted((home / "lib").glob("*.jar")))
    node = start_elasticsearch(home, version, {**SETTINGS, "http.port": port})
    print("started", file=answer, flush=True)
    sys.stdin.read()
    node.close()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    except Exception as error:  # noqa: BLE001 - the log is the only place where it can be told
        of_java = getattr(error, "stacktrace", None)
        print(of_java() if of_java else repr(error), file=sys.stderr, flush=True)
    os._exit(0)  # threads of the virtual machine must not keep the process of a closed server alive
