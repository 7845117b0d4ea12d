"""kazoo's client on an ensemble of three servers, whose leader is killed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from fakekafka.tests.support.zookeeper_servers import Ensemble, Recorder
from kazoo.client import KazooState

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.timeout(60)]


@pytest.fixture(params=["leader", "follower"])
def client(request: pytest.FixtureRequest, ensemble: Ensemble) -> Any:
    """Return a client connected to the server that will be killed, or to another."""
    leader, followers = ensemble.leader(), ensemble.followers()
    order = [leader, *followers] if request.param == "leader" else [*followers, leader]
    client = ensemble.kazoo(*order)
    session_id = client.client_id[0]
    has_session = ensemble.call(order[0], lambda core: session_id in core.connections.by_session)
    assert has_session
    return client


def kill_leader(ensemble: Ensemble, *clients: Any) -> None:
    """Kill the leader, and wait until every client has lost its server and found another."""
    states = [threading.Event() for _ in clients]
    was_suspended = [False] * len(clients)

    def listener(index: int) -> Any:
        def listen(state: str) -> None:
            if state == KazooState.SUSPENDED:
                was_suspended[index] = True
            elif state == KazooState.CONNECTED and was_suspended[index]:
                states[index].set()

        return listen

    for index, client in enumerate(clients):
        client.add_listener(listener(index))
    ensemble.kill(ensemble.leader())
    for event in states:
        assert event.wait(20), "a client did not find a server again"


def test_the_session_and_its_ephemeral_nodes_survive(ensemble: Ensemble, client: Any) -> None:
    """Session id, owner and data are kept, and writing goes on in a new epoch."""
    client.create("/a", b"x")
    client.create("/e", ephemeral=True)
    session = client.client_id
    before = client.exists("/e")
    kill_leader(ensemble, client)
    assert client.client_id == session
    assert client.retry(client.get, "/a")[0] == b"x"
    assert client.retry(client.exists, "/e") == before
    assert before.ephemeralOwner == session[0]
    changed = client.retry(client.set, "/a", b"y")
    assert changed.mzxid >> 32 > before.czxid >> 32


def test_a_killed_server_restarts_with_all_writes(ensemble: Ensemble, client: Any) -> None:
    """The server follows the new leader, and serves what was written without it."""
    client.create("/a", b"x")
    killed = ensemble.leader()
    kill_leader(ensemble, client)
    client.retry(client.create, "/b", b"while it was down")
    ensemble.start_server(killed)
    assert ensemble.leader() != killed
    there = ensemble.kazoo(killed)
    there.sync("/")
    assert there.get("/b")[0] == b"while it was down"
    assert there.set("/a", b"y").version == 1
    client.sync("/")
    assert client.get("/a")[0] == b"y"


def test_data_and_children_watches_miss_nothing(
    ensemble: Ensemble, client: Any, recorder: Recorder
) -> None:
    """Changes by another client are seen after the failover, the first and later ones."""
    client.create("/d", b"0")
    client.create("/c")
    client.DataWatch("/d", lambda data, stat: recorder.add(data))
    assert recorder.take() == b"0"
    client.ChildrenWatch("/c", lambda children: recorder.add(sorted(children)))
    assert recorder.take() == []
    other = ensemble.kazoo()
    kill_leader(ensemble, client, other)
    other.retry(other.set, "/d", b"1")
    recorder.take_until(b"1")
    other.retry(other.create, "/c/a")
    recorder.take_until(["a"])
    other.retry(other.set, "/d", b"2")
    recorder.take_until(b"2")


def test_a_lock_is_kept_and_passed_on(ensemble: Ensemble, client: Any, recorder: Recorder) -> None:
    """The holder of a lock and the client that waits for it keep their places in line."""
    other = ensemble.kazoo()
    held, wanted = client.Lock("/lock", "first"), other.Lock("/lock", "second")
    held.acquire()
    waiting = threading.Thread(target=lambda: recorder.add(wanted.acquire(timeout=30)))
    waiting.start()
    ensemble.until(lambda: held.contenders() == ["first", "second"])
    kill_leader(ensemble, client, other)
    assert client.retry(held.contenders) == ["first", "second"]
    assert not wanted.is_acquired
    client.retry(held.release)
    assert recorder.take() is True
    waiting.join(20)
    assert other.retry(wanted.contenders) == ["second"]


def test_an_election_of_kazoo_survives_a_failover(
    ensemble: Ensemble, client: Any, recorder: Recorder
) -> None:
    """The leader of kazoo's election stays, and then hands over."""
    other = ensemble.kazoo()
    done = threading.Event()

    def lead(name: str) -> None:
        recorder.add(name)
        assert done.wait(30)

    first, second = client.Election("/election", "first"), other.Election("/election", "second")
    threads = [threading.Thread(target=lambda: first.run(lead, "first"))]
    threads[0].start()
    assert recorder.take() == "first"
    threads.append(threading.Thread(target=lambda: second.run(lead, "second")))
    threads[1].start()
    ensemble.until(lambda: second.contenders() == ["first", "second"])
    kill_leader(ensemble, client, other)
    assert client.retry(first.contenders) == ["first", "second"]
    done.set()
    assert recorder.take() == "second"
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_a_transaction_is_whole_on_every_server(ensemble: Ensemble, client: Any) -> None:
    """One transaction is committed before the leader dies, and another fails afterwards."""
    transaction = client.transaction()
    transaction.create("/t")
    transaction.create("/t/a", b"1")
    assert transaction.commit() == ["/t", "/t/a"]
    kill_leader(ensemble, client)
    assert client.retry(client.get_children, "/t") == ["a"]
    failing = client.transaction()
    failing.set_data("/t/a", b"2")
    failing.check("/t", 9)
    failing.commit()
    for server_id in ensemble.serving():
        there = ensemble.kazoo(server_id)
        there.sync("/")
        assert there.get("/t/a")[0] == b"1"


def test_without_a_quorum_no_server_serves_and_the_session_waits(
    ensemble: Ensemble, client: Any
) -> None:
    """One server of three is no quorum, and two are."""
    client.create("/e", ephemeral=True)
    session = client.client_id
    for server_id in ensemble.followers():
        ensemble.kill(server_id)
    ensemble.until(lambda: not ensemble.serving())
    ensemble.until(lambda: not client.connected and client.state == KazooState.SUSPENDED)
    killed = [i for i, process in ensemble.processes.items() if not process.is_alive]
    ensemble.start_server(killed[0])
    ensemble.until(lambda: client.connected)
    assert client.client_id == session
    assert client.retry(client.exists, "/e").ephemeralOwner == session[0]


def test_a_client_cut_off_from_its_server_connects_to_another(ensemble: Ensemble) -> None:
    """Packets are lost silently, and the client notices by unanswered heartbeats."""
    first, second = ensemble.followers()
    client = ensemble.kazoo(first, second, timeout_s=3)
    client.create("/e", ephemeral=True)
    session_id = client.client_id[0]

    def cut() -> None:
        ensemble.runtime.network.cut("clients", f"zk-{first}")
        ensemble.runtime.network.cut(f"zk-{first}", "clients")

    ensemble.runtime.run_in(None, cut)
    ensemble.until(
        lambda: ensemble.call(second, lambda core: session_id in core.connections.by_session)
    )
    assert client.retry(client.exists, "/e").ephemeralOwner == session_id
    assert client.client_id[0] == session_id
