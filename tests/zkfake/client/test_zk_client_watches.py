"""The ZooKeeper client: watches by registered handlers."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.awaiting import Task
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import (
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    SetDataRequest,
    SetWatches,
    WatchEvent,
    ZkCode,
)


def test_exists_on_a_missing_node_arms_a_creation_watch(
    single: ZkNetwork, watcher: Any, log: list[str]
) -> None:
    """CP-196: the handler is called once, when the node is created."""
    client, other = single.connected(), single.connected("other")
    client.register_change_handler("/a", watcher())
    assert single.run(client.handle_request(ExistsRequest("/a"))).code is ZkCode.NONODE
    single.run(other.handle_request(CreateRequest("/a")))
    single.run(other.handle_request(SetDataRequest("/a", b"")))
    single.run_for(10)
    assert log == ["created"]


def test_get_data_arms_a_watch_only_on_a_node_that_exists(
    single: ZkNetwork, watcher: Any, log: list[str]
) -> None:
    client, other = single.connected(), single.connected("other")
    client.register_change_handler("/a", watcher())
    single.run(client.handle_request(GetDataRequest("/a")))
    single.run(other.handle_request(CreateRequest("/a")))
    single.run(client.handle_request(GetDataRequest("/a")))
    single.run(other.handle_request(SetDataRequest("/a", b"")))
    single.run(client.handle_request(GetDataRequest("/a")))
    single.run(other.handle_request(DeleteRequest("/a")))
    single.run_for(10)
    assert log == ["changed", "deleted"]


def test_no_watch_is_armed_without_a_handler(single: ZkNetwork) -> None:
    """CP-196: no watch is armed even if the request asks for one."""
    client = single.connected()
    single.run(client.handle_request(ExistsRequest("/a", watch=True)))
    assert len(single.servers[1].watches) == 0


def test_a_child_watch_is_set_only_if_requested(
    single: ZkNetwork, watcher: Any, log: list[str]
) -> None:
    """CP-196: a listing without a watch arms none and does not disturb an armed one."""
    client, other = single.connected(), single.connected("other")
    client.register_child_change_handler("/", watcher())
    single.run(client.handle_request(GetChildrenRequest("/")))
    single.run(other.handle_request(CreateRequest("/a")))
    assert log == []
    single.run(client.handle_request(GetChildrenRequest("/", watch=True)))
    single.run(client.handle_request(GetChildrenRequest("/")))
    single.run(other.handle_request(CreateRequest("/b")))
    single.run(other.handle_request(CreateRequest("/c")))
    single.run_for(10)
    assert log == ["children"]


def test_the_watches_of_a_deleted_node_are_used_up(
    single: ZkNetwork, watcher: Any, log: list[str]
) -> None:
    """The child watch is used up, too, and a new connection arms neither again."""
    client, other = single.connected(), single.connected("other")
    single.run(other.handle_request(CreateRequest("/a")))
    client.register_change_handler("/a", watcher())
    client.register_child_change_handler("/a", watcher("child "))
    single.run(client.handle_request(GetDataRequest("/a")))
    single.run(client.handle_request(GetChildrenRequest("/a", watch=True)))
    single.run(other.handle_request(DeleteRequest("/a")))
    single.run_for(10)
    seen = list(log)
    single.cut("client", "zk-1")
    single.run_for(4500)
    single.heal()
    single.run(client.wait_until_connected())
    single.run_for(10)
    assert log == seen
    assert not any(isinstance(getattr(m, "request", None), SetWatches) for *_, m in single.log)


def test_an_event_without_a_handler_is_ignored(
    single: ZkNetwork, watcher: Any, log: list[str]
) -> None:
    client, other = single.connected(), single.connected("other")
    client.register_change_handler("/a", watcher())
    client.register_child_change_handler("/", watcher())
    single.run(client.handle_requests([ExistsRequest("/a"), GetChildrenRequest("/", watch=True)]))
    client.unregister_change_handler("/a")
    client.unregister_child_change_handler("/")
    single.run(other.handle_request(CreateRequest("/a")))
    single.run_for(10)
    assert sum(isinstance(m, WatchEvent) for _, _, m in single.log) == 2
    assert log == []


def test_the_event_comes_before_the_answer_that_shows_the_change(
    single: ZkNetwork, watcher: Any, log: list[str]
) -> None:
    client, other = single.connected(), single.connected("other")
    client.register_change_handler("/a", watcher())
    single.run(client.handle_request(ExistsRequest("/a")))
    Task(other.handle_request(CreateRequest("/a", b"new")))

    async def poll() -> None:
        client.unregister_change_handler("/nothing")
        while (await client.handle_request(GetDataRequest("/a"))).data is None:
            pass
        log.append("read")

    single.run(poll())
    assert log == ["created", "read"]


def test_a_session_sees_its_own_watch_before_its_writes_answer(
    single: ZkNetwork, watcher: Any, log: list[str]
) -> None:
    client = single.connected()
    client.register_change_handler("/a", watcher())
    single.run(client.handle_request(ExistsRequest("/a")))

    async def write() -> None:
        await client.handle_request(CreateRequest("/a"))
        log.append("answered")

    single.run(write())
    assert log == ["created", "answered"]
