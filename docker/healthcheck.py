"""Health of a container with `watch --metrics-port 9464` or `serve --port 8765`: exit code 0 if one of them is healthy.

`watch` is healthy if it serves its metrics: it waits for a search server by itself. `serve` must be able to read the
index too, if ES_NEARDUPE_SERVE_TOKEN has the token.
"""

import http.client
import os
import sys

ADDRESSES = ((9464, "/metrics"), (8765, "/health"))


def is_healthy(port: int, path: str) -> bool:
    """Whether something answers, and reports no error of its own. 401 is an answer: it needs a token or a login."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=8)
    try:
        token = os.environ.get("ES_NEARDUPE_SERVE_TOKEN", "")
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status in (200, 401)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not any(is_healthy(port, path) for port, path in ADDRESSES))
