"""What clients of the control API may hold: bodies in memory, and threads."""

from __future__ import annotations

import json
import socket
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import pytest
from fakekafka import Cluster
from fakekafka.testing.control_api.server import ControlServer


@pytest.fixture(scope="module")
def server() -> Iterator[ControlServer]:
    with Cluster(1) as cluster:
        server = ControlServer(cluster)
        yield server
        server.close()


def http(method: str, url: str, data: bytes | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_a_body_takes_memory_as_it_comes(server: ControlServer) -> None:
    """Clients that promise much and send little hold little, and all together have a limit."""
    clients = []
    try:
        for _ in range(3):
            clients.append(socket.create_connection(("127.0.0.1", urlsplit(server.url).port)))
            clients[-1].sendall(b"POST /topics HTTP/1.0\r\nContent-Length: 7900000\r\n\r\n{")
        with mock.patch("fakekafka.testing.control_api.server.BODIES_BYTES_MAX", 100_000):
            body = b'{"name": "' + b"x" * 200_000 + b'"}'
            status, value = http("POST", server.url + "/topics", body)
        assert (status, value["error"][:30]) == (503, "the bodies of all requests tak")
        assert http("GET", server.url + "/brokers")[0] == 200
    finally:
        for client in clients:
            client.close()


def test_a_client_that_is_gone_when_it_is_refused_is_no_error(
    server: ControlServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is left to read of what it sent, and nothing is printed."""
    address = ("127.0.0.1", urlsplit(server.url).port)
    for _ in range(20):
        with socket.create_connection(address) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(b"POST /topics HTTP/1.0\r\nContent-Length: 1\r\n\r\n[")
    assert http("GET", server.url + "/brokers")[0] == 200
    assert "Traceback" not in capsys.readouterr().err


def test_a_body_beyond_the_limit_is_refused(server: ControlServer) -> None:
    """By what it says of its length, before any of it is read."""
    with mock.patch("fakekafka.testing.control_api.server.BODY_BYTES_MAX", 1000):
        status, value = http("POST", server.url + "/topics", b" " * 1001)
    assert (status, value["error"]) == (400, "Content-Length must be at most 1000 bytes")


def test_connections_beyond_the_number_of_threads_are_told_so(server: ControlServer) -> None:
    """Each open connection takes a thread; there is a limit to them."""
    with mock.patch("fakekafka.testing.control_api.server.CONNECTIONS_MAX", 0):
        assert http("GET", server.url + "/brokers")[0] == 503
    assert http("GET", server.url + "/brokers")[0] == 200
