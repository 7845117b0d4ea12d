"""The control API on faults with ids, ZooKeeper, log directories, groups, transactions, waiting."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from fakekafka import Cluster
from fakekafka.testing.control_api.group_operations import assigned_partitions
from fakekafka.testing.control_api.server import ControlServer
from fakekafka.tests.support.served import Served

GET, POST, PUT, DELETE = "GET", "POST", "PUT", "DELETE"


def test_injections_have_ids_and_can_be_cancelled(served: Served) -> None:
    """Each tells what it was asked, and how often it was applied."""
    order = {"api": "CreateTopics", "error": "INVALID_CONFIG", "times": 2}
    number = served.ask(POST, "/injections", **order)["id"]
    assert served.call(POST, "/topics", name="late")[0] == 409
    shown = {"id": number, **order, "applied": 1, "remaining": 1}
    assert served.ask(GET, f"/injections/{number}") == shown
    assert served.ask(GET, "/injections") == [shown]
    served.ask(DELETE, f"/injections/{number}")
    served.ask(POST, "/topics", name="late")
    status, value = served.call(DELETE, f"/injections/{number}")
    assert (status, f"there is no injection {number}; ids are []" in value["error"]) == (400, True)


def test_messages_are_held_looked_at_and_released(served: Served) -> None:
    """By kind and link; some of them, then all."""
    hold = served.ask(POST, "/network/holds", messages=["ProduceRequest"], target=1)["id"]
    producing = threading.Thread(target=lambda: served.cluster.produce("orders", "x"))
    producing.start()
    served.ask(POST, "/wait", condition='log_end_offset("orders", 0) == 0')
    served.cluster.wait_until(lambda: served.ask(GET, "/network/holds")[0]["held"] == 1)
    assert served.ask(GET, f"/network/holds/{hold}") == [
        {
            "message": "ProduceRequest",
            "source": "admin",
            "target": "broker-1",
            "is_reply": False,
        }
    ]
    assert served.ask(GET, "/network")["held"] == 1
    assert served.ask(POST, f"/network/holds/{hold}/release", count=1) == 1
    producing.join()
    assert served.ask(DELETE, f"/network/holds/{hold}") == 0
    assert served.ask(GET, "/network/holds") == []
    assert served.call(POST, "/network/holds", messages=["Nothing"])[0] == 400


def test_every_hold_ends_at_once(served: Served) -> None:
    served.ask(POST, "/network/holds", messages=["ProduceRequest"])
    assert served.ask(POST, "/network/release") == 0
    assert served.ask(GET, "/network/holds") == []


def test_faults_of_the_network_are_shown(served: Served) -> None:
    """Cuts, losses and delays, until they are healed."""
    served.ask(POST, "/network/isolate", machine=2)
    served.ask(POST, "/network/drop", probability=0.5, source=1, target="zk-1")
    served.ask(POST, "/network/latency", uniform_ms=[0, 1], source=1, target=3)
    shown = served.ask(GET, "/network")
    assert ["broker-2", "broker-1"] in shown["cuts"]
    assert shown["link_losses"] == [{"source": "broker-1", "target": "zk-1", "probability": 0.5}]
    assert shown["link_latencies"] == [
        {"source": "broker-1", "target": "broker-3", "latency": "0 to 1 ms"}
    ]
    served.ask(POST, "/network/heal")
    assert served.ask(GET, "/state")["faults"]["cuts"] == []


def test_znodes_are_created_read_set_and_deleted(served: Served) -> None:
    """With versions; data is text."""
    assert served.ask(POST, "/zookeeper/node", path="/mine", data="a") == "/mine"
    assert served.ask(POST, "/zookeeper/node", path="/mine/n-", sequential=True)[:8] == "/mine/n-"
    shown = served.ask(GET, "/zookeeper/node?path=/mine")
    assert (shown["data"], len(shown["children"]), shown["stat"]["version"]) == ("a", 1, 0)
    assert served.ask(PUT, "/zookeeper/node", path="/mine", data="b", version=0)["version"] == 1
    assert served.ask(GET, "/zookeeper/tree")["/mine"] == "b"
    status, value = served.call(DELETE, "/zookeeper/node?path=/mine")
    assert (status, "has children" in value["error"]) == (400, True)
    served.ask(DELETE, "/zookeeper/node?path=/mine&recursive=true&version=1")
    assert served.call(GET, "/zookeeper/node?path=/mine")[0] == 400
    assert ":" in served.ask(GET, "/zookeeper")["connect"]


@pytest.mark.slow
def test_a_zookeeper_server_goes_and_comes_back() -> None:
    with Cluster(1, zookeepers=3) as cluster:
        server = ControlServer(cluster)
        served = Served(cluster, server)
        served.ask(POST, "/zookeeper/servers/2/kill")
        assert [s["is_alive"] for s in served.ask(GET, "/zookeeper/servers")] == [True, False, True]
        served.ask(POST, "/zookeeper/servers/2/start")
        assert served.ask(GET, "/zookeeper/servers")[1]["is_alive"] is True
        assert served.call(POST, "/zookeeper/servers/9/kill")[0] == 400
        server.close()


@pytest.mark.slow
def test_log_directories_fail_and_are_repaired(served: Served) -> None:
    """The directory that holds a partition is named with it."""
    shown = served.ask(GET, "/brokers/3/log_dirs")
    assert [one["is_offline"] for one in shown] == [False, False]
    assert sorted(name for one in shown for name in one["partitions"]) == ["orders-0", "orders-1"]
    served.ask(POST, "/brokers/3/fail_log_dir", directory=1)
    assert served.ask(GET, "/brokers/3/log_dirs")[1]["is_offline"] is True
    assert len(served.ask(GET, "/brokers/3")["offline_log_dirs"]) == 1
    served.ask(POST, "/brokers/3/repair_log_dir", directory=1)
    assert served.ask(GET, "/brokers/3/log_dirs")[1]["is_offline"] is False
    served.ask(POST, "/brokers/3/restart")


@pytest.mark.slow
def test_health_and_readiness(served: Served) -> None:
    """The process answers also while the cluster does not serve."""
    assert served.ask(GET, "/ready") == {"is_ready": True, "controller": 1, "not_running": []}
    served.ask(POST, "/brokers/3/kill")
    status, value = served.call(GET, "/ready")
    assert (status, value["is_ready"], value["not_running"]) == (503, False, [3])
    assert served.ask(GET, "/health")["status"] == "up"
    assert served.ask(GET, "/cluster")["kafka_version"] == "3.9"
    served.ask(POST, "/brokers/3/start", wait=False)
    served.ask(POST, "/wait", condition="broker_state(3) == 'running'", timeout_s=20)


def test_waiting_for_a_condition(served: Served) -> None:
    """It holds, it does not hold in time, it is none."""
    assert served.ask(POST, "/wait", condition='leader("orders", 1) == 2') is None
    status, value = served.call(POST, "/wait", condition='leader("orders", 1) == 3', timeout_s=0.01)
    assert (status, value["name"]) == (409, "WAIT_TIMEOUT")
    assert 'leader("orders", 1) == 3' in value["error"]
    for wrong in ({"condition": "leader("}, {"condition": "now_ms > 5"},
                  {"condition": "1 == 1", "timeout_s": 10**6}):  # fmt: skip
        assert served.call(POST, "/wait", **wrong)[0] == 400


def test_metrics_and_many_topics(served: Served) -> None:
    served.ask(POST, "/create_topics", names=["a", "b"], partitions=2)
    assert [len(served.ask(GET, f"/topics/{topic}")) for topic in "ab"] == [2, 2]
    assert served.ask(GET, "/brokers/1/metrics")["PartitionCount"] >= 2
    assert served.ask(GET, "/reassignments") == []


def test_records_are_read_from_an_offset(served: Served) -> None:
    """From a replica, up to a limit; what consumers see ends at the high watermark."""
    for value in ("a", "b", "c"):
        served.ask(POST, "/topics/orders/0/records", value=value)
    path = "/topics/orders/0/records?offset=1&limit=1&replica=2"
    served.ask(POST, "/wait", condition='replica_end("orders", 0, 2) == 3')
    assert [record["value"] for record in served.ask(GET, path)] == ["b"]
    seen = served.ask(GET, "/topics/orders/0/consume?offset=1")
    assert [record["offset"] for record in seen] == [1, 2]
    status, value = served.call(GET, "/topics/orders/0/records?ofset=1")
    assert (status, "unknown ['ofset']" in value["error"]) == (400, True)
    assert served.call(GET, "/topics/orders/0/records?offset=-1")[0] == 400


@pytest.mark.slow
def test_the_controller_moves(served: Served) -> None:
    served.ask(POST, "/controller/move_to/3")
    assert served.ask(GET, "/controller")["id"] == 3
    served.ask(POST, "/controller/move_to/1")


@pytest.mark.slow
@pytest.mark.clients
def test_a_group_is_shown_with_members_offsets_and_lag(served: Served) -> None:
    """As its coordinator describes it; a group without members can be deleted."""
    for _ in range(3):
        served.cluster.produce("orders", "x")
    settings = {
        "bootstrap.servers": served.cluster.bootstrap_servers,
        "group.id": "shop/eu",
        "client.id": "till",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    message = consumer.poll(20)
    assert message is not None
    consumer.commit(message=message, asynchronous=False)
    (group,) = served.ask(GET, "/groups")
    assert (group["group"], group["state"], group["lag"]) == ("shop/eu", "Stable", 2)
    (member,) = group["members"]
    assert (member["client_id"], member["assignment"]) == ("till", [["orders", 0], ["orders", 1]])
    assert group["offsets"] == [
        {"topic": "orders", "partition": 0, "offset": 1, "high_watermark": 3, "lag": 2}
    ]
    status, value = served.call(DELETE, "/groups/shop/eu")
    assert (status, value["name"]) == (409, "NON_EMPTY_GROUP")
    consumer.close()
    assert served.ask(GET, "/groups/shop/eu")["state"] == "Empty"
    served.ask(DELETE, "/groups/shop/eu")
    assert served.ask(GET, "/groups") == []
    assert served.call(GET, "/groups/shop/eu")[0] == 400


@pytest.mark.slow
@pytest.mark.clients
def test_a_transaction_is_shown_with_its_partitions(served: Served) -> None:
    """While it is open, and when it is complete."""
    producer = Producer(
        {"bootstrap.servers": served.cluster.bootstrap_servers, "transactional.id": "till-1"}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", b"x", partition=1)
    producer.flush(20)
    shown: dict[str, Any] = served.ask(GET, "/transactions/till-1")
    assert (shown["state"], shown["partitions"]) == ("Ongoing", [["orders", 1]])
    producer.commit_transaction(20)
    served.cluster.wait_until(
        lambda: served.ask(GET, "/transactions")[0]["state"] == "CompleteCommit"
    )
    assert served.call(GET, "/transactions/other")[0] == 400


def test_an_assignment_that_is_none_is_not_read() -> None:
    """Members of other kinds of groups may store anything."""
    assert assigned_partitions(b"") == []
    assert assigned_partitions(b"\0\0\0\0\0\1\0\1a\0\0\0\1\0\0\0\7\0\0\0\0") == [["a", 7]]
    assert assigned_partitions(b"\0\0\0\0\0\1\0\1a\0\0\0\2\0\0\0\7") is None
    assert assigned_partitions(b"x") is None
