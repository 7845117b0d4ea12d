"""The control API: every operation against a real cluster, and the server that offers it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka import Cluster
from fakekafka.control.openapi import openapi
from fakekafka.control.server import ControlServer

GET, POST, DELETE = "GET", "POST", "DELETE"


SERVERS: dict[int, ControlServer] = {}
"""Control servers by the id of the cluster that each serves."""


@pytest.fixture(scope="module")
def one() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        server = SERVERS[id(cluster)] = ControlServer(cluster)
        yield cluster
        del SERVERS[id(cluster)]
        server.close()


@pytest.fixture
def cluster(one: Cluster) -> Iterator[Cluster]:
    """A cluster of three brokers with the topic orders, emptied afterwards."""
    one.create_topic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
    yield one
    one.reset()


def dispatch(cluster: Cluster, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Return (status, value) of a call."""
    data = json.dumps(body).encode() if body else None
    return http(method, SERVERS[id(cluster)].url + path, data)


def ask(cluster: Cluster, method: str, path: str, **body: Any) -> Any:
    """Return the value of a successful call, as JSON carries it."""
    status, value = dispatch(cluster, method, path, body)
    assert status == 200, value
    return value


def test_brokers_are_listed_with_state_clock_and_port(cluster: Cluster) -> None:
    assert ask(cluster, GET, "/brokers") == [
        {
            "id": n,
            "name": f"broker-{n}",
            "state": "running",
            "is_alive": True,
            "is_paused": False,
            "clock_shift_ms": 0,
            "clock_rate": 1.0,
            "port": cluster.broker(n).port,
            "offline_log_dirs": [],
        }
        for n in (1, 2, 3)
    ]


@pytest.mark.parametrize("action", ["kill", "power_off", "shutdown"])
def test_a_broker_stops_and_starts_again(cluster: Cluster, action: str) -> None:
    ask(cluster, POST, f"/brokers/2/{action}")
    assert not cluster.broker(2).is_alive
    assert ask(cluster, GET, "/brokers")[1]["is_alive"] is False
    ask(cluster, POST, "/brokers/2/start")
    assert ask(cluster, GET, "/brokers")[1]["state"] == "running"


def test_a_broker_restarts(cluster: Cluster) -> None:
    incarnation = cluster.processes[3].broker
    ask(cluster, POST, "/brokers/3/restart")
    assert cluster.processes[3].broker is not incarnation
    assert cluster.broker(3).state == "running"


def test_a_broker_can_be_named_by_its_role(cluster: Cluster) -> None:
    """A call may name a broker by its role; the answer is about the broker that has the role
    now."""
    assert ask(cluster, GET, "/brokers/leader:orders-1")["id"] == 2
    ask(cluster, POST, "/brokers/follower:orders-0/pause")
    assert cluster.broker(2).is_paused
    ask(cluster, POST, "/brokers/2/resume")


def test_a_broker_pauses_and_resumes(cluster: Cluster) -> None:
    ask(cluster, POST, "/brokers/1/pause")
    assert cluster.broker(1).is_paused
    ask(cluster, POST, "/brokers/1/resume")
    assert not cluster.broker(1).is_paused


def test_topics_are_created_grown_configured_and_deleted(cluster: Cluster) -> None:
    ask(cluster, POST, "/topics", name="a", partitions=2, replication_factor=1)
    ask(cluster, POST, "/topics", name="b", assignment={"0": [3], "1": [1]}, config={})
    assert ask(cluster, GET, "/topics") == ["a", "b", "orders"]
    assert cluster.partition("b", 0).replicas == (3,)
    ask(cluster, POST, "/topics/a/partitions", count=4)
    assert cluster.partition("a", 3).leader in (1, 2, 3)
    ask(cluster, POST, "/topics/a/config", config={"retention.ms": 1234})
    broker = cluster.processes[1].broker
    assert broker is not None
    assert broker.dynamic_config.topic_config("a").overrides["retention.ms"] == "1234"
    ask(cluster, DELETE, "/topics/a")
    assert ask(cluster, GET, "/topics/") == ["b", "orders"]


def test_a_partition_is_shown_with_its_replicas(cluster: Cluster) -> None:
    shown = ask(cluster, GET, "/topics/orders/1")
    assert (shown["topic"], shown["partition"], shown["state"]) == ("orders", 1, "OnlinePartition")
    assert (shown["leader"], shown["replicas"]) == (2, [2, 3, 1])
    assert [view["broker_id"] for view in shown["replica_views"]] == [2, 3, 1]
    assert shown["replica_views"][0]["role"] == "leader"
    assert [name for name in shown if name.startswith("_")] == []


def test_a_partition_with_a_dead_replica_is_shown_too(cluster: Cluster) -> None:
    ask(cluster, POST, "/brokers/2/kill")
    cluster.wait_until(lambda: cluster.partition("orders", 1).leader == 3)
    shown = ask(cluster, GET, "/topics/orders/1")
    assert shown["leader"] == 3
    assert [view["broker_id"] for view in shown["replica_views"]] == [2, 3, 1]


def test_records_are_produced_and_consumed(cluster: Cluster) -> None:
    path = "/topics/orders/0/records"
    assert ask(cluster, POST, path, value="first", key="k") == 0
    assert ask(cluster, POST, path, value="größer", acks=1) == 1
    assert ask(cluster, POST, path, value=None, key="k") == 2
    found = ask(cluster, GET, path)
    assert [(r["offset"], r["key"], r["value"]) for r in found] == [
        (0, "k", "first"),
        (1, None, "größer"),
        (2, "k", None),
    ]
    cluster.produce("orders", b"\xff\x00")
    assert ask(cluster, GET, path)[3]["value"] == "\\xff\x00"


def test_leaders_are_elected(cluster: Cluster) -> None:
    cluster.broker(2).kill()
    cluster.wait_until(lambda: cluster.partition("orders", 1).leader == 3)
    cluster.broker(2).start()
    cluster.wait_until(lambda: 2 in cluster.partition("orders", 1).isr)
    found = ask(cluster, POST, "/elect_leaders", partitions=[["orders", 1], ["orders", 0]])
    assert found == {"orders-1": "NONE", "orders-0": "ELECTION_NOT_NEEDED"}
    cluster.wait_until(lambda: cluster.partition("orders", 1).leader == 2)
    found = ask(cluster, POST, "/elect_leaders", election="unclean")
    assert set(found.values()) <= {"ELECTION_NOT_NEEDED"}


def test_partitions_move(cluster: Cluster) -> None:
    ask(cluster, POST, "/reassign_partitions", reassignments=[["orders", 0, [3, 2]]])
    cluster.wait_until(lambda: cluster.partition("orders", 0).replicas == (3, 2))
    status, value = dispatch(
        cluster, POST, "/reassign_partitions", {"reassignments": [["orders", 0, None]]}
    )
    assert (status, value["name"]) == (409, "NO_REASSIGNMENT_IN_PROGRESS")


def test_the_controller_is_shown_and_resigns(cluster: Cluster) -> None:
    before = ask(cluster, GET, "/controller")
    assert before["id"] == cluster.controller.id
    assert before["metrics"]
    ask(cluster, POST, "/controller/resign")
    cluster.wait_until(lambda: cluster.controller.id is not None)
    assert ask(cluster, GET, "/controller")["epoch"] > before["epoch"]


def test_a_session_expires(cluster: Cluster) -> None:
    before = cluster.zookeeper.stat("/brokers/ids/2").czxid
    ask(cluster, POST, "/zookeeper/expire_session/2")
    cluster.wait_until(
        lambda: (
            "2" in cluster.zookeeper.children("/brokers/ids")
            and cluster.zookeeper.stat("/brokers/ids/2").czxid > before
        )
    )


def test_links_are_cut_slowed_and_healed(cluster: Cluster) -> None:
    ask(cluster, POST, "/network/partition", groups=[[1], [2, 3]], both_ways=True)
    assert cluster.runtime.network.is_cut("broker-1", "broker-2")
    assert cluster.runtime.network.is_cut("broker-2", "broker-1")
    ask(cluster, POST, "/network/latency", constant_ms=1)
    ask(cluster, POST, "/network/latency", constant_ms=0.0)
    ask(cluster, POST, "/network/heal")
    assert not cluster.runtime.network.is_cut("broker-1", "broker-2")


def test_an_injected_error_is_met_once(cluster: Cluster) -> None:
    ask(cluster, POST, "/injections", api="CreateTopics", error="INVALID_CONFIG", times=1)
    status, value = dispatch(cluster, POST, "/topics", {"name": "late"})
    assert (status, value["name"], value["code"]) == (409, "INVALID_CONFIG", 40)
    ask(cluster, POST, "/topics", name="late")


def test_the_cluster_is_emptied(cluster: Cluster) -> None:
    ask(cluster, POST, "/brokers/3/kill")
    ask(cluster, POST, "/reset")
    assert cluster.topics() == []
    assert cluster.broker(3).is_alive


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        (GET, "/nowhere", {}, 404, "there is no GET /nowhere; see /openapi.json"),
        (DELETE, "/brokers", {}, 405, "/brokers takes GET, not DELETE; see /openapi.json"),
        ("PUT", "/topics", {}, 405, "/topics takes GET and POST, not PUT"),
        (POST, "/openapi.json", {}, 405, "/openapi.json takes GET, not POST"),
        (POST, "/", {}, 405, "/ takes GET, not POST; see /openapi.json"),
        (POST, "/topics", {}, 400, "name is missing; write a string"),
        (POST, "/topics", {"name": "x", "part": 1}, 400, "part: unknown key; did"),
        (POST, "/topics", {"name": 3}, 400, "name must be a string, not 3"),
        (POST, "/topics", {"name": "x", "config": [1]}, 400, "config must be a mapping of "),
        (POST, "/topics", {"name": "x", "config": {"a": [1]}}, 400, "config.a must be a string, a"),
        (POST, "/topics", {"name": None}, 400, "name is missing"),
        (POST, "/topics", {"name": "x", "partitions": 2**31}, 400, "must be at most 2,147,483,647"),
        (POST, "/topics", {"name": "x", "partitions": True}, 400, "a whole number, not true"),
        (POST, "/topics", {"name": "x", "assignment": {"a": [1]}}, 400, "the key 'a', which"),
        (POST, "/topics", {"name": "x", "assignment": {"0": 1}}, 400, "assignment[0] must"),
        (POST, "/topics", {"name": "orders"}, 409, "TOPIC_ALREADY_EXISTS"),
        (POST, "/topics", {"name": "x", "replication_factor": 9}, 409, "INVALID_REPLICATION"),
        (DELETE, "/topics/nope", {}, 409, "UNKNOWN_TOPIC_OR_PARTITION"),
        (GET, "/topics/nope/0", {}, 400, "nope"),
        (GET, "/topics/orders/x", {}, 400, "partition must be a whole number >= 0, not 'x'"),
        (GET, "/topics/orders/-1", {}, 400, "partition must be a whole number >= 0, not -1"),
        (GET, "/topics/orders/9", {}, 400, "there is no partition orders-9"),
        (
            POST,
            "/topics/orders/0/records",
            {"value": 5},
            400,
            "value must be a string or null, not 5",
        ),
        (POST, "/brokers/9/kill", {}, 400, "there is no broker 9; ids are [1, 2, 3]"),
        (POST, "/brokers/1/start", {}, 400, "broker-1"),
        (POST, "/brokers/x/kill", {}, 400, "'x' names no broker; write an id"),
        (POST, "/elect_leaders", {"election": "fair"}, 400, "must be 'preferred' or 'unclean'"),
        (
            POST,
            "/elect_leaders",
            {"partitions": [["orders"]]},
            400,
            "partitions[0] must be a partition, such as 'orders-0'",
        ),
        (POST, "/elect_leaders", {"partitions": [["orders", "0"]]}, 400, "not ['orders', '0']"),
        (POST, "/reassign_partitions", {"reassignments": [["orders"]]}, 400, "not [['orders']]"),
        (
            POST,
            "/reassign_partitions",
            {"reassignments": [["a", 0, "1"]]},
            400,
            "reassignments.a-0 must be a list of broker ids or null, such as [2, 3, 1], not '1'",
        ),
        (POST, "/network/partition", {"groups": [[1]]}, 400, "needs two groups"),
        (POST, "/network/partition", {"groups": [[1], 2]}, 400, "groups[1] must be a list of mach"),
        (POST, "/network/latency", {"constant_ms": -1}, 400, "milliseconds >= 0, not -1"),
        (POST, "/network/latency", {"constant_ms": 10**400}, 400, "constant_ms must be at most"),
        (POST, "/injections", {"api": "Produce"}, 400, "inject needs an error"),
        (POST, "/injections", {"api": "Nothing", "error": "INVALID_CONFIG"}, 400, "Nothing"),
    ],
)
def test_a_wrong_request_is_answered_with_status_and_reason(
    one: Cluster, method: str, path: str, body: dict[str, Any], status: int, message: str
) -> None:
    if "orders" not in one.topics():
        one.create_topic("orders")
    got, value = dispatch(one, method, path, body)
    assert got == status, value
    assert message in json.dumps(value).replace('\\"', "'"), value
    assert one.failures == []


@pytest.fixture
def url(one: Cluster) -> str:
    return SERVERS[id(one)].url


def http(method: str, url: str, data: bytes | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, data=data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.headers["Content-Type"] == "application/json"
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_the_server_answers_over_http(one: Cluster, url: str) -> None:
    status, brokers = http(GET, url + "/brokers")
    assert (status, [broker["id"] for broker in brokers]) == (200, [1, 2, 3])
    assert http(POST, url + "/topics", b'{"name": "web", "partitions": 2}') == (200, None)
    assert "web" in one.topics()
    assert http(POST, url + "/topics/web/1/records", b'{"value": "x"}') == (200, 0)
    assert http(GET, url + "/topics/web/1")[1]["log_end_offset"] == 1
    assert http(DELETE, url + "/topics/web") == (200, None)
    assert http(GET, url + "/openapi.json") == (200, openapi())


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"\xff"])
def test_a_body_that_is_no_object_is_refused(url: str, body: bytes) -> None:
    status, value = http(POST, url + "/topics", body)
    assert status == 400
    assert value["error"].startswith("the body is not a JSON object")


@pytest.mark.parametrize("body", [b'{"constant_ms": NaN}', b"[" * 100_000])
def test_a_body_that_only_python_understands_is_refused(url: str, body: bytes) -> None:
    assert http(POST, url + "/network/latency", body)[0] == 400


@pytest.mark.parametrize("way", ["/topics?now=1", "/topics/?", "/t%6fpics"])
def test_a_query_is_ignored_and_paths_are_decoded(one: Cluster, url: str, way: str) -> None:
    assert http(GET, url + way) == (200, one.topics())


def test_an_unforeseen_error_is_an_answer(
    one: Cluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks() -> None:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(one, "topics", breaks)
    assert http(GET, url + "/topics") == (500, {"error": "RuntimeError: nobody thought of this"})


def test_errors_have_their_status_over_http(url: str) -> None:
    assert http(GET, url + "/nowhere")[0] == 404
    assert http(POST, url + "/brokers/9/kill")[0] == 400
    assert http(DELETE, url + "/topics/nope")[1]["code"] == 3


def test_a_closed_server_lets_its_port_go(one: Cluster) -> None:
    server = ControlServer(one)
    port = int(server.url.rpartition(":")[2])
    server.close()
    again = ControlServer(one, port)
    assert again.url == server.url
    again.close()
