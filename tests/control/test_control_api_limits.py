"""Limits on clients of the control API, so that none of them keeps the cluster busy."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from fakekafka import Cluster
from fakekafka.control.server import ControlServer
from fakekafka.testing.foreign_pages import is_trusted_host, refusal

HEAD = b" HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(1, topics={"orders": 1}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[ControlServer]:
    server = ControlServer(cluster)
    yield server
    server.close()


def connect(server: ControlServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def http(
    method: str, url: str, data: bytes | None = None, **headers: str
) -> tuple[int, Any, dict[str, str]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data=data, method=method, headers=named)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read()), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), dict(error.headers)


def patch(name: str, value: float) -> Any:
    return mock.patch(f"fakekafka.control.{name}", value)


def test_a_body_takes_memory_as_it_comes(server: ControlServer) -> None:
    """A body takes memory only as it arrives, and all bodies together have a limit."""
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            client = stack.enter_context(connect(server))
            client.sendall(b"POST /topics" + HEAD + b"Content-Length: 1400000\r\n\r\n{")
        with patch("bodies.BODIES_BYTES_MAX", 100_000):
            body = b'{"name": "' + b"x" * 200_000 + b'"}'
            status, value, _ = http("POST", server.url + "/topics", body)
        assert (status, value["error"][:30]) == (503, "the bodies of all requests tak")
        assert http("GET", server.url + "/brokers")[0] == 200


def test_a_refused_client_that_has_disconnected_is_no_error(
    server: ControlServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused client that has disconnected is no error: the rest of its request is not read, and
    nothing is printed."""
    for _ in range(20):
        with connect(server) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(b"POST /topics" + HEAD + b"Content-Length: 1\r\n\r\n[")
    assert http("GET", server.url + "/brokers")[0] == 200
    assert capsys.readouterr().err == ""


def test_a_body_beyond_the_limit_is_refused(server: ControlServer) -> None:
    """A body whose stated length exceeds the limit is refused before any of it is stored."""
    with patch("bodies.BODY_BYTES_MAX", 1000):
        status, value, _ = http("POST", server.url + "/topics", b" " * 1_000_000)
    assert (status, value["error"]) == (413, "a body may have at most 1000 bytes")


def test_a_body_that_does_not_come_is_given_up(server: ControlServer) -> None:
    """A body that does not arrive is given up with an answer that says so."""
    with patch("bodies.BODY_S_MAX", 0.05), connect(server) as client:
        client.sendall(b"POST /topics" + HEAD + b"Content-Length: 10\r\n\r\n{")
        assert client.recv(4096).startswith(b"HTTP/1.1 408")


def test_a_connection_without_a_request_is_closed(server: ControlServer) -> None:
    """An idle connection is closed, also after half a request or after an answered one."""
    with patch("guards.IDLE_S_MAX", 0.05), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(server)) for _ in range(3)]
        clients[1].sendall(b"GET /topics" + HEAD)
        clients[2].sendall(b"GET /health" + HEAD + b"\r\n")
        assert clients[2].recv(4096).startswith(b"HTTP/1.1 200")
        assert [client.recv(4096) for client in clients] == [b"", b"", b""]


def test_connections_beyond_the_limit_are_refused_with_an_answer(server: ControlServer) -> None:
    """Connections beyond the limit are refused with an answer, and the others are served as
    before."""
    with patch("guards.CONNECTIONS_MAX", 0):
        assert http("GET", server.url + "/brokers")[0] == 503
    assert http("GET", server.url + "/brokers")[0] == 200


def test_streams_beyond_the_limit_are_refused(server: ControlServer) -> None:
    with patch("streams.STREAMS_MAX", 0):
        status, value, _ = http("GET", server.url + "/events")
    assert (status, value["error"]) == (503, "there are 0 streams already; try again later")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Host": "rebound.example.org"},
        {"Host": "rebound.example.org:80", "Origin": "http://rebound.example.org:80"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Referer": "http://example.org/evil.html"},
    ],
)
def test_pages_of_other_sites_are_refused(
    server: ControlServer, cluster: Cluster, headers: dict[str, str]
) -> None:
    """A request from a page of another site is refused and has no effect."""
    status, value, _ = http("POST", server.url + "/topics", b'{"name": "evil"}', **headers)
    assert status == 403, value
    assert "evil" not in cluster.topics()


def test_a_request_from_the_own_page_is_accepted(server: ControlServer) -> None:
    """A request from the page itself is accepted; a browser names the requesting page and its
    origin."""
    status, _, _ = http(
        "GET", server.url + "/brokers", Origin=server.url, Sec_Fetch_Site="same-origin"
    )
    assert status == 200


@pytest.mark.parametrize(
    ("host", "is_trusted"),
    [
        ("127.0.0.1:80", True), ("localhost", True), ("[::1]:80", True), ("10.1.2.3", True),
        ("kafka:8080", True), ("host.docker.internal:8080", True), ("me.example.org", True),
        ("example.org", False), ("127.0.0.1.example.org", False), ("", False),
    ],
)  # fmt: skip
def test_other_host_names_are_refused(host: str, is_trusted: bool) -> None:
    """A host name with dots may belong to another site; addresses and names of containers are
    trusted."""
    assert is_trusted_host(host, frozenset(("me.example.org",))) == is_trusted


def test_a_host_that_is_none_is_refused() -> None:
    assert refusal({"host": "[::1"}, frozenset(), "the server") is not None


def produce_times(cluster: Cluster, ending: threading.Event) -> list[tuple[float, float]]:
    """Produce records until the event is set; return the wall time of each and the CPU time of all
    threads."""
    taken = []
    while not ending.is_set():
        began, began_cpu = time.perf_counter(), time.process_time()
        cluster.produce("orders", b"x", acks=1)
        taken.append((time.perf_counter() - began, time.process_time() - began_cpu))
    return taken


@pytest.mark.serial
@pytest.mark.slow
def test_slow_and_hostile_clients_do_not_stall_the_cluster(
    cluster: Cluster, server: ControlServer
) -> None:
    """Records are produced in time despite half requests, endless bodies, clients that never read,
    and long bodies of empty lists. None waits for three quarters of a second of CPU time, and none
    for a client: another program may occupy the processor, so that wall time alone proves
    little."""
    ending, taken = threading.Event(), []
    producer = threading.Thread(target=lambda: taken.extend(produce_times(cluster, ending)))
    producer.start()
    body = b'{"name": [' + b"[]," * 450_000 + b"[]]}"
    with contextlib.ExitStack() as stack:
        for number in range(60):
            client = stack.enter_context(connect(server))
            if number % 3 == 0:
                client.sendall(b"GET /state" + HEAD)
            elif number % 3 == 1:
                client.sendall(b"POST /topics" + HEAD + b"Content-Length: 1400000\r\n\r\n{")
            else:
                client.sendall((b"GET /state" + HEAD + b"\r\n") * 100)
        for _ in range(5):
            status, value, _ = http("POST", server.url + "/topics", body)
            assert status == 400, value
    ending.set()
    producer.join()
    assert len(taken) > 20  # enough to judge by, also on a busy machine
    assert max(cpu_s for _, cpu_s in taken) < 0.75, sorted(taken)[-5:]
    assert max(wall_s for wall_s, _ in taken) < 10, sorted(taken)[-5:]
