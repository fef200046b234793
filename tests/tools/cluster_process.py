"""Process of one node of a cluster: ``python cluster_process.py NODE`` (JSON), until its stdin ends.

It ends with its parent process, however that ends. Its only line on stdout reports that the node has joined; the log
goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from es_neardupe.local_server import process


def main(node: dict[str, Any]) -> None:
    """Start the node, report it, and wait until stdin ends."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the server logs to its stdout, which nobody reads
    home, jars = Path(node["home"]), sorted(Path(node["jars"]).glob("*.jar"))
    process.start_java(node["heap"], process.classpath(node["server"], jars))
    process.start_node(node["server"], node["version"], home, jars, node["settings"], plugins=node.get("plugins", ()))
    print("started", file=answer, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - the log is the only place where it can be reported
        of_java = getattr(error, "stacktrace", None)
        print(of_java() if of_java else repr(error), file=sys.stderr, flush=True)
    os._exit(0)  # closing it would take time, and its data is not needed
