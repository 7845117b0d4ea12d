"""The watches that a client remembers, to arm them again (ZooKeeper: ``ZKWatchManager``)."""

from __future__ import annotations

import pytest
from fakekafka.zkfake.client.watches import ClientWatches
from fakekafka.zkfake.messages import (
    CreateRequest,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    SessionRequest,
    SetWatches,
    ZkCode,
    ZkResponse,
)

FOUND, MISSING = ZkResponse(ZkCode.OK), ZkResponse(ZkCode.NONODE)
REFUSED = ZkResponse(ZkCode.SESSIONEXPIRED)


def armed() -> ClientWatches:
    """Return watches of every kind, among them a data watch and a child watch of one node."""
    watches = ClientWatches()
    watches.on_response(GetDataRequest("/data", watch=True), FOUND)
    watches.on_response(ExistsRequest("/there", watch=True), FOUND)
    watches.on_response(ExistsRequest("/missing", watch=True), MISSING)
    watches.on_response(GetChildrenRequest("/data", watch=True), FOUND)
    return watches


def test_each_kind_of_watch_is_set_again_after_a_reconnection() -> None:
    """The request carries the last zxid that the client has seen."""
    expected = SetWatches(7, ("/data", "/there"), ("/missing",), ("/data",))
    assert armed().rearm_request(7) == expected


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (GetDataRequest("/a"), FOUND),
        (ExistsRequest("/a"), FOUND),
        (ExistsRequest("/a"), MISSING),
        (GetChildrenRequest("/a"), FOUND),
        (GetDataRequest("/a", watch=True), MISSING),
        (GetChildrenRequest("/a", watch=True), MISSING),
        (ExistsRequest("/a", watch=True), REFUSED),
        (GetDataRequest("/a", watch=True), REFUSED),
        (CreateRequest("/a"), FOUND),
    ],
)
def test_requests_without_a_watch_are_not_remembered(
    request_: SessionRequest, response: ZkResponse
) -> None:
    """Reads without a watch and failed reads arm none; only ``exists`` may wait for a node."""
    watches = ClientWatches()
    watches.on_response(request_, response)
    assert watches.rearm_request(7) is None


@pytest.mark.parametrize(
    ("event_type", "path", "expected"),
    [
        (EventType.NODE_CHILDREN_CHANGED, "/data", (("/data", "/there"), ("/missing",), ())),
        (EventType.NODE_DATA_CHANGED, "/data", (("/there",), ("/missing",), ("/data",))),
        (EventType.NODE_DELETED, "/data", (("/there",), ("/missing",), ())),
        (EventType.NODE_CREATED, "/missing", (("/data", "/there"), (), ("/data",))),
        (EventType.NODE_DELETED, "/there", (("/data",), ("/missing",), ("/data",))),
    ],
)
def test_a_watch_that_fired_is_used_up(
    event_type: EventType, path: str, expected: tuple[tuple[str, ...], ...]
) -> None:
    """A deletion uses up all watches of the node."""
    watches = armed()
    watches.on_event(event_type, path)
    assert watches.rearm_request(7) == SetWatches(7, *expected)


def test_a_new_session_has_no_watches() -> None:
    """Watches of every kind end with their session."""
    watches = armed()
    watches.clear()
    assert watches.rearm_request(7) is None


@pytest.mark.parametrize(
    "request_", [GetDataRequest("/a", watch=True), GetChildrenRequest("/a", watch=True)]
)
def test_one_watch_alone_is_armed_again(request_: SessionRequest) -> None:
    """A single watch is armed again, of whichever kind it is."""
    watches = ClientWatches()
    watches.on_response(request_, FOUND)
    assert watches.rearm_request(7) is not None
