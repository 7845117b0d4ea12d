"""Kafka's view of ZooKeeper: paths, conditional writes, watches (docs/kafka/zookeeper.md)."""

from __future__ import annotations

import pytest
from fakekafka.protocol import znode_paths
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.zookeeper.requests import UNKNOWN_VERSION, parents_of
from fakekafka.tests.support.run_now import run_now
from fakekafka.tests.support.watch_handlers import ZnodeChangeHandler, ZnodeChildChangeHandler
from fakekafka.tests.support.zookeeper_fixture import ZkFixture
from fakekafka.zkfake.messages import ZkCode, ZooKeeperError

# --- paths


def test_top_level_paths_are_created_once(fixture: ZkFixture) -> None:
    """They are created with their parents and without data; creating them again is no error
    (docs/kafka/zookeeper.md#znodes)."""
    run_now(fixture.zk.brokers.create_top_level_paths())
    existing = list(fixture.zookeeper.tree.walk())
    assert all(path in existing for path in znode_paths.persistent_paths(behaviour("2.8")))
    assert fixture.zookeeper.get("/config/users") is None
    for path in ("/controller", "/controller_epoch", "/cluster", "/feature"):
        assert path not in existing
    for path in (znode_paths.REASSIGN_PARTITIONS, znode_paths.PREFERRED_REPLICA_ELECTION):
        assert path not in existing


def test_recursive_creation_and_deletion(fixture: ZkFixture) -> None:
    """Parents are created without data, and deletion includes everything below."""
    zk = fixture.zk
    run_now(zk.requests.create_recursive("/a/b/c", b"data"))
    run_now(zk.requests.make_sure_persistent_path_exists("/a/b/d"))
    run_now(zk.requests.make_sure_persistent_path_exists("/a/b/d"))
    assert (fixture.zookeeper.get("/a"), fixture.zookeeper.get("/a/b/c")) == (None, b"data")
    with pytest.raises(ZooKeeperError, match="NODEEXISTS"):
        run_now(zk.requests.create_recursive("/a/b/c"))
    assert run_now(zk.requests.delete_path("/a/b/c", recursive_delete=False))
    assert run_now(zk.requests.delete_recursive("/a"))
    assert not run_now(zk.requests.delete_recursive("/a"))
    assert not run_now(zk.requests.delete_path("/a", recursive_delete=False))
    assert not run_now(zk.requests.path_exists("/a"))
    assert parents_of("/a/b/c") == ["/a", "/a/b"]


def test_sequential_nodes_are_numbered_by_their_parent(fixture: ZkFixture) -> None:
    """CP-200: ten digits from zero."""
    run_now(fixture.zk.requests.create_recursive("/seq"))
    paths = [run_now(fixture.zk.requests.create_sequential("/seq/n_", b"")) for _ in range(2)]
    assert paths == ["/seq/n_0000000000", "/seq/n_0000000001"]


def test_conditional_updates(fixture: ZkFixture) -> None:
    """CP-200: a missing node and a wrong version return (False, unknown version)."""
    zk = fixture.zk
    failed = (False, UNKNOWN_VERSION)
    assert run_now(zk.requests.conditional_update_path("/n", b"x", 0)) == failed
    run_now(zk.requests.create_recursive("/n", b"0"))
    assert run_now(zk.requests.conditional_update_path("/n", b"1", 0)) == (True, 1)
    assert run_now(zk.requests.conditional_update_path("/n", b"2", 0)) == failed
    assert run_now(zk.requests.conditional_update_path("/n", b"1", 0, lambda d: d == b"1")) == (
        True,
        1,
    )
    assert (
        run_now(zk.requests.conditional_update_path("/n", b"2", 0, lambda d: d == b"2")) == failed
    )
    fixture.client.fail_next(lambda r: True, ZkCode.NOAUTH)
    with pytest.raises(ZooKeeperError, match="NOAUTH"):
        run_now(zk.requests.conditional_update_path("/n", b"1", 0))


def test_data_and_version(fixture: ZkFixture) -> None:
    """A missing node has no data and an unknown version."""
    run_now(fixture.zk.requests.create_recursive("/n", b"0"))
    assert run_now(fixture.zk.requests.get_data_and_version("/n")) == (b"0", 0)
    assert run_now(fixture.zk.requests.get_data_and_version("/m")) == (None, UNKNOWN_VERSION)
    assert run_now(fixture.zk.requests.exist(["/n", "/m"])) == [True, False]


class Watching(ZnodeChangeHandler, ZnodeChildChangeHandler):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_creation(self) -> None:
        self.seen.append("created")

    def on_child_change(self) -> None:
        self.seen.append("children")


def test_exists_arms_the_watch_of_a_missing_node(fixture: ZkFixture) -> None:
    """CP-196: creation fires the watch; an unregistered handler is not called."""
    zk, handler = fixture.zk, Watching()
    assert not run_now(zk.requests.register_znode_change_handler_and_check_existence("/n", handler))
    run_now(zk.requests.create_recursive("/n"))
    assert handler.seen == ["created"]
    assert not run_now(zk.requests.register_znode_change_handler_and_check_existence("/m", handler))
    zk.requests.client.unregister_change_handler("/m")
    run_now(zk.requests.create_recursive("/m"))
    assert handler.seen == ["created"]


def test_child_watches_are_set_only_if_requested(fixture: ZkFixture) -> None:
    """CP-196."""
    zk, handler = fixture.zk, Watching()
    zk.requests.client.register_child_change_handler(znode_paths.BROKER_TOPICS, handler)
    run_now(zk.topics.get_all_topics_in_cluster())
    run_now(zk.topics.create_topic_assignment("a", {}))
    assert handler.seen == []
    assert run_now(zk.topics.get_all_topics_in_cluster(register_watch=True)) == ["a"]
    run_now(zk.topics.get_all_topics_in_cluster())
    run_now(zk.topics.create_topic_assignment("b", {}))
    assert handler.seen == ["children"]
    zk.requests.client.unregister_child_change_handler(znode_paths.BROKER_TOPICS)
