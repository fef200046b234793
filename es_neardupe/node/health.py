"""Does a local server answer?"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request

__all__ = ["is_ready"]

# A proxy of the environment has no business between this process and the loopback interface.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_ready(url: str, pid: int, *, wait: float = 1.0) -> bool:
    """Whether the cluster of this process is yellow or green, or becomes so within ``wait`` seconds.

    Two servers that start at the same time can choose the same port. Only one gets it, and must not be taken for
    the other.
    """
    question = f"{url}/_cluster/health?wait_for_status=yellow&timeout={int(wait * 1000)}ms"
    try:
        with _OPENER.open(question, timeout=wait + 2) as answer:
            return bool(answer.status == 200) and _answers(url) == pid
    except (OSError, http.client.HTTPException, ValueError, LookupError):
        return False


def _answers(url: str) -> int:
    """The number of the process that answers."""
    with _OPENER.open(f"{url}/_nodes/_local/process?filter_path=nodes.*.process.id", timeout=10) as answer:
        (node,) = json.load(answer)["nodes"].values()
    return int(node["process"]["id"])
