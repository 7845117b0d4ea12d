"""The streams of the control API: elections, ISR changes, brokers, messages."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from fakekafka import Cluster
from fakekafka.control.server import ControlServer
from fakekafka.control.watching.events import KEPT, QUEUED_MAX, EventFeed, EventQueue
from fakekafka.control.watching.snapshots import ClusterSnapshot, Comparison

if TYPE_CHECKING:
    from fakekafka.tests.support.served import Served


class Stream:
    """A reader of server-sent events."""

    def __init__(self, url: str, **headers: str) -> None:
        request = urllib.request.Request(url, headers=headers)
        self._answer = urllib.request.urlopen(request, timeout=20)
        assert self._answer.headers["Content-Type"].startswith("text/event-stream")
        assert self._answer.readline() == b": fakekafka\n"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._answer:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Return the events up to the first that the predicate accepts."""
        seen = []
        for event in self:
            seen.append(event)
            if wanted(event):
                return seen
        raise AssertionError(f"the stream ended after {seen}")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()


def test_a_failover_is_streamed_event_by_event(served: Served) -> None:
    """A failover is reported as events: broker down, leader elected, ISR smaller, broker back, ISR
    complete; requests are, too."""
    with Stream(served.url + "/events") as stream:
        served.ask("POST", "/brokers/2/kill")
        seen = stream.until(lambda e: e["type"] == "election")
        election = seen[-1]
        assert (election["topic"], election["partition"]) == ("orders", 1)
        assert (election["leader"], election["was"]) == (3, 2)
        assert election["leader_epoch"] == election["was_epoch"] + 1
        seen += stream.until(lambda e: e["type"] == "isr" and e["partition"] == 1)
        assert seen[-1]["isr"] == [3, 1]
        assert {"broker", "action"} <= {event["type"] for event in seen}
        served.ask("POST", "/brokers/2/start")
        stream.until(lambda e: e["type"] == "isr" and 2 in e["isr"])
        served.ask("DELETE", "/topics/orders")
        stream.until(lambda e: e["type"] == "topic" and e["change"] == "deleted")
        served.ask("POST", "/topics", name="late", partitions=3, replication_factor=1)
        created = stream.until(lambda e: e["type"] == "topic" and e["change"] == "created")[-1]
        assert (created["topic"], created["partitions"]) == ("late", 3)


def test_missed_events_are_sent_when_the_reader_returns(served: Served) -> None:
    """Missed events are sent to a reader that gives its last id, in the query or in the header that
    browsers send."""
    with Stream(served.url + "/events") as stream:
        served.ask("POST", "/note", text="one")
        first = stream.until(lambda e: e["type"] == "action")[-1]
        served.ask("POST", "/topics", name="missed")
        # No other test may get events of this topic, however late its creation is noticed.
        stream.until(lambda e: e["type"] == "topic" and e["topic"] == "missed")
    for url, headers in (
        (f"/events?since={first['id']}", {}),
        ("/events", {"Last-Event-ID": str(first["id"])}),
    ):
        with Stream(served.url + url, **headers) as stream:
            event = stream.until(lambda e: e["type"] == "action")[-1]
            assert event["path"] == "/topics"


def test_every_event_has_an_id_for_resuming(served: Served) -> None:
    """Every event has its own id for resuming, also an event about a broker, which has an id of
    another kind."""
    feed = EventFeed(served.cluster)
    snapshot = ClusterSnapshot(served.cluster)
    comparison = Comparison(snapshot)
    later = ClusterSnapshot(served.cluster)
    later.brokers = {1: "paused", 2: "not_running", 3: "running"}
    later.zookeepers = {1: "not_running"}
    later.controller, later.epoch = None, -1
    for event in comparison.changes(later):
        feed.publish(event)
    events = feed.subscribe(lambda: None, since=0).take()
    assert [event["id"] for event in events] == [1, 2, 3, 4]
    assert [event.get("broker") for event in events] == [1, 2, None, None]
    assert [event.get("server") for event in events] == [None, None, 1, None]
    assert [event["type"] for event in events] == ["broker", "broker", "zookeeper", "controller"]


def test_a_new_controller_is_reported_without_deleted_topics(served: Served) -> None:
    """A new controller is reported, but no topics as deleted, although it forgets all partitions
    before it reads them again."""
    with Stream(served.url + "/events") as stream:
        served.ask("POST", "/controller/resign")
        served.ask("POST", "/note", text="done")
        seen = stream.until(lambda e: e.get("path") == "/note")
        if not any(event["type"] == "controller" for event in seen):
            seen += stream.until(lambda e: e["type"] == "controller")
    # Those of the test before may be noticed now; orders is there all the time.
    assert not any(e.get("change") == "deleted" and e["topic"] == "orders" for e in seen)


def test_messages_are_streamed_as_they_arrive(served: Served) -> None:
    """Messages are reported on arrival, filtered by kind and link."""
    url = served.url + "/messages?message=ProduceRequest&target=broker-1"
    with Stream(url) as stream:
        served.cluster.produce("orders", "x")
        (event,) = stream.until(lambda _: True)
        assert (event["message"], event["target"]) == ("ProduceRequest", "broker-1")
    assert served.call("GET", "/messages?message=Nothing")[0] == 400
    assert served.call("GET", "/messages?source=nobody")[0] == 400


def test_a_disconnected_reader_is_forgotten(served: Served) -> None:
    """A reader that disconnects is forgotten, and so is its observer of messages."""
    with Stream(served.url + "/messages"):
        assert served.cluster.runtime.network.is_watched
    served.cluster.wait_until(lambda: not served.cluster.runtime.network.is_watched, 30)


def test_a_slow_reader_loses_events_and_is_informed() -> None:
    """The queue of a slow reader is limited: the reader loses events and is informed."""
    woken: list[None] = []
    subscription = EventQueue(lambda: woken.append(None))
    for number in range(QUEUED_MAX + 7):
        subscription.put({"id": number})
    events = subscription.take()
    assert len(events) == QUEUED_MAX + 1
    assert (events[-1]["type"], events[-1]["count"]) == ("lost", 7)
    assert subscription.take() == []


def test_events_that_are_kept_have_a_limit(served: Served) -> None:
    feed = EventFeed(served.cluster)
    for number in range(KEPT + 5):
        feed.publish({"type": "note", "number": number})
    events = feed.subscribe(lambda: None, since=0).take()
    assert len(events) == KEPT
    assert events[0]["number"] == 5


def test_without_a_change_there_is_no_event(served: Served) -> None:
    comparison = Comparison(ClusterSnapshot(served.cluster))
    assert list(comparison.changes(ClusterSnapshot(served.cluster))) == []


def test_a_closed_server_ends_its_streams_at_once() -> None:
    """A closed server ends its streams at once, without waiting for readers."""
    with Cluster(1) as cluster:
        server = ControlServer(cluster)
        with Stream(server.url + "/events") as stream:
            server.close()
            assert list(stream) == []
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port), timeout=1)
