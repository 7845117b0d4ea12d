"""Pages of records, resets of offsets, and ACLs, which the page of a cluster requests from its
API."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from fakekafka import Cluster
from fakekafka.control.server import ControlServer
from fakekafka.tests.support.served import Served as ServedCluster

if TYPE_CHECKING:
    from fakekafka.tests.support.served import Served


def offsets(page: dict[str, Any]) -> list[int]:
    return [record["offset"] for record in page["records"]]


def filled(served: Served, sizes: list[int]) -> int:
    """Append a batch of each size and return the number of records."""
    number = 0
    for size in sizes:
        served.cluster.produce("orders", [f"record {number + n}" for n in range(size)])
        number += size
    return number


@pytest.mark.parametrize("limit", [1, 3, 7, 500])
def test_all_pages_together_have_every_record_once(served: Served, limit: int) -> None:
    """Pages from the newest record to the oldest and back have every record once, whatever the
    batches are."""
    end = filled(served, [1, 5, 2, 11, 1, 1, 4])
    path = f"/topics/orders/0/page?limit={limit}"
    page = served.ask("GET", path)
    seen = offsets(page)
    while page["earlier"] is not None:
        page = served.ask("GET", f"{path}&before={page['earlier']}")
        assert len(page["records"]) <= limit
        seen += offsets(page)
    assert seen == [*range(end - 1, -1, -1)]
    back = offsets(page)[::-1]
    while page["later"] is not None:
        page = served.ask("GET", f"{path}&offset={page['later']}")
        back += offsets(page)[::-1]
    assert back == [*range(end)]


def test_a_page_begins_at_an_offset_or_at_a_time(served: Served) -> None:
    """A page beyond the log end is empty; a page below the log start begins at the log start."""
    filled(served, [3, 3, 3])
    path = "/topics/orders/0/page?limit=4"
    assert offsets(served.ask("GET", f"{path}&offset=4")) == [7, 6, 5, 4]
    assert offsets(served.ask("GET", f"{path}&before=4")) == [3, 2, 1, 0]
    assert offsets(served.ask("GET", f"{path}&timestamp=0")) == [3, 2, 1, 0]
    late = served.ask("GET", f"{path}&timestamp={1 << 45}")
    assert (late["records"], late["earlier"], late["later"]) == ([], 9, None)
    assert served.ask("GET", f"{path}&offset=100")["records"] == []
    status, value = served.call("GET", f"{path}&offset=1&before=3")
    assert status == 400
    assert "not before and offset" in value["error"]
    assert served.call("GET", "/topics/orders/0/page?limit=501")[0] == 400
    assert served.call("GET", "/topics/absent/0/page")[0] == 400


def test_keys_values_and_headers_are_bytes(served: Served) -> None:
    """Keys, values and headers are in base64, cut where they are long, with the whole record's
    size."""
    served.cluster.produce("orders", bytes(range(256)), key=b"\xff\x00", headers=[("h", b"\x80")])
    served.cluster.produce("orders", None)
    gone, one = served.ask("GET", "/topics/orders/0/page?shown_bytes=16")["records"]
    assert base64.b64decode(one["value"]) == bytes(range(16))
    assert (one["value_bytes"], one["key_bytes"]) == (256, 2)
    assert base64.b64decode(one["key"]) == b"\xff\x00"
    assert one["headers"] == [["h", base64.b64encode(b"\x80").decode()]]
    assert (gone["key"], gone["value"], gone["value_bytes"]) == (None, None, 0)


def test_markers_and_unreplicated_records_are_shown(served: Served) -> None:
    """A page reports markers, which have offsets, too, and records that are not replicated."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": served.cluster.bootstrap_servers, "transactional.id": "pages"}
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"x", partition=0)
    producer.commit_transaction()
    served.cluster.wait_until(lambda: served.cluster.partition("orders", 0).high_watermark == 2)
    marker, record = served.ask("GET", "/topics/orders/0/page")["records"]
    assert (marker["is_control"], record["is_control"]) == (True, False)
    assert record["is_transactional"]
    for other in (2, 3):
        served.ask("POST", f"/brokers/{other}/pause")
    served.cluster.produce("orders", "alone", acks=1)
    page = served.ask("GET", "/topics/orders/0/page?limit=2")
    assert [r["is_replicated"] for r in page["records"]] == [False, True]
    assert (page["high_watermark"], page["log_end_offset"]) == (2, 3)


def test_pages_end_where_the_log_starts(served: Served) -> None:
    """Pages omit records below the log start, such as those that DeleteRecords deleted, although
    their batch exists."""
    filled(served, [10, 10])
    request = {"offsets": [[["orders", 0], 13]], "timeout_ms": 5000}
    served.ask("POST", "/brokers/1/ask", api="DeleteRecords", request=request)
    page = served.ask("GET", "/topics/orders/0/page?limit=500")
    assert offsets(page) == [19, 18, 17, 16, 15, 14, 13]
    assert (page["log_start_offset"], page["earlier"]) == (13, None)
    assert offsets(served.ask("GET", "/topics/orders/0/page?offset=2&limit=2")) == [14, 13]


def committed(served: Served, group: str, offset: int) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": served.cluster.bootstrap_servers, "group.id": group}
    )
    where = confluent_kafka.TopicPartition("orders", 0, offset)
    consumer.commit(offsets=[where], asynchronous=False)
    consumer.close()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"to": "earliest"}, 0),
        ({"to": "latest"}, 10),
        ({"offset": 7, "topic": "orders", "partition": 0}, 7),
        ({"offset": 99}, 10),
        ({"timestamp": 0}, 0),
        ({"timestamp": 1 << 45}, 10),
    ],
)
def test_offsets_are_reset(served: Served, asked: dict[str, Any], expected: int) -> None:
    """Offsets are reset to the start, the end, an offset or a time; consumers read from there."""
    filled(served, [5, 5])
    committed(served, "audit", 4)
    (reset,) = served.ask("POST", "/reset_offsets", group="audit", **asked)
    assert reset == {"topic": "orders", "partition": 0, "offset": expected, "was": 4}
    (entry,) = served.ask("GET", "/groups/audit")["offsets"]
    assert entry["offset"] == expected


def test_offsets_of_a_topic_without_commits_can_be_reset(served: Served) -> None:
    committed(served, "audit", 0)
    reset = served.ask("POST", "/reset_offsets", group="audit", topic="orders", to="latest")
    assert [(one["partition"], one["was"]) for one in reset] == [(0, 0), (1, None)]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "takes one of to, offset and timestamp, not none"),
        ({"to": "latest", "offset": 1}, "not to and offset"),
        ({"to": "middle"}, "earliest"),
        ({"to": "latest", "partition": 0}, "partition needs a topic"),
        ({"to": "latest", "topic": "absent"}, "absent"),
        ({"to": "latest", "group": "nobody"}, "there is no group 'nobody'"),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(
    served: Served, asked: dict[str, Any], message: str
) -> None:
    committed(served, "audit", 0)
    status, value = served.call("POST", "/reset_offsets", **{"group": "audit", **asked})
    assert status == 400
    assert message in value["error"]


def test_offsets_of_a_group_in_use_stay(served: Served) -> None:
    """Offsets of a group in use are not reset: as in Kafka, only its members commit them."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": served.cluster.bootstrap_servers, "group.id": "busy"}
    )
    try:
        consumer.subscribe(["orders"])
        served.cluster.wait_until(
            lambda: not consumer.poll(0.05) and served.cluster.group("busy").state == "Stable", 20
        )
        status, value = served.call("POST", "/reset_offsets", group="busy", to="latest")
    finally:
        consumer.close()
    assert status == 400
    assert (
        "group 'busy' has 1 member: the offsets of a group can only be reset while"
        in value["error"]
    )


def test_offsets_of_a_partition_without_a_leader_are_not_reset(served: Served) -> None:
    """Offsets of a partition without a leader are not reset, as its log start and end are
    unknown."""
    served.ask("POST", "/topics", name="alone", assignment={"0": [3]})
    committed(served, "audit", 0)
    served.ask("POST", "/brokers/3/kill")
    served.ask("POST", "/wait", condition='leader("alone", 0) is None')
    status, value = served.call("POST", "/reset_offsets", group="audit", topic="alone", to="latest")
    assert status == 400
    assert "alone-0 has no leader" in value["error"]


@pytest.mark.parametrize("version", ["0.10.1", "0.11", "2.0"])
def test_pages_have_the_records_of_old_releases(version: str) -> None:
    """Pages include records of releases before 0.11, whose messages have no batch."""
    with Cluster(1, kafka_version=version, topics={"orders": 1}) as cluster:
        server = ControlServer(cluster)
        try:
            served = ServedCluster(cluster, server)
            cluster.produce("orders", ["a", "b", "c"], key="k")
            cluster.produce("orders", "d")
            page = served.ask("GET", "/topics/orders/0/page?limit=3")
            assert offsets(page) == [3, 2, 1]
            assert [base64.b64decode(record["value"]) for record in page["records"]] == [
                b"d",
                b"c",
                b"b",
            ]
            assert offsets(served.ask("GET", "/topics/orders/0/page?before=1")) == [0]
            assert offsets(served.ask("GET", "/topics/orders/0/page?timestamp=0")) == [3, 2, 1, 0]
        finally:
            server.close()


def test_acls_are_listed(served: Served) -> None:
    """ACLs are listed, or the absence of an authorizer is reported."""
    assert served.ask("GET", "/acls") == {"has_authorizer": False, "acls": []}
    security = {"authorizer": True, "super_users": ["User:ANONYMOUS"]}
    with Cluster(1, security=security) as cluster:
        server = ControlServer(cluster)
        try:
            cluster.security.allow("User:alice", "Read", topic="orders")
            found = ServedCluster(cluster, server).ask("GET", "/acls")
        finally:
            server.close()
    assert found["has_authorizer"]
    assert found["acls"] == [
        {
            "principal": "User:alice",
            "host": "*",
            "operation": "READ",
            "permission": "ALLOW",
            "resource_type": "TOPIC",
            "resource": "orders",
            "pattern": "LITERAL",
        }
    ]
