"""A journal describes the storage of a server: replaying it gives an equal storage."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.tests.support.zookeeper_network import EPOCH_MS, ZkNetwork
from fakekafka.zkfake.messages import (
    CheckRequest,
    CloseSession,
    CreateRequest,
    CreateSession,
    DeleteRequest,
    ExistsRequest,
    MultiRequest,
    SessionRequest,
    SetDataRequest,
    ZkCode,
)
from fakekafka.zkfake.server.journal import (
    Entry,
    Epochs,
    Saved,
    Truncation,
    decode_entry,
    decode_saved,
    encode_entry,
    encode_saved,
)
from fakekafka.zkfake.server.quorum_messages import Ack, Txn
from fakekafka.zkfake.server.storage import COMMITTED_LOG_TXNS, ZooKeeperStorage
from fakekafka.zkfake.tree import ZnodeTree

REQUESTS = [
    CreateSession(6000),
    CloseSession(),
    CreateRequest("/ä", b"\0data", ephemeral=True),
    CreateRequest("/q-", None, sequential=True),
    CreateRequest("/\ud800 no path", b"", ephemeral=True, sequential=True),
    DeleteRequest("/a"),
    DeleteRequest("/a", 3),
    SetDataRequest("/a", b"x" * 70_000, 2),
    SetDataRequest("/a", None),
    CheckRequest("/a", 7),
    MultiRequest(()),
    MultiRequest((CheckRequest("/a", 1), CreateRequest("/b", b""), DeleteRequest("/c"))),
]


class MemoryJournal:
    """A journal that keeps a file's bytes in memory; a snapshot is due every ``limit`` entries."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit = limit
        self.saved: bytes | None = None
        self.entries: list[bytes] = []
        self.saves = 0
        self.fails = False

    @property
    def is_due(self) -> bool:
        return len(self.entries) >= self.limit

    def append(self, entry: Entry) -> None:
        if self.fails:
            raise OSError("the disk is full")
        self.entries.append(encode_entry(entry))

    def save(self, saved: Saved, entries: list[Entry]) -> None:
        self.saves += 1
        self.saved = encode_saved(saved)
        self.entries = [encode_entry(entry) for entry in entries]

    def close(self) -> None:
        pass

    def restored(self, server_id: int) -> ZooKeeperStorage:
        saved = None if self.saved is None else decode_saved(self.saved)
        storage = ZooKeeperStorage.restored(server_id, saved, map(decode_entry, self.entries))
        storage.journal = self
        return storage


def journalled(network: ZkNetwork, size: int, limit: int = 1 << 30) -> dict[int, MemoryJournal]:
    """Start an ensemble with journals."""
    journals = {}
    for server_id in range(1, size + 1):
        storage = network.storages[server_id] = ZooKeeperStorage()
        journal = storage.journal = journals[server_id] = MemoryJournal(limit)
        assert journal is not None
    network.ensemble(size)
    network.settle()
    return journals


def in_another_process(network: ZkNetwork, journals: Any, start: bool = True) -> ZkNetwork:
    """Return a later network of the same ensemble, restored from its journals alone."""
    other = ZkNetwork(seed=1)
    other.clock.now_us = network.clock.now_us + 1_000_000
    for server_id, journal in journals.items():
        other.storages[server_id] = journal.restored(server_id)
    other.ensemble(len(journals), start)
    return other


# --- bytes


def test_an_epoch_that_could_not_be_logged_is_not_promised() -> None:
    """An epoch is written before it counts, as the server would not know it after a restart."""
    storage = ZooKeeperStorage()
    journal = MemoryJournal()
    storage.journal = journal
    storage.accepted_epoch, storage.current_epoch = 3, 2
    journal.fails = True
    with pytest.raises(OSError, match="the disk is full"):
        storage.accepted_epoch = 4
    with pytest.raises(OSError, match="the disk is full"):
        storage.current_epoch = 3
    assert (storage.accepted_epoch, storage.current_epoch) == (3, 2)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_a_transaction_survives_encoding(request_: Any) -> None:
    """The origin of the request is not kept, as that connection ended with the process."""
    txn = Txn((3 << 32) + 9, 1_767_225_600_000, (127 << 56) + 5, request_, 2, 99, 4)
    plain = Txn(txn.zxid, txn.time_ms, txn.session_id, request_)
    assert decode_entry(encode_entry(txn)) == plain


@pytest.mark.parametrize("entry", [Truncation((1 << 32) + 5), Epochs(4, 3)])
def test_other_entries_survive_encoding(entry: Any) -> None:
    assert decode_entry(encode_entry(entry)) == entry


def test_a_request_that_is_no_write_fails_again_when_replayed() -> None:
    """A client may put a read into a multi, which uses up a zxid and changes nothing."""
    multi = MultiRequest((CreateRequest("/a"), ExistsRequest("/b")))  # type: ignore[arg-type]
    txn = decode_entry(encode_entry(Txn(2, 0, 1, multi)))
    assert isinstance(txn, Txn)
    tree = ZnodeTree()
    tree.apply(1, 0, 1, CreateSession(6000))
    assert tree.apply(2, 0, 1, txn.request).code is ZkCode.UNIMPLEMENTED
    assert list(tree.walk()) == ["/"]


@pytest.mark.parametrize("data", [b"\x09", bytes((3,)) + bytes(24) + b"\x63"])
def test_an_entry_of_an_unknown_kind_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        decode_entry(data)


def test_a_snapshot_survives_encoding() -> None:
    tree = ZnodeTree()
    tree.apply(1, 5, 77, CreateSession(6000))
    requests: list[SessionRequest] = [
        CreateRequest("/a", b"1"),
        CreateRequest("/a/ü", None, ephemeral=True),
        CreateRequest("/a/n-", b"", sequential=True),
        SetDataRequest("/a", b"2"),
        DeleteRequest("/a/n-0000000001"),
    ]
    for zxid, request in enumerate(requests, 2):
        assert tree.apply(zxid, zxid * 10, 77, request).code is ZkCode.OK
    saved = Saved(1234, tree.snapshot())
    assert decode_saved(encode_saved(saved)) == saved


# --- one server


def test_a_standalone_server_restarts_with_its_tree(network: ZkNetwork) -> None:
    journals = journalled(network, 1)
    client = network.connected()
    network.write(client, "/a", "/a/b")
    assert network.run(client.handle_request(CreateRequest("/a"))).code is ZkCode.NODEEXISTS
    network.run(client.handle_request(SetDataRequest("/a", b"data")))
    before = network.storages[1].tree.snapshot()
    other = in_another_process(network, journals, start=False)
    other.storages[1].apply_all()
    assert other.storages[1].tree.snapshot() == before
    assert journals[1].saves == 0


@pytest.mark.parametrize("size", [1, 3])
def test_sessions_of_a_former_process_end_at_once(network: ZkNetwork, size: int) -> None:
    """Ephemeral nodes of former sessions are gone before the first client has a session."""
    journals = journalled(network, size)
    client = network.connected(session_timeout_ms=30_000)
    network.run(client.handle_request(CreateRequest("/here", None, ephemeral=True)))
    network.write(client, "/stays")
    old = client.session_id
    other = in_another_process(network, journals)
    other.settle()
    newcomer = other.connected("newcomer")
    assert next(s.children("/") for s in other.servers.values()) == ["stays"]
    assert list(other.storages[1].tree.sessions) == [newcomer.session_id]
    assert newcomer.session_id != old
    # A restart within the process does not end living sessions.
    for server_id in other.ids:
        other.kill(server_id)
    for server_id in other.ids:
        other.start(server_id)
    other.settle()
    assert newcomer.session_id in other.servers[other.leaders()[0]].storage.tree.sessions


def test_session_ids_are_not_given_out_twice(network: ZkNetwork) -> None:
    """Ids stay unique even if the clock was set back between two processes."""
    journals = journalled(network, 1)
    network.run_for(5000)
    ids = {network.connected(f"client-{i}").session_id for i in range(3)}
    for save in (False, True):
        if save:
            network.storages[1].save()
        other = in_another_process(network, journals)
        other.clock.now_ms = EPOCH_MS
        assert other.connected().session_id > max(ids)


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_a_snapshot_and_the_log_behind_it_restore_the_same_tree(
    network: ZkNetwork, limit: int
) -> None:
    journals = journalled(network, 1, limit)
    client = network.connected()
    for number in range(10):
        network.write(client, f"/n{number}")
    assert journals[1].saves >= 10 // (limit + 1)
    assert len(journals[1].entries) <= limit + 1
    before = network.storages[1].tree.snapshot()
    other = in_another_process(network, journals, start=False)
    other.storages[1].apply_all()
    assert other.storages[1].tree.snapshot() == before


def test_a_closed_storage_leaves_nothing_to_replay(network: ZkNetwork) -> None:
    journals = journalled(network, 1)
    network.write(network.connected(), "/a")
    network.storages[1].close()
    assert network.storages[1].journal is None
    assert [decode_entry(entry) for entry in journals[1].entries] == [Epochs(0, 0)]
    assert journals[1].restored(1).tree.find("/a") is not None


def test_a_write_that_cannot_be_logged_is_not_applied(network: ZkNetwork) -> None:
    journals = journalled(network, 1)
    client = network.connected()
    network.write(client, "/a")
    zxid = network.servers[1].last_zxid
    journals[1].fails = True
    with pytest.raises(OSError, match="full"):
        network.run(client.handle_request(CreateRequest("/b")))
    assert network.servers[1].children("/") == ["a"]
    assert network.servers[1].last_zxid == zxid


# --- an ensemble


def test_an_ensemble_restarts_with_the_writes_of_a_quorum(network: ZkNetwork) -> None:
    """The server with the longest history leads, whatever its id."""
    journals = journalled(network, 3)
    client = network.client_at(3)
    network.write(client, "/a")
    network.run_for(10)
    network.kill(2)
    network.write(client, "/b")
    network.run_for(10)
    journal = journals[3]
    other = in_another_process(network, {1: journals[1], 2: journals[2], 3: journal})
    leader = other.settle()
    assert leader == 3
    epoch = network.storages[3].current_epoch
    assert other.storages[3].current_epoch > epoch
    other.run_for(100)
    assert [s.children("/") for s in other.servers.values()] == [["a", "b"]] * 3
    other.write(other.connected(), "/c")


def test_a_minority_with_a_shorter_log_does_not_lead(network: ZkNetwork) -> None:
    """The election compares the logs of the former process."""
    journals = journalled(network, 3)
    client = network.client_at(3)
    network.run_for(10)
    network.kill(2)
    network.write(client, "/a")
    network.run_for(10)
    other = in_another_process(network, journals, start=False)
    other.start(1)
    other.start(2)
    assert other.settle(2) == 1
    other.run_for(100)
    assert other.servers[2].children("/") == ["a"]


def test_a_write_that_only_one_server_logged_is_truncated(network: ZkNetwork) -> None:
    """A server truncates writes that no other server logged, and its journal records that."""
    journals = journalled(network, 3)
    client = network.client_at(3)
    network.write(client, "/a")
    network.run_for(10)
    network.lose = lambda source, to, m: source == "zk-3" and to in ("zk-1", "zk-2")
    network.servers[3].role.submit(None, client.session_id, 0, CreateRequest("/lonely"))
    lonely = network.storages[3].log[-1].request
    assert isinstance(lonely, CreateRequest)
    assert lonely.path == "/lonely"
    other = in_another_process(network, journals, start=False)
    other.start(1)
    other.start(2)
    other.settle(2)
    other.write(other.client_at(1), "/b")
    other.start(3)
    other.settle(3)
    other.run_for(100)
    assert other.servers[3].children("/") == ["a", "b"]
    kinds = [type(decode_entry(entry)) for entry in journals[3].entries]
    assert Truncation in kinds
    third = in_another_process(other, journals)
    third.settle()
    third.run_for(100)
    assert [s.children("/") for s in third.servers.values()] == [["a", "b"]] * 3


def test_a_session_closed_by_a_former_process_is_not_closed_again(network: ZkNetwork) -> None:
    journals = journalled(network, 3)
    client = network.connected()
    closed = client.close()
    network.run_until(lambda: closed.done)
    network.run_for(10)
    other = in_another_process(network, journals)
    leader = other.settle()
    assert other.storages[leader].log[-1].zxid == network.storages[3].last_logged_zxid


def test_a_snapshot_from_the_leader_replaces_the_journal(network: ZkNetwork) -> None:
    """A server whose directory was lost gets the leader's tree, and keeps it."""
    journals = journalled(network, 3)
    network.write(network.client_at(3), "/a")
    network.run_for(10)
    network.kill(1)
    storage = network.storages[1] = ZooKeeperStorage()
    journal = storage.journal = MemoryJournal()
    network.storages[3].log.clear()
    network.storages[3]._applied_count = 0
    network.start(1)
    network.settle(3)
    network.run_for(10)
    assert journal.saves == 1
    restored = journal.restored(1)
    restored.apply_all()
    assert restored.tree.snapshot() == network.storages[3].tree.snapshot()
    assert restored.current_epoch == network.storages[3].current_epoch == 1
    assert journals[1] is not journal


def test_a_promised_epoch_survives_the_process(network: ZkNetwork) -> None:
    """An epoch is written to the journal before the server promises it."""
    journals = journalled(network, 3)
    assert network.messages(Ack)
    for server_id, journal in journals.items():
        restored = journal.restored(server_id)
        storage = network.storages[server_id]
        assert (restored.accepted_epoch, restored.current_epoch) == (
            storage.accepted_epoch,
            storage.current_epoch,
        ) == (1, 1)  # fmt: skip


def test_a_promised_epoch_is_logged_even_without_writes() -> None:
    """The server may die between its promise and receiving the leader's history."""
    journal = MemoryJournal()
    storage = journal.restored(1)
    storage.accepted_epoch = 5
    assert (journal.restored(1).accepted_epoch, journal.restored(1).current_epoch) == (5, 0)


def test_a_snapshot_keeps_logged_writes_that_are_not_applied() -> None:
    journal = MemoryJournal()
    storage = journal.restored(1)
    storage.current_epoch = 3
    storage.append(Txn(1, 0, 9, CreateSession(6000)))
    storage.append(Txn(2, 0, 9, CreateRequest("/a")))
    storage.apply_next()
    storage.save()
    restored = journal.restored(1)
    assert [txn.zxid for txn in restored.log] == [2]
    assert (restored.current_epoch, restored.tree.last_zxid) == (3, 1)


def test_sessions_of_the_snapshot_and_of_the_log_are_former_ones() -> None:
    """Ids that this server gave to former sessions are not reused; ids of other servers do not
    matter.
    """
    first, second, foreign = (1 << 56) + 5, (1 << 56) + 6, (2 << 56) + 7
    journal = MemoryJournal()
    storage = journal.restored(1)
    storage.append(Txn(1, 0, first, CreateSession(6000)))
    storage.apply_all()
    storage.save()
    storage.append(Txn(2, 0, second, CreateSession(6000)))
    storage.append(Txn(3, 0, foreign, CreateSession(6000)))
    restored = journal.restored(1)
    assert list(restored.former_sessions) == [first, second, foreign]
    assert restored.next_session_id == second + 1


# --- the log


def test_applied_writes_are_not_truncated() -> None:
    """If the leader requires that, its history differs, and only a snapshot helps."""
    storage = ZooKeeperStorage()
    for zxid in (1, 2, 3):
        storage.append(Txn(zxid, 0, zxid, CreateSession(6000)))
    storage.apply_next()
    storage.apply_next()
    assert not storage.truncate_after(1)
    assert [txn.zxid for txn in storage.log] == [1, 2, 3]
    assert storage.truncate_after(2)
    assert [txn.zxid for txn in storage.log] == [1, 2]


def test_a_snapshot_takes_the_place_of_the_log() -> None:
    """Transactions that were logged and not applied belong to another history."""
    source, storage = ZooKeeperStorage(), ZooKeeperStorage()
    source.append(Txn(5, 0, 5, CreateSession(6000)))
    source.apply_all()
    storage.append(Txn(1, 0, 1, CreateSession(6000)))
    storage.install(source.tree.snapshot())
    assert (storage.log, storage.last_logged_zxid, storage.base_zxid) == ([], 5, 5)


def test_a_log_that_has_become_long_begins_behind_its_base() -> None:
    """A follower whose log reaches the base gets the difference, not a snapshot."""
    storage = ZooKeeperStorage()
    for zxid in range(1, 2 * COMMITTED_LOG_TXNS + 1):
        storage.append(Txn(zxid, 0, 1, CreateSession(6000)))
        storage.apply_next()
    assert storage.base_zxid == COMMITTED_LOG_TXNS == storage.log[0].zxid - 1
    assert storage.position_of(COMMITTED_LOG_TXNS) == 0
