"""The ZooKeeper client: expiry, closing and refused credentials."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.awaiting import Pending, Task
from fakekafka.tests.support.zookeeper_network import ZkNetwork, codes
from fakekafka.zkfake.client.client import ZooKeeperClient
from fakekafka.zkfake.client.handlers import StateChangeHandler
from fakekafka.zkfake.messages import (
    ConnectRequest,
    CreateRequest,
    ExistsRequest,
    MultiRequest,
    SetDataRequest,
    ZkCode,
    ZooKeeperError,
)
from fakekafka.zkfake.server.roles import ZooKeeperConfig


def test_callbacks_run_around_a_new_session(
    single: ZkNetwork, session_callbacks: Any, log: list[str]
) -> None:
    """CP-197, CP-198: a client learns of the expiry after reconnecting; callbacks run before and
    after the new session.
    """
    client = single.connected()
    client.register_state_change_handler("x", session_callbacks())
    session_id = client.session_id
    single.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    single.servers[1].expire_session(session_id)
    single.run_until(lambda: "after" in log)
    single.run(client.wait_until_connected())
    assert log == ["before", "after"]
    assert client.session_id not in (0, session_id)
    assert single.servers[1].children("/") == []


def test_a_new_session_has_seen_nothing(single: ZkNetwork) -> None:
    """A new session may use any server, even one that is behind what the old session saw."""
    client = single.connected()
    single.write(client, "/a", "/b")
    session_id = client.session_id
    single.servers[1].expire_session(session_id)
    single.run_until(lambda: client.is_connected and client.session_id != session_id)
    asked = [m for m in single.messages(ConnectRequest) if m.session_id == 0]
    assert [m.last_zxid_seen for m in asked] == [0, 0]


def test_a_failing_callback_stops_neither_the_others_nor_the_new_session(
    single: ZkNetwork, session_callbacks: Any, log: list[str]
) -> None:
    """CP-197: the failure is recorded, and the other callbacks and the new session follow."""
    client = single.connected()
    client.register_state_change_handler("bad", session_callbacks("bad ", fail=True))
    client.register_state_change_handler("good", session_callbacks("good "))
    single.servers[1].expire_session(client.session_id)
    single.run_until(lambda: len(log) == 4)
    single.run(client.wait_until_connected())
    assert log == ["bad before", "good before", "bad after", "good after"]
    assert [str(error) for error in client.callback_errors] == ["a bad callback"]


def test_the_new_session_waits_for_the_callbacks_before_it(single: ZkNetwork) -> None:
    """Requests made meanwhile get SESSIONEXPIRED, as the two could otherwise wait for
    each other.
    """
    client = single.connected()
    gate: Pending[None] = Pending()

    class Slow(StateChangeHandler):
        async def before_initializing_session(self) -> None:
            await gate

    client.register_state_change_handler("slow", Slow())
    single.servers[1].expire_session(client.session_id)
    single.run_for(10_000)
    assert not client.is_connected
    assert single.run(client.handle_request(ExistsRequest("/a"))).code is ZkCode.SESSIONEXPIRED
    gate.set_result(None)
    single.run(client.wait_until_connected())
    assert single.run(client.handle_request(ExistsRequest("/a"))).code is ZkCode.NONODE


def test_every_pipelined_request_is_answered_when_the_session_expires(
    single: ZkNetwork, session_callbacks: Any, log: list[str]
) -> None:
    """CP-198: pending requests get SESSIONEXPIRED, and later ones succeed on the new session."""
    client = single.connected(max_in_flight=3)
    client.register_state_change_handler("x", session_callbacks())
    task = Task(client.handle_requests([CreateRequest(f"/{i}") for i in range(20)]))
    single.run_for(5)
    single.servers[1].expire_session(client.session_id)
    single.run_until(lambda: task.done)
    answers = codes(task.result())
    made = answers.count(ZkCode.OK)
    assert 0 < made < 20
    assert answers == [ZkCode.OK] * made + [ZkCode.SESSIONEXPIRED] * (20 - made)
    assert single.run(client.handle_requests([ExistsRequest("/0")]))[0].code in (
        ZkCode.OK,
        ZkCode.SESSIONEXPIRED,
    )
    single.run_until(lambda: client.is_connected)
    assert single.run(client.handle_request(ExistsRequest("/0"))).code is ZkCode.OK
    assert log == ["before", "after"]


def test_an_expired_session_has_no_watches(single: ZkNetwork, watcher: Any, log: list[str]) -> None:
    client, other = single.connected(), single.connected("other")
    client.register_change_handler("/a", watcher())
    single.run(client.handle_request(ExistsRequest("/a")))
    single.servers[1].expire_session(client.session_id)
    single.run_until(lambda: not client.is_connected)
    single.run(client.wait_until_connected())
    single.run(other.handle_request(CreateRequest("/a")))
    single.run_for(10)
    assert log == []


def test_closing_ends_the_session_at_once(single: ZkNetwork) -> None:
    client = single.connected()
    single.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    before = Task(client.handle_request(ExistsRequest("/e")))
    closed = client.close()
    assert client.close() is closed
    after = Task(client.handle_request(ExistsRequest("/e")))
    single.run_until(lambda: closed.done)
    assert before.result().code is ZkCode.OK
    assert after.result().code is ZkCode.SESSIONEXPIRED
    assert single.servers[1].children("/") == []
    with pytest.raises(ZooKeeperError):
        single.run(client.wait_until_connected())


def test_closing_answers_unsent_requests(single: ZkNetwork) -> None:
    client = single.connected(max_in_flight=2)
    task = Task(client.handle_requests([ExistsRequest("/")] * 5))
    client.close()
    single.run_until(lambda: task.done)
    assert codes(task.result()) == [ZkCode.OK] * 2 + [ZkCode.SESSIONEXPIRED] * 3


def test_closing_without_a_connection_leaves_the_session_to_expire(single: ZkNetwork) -> None:
    client = single.connected()
    single.cut("client", "zk-1")
    single.run_for(4500)
    assert client.close().done
    assert len(single.servers[1].storage.tree.sessions) == 1
    single.run_for(8000)
    assert len(single.servers[1].storage.tree.sessions) == 0


def test_closing_an_unstarted_client_is_fine(single: ZkNetwork) -> None:
    client = ZooKeeperClient(single.servers[1].host, ["zk-1"], 6000)
    assert client.close().done


def test_refused_credentials_are_reported_and_tried_again(
    single: ZkNetwork, session_callbacks: Any, log: list[str]
) -> None:
    client = single.connected()
    client.register_state_change_handler("x", session_callbacks())
    single.servers[1].fail_authentication(client.session_id)
    single.run_for(5)
    assert log == ["auth failed"]
    assert single.run(client.handle_request(ExistsRequest("/"))).code is ZkCode.AUTHFAILED
    single.run(client.wait_until_connected())
    assert log == ["auth failed", "before", "after"]


def test_an_oversized_request_costs_the_connection(single: ZkNetwork) -> None:
    single.config = ZooKeeperConfig(max_packet_bytes=100)
    single.kill(1)
    single.start(1)
    client = single.connected()
    assert single.run(client.handle_request(CreateRequest("/a", b"x" * 100))).code is ZkCode.OK
    lost = single.run(client.send_once([SetDataRequest("/a", b"x" * 101)]))
    assert codes(lost) == [ZkCode.CONNECTIONLOSS]


def test_a_transaction_is_as_large_as_its_operations_together(single: ZkNetwork) -> None:
    """The limit ``jute.maxbuffer`` applies to the whole packet of a transaction."""
    single.config = ZooKeeperConfig(max_packet_bytes=100)
    single.kill(1)
    single.start(1)
    client = single.connected()
    fits = MultiRequest((CreateRequest("/a", b"x" * 50), SetDataRequest("/a", b"x" * 50)))
    assert single.run(client.handle_request(fits)).code is ZkCode.OK
    larger = MultiRequest((SetDataRequest("/a", b"x" * 50), SetDataRequest("/a", b"x" * 51)))
    assert codes(single.run(client.send_once([larger]))) == [ZkCode.CONNECTIONLOSS]
