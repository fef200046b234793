"""The process of one node of a cluster: ``python cluster_process.py NODE`` (JSON), until its stdin ends.

So it ends with whoever started it, however that one ends. Its only line on stdout says that it has joined; the log
goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from es_neardupe.local_server import elasticsearch, java, opensearch


def main(node: dict[str, Any]) -> None:
    """Start the node, say so, and wait until nobody is interested any more."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the server logs to what it takes for stdout, which nobody reads
    home, jars = Path(node["home"]), sorted(Path(node["jars"]).glob("*.jar"))
    if node["server"] == "elasticsearch":
        java.start(node["heap"], [jar for jar in jars if not elasticsearch.is_module_jar(jar.name)])
        elasticsearch.lay_out(home, node["version"], jars)
        elasticsearch.run(home, node["version"], node["settings"])
    else:
        java.start(node["heap"], jars)
        port = int(node["settings"]["http.port"])
        opensearch.run(home, node["version"], port, node["settings"], node.get("plugins", ()))
    print("started", file=answer, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - the log is the only place where it can be told
        of_java = getattr(error, "stacktrace", None)
        print(of_java() if of_java else repr(error), file=sys.stderr, flush=True)
    os._exit(0)  # nobody needs what it holds: no time is spent on closing it
