"""The control API on faults with ids, ZooKeeper, log directories, groups, transactions, waiting."""

from __future__ import annotations

import threading
import urllib.request
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from fakekafka import Cluster
from fakekafka.control.group_operations import assigned_partitions
from fakekafka.control.server import ControlServer
from fakekafka.tests.support.served import Served

GET, POST, PUT, DELETE = "GET", "POST", "PUT", "DELETE"


def test_injections_have_ids_and_can_be_cancelled(served: Served) -> None:
    """Each injection has an id, its request and a count of its applications, and can be
    cancelled."""
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


def test_an_injection_may_have_no_limit(served: Served) -> None:
    """An injection without a limit affects every request until it is cancelled."""
    order = {"api": "CreateTopics", "error": "INVALID_CONFIG", "times": "all"}
    number = served.ask(POST, "/injections", **order)["id"]
    for _ in range(3):
        assert served.call(POST, "/topics", name="late")[0] == 409
    shown = served.ask(GET, f"/injections/{number}")
    assert (shown["applied"], shown["remaining"]) == (3, None)
    served.ask(DELETE, f"/injections/{number}")
    served.ask(POST, "/topics", name="late")
    status, value = served.call(POST, "/injections", api="Fetch", error="NONE", times="some")
    assert (status, "times must be a whole number >= 1, or 'all'" in value["error"]) == (400, True)


def test_single_partitions_can_fail(served: Served) -> None:
    """An injection may fail single partitions; the others in the request are served."""
    errors = [["orders", 0, "TOPIC_AUTHORIZATION_FAILED"]]
    number = served.ask(POST, "/injections", api="ListOffsets", errors=errors, times=5)["id"]
    partitions = [{"topic_partition": ["orders", n], "timestamp": -1} for n in (0, 1)]
    request = {"replica_id": -1, "partitions": partitions}
    found = [
        served.ask(POST, f"/brokers/leader:orders-{n}/ask", api="ListOffsets", request=request)[
            "partitions"
        ][n]
        for n in (0, 1)
    ]
    assert [one["error"] for one in found] == ["TOPIC_AUTHORIZATION_FAILED", "NONE"]
    served.ask(DELETE, f"/injections/{number}")
    both = {"error": "NONE", "errors": errors}
    assert served.call(POST, "/injections", api="ListOffsets", **both)[0] == 400


def test_an_answer_can_be_given_as_its_fields(served: Served) -> None:
    """An injection may replace the broker's answer by given fields."""
    answer = {"error": "COORDINATOR_LOAD_IN_PROGRESS", "groups": []}
    served.ask(POST, "/injections", api="ListGroups", answer=answer)
    assert served.ask(POST, "/brokers/1/ask", api="ListGroups") == answer
    assert served.ask(POST, "/brokers/1/ask", api="ListGroups")["error"] == "NONE"
    status, value = served.call(POST, "/injections", api="ListGroups", answer={"errors": "NONE"})
    assert (status, "answer has no 'errors'; did you mean 'error'" in value["error"]) == (400, True)


def test_a_broker_can_be_sent_any_request(served: Served) -> None:
    """A broker can be sent any request as fields; wrong fields are refused by name."""
    ask = "/brokers/2/ask"
    found = served.ask(POST, ask, api="Metadata", request={"topics": ["orders"]})
    (topic,) = found["topics"]
    assert (topic["name"], topic["error"]) == ("orders", "NONE")
    assert found["controller_id"] == served.cluster.controller.id
    for body, message in (
        ({"api": "Metadata"}, "request needs ['topics']"),
        ({"api": "Metadata", "request": {"topics": "orders"}}, "request.topics must be a list"),
        ({"api": "Metadata", "request": {"topics": [1]}}, "request.topics[0] must be a text"),
        ({"api": "Metadata", "request": {"topic": []}}, "request has no 'topic'"),
        ({"api": "Metadate"}, "there is no API 'Metadate'"),
        ({"api": "ListGroups", "timeout_s": 0}, "timeout_s must be a number of seconds above 0"),
    ):
        status, value = served.call(POST, ask, **body)
        assert (status, message in value["error"]) == (400, True), value


def test_the_bytes_of_two_replicas_are_compared(served: Served) -> None:
    served.cluster.produce("orders", [b"one", b"two"])
    served.cluster.wait_until(
        lambda: served.cluster.partition("orders", 0).replica(3).log_end_offset == 2
    )
    logs = []
    for query in ("", "?replica=3"):
        url = f"{served.url}/topics/orders/0/log{query}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert answer.headers["Content-Type"] == "application/octet-stream"
            logs.append(answer.read())
    assert logs[0] == logs[1] == served.cluster.log_bytes("orders", 0, 1)
    assert b"two" in logs[0]
    assert served.call(GET, "/topics/orders/7/log?replica=1")[0] == 400


def test_a_replica_moves_between_log_directories(served: Served) -> None:
    """A replica moves between log directories until its copy in the new directory is complete."""

    def directory() -> str:
        found = served.ask(GET, "/brokers/1/log_dirs")
        return str(next(one["path"] for one in found if "orders-0" in one["partitions"]))

    target = {"a": "b", "b": "a"}[directory()]
    where = {"topic": "orders", "partition": 0}
    served.ask(POST, "/brokers/1/move_replica", **where, log_dir=target)
    served.cluster.wait_until(lambda: directory() == target)
    status, value = served.call(POST, "/brokers/1/move_replica", **where, log_dir="nowhere")
    assert (status, value["name"]) == (409, "LOG_DIR_NOT_FOUND")


def test_waiting_for_a_group_that_does_not_become_stable_times_out(served: Served) -> None:
    body = {"group": "nobody", "members": 2, "timeout_s": 0}
    status, value = served.call(POST, "/wait_for_group", **body)
    assert (status, value["name"]) == (409, "WAIT_TIMEOUT")
    assert served.call(POST, "/wait_for_group", group="nobody", timeout_s=1000)[0] == 400


def test_messages_are_held_listed_and_released(served: Served) -> None:
    """Messages are held by kind and link, and some or all of them are released."""
    hold = served.ask(POST, "/network/holds", messages=["ProduceRequest"], target=1)["id"]
    producing = threading.Thread(target=lambda: served.cluster.produce("orders", "x"))
    producing.start()
    served.ask(POST, "/wait", condition='log_end_offset("orders", 0) == 0')
    served.cluster.wait_until(lambda: served.ask(GET, "/network/holds")[0]["held"] == 1)
    assert served.ask(GET, f"/network/holds/{hold}") == [
        {"message": "ProduceRequest", "source": "admin", "target": "broker-1", "is_reply": False}
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
    """Cuts, losses and delays of the network are shown until they are healed."""
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
    """Znodes are created, read, set and deleted, with versions, and with data as text."""
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


def test_a_zookeeper_server_stops_and_starts_again() -> None:
    with Cluster(1, zookeepers=3) as cluster:
        server = ControlServer(cluster)
        served = Served(cluster, server)
        served.ask(POST, "/zookeeper/servers/2/kill")
        assert [s["is_alive"] for s in served.ask(GET, "/zookeeper/servers")] == [True, False, True]
        served.ask(POST, "/zookeeper/servers/2/start")
        assert served.ask(GET, "/zookeeper/servers")[1]["is_alive"] is True
        assert served.call(POST, "/zookeeper/servers/9/kill")[0] == 400
        server.close()


def test_log_directories_fail_and_are_repaired(served: Served) -> None:
    """A log directory may be named by a partition in it, and fails and is repaired."""
    shown = served.ask(GET, "/brokers/3/log_dirs")
    assert [one["is_offline"] for one in shown] == [False, False]
    assert sorted(name for one in shown for name in one["partitions"]) == ["orders-0", "orders-1"]
    served.ask(POST, "/brokers/3/fail_log_dir", directory=1)
    assert served.ask(GET, "/brokers/3/log_dirs")[1]["is_offline"] is True
    assert len(served.ask(GET, "/brokers/3")["offline_log_dirs"]) == 1
    served.ask(POST, "/brokers/3/repair_log_dir", directory=1)
    assert served.ask(GET, "/brokers/3/log_dirs")[1]["is_offline"] is False
    served.ask(POST, "/brokers/3/restart")


def test_health_and_readiness(served: Served) -> None:
    """The health check answers even while the cluster does not serve."""
    assert served.ask(GET, "/ready") == {"is_ready": True, "controller": 1, "not_running": []}
    served.ask(POST, "/brokers/3/kill")
    status, value = served.call(GET, "/ready")
    assert (status, value["is_ready"], value["not_running"]) == (503, False, [3])
    assert served.ask(GET, "/health")["status"] == "up"
    assert served.ask(GET, "/cluster")["kafka_version"] == "3.9"
    served.ask(POST, "/brokers/3/start", wait=False)
    served.ask(POST, "/wait", condition="broker_state(3) == 'running'", timeout_s=20)


def test_waiting_for_a_condition(served: Served) -> None:
    """A wait for a condition succeeds, times out, or is refused if the condition is invalid."""
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
    """Records are read from a replica, up to a limit; consumers see them up to the high
    watermark."""
    for value in ("a", "b", "c"):
        served.ask(POST, "/topics/orders/0/records", value=value)
    path = "/topics/orders/0/records?offset=1&limit=1&replica=2"
    served.ask(POST, "/wait", condition='replica_end("orders", 0, 2) == 3')
    assert [record["value"] for record in served.ask(GET, path)] == ["b"]
    seen = served.ask(GET, "/topics/orders/0/consume?offset=1")
    assert [record["offset"] for record in seen] == [1, 2]
    status, value = served.call(GET, "/topics/orders/0/records?ofset=1")
    assert (status, "ofset: unknown key; did you mean 'offset'?" in value["error"]) == (400, True)
    assert served.call(GET, "/topics/orders/0/records?offset=-1")[0] == 400


def test_the_controller_moves(served: Served) -> None:
    served.ask(POST, "/controller/move_to/3")
    assert served.ask(GET, "/controller")["id"] == 3
    served.ask(POST, "/controller/move_to/1")


@pytest.mark.clients
def test_a_group_is_shown_with_members_offsets_and_lag(served: Served) -> None:
    """A group is shown as its coordinator describes it; a group without members can be deleted."""
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


@pytest.mark.clients
def test_a_transaction_is_shown_with_its_partitions(served: Served) -> None:
    """A transaction is shown with its partitions while it is open, and when it is complete."""
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


def test_a_malformed_assignment_is_not_parsed() -> None:
    """An assignment in another format is not decoded, as members of other kinds of groups may store
    anything."""
    assert assigned_partitions(b"") == []
    assert assigned_partitions(b"\0\0\0\0\0\1\0\1a\0\0\0\1\0\0\0\7\0\0\0\0") == [["a", 7]]
    assert assigned_partitions(b"\0\0\0\0\0\1\0\1a\0\0\0\2\0\0\0\7") is None
    assert assigned_partitions(b"x") is None


def test_one_link_is_restored_and_the_others_stay_unchanged(served: Served) -> None:
    """Restoring a link ends its cut, loss, latency and bandwidth; the settings of all links
    stay."""
    served.ask("POST", "/network/latency", constant_ms=1)
    for path, body in (
        ("partition", {"groups": [[1], [2, 3]]}),
        ("drop", {"probability": 0.1, "source": 1, "target": 2}),
        ("latency", {"constant_ms": 9, "source": 1, "target": 2}),
        ("bandwidth", {"mb_per_s": 3, "source": 1, "target": 2}),
    ):
        served.ask("POST", f"/network/{path}", **body)
    told = [fault["text"] for fault in served.ask("GET", "/state")["faults"]["at_work"]]
    assert told == [
        "nothing gets from broker-1 to broker-2",
        "nothing gets from broker-2 to broker-1",
        "nothing gets from broker-1 to broker-3",
        "nothing gets from broker-3 to broker-1",
        "0.1 of the messages from broker-1 to broker-2 are lost",
        "every message takes 1 ms",
        "messages from broker-1 to broker-2 take 9 ms",
        "the link from broker-1 to broker-2 sends 3 MB/s",
    ]
    served.ask("POST", "/network/restore", source=1, target=2)
    told = [fault["text"] for fault in served.ask("GET", "/state")["faults"]["at_work"]]
    assert told == [
        "nothing gets from broker-2 to broker-1",
        "nothing gets from broker-1 to broker-3",
        "nothing gets from broker-3 to broker-1",
        "every message takes 1 ms",
    ]
    served.ask("POST", "/network/restore", source=1)
    served.ask("POST", "/network/latency", constant_ms=0)
    assert served.ask("GET", "/state")["faults"]["at_work"] == []


def test_every_fault_names_the_request_that_ends_it(served: Served) -> None:
    """Every fault of brokers, links, messages, answers and disks can be ended by the request it
    names."""
    served.ask("POST", "/brokers/2/pause")
    served.ask("POST", "/network/isolate", machine=3)
    served.ask("POST", "/network/drop", probability=0.01)
    served.ask("POST", "/network/bandwidth", mb_per_s=2)
    served.ask("POST", "/network/latency", uniform_ms=[0, 1])
    hold = served.ask("POST", "/network/holds", messages=["DescribeAclsRequest"], target=2)["id"]
    injection = served.ask(
        "POST", "/injections", api="ListGroups", error="NOT_COORDINATOR", client_id="<b>"
    )["id"]
    served.ask("POST", "/brokers/1/fail_log_dir", directory=0)
    faults = served.ask("GET", "/state")["faults"]["at_work"]
    texts = [fault["text"] for fault in faults]
    assert texts[0].startswith("log directory ")
    assert texts[1:] == [
        "broker 2 is paused",
        "broker-3 is isolated",
        "0.01 of all messages are lost",
        "every message takes 0 to 1 ms",
        "every link sends 2 MB/s",
        f"hold {hold}: DescribeAclsRequest to 2 held back",
        f"injection {injection} into ListGroups: NOT_COORDINATOR, client_id <b>",
    ]
    for fault in faults[1:]:
        ending = fault["endings"][-1]
        served.ask(ending["method"], ending["path"], **ending["body"])
    left = [fault["text"] for fault in served.ask("GET", "/state")["faults"]["at_work"]]
    assert left == texts[:1]


def test_a_reset_recreates_the_initial_topics() -> None:
    """A reset recreates the initial topics, empty, unless the request asks for none."""
    with Cluster(3, topics={"first": {"partitions": 2, "replication_factor": 3}}) as cluster:
        server = ControlServer(cluster)
        try:
            served = Served(cluster, server)
            cluster.produce("first", "x")
            cluster.create_topic("second")
            served.ask("POST", "/reset")
            assert served.ask("GET", "/topics") == ["first"]
            view = served.ask("GET", "/topics/first/1")
            assert len(view["replicas"]) == 3
            assert cluster.records("first", 0) == []
            served.ask("POST", "/reset", initial_topics=False)
            assert served.ask("GET", "/topics") == []
        finally:
            server.close()
