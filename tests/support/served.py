"""A cluster with a control API, and requests to it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from fakekafka import Cluster
from fakekafka.control.server import ControlServer


class Served:
    """A cluster of three brokers with a control API."""

    def __init__(self, cluster: Cluster, server: ControlServer) -> None:
        self.cluster = cluster
        self.url = server.url

    def call(self, method: str, path: str, /, **body: Any) -> tuple[int, Any]:
        """Return (status, value) of a request."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.url + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def ask(self, method: str, path: str, /, **body: Any) -> Any:
        """Return the value of a request, which must succeed."""
        status, value = self.call(method, path, **body)
        assert status == 200, value
        return value
