"""Does a local server answer?"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request

__all__ = ["is_ready"]

# A proxy of the environment has no business between this process and the loopback interface.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_ready(url: str, *, wait: float = 1.0) -> bool:
    """Whether the cluster is yellow or green, or becomes so within ``wait`` seconds."""
    question = f"{url}/_cluster/health?wait_for_status=yellow&timeout={int(wait * 1000)}ms"
    try:
        with _OPENER.open(question, timeout=wait + 2) as answer:
            return bool(answer.status == 200)
    except (OSError, http.client.HTTPException):
        return False
