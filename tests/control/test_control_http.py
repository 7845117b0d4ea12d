"""The control API as HTTP: bodies, methods, and requests that are not HTTP."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fakekafka.tests.support.served import Served


@pytest.fixture
def url(served_cluster: Served) -> str:
    return served_cluster.url


def raw(url: str, request: bytes) -> tuple[bytes, dict[str, str], bytes]:
    """Return (status line, headers, body) of the answer to these bytes."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    headers = dict(line.decode().split(": ", 1) for line in lines)
    return status, {name.lower(): value for name, value in headers.items()}, body


HEAD = b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("header", "status", "message"),
    [
        (b"Content-Length: many", 400, "Invalid HTTP request"),
        (b"Content-Length: -5", 400, "Invalid HTTP request"),
        (b"Content-Length: 9999999", 413, "a body may have at most 1500000 bytes"),
        (b"Transfer-Encoding: chunked", 400, "Invalid HTTP request"),
    ],
)
def test_a_body_without_a_usable_length_is_refused(
    url: str, header: bytes, status: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A body without a usable length is refused even if it is arriving already; standard error
    stays silent."""
    request = b"POST /topics" + HEAD + header + b"\r\n\r\n" + b'{"name": "x"}\r\n' * 1000
    line, headers, body = raw(url, request)
    assert int(line.split()[1]) == status
    assert headers["content-type"] == "application/json"
    assert json.loads(body)["error"].startswith(message)
    assert capfd.readouterr().err == ""


def test_a_body_may_come_in_chunks(served_cluster: Served, url: str) -> None:
    """A body may come in chunks, as from clients that do not know its length."""
    parts = [b'{"name": ', b'"chunked"}', b""]
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    request = b"POST /topics" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + body
    assert int(raw(url, request)[0].split()[1]) == 200
    assert "chunked" in served_cluster.cluster.topics()


@pytest.mark.parametrize("method", ["PUT", "PATCH", "BREW"])
def test_other_methods_get_405_with_the_allowed_methods(url: str, method: str) -> None:
    status, headers, body = raw(url, method.encode() + b" /topics?x" + HEAD + b"\r\n")
    assert int(status.split()[1]) == 405
    assert headers["allow"] == "GET, POST"
    assert headers["content-type"] == "application/json"
    assert "takes GET and POST" in json.loads(body)["error"]


def test_head_is_get_without_the_value(url: str) -> None:
    status, headers, body = raw(url, b"HEAD /topics" + HEAD + b"\r\n")
    assert int(status.split()[1]) == 200
    assert int(headers["content-length"]) > 0
    assert body == b""


def test_a_malformed_http_request_is_answered_as_json(url: str) -> None:
    status, headers, body = raw(url, b"GET /a b c HTTP/1.1\r\n\r\n")
    assert int(status.split()[1]) == 400
    assert headers["content-type"] == "application/json"
    assert "Invalid HTTP request" in json.loads(body)["error"]
