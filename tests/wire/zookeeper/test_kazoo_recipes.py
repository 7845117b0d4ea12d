"""kazoo's recipes: watchers, locks, elections and others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from fakekafka.tests.support.zookeeper_servers import Ensemble, Recorder

pytestmark = [pytest.mark.clients, pytest.mark.timeout(60)]


def in_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def test_a_data_watch_follows_a_node(server: Ensemble, recorder: Recorder) -> None:
    """The watch is set before the node exists, and still fires when the node is deleted."""
    client, other = server.kazoo(), server.kazoo()
    client.DataWatch("/a", lambda data, stat: recorder.add(data if stat else "gone"))
    assert recorder.take() == "gone"
    other.create("/a", b"1")
    assert recorder.take() == b"1"
    other.set("/a", b"2")
    assert recorder.take() == b"2"
    other.delete("/a")
    assert recorder.take() == "gone"


def test_a_children_watch_follows_the_children(server: Ensemble, recorder: Recorder) -> None:
    """Each change is seen, because the test waits for each."""
    client, other = server.kazoo(), server.kazoo()
    client.create("/p")
    client.ChildrenWatch("/p", lambda children: recorder.add(sorted(children)))
    assert recorder.take() == []
    other.create("/p/a")
    assert recorder.take() == ["a"]
    other.create("/p/b")
    assert recorder.take() == ["a", "b"]
    other.delete("/p/a")
    assert recorder.take() == ["b"]


def test_a_lock_is_held_by_one_client_at_a_time(server: Ensemble, recorder: Recorder) -> None:
    """The second client waits in line, is among the contenders, and gets the lock on release."""
    first, second = server.kazoo(), server.kazoo()
    held = first.Lock("/lock", "first")
    wanted = second.Lock("/lock", "second")
    assert held.acquire()
    assert wanted.acquire(blocking=False) is False

    waiting = in_thread(lambda: recorder.add(wanted.acquire(timeout=20)))
    server.until(lambda: held.contenders() == ["first", "second"])
    held.release()
    assert recorder.take() is True
    waiting.join(20)
    assert wanted.contenders() == ["second"]
    wanted.release()


def test_a_lock_passes_on_when_its_holder_expires(server: Ensemble, recorder: Recorder) -> None:
    """A lock's node is ephemeral, so the lock passes on when its holder's session expires."""
    first, second = server.kazoo(), server.kazoo()
    held, wanted = first.Lock("/lock", "first"), second.Lock("/lock", "second")
    held.acquire()
    waiting = in_thread(lambda: recorder.add(wanted.acquire(timeout=20)))
    server.until(lambda: wanted.contenders() == ["first", "second"])
    server.expire(first)
    assert recorder.take() is True
    waiting.join(20)


def test_an_election_hands_over(server: Ensemble, recorder: Recorder) -> None:
    """The next in line leads when the leader hands over."""
    leading = {name: threading.Event() for name in ("first", "second")}
    threads = []
    clients = {}
    for name, done in leading.items():
        client = clients[name] = server.kazoo()
        election = client.Election("/election", name)

        def lead(name: str = name, done: threading.Event = done) -> None:
            recorder.add(name)
            done.wait(20)

        threads.append(in_thread(partial(election.run, lead)))
        contenders = sorted(leading)[: len(threads)]
        server.until(
            lambda: sorted(election.contenders()) == contenders  # noqa: B023
        )
    assert recorder.take() == "first"
    assert clients["second"].Election("/election").contenders() == ["first", "second"]
    leading["first"].set()
    assert recorder.take() == "second"
    leading["second"].set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_counters_add_up_over_clients(server: Ensemble) -> None:
    """Every increment is a write guarded by the version read before."""
    clients = [server.kazoo() for _ in range(3)]

    def count(client: Any) -> None:
        counter = client.Counter("/counter")
        for _ in range(20):
            counter += 1

    threads = [in_thread(partial(count, client)) for client in clients]
    for thread in threads:
        thread.join(30)
    assert clients[0].Counter("/counter").value == 60


def test_queues_semaphores_parties_and_barriers_work(server: Ensemble, recorder: Recorder) -> None:
    """Queues, semaphores, parties and barriers work, which are built of the same parts."""
    first, second = server.kazoo(), server.kazoo()
    queue = first.Queue("/queue")
    queue.put(b"late", priority=100)
    queue.put(b"early", priority=1)
    assert [second.Queue("/queue").get() for _ in range(2)] == [b"early", b"late"]

    semaphores = [client.Semaphore("/semaphore", max_leases=2) for client in (first, first, second)]
    assert [semaphore.acquire(blocking=False) for semaphore in semaphores] == [True, True, False]

    party = first.Party("/party", "first")
    party.join()
    assert list(second.Party("/party", "second")) == ["first"]

    barrier = first.Barrier("/barrier")
    barrier.create()
    waiting = in_thread(lambda: recorder.add(second.Barrier("/barrier").wait(20)))
    barrier.remove()
    assert recorder.take() is True
    waiting.join(20)
