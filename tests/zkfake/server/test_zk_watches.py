"""Watches at a server: which sessions are notified of a change, and how often."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.reachable import reachable
from fakekafka.zkfake.messages import (
    CreateRequest,
    CreateSession,
    DeleteRequest,
    EventType,
    SessionRequest,
    SetDataRequest,
    SetWatches,
)
from fakekafka.zkfake.tree import ZnodeTree
from fakekafka.zkfake.watches import WatchManager

CREATED, DELETED = EventType.NODE_CREATED, EventType.NODE_DELETED
CHANGED, CHILDREN = EventType.NODE_DATA_CHANGED, EventType.NODE_CHILDREN_CHANGED
MINE, THEIRS = 7, 8


class Watched:
    """A tree, its watches, and the events delivered since the last call of ``seen``."""

    def __init__(self) -> None:
        self.tree = ZnodeTree()
        self.told: list[tuple[int, EventType, str]] = []
        self.watches = WatchManager(lambda *event: self.told.append(event))
        self.zxid = 0
        self.write(CreateSession(30_000))

    def write(self, *requests: SessionRequest) -> None:
        for request in requests:
            self.zxid += 1
            self.tree.apply(self.zxid, 1000 + self.zxid, 1, request)
            self.watches.fire(self.tree.take_changes())

    def take_events(self) -> list[tuple[int, EventType, str]]:
        told, self.told = self.told, []
        return told


@pytest.fixture
def watched() -> Watched:
    made = Watched()
    made.write(CreateRequest("/a"), CreateRequest("/a/b"))
    made.take_events()
    return made


def test_every_session_that_watches_a_node_is_notified(watched: Watched) -> None:
    """Sessions are notified in the order of their watches (``WatchManager.triggerWatch``)."""
    for session in (THEIRS, MINE):
        watched.watches.add_data(session, "/a/b")
    watched.write(SetDataRequest("/a/b", b"new"))
    assert watched.take_events() == [(THEIRS, CHANGED, "/a/b"), (MINE, CHANGED, "/a/b")]


def test_a_session_with_both_watches_is_notified_of_a_deletion_once(watched: Watched) -> None:
    """``WatchManager.triggerWatch`` leaves out sessions that the data watch has notified."""
    watched.watches.add_data(MINE, "/a/b")
    watched.watches.add_children(MINE, "/a/b")
    watched.watches.add_children(THEIRS, "/a/b")
    watched.watches.add_children(MINE, "/a")
    watched.write(DeleteRequest("/a/b"))
    assert watched.take_events() == [
        (MINE, DELETED, "/a/b"),
        (THEIRS, DELETED, "/a/b"),
        (MINE, CHILDREN, "/a"),
    ]
    assert len(watched.watches) == 0


def test_a_watch_fires_once(watched: Watched) -> None:
    watched.watches.add_data(MINE, "/a/b")
    watched.write(SetDataRequest("/a/b", b"1"), SetDataRequest("/a/b", b"2"))
    assert watched.take_events() == [(MINE, CHANGED, "/a/b")]


def test_a_change_of_data_fires_no_child_watch(watched: Watched) -> None:
    """A change of data fires neither the node's own child watch nor its parent's."""
    watched.watches.add_children(MINE, "/a")
    watched.watches.add_children(MINE, "/a/b")
    watched.write(SetDataRequest("/a/b", b"1"))
    assert watched.take_events() == []
    watched.write(CreateRequest("/a/c"))
    assert watched.take_events() == [(MINE, CHILDREN, "/a")]


def test_a_reconnected_session_is_notified_of_missed_changes_at_once(watched: Watched) -> None:
    """``DataTree.setWatches`` compares the data watch with mzxid, and the child watch with pzxid,
    which both new and removed children change.
    """
    before = watched.zxid
    watched.write(CreateRequest("/a/c"))
    watched.watches.set_watches(
        MINE, SetWatches(before, ("/a", "/gone"), ("/new", "/a/c"), ("/a", "/a/b")), watched.tree
    )
    assert watched.take_events() == [
        (MINE, DELETED, "/gone"),
        (MINE, CREATED, "/a/c"),
        (MINE, CHILDREN, "/a"),
    ]
    before = watched.zxid
    watched.write(DeleteRequest("/a/c"), SetDataRequest("/a/b", b"1"))
    watched.take_events()
    watched.watches.set_watches(
        MINE, SetWatches(before, ("/a/b",), (), ("/a", "/a/b")), watched.tree
    )
    assert watched.take_events() == [(MINE, CHANGED, "/a/b"), (MINE, CHILDREN, "/a")]


def test_an_ended_session_is_not_notified(watched: Watched) -> None:
    for session in (MINE, THEIRS):
        watched.watches.add_data(session, "/a")
        watched.watches.add_children(session, "/a")
    watched.watches.remove_session(MINE)
    watched.write(CreateRequest("/a/c"), SetDataRequest("/a", b"1"))
    assert watched.take_events() == [(THEIRS, CHILDREN, "/a"), (THEIRS, CHANGED, "/a")]


def test_a_watched_path_is_forgotten_when_its_watch_has_fired(watched: Watched) -> None:
    """``triggerWatch`` takes the path from ``watch2Paths``: a controller's session lives as long as
    its broker, and watches every topic that ever existed.
    """
    before = reachable(watched.watches)
    for number in range(200):
        path = f"/a/{number}"
        watched.watches.add_data(MINE, path)
        watched.watches.add_children(MINE, path)
        watched.watches.add_children(MINE, "/a")
        watched.write(CreateRequest(path))
        watched.watches.add_data(MINE, path)
        watched.write(DeleteRequest(path))
        assert (MINE, DELETED, path) in watched.take_events()
    assert len(watched.watches) == 0
    assert reachable(watched.watches) - before <= 2  # the session, without watches


def test_a_watch_of_the_other_kind_outlives_the_first(watched: Watched) -> None:
    """A child watch outlives the data watch of its node, and ends with its session."""
    watched.watches.add_data(MINE, "/a")
    watched.watches.add_children(MINE, "/a")
    watched.write(SetDataRequest("/a", b"1"))
    assert watched.take_events() == [(MINE, CHANGED, "/a")]
    watched.watches.remove_session(MINE)
    watched.write(CreateRequest("/a/c"))
    assert watched.take_events() == []
