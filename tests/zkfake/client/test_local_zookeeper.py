"""The in-memory ZooKeeper client behaves as the real one does, but at once."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.awaiting import Pending
from fakekafka.tests.support.local_zookeeper import LocalZooKeeper, LocalZooKeeperClient
from fakekafka.tests.support.present import present
from fakekafka.tests.support.run_now import run_now
from fakekafka.tests.support.watch_handlers import ZnodeChangeHandler, ZnodeChildChangeHandler
from fakekafka.zkfake.client.handlers import StateChangeHandler
from fakekafka.zkfake.messages import (
    CheckRequest,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    SetDataRequest,
    SyncRequest,
    ZkCode,
)


@pytest.fixture
def zookeeper() -> LocalZooKeeper:
    return LocalZooKeeper(clock=lambda: 1234)


@pytest.fixture
def client(zookeeper: LocalZooKeeper) -> LocalZooKeeperClient:
    return LocalZooKeeperClient(zookeeper)


def ask(client: LocalZooKeeperClient, request: Any) -> Any:
    return run_now(client.handle_request(request))


def test_requests_are_answered_without_parking(client: LocalZooKeeperClient) -> None:
    answers = run_now(
        client.handle_requests(
            [
                CreateRequest("/a", b"1"),
                GetDataRequest("/a"),
                CheckRequest("/a", 0),
                SyncRequest("/"),
            ]
        )
    )
    assert [a.code for a in answers] == [ZkCode.OK] * 4
    assert answers[1].data == b"1"
    assert present(answers[0].stat).ctime == 1234
    assert client.zookeeper.get("/a") == b"1"
    assert client.zookeeper.children("/") == ["a"]
    assert client.requests[0] == CreateRequest("/a", b"1")


def test_events_reach_the_handlers_before_the_answer(zookeeper: LocalZooKeeper) -> None:
    """Events of other clients' requests come first, too; a handler's own requests are queued."""
    client, other = LocalZooKeeperClient(zookeeper), LocalZooKeeperClient(zookeeper)
    log: list[str] = []

    class Handler(ZnodeChangeHandler):
        def on_creation(self) -> None:
            log.append("created")
            ask(client, ExistsRequest("/a"))
            ask(client, SetDataRequest("/a", b"again"))
            log.append("written")

        def on_data_change(self) -> None:
            log.append("changed")

    class Children(ZnodeChildChangeHandler):
        def on_child_change(self) -> None:
            log.append("children")

    client.register_change_handler("/a", Handler())
    client.register_child_change_handler("/", Children())
    ask(client, ExistsRequest("/a"))
    ask(client, GetChildrenRequest("/", watch=True))
    ask(other, CreateRequest("/a"))
    assert log == ["created", "written", "children", "changed"]


def test_default_handlers_ignore_everything(zookeeper: LocalZooKeeper) -> None:
    client = LocalZooKeeperClient(zookeeper)
    client.register_change_handler("/a", ZnodeChangeHandler())
    client.register_child_change_handler("/", ZnodeChildChangeHandler())
    client.register_state_change_handler("x", StateChangeHandler())
    ask(client, GetChildrenRequest("/", watch=True))
    for request in (CreateRequest("/a"), SetDataRequest("/a", b""), DeleteRequest("/a")):
        ask(client, ExistsRequest("/a"))
        assert ask(client, request).is_ok
    run_now(client.run_state_callbacks("on_auth_failure"))
    client.unregister_state_change_handler("x")
    assert client.callback_errors == []


def test_expiring_removes_ephemerals_and_runs_the_callbacks(zookeeper: LocalZooKeeper) -> None:
    client = LocalZooKeeperClient(zookeeper)
    log: list[Any] = []

    class Callbacks(StateChangeHandler):
        async def before_initializing_session(self) -> None:
            log.append((zookeeper.children("/"), client.is_connected))
            log.append((await client.handle_request(ExistsRequest("/"))).code)

        def after_initializing_session(self) -> None:
            log.append(client.is_connected)

    client.register_state_change_handler("x", Callbacks())
    ask(client, CreateRequest("/e", ephemeral=True))
    session_id = client.session_id
    assert client.expire().done
    assert log == [([], False), ZkCode.SESSIONEXPIRED, True]
    assert client.session_id != session_id


def test_a_parking_callback_delays_the_new_session(client: LocalZooKeeperClient) -> None:
    gate: Pending[None] = Pending()

    class Slow(StateChangeHandler):
        def before_initializing_session(self) -> Pending[None]:
            return gate

    client.register_state_change_handler("x", Slow())
    task = client.expire()
    assert not task.done
    assert ask(client, SyncRequest("/")).code is ZkCode.SESSIONEXPIRED
    gate.set_result(None)
    assert task.done
    assert ask(client, SyncRequest("/")).code is ZkCode.OK


def test_the_watches_of_an_expired_session_do_not_fire(zookeeper: LocalZooKeeper) -> None:
    client, other = LocalZooKeeperClient(zookeeper), LocalZooKeeperClient(zookeeper)
    log: list[str] = []

    class Handler(ZnodeChangeHandler):
        def on_creation(self) -> None:
            log.append("created")

    client.register_change_handler("/a", Handler())
    ask(client, ExistsRequest("/a"))
    client.expire()
    ask(other, CreateRequest("/a"))
    assert log == []


def test_the_next_matching_request_can_be_failed_with_a_code(client: LocalZooKeeperClient) -> None:
    client.fail_next(lambda r: isinstance(r, SetDataRequest), ZkCode.BADVERSION)
    ask(client, CreateRequest("/a", b"0"))
    assert ask(client, SetDataRequest("/a", b"1")).code is ZkCode.BADVERSION
    assert client.zookeeper.get("/a") == b"0"
    assert ask(client, SetDataRequest("/a", b"1")).code is ZkCode.OK


def test_the_next_matching_request_can_raise(client: LocalZooKeeperClient) -> None:
    client.fail_next(lambda r: r == CreateRequest("/a"), OSError("no"))
    with pytest.raises(OSError, match="no"):
        ask(client, CreateRequest("/a"))


def test_a_lost_answer_is_repeated_and_finds_its_own_effect(client: LocalZooKeeperClient) -> None:
    client.fail_next(lambda r: True, ZkCode.CONNECTIONLOSS, applied=True)
    assert ask(client, CreateRequest("/a")).code is ZkCode.NODEEXISTS


def test_a_single_attempt_loses_all_that_follows_the_loss(client: LocalZooKeeperClient) -> None:
    """CP-199: all requests after the lost one fail with CONNECTIONLOSS and are not applied."""
    client.fail_next(lambda r: r == CreateRequest("/b"), ZkCode.CONNECTIONLOSS, times=2)
    requests = [CreateRequest("/a"), CreateRequest("/b"), CreateRequest("/c")]
    answers = run_now(client.send_once(requests))
    assert [a.code for a in answers] == [ZkCode.OK] + [ZkCode.CONNECTIONLOSS] * 2
    assert client.zookeeper.children("/") == ["a"]
    again = run_now(client.handle_requests(requests))
    assert [a.code for a in again] == [ZkCode.NODEEXISTS, ZkCode.OK, ZkCode.OK]


def test_closing_ends_the_session(zookeeper: LocalZooKeeper) -> None:
    client = LocalZooKeeperClient(zookeeper)
    client.start()
    run_now(client.wait_until_connected())
    ask(client, CreateRequest("/e", ephemeral=True))
    assert client.close().done
    assert zookeeper.children("/") == []
    assert not client.is_connected
    assert ask(client, SyncRequest("/")).code is ZkCode.SESSIONEXPIRED
    run_now(client._reinitialize())
    assert not client.is_connected


def test_the_session_of_an_abandoned_client_stays_until_it_expires(
    zookeeper: LocalZooKeeper,
) -> None:
    client = LocalZooKeeperClient(zookeeper)
    ask(client, CreateRequest("/e", ephemeral=True))
    client.abandon()
    assert zookeeper.children("/") == ["e"]
    zookeeper.close_session(client.session_id)
    zookeeper.close_session(client.session_id)
    assert zookeeper.children("/") == []
