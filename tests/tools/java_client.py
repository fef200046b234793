"""Index JSON lines with the REST client of OpenSearch for Java: ``python java_client.py URL INDEX FILE``.

It runs in a process of its own, which can start one virtual machine only. The client is a part of the server's jars.
"""

from __future__ import annotations

import sys
from pathlib import Path

from es_neardupe.local_server import download, versions
from es_neardupe.local_server.process import classpath, start_java


def main(url: str, index: str, file: str) -> int:
    """Send the file as one bulk request; returns the status of the answer."""
    import jpype

    release = versions.pick("opensearch")
    start_java("64m", classpath("opensearch", download.ensure(release)))
    host = jpype.JClass("org.apache.hc.core5.http.HttpHost").create(url)
    client = jpype.JClass("org.opensearch.client.RestClient").builder(host).build()
    try:
        request = jpype.JClass("org.opensearch.client.Request")("POST", f"/{index}/_bulk")
        request.addParameter("refresh", "true")
        request.setJsonEntity(Path(file).read_text("utf-8"))
        answer = client.performRequest(request)
        text = str(jpype.JClass("org.apache.hc.core5.http.io.entity.EntityUtils").toString(answer.getEntity()))
        assert '"errors":false' in text, text[:500]
        return int(answer.getStatusLine().getStatusCode())
    finally:
        client.close()


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:]) == 200 else 1)
