"""Versions 0 of OffsetCommit and OffsetFetch: offsets of old consumers, kept in ZooKeeper."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from fakekafka import Cluster
from fakekafka.tests.support.request_fields import array, int32, int64, string

pytestmark = pytest.mark.slow
UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_METADATA_TOO_LARGE = 12


@pytest.fixture(scope="module")
def connection() -> Iterator[socket.socket]:
    with Cluster(1, topics={"t": 2}, config={"offset.metadata.max.bytes": "5"}) as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), 20) as connection:
            yield connection
        assert cluster.failures == []


def ask(connection: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """Send a request; the body of its response."""
    request = struct.pack(">hhi", key, version, 7) + string("old") + body
    connection.sendall(int32(len(request)) + request)
    (size,) = struct.unpack(">i", read(connection, 4))
    return read(connection, size)[4:]


def read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def commit(connection: socket.socket, partition: int, offset: int, metadata: str = "") -> int:
    entry = int32(partition) + int64(offset) + string(metadata)
    answer = ask(connection, 8, 0, string("g") + array([string("t") + array([entry])]))
    return int(struct.unpack(">h", answer[-2:])[0])


def ask_offset(connection: socket.socket, partition: int, version: int) -> bytes:
    """The body of the answer to an OffsetFetch."""
    wanted = array([string("t") + array([int32(partition)])])
    return ask(connection, 9, version, string("g") + wanted)


def fetch(connection: socket.socket, partition: int) -> tuple[int, int]:
    """(offset, error) of a partition that ZooKeeper keeps."""
    answer = ask_offset(connection, partition, version=0)
    head = int32(1) + string("t") + int32(1) + int32(partition)
    assert answer.startswith(head)
    offset, metadata, error = struct.unpack(">qhh", answer[len(head) :])
    assert metadata == 0
    return offset, error


def test_an_offset_committed_to_zookeeper_is_fetched_from_there(
    connection: socket.socket,
) -> None:
    """No coordinator has a part in it, and later versions do not see it."""
    assert fetch(connection, 0) == (-1, UNKNOWN_TOPIC_OR_PARTITION)
    assert commit(connection, 0, 41) == 0
    assert commit(connection, 0, 42) == 0
    assert fetch(connection, 0) == (42, 0)
    # Version 1 asks the coordinator, and no broker coordinates the group yet.
    assert ask_offset(connection, 0, version=1) == array([])


def test_what_cannot_be_kept_is_refused(connection: socket.socket) -> None:
    assert commit(connection, 9, 1) == UNKNOWN_TOPIC_OR_PARTITION
    assert commit(connection, 1, 1, "too long") == OFFSET_METADATA_TOO_LARGE
    assert fetch(connection, 9) == (-1, UNKNOWN_TOPIC_OR_PARTITION)
