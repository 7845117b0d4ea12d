"""How a follower synchronizes its history with the leader's."""

from __future__ import annotations

from fakekafka.protocol.awaiting import Task
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import CreateRequest, CreateSession, SetDataRequest, ZkCode
from fakekafka.zkfake.server.quorum_messages import Ack, AckEpoch, SyncFollower, SyncMode, Txn
from fakekafka.zkfake.server.storage import COMMITTED_LOG_TXNS, ZooKeeperStorage

OK = ZkCode.OK


def test_a_restarted_follower_gets_the_difference(trio: ZkNetwork) -> None:
    client = trio.client_at(3)
    trio.write(client, "/a")
    trio.run_for(5)
    trio.kill(1)
    trio.write(client, "/b", "/c")
    trio.log.clear()
    trio.start(1)
    trio.settle(3)
    (sync,) = trio.messages(SyncFollower)
    assert (sync.mode, len(sync.transactions)) == (SyncMode.DIFF, 2)
    assert trio.servers[1].children("/") == ["a", "b", "c"]


def test_a_follower_too_far_behind_gets_a_snapshot(trio: ZkNetwork) -> None:
    client = trio.client_at(3)
    trio.run_for(5)
    trio.kill(1)
    requests = [SetDataRequest("/", b"%d" % i) for i in range(2 * COMMITTED_LOG_TXNS + 5)]
    trio.run(client.handle_requests(requests))
    trio.write(client, "/a")
    trio.log.clear()
    trio.start(1)
    trio.settle(3)
    (sync,) = trio.messages(SyncFollower)
    assert sync.mode is SyncMode.SNAP
    assert trio.servers[1].tree() == trio.servers[3].tree()
    assert len(trio.storages[3].log) <= 2 * COMMITTED_LOG_TXNS
    trio.write(client, "/b")
    trio.run_for(5)
    snapshots = [s.storage.tree.snapshot() for s in trio.servers.values()]
    assert snapshots[0] == snapshots[1] == snapshots[2]


def test_a_server_with_an_empty_disk_is_brought_up_again(trio: ZkNetwork) -> None:
    client = trio.client_at(3)
    trio.write(client, "/a")
    trio.kill(1)
    trio.storages[1] = ZooKeeperStorage()
    trio.start(1)
    trio.settle(3)
    assert trio.servers[1].children("/") == ["a"]


def test_a_follower_without_a_common_point_asks_for_a_snapshot(trio: ZkNetwork) -> None:
    """A follower with a foreign log has no entry at which the leader tells it to truncate."""
    client = trio.client_at(3)
    trio.write(client, "/a")
    trio.run_for(5)
    trio.kill(1)
    trio.write(client, "/b")
    foreign = trio.storages[1] = ZooKeeperStorage()
    foreign.append(Txn(1, 0, 9, CreateSession(60_000)))
    foreign.append(Txn((1 << 32) + 2, 0, 9, CreateRequest("/foreign")))
    foreign.append(Txn((1 << 32) + 99, 0, 9, CreateRequest("/foreign2")))
    foreign.apply_all()
    trio.log.clear()
    trio.start(1)
    trio.settle(3)
    modes = [m.mode for m in trio.messages(SyncFollower)]
    assert modes == [SyncMode.TRUNC, SyncMode.SNAP]
    assert [m.needs_snapshot for m in trio.messages(AckEpoch)] == [False, True]
    assert trio.servers[1].tree() == trio.servers[3].tree()


def test_a_joining_follower_gets_pending_proposals(trio: ZkNetwork) -> None:
    """A write without a quorum is proposed to the new follower, whose acknowledgement
    completes it.
    """
    client = trio.client_at(3)
    trio.kill(1)
    trio.run_for(5)
    trio.lose = lambda source, to, m: (source, to) == ("zk-2", "zk-3") and isinstance(m, Ack)
    task = Task(client.send_once([CreateRequest("/a")]))
    trio.run_for(5)
    assert not task.done
    trio.start(1)
    trio.run_until(lambda: task.done, limit_ms=1900)
    assert task.result()[0].code is OK
