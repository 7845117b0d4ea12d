"""The log of a served cluster: its events, levels and formats."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka import Cluster
from fakekafka.cli.server_log import TOLD_AT_ONCE_MAX, ServerLog, writer
from fakekafka.control.watching.events import EventFeed


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(1) as cluster:
        yield cluster


REFUSED: dict[str, Any] = {
    "type": "refused",
    "broker": 1,
    "api": "Produce",
    "client_id": "till\n2026-01-01 ERROR forged",
    "address": "127.0.0.1:9",
    "reason": "orders-0 MESSAGE_TOO_LARGE",
    "is_usual": False,
    "count": 1,
    "seconds": 0.0,
}
USUAL = {**REFUSED, "is_usual": True}


def written(cluster: Cluster, *events: dict[str, Any], least: str = "info") -> list[str]:
    """Return the lines that a log writes for some events, without their times."""
    stream = io.StringIO()
    feed = EventFeed(cluster, with_details=True)
    log = ServerLog(feed, least, writer("plain", stream))
    for event in events:
        feed.publish(event)
    log.close()
    return [line[24:] for line in stream.getvalue().splitlines()]


def test_a_name_chosen_by_a_client_cannot_forge_a_line(cluster: Cluster) -> None:
    """A line break in a client's name is escaped."""
    topic = {"type": "topic", "topic": "a\n\x1b[2J", "change": "deleted"}
    refused, deleted = written(cluster, REFUSED, topic)
    assert refused == (
        "WARNING broker 1 refuses Produce of client 'till\\n2026-01-01 ERROR forged' "
        "(127.0.0.1:9): orders-0 MESSAGE_TOO_LARGE"
    )
    assert deleted == "INFO    topic a\\x0a\\x1b[2J is deleted"


def test_details_are_written_at_debug_only(cluster: Cluster) -> None:
    """Connections, and errors that clients handle by themselves, are logged at debug."""
    opened = {"type": "connection", "change": "opened", "broker": 1, "connection": "a-b-0"}
    assert written(cluster, opened, USUAL) == []
    first, second = written(cluster, opened, USUAL, least="debug")
    assert first == "DEBUG   connection a-b-0 to broker 1"
    assert second.startswith("DEBUG   broker 1 refuses Produce")


def test_many_events_of_one_kind_are_one_line_more(cluster: Cluster) -> None:
    """Many events of one kind, as of thousands of partitions, are merged into a count."""
    topics = [
        {"type": "topic", "topic": f"t{number}", "change": "deleted"}
        for number in range(TOLD_AT_ONCE_MAX + 7)
    ]
    feed, stream = EventFeed(cluster), io.StringIO()
    log = ServerLog(feed, "info", writer("plain", stream))
    for event in topics:
        log._queue.put({**event, "text": "deleted"})
    log.close()
    lines = stream.getvalue().splitlines()
    told = sum("more like it" not in line for line in lines)
    left = [line for line in lines if "more like it" in line]
    assert told + sum(int(line.split(" and ")[1].split()[0]) for line in left) == len(topics)


def test_json_has_the_fields_of_the_event_and_its_words(cluster: Cluster) -> None:
    stream = io.StringIO()
    feed = EventFeed(cluster)
    log = ServerLog(feed, "info", writer("json", stream), folds=False)
    feed.publish(REFUSED)
    log.close()
    event = json.loads(stream.getvalue())
    assert (event["type"], event["level"], event["broker"]) == ("refused", "warning", 1)
    assert event["client_id"] == REFUSED["client_id"]
    assert event["text"].startswith("broker 1 refuses Produce")
    assert "T" in event["time"]


def test_warnings_of_the_cluster_are_lines_too(cluster: Cluster) -> None:
    """Warnings of Python's logging are lines of the log; its infos are not."""
    stream = io.StringIO()
    log = ServerLog(EventFeed(cluster), "info", writer("plain", stream))
    logger = logging.getLogger("fakekafka.wire")
    logger.warning("closed %s", "a connection")
    logger.info("nothing to see")
    log.close()
    assert [line[24:] for line in stream.getvalue().splitlines()] == [
        "WARNING wire: closed a connection"
    ]
    assert logging.getLogger("fakekafka").level == logging.NOTSET


def test_a_terminal_gets_colours_and_a_pipe_does_not(cluster: Cluster) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, has_colours in ((Terminal(), True), (io.StringIO(), False)):
        feed = EventFeed(cluster)
        log = ServerLog(feed, "info", writer("auto", stream))
        feed.publish({"type": "topic", "topic": "[red]orders", "change": "deleted"})
        log.close()
        assert "topic [red]orders is deleted" in stream.getvalue()
        assert ("\x1b[" in stream.getvalue()) == has_colours


def test_a_closed_pipe_ends_only_the_log(cluster: Cluster) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(text)

    feed = EventFeed(cluster)
    log = ServerLog(feed, "info", writer("plain", Closed()))
    feed.publish(REFUSED)
    log.close()
    assert not log._thread.is_alive()
