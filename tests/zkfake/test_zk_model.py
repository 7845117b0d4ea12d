"""The tree, and a whole ensemble under faults, compared with a simple model."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.awaiting import Task
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import (
    CheckRequest,
    CloseSession,
    CreateRequest,
    CreateSession,
    DeleteRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    SetDataRequest,
    ZkCode,
)
from fakekafka.zkfake.tree import ZnodeTree
from hypothesis import given
from hypothesis import strategies as st

OK = ZkCode.OK


class Model:
    """A simple, slow model of ZooKeeper, which copies everything and stores nothing twice."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {"/": self.node(None, 0)}
        self.sessions: set[int] = set()

    @staticmethod
    def node(data: bytes | None, owner: int) -> dict[str, Any]:
        return {"data": data, "version": 0, "counter": 0, "owner": owner}

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(
            p[len(prefix) :]
            for p in self.nodes
            if p != "/" and p.startswith(prefix) and "/" not in p[len(prefix) :]
        )

    def apply(self, session: int, request: Any) -> ZkCode:
        if isinstance(request, CreateSession):
            self.sessions.add(session)
            return OK
        if session not in self.sessions:
            return ZkCode.SESSIONEXPIRED
        if isinstance(request, MultiRequest):
            before = {path: dict(node) for path, node in self.nodes.items()}
            for operation in request.operations:
                code = self.apply(session, operation)
                if code is not OK:
                    self.nodes = before
                    return code
            return OK
        if isinstance(request, CloseSession):
            self.sessions.discard(session)
            self.nodes = {p: n for p, n in self.nodes.items() if n["owner"] != session}
            return OK
        if isinstance(request, CreateRequest):
            return self.create(session, request)
        node = self.nodes.get(request.path)
        if node is None:
            return ZkCode.NONODE
        if request.path == "/" and isinstance(request, DeleteRequest):
            return ZkCode.BADARGUMENTS
        if request.version not in (-1, node["version"]):
            return ZkCode.BADVERSION
        if isinstance(request, SetDataRequest):
            node["data"] = request.data
            node["version"] += 1
        elif isinstance(request, DeleteRequest):
            if self.children(request.path):
                return ZkCode.NOTEMPTY
            del self.nodes[request.path]
        return OK

    def create(self, session: int, request: CreateRequest) -> ZkCode:
        path = request.path
        parent_path = path.rsplit("/", 1)[0] or "/"
        parent = self.nodes.get(parent_path)
        if parent is None:
            return ZkCode.NODEEXISTS if path in self.nodes else ZkCode.NONODE
        if request.sequential:
            path += str(parent["counter"]).rjust(10, "0")
        if path in self.nodes:
            return ZkCode.NODEEXISTS
        if parent["owner"]:
            return ZkCode.NOCHILDRENFOREPHEMERALS
        parent["counter"] += 1
        self.nodes[path] = self.node(request.data, session if request.ephemeral else 0)
        return OK


PATHS = st.sampled_from(["/", "/a", "/b", "/a/a", "/a/b", "/a/a/c", "/a0000000000"])
NEW_PATHS = st.sampled_from(["/a", "/b", "/a/a", "/a/b", "/a/a/c"])
DATA = st.sampled_from([None, b"", b"x", b"yy"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
OPERATIONS = st.one_of(
    st.builds(CreateRequest, NEW_PATHS, DATA, st.booleans(), st.booleans()),
    st.builds(DeleteRequest, PATHS, VERSIONS),
    st.builds(SetDataRequest, PATHS, DATA, VERSIONS),
    st.builds(CheckRequest, PATHS, VERSIONS),
)
WRITES = st.one_of(
    OPERATIONS,
    st.builds(MultiRequest, st.lists(OPERATIONS, min_size=1, max_size=4).map(tuple)),
    st.just(CloseSession()),
    st.just(CreateSession(1000)),
)


@given(st.lists(st.tuples(st.sampled_from([1, 2]), WRITES), max_size=40))
def test_the_tree_behaves_as_the_model(steps: list[tuple[int, Any]]) -> None:
    """After every step the codes and nodes are equal, and a snapshot restores an equal tree."""
    model = Model()
    tree = ZnodeTree()
    for session in (1, 2):
        model.apply(session, CreateSession(1000))
        tree.apply(tree.last_zxid + 1, 0, session, CreateSession(1000))
    for session, request in steps:
        response = tree.apply(tree.last_zxid + 1, 0, session, request)
        assert response.code is model.apply(session, request)
        assert set(tree.walk()) == set(model.nodes)
        for path, node in model.nodes.items():
            stat = tree.read(GetDataRequest(path)).stat
            assert stat is not None
            assert (stat.version, stat.ephemeral_owner) == (node["version"], node["owner"])
            assert tree.nodes[path].data == node["data"]
            children = tree.read(GetChildrenRequest(path)).children
            assert list(children) == model.children(path)
            assert stat.num_children == len(children)
    assert ZnodeTree.restored(tree.snapshot()).snapshot() == tree.snapshot()


FAULTS = st.sampled_from(["kill", "restart", "isolate", "heal", "lose", "run", "write", "write"])


@pytest.mark.slow
@given(st.lists(st.tuples(FAULTS, st.integers(1, 3), st.integers(0, 3)), max_size=15))
def test_an_ensemble_keeps_every_confirmed_write_through_any_faults(
    steps: list[tuple[str, int, int]],
) -> None:
    """Servers are killed, restarted and isolated, messages are lost, and a client writes. Once all
    is repaired, all servers hold the same tree, with every confirmed write and no node that was not
    requested. Each epoch has one leader.
    """
    network = ZkNetwork(seed=len(steps))
    network.ensemble(3)
    network.settle()
    client = network.connected(session_timeout_ms=40_000)
    confirmed: list[str] = []
    tasks: list[Task[None]] = []
    leader_of: dict[int, int] = {}

    async def write(path: str) -> None:
        response = await client.handle_request(CreateRequest(path))
        # A create repeated after a connection loss finds its own node.
        if response.code is not ZkCode.SESSIONEXPIRED:
            assert response.code in (OK, ZkCode.NODEEXISTS)
            confirmed.append(path)

    for action, server_id, amount in steps:
        if action == "kill" and server_id in network.servers:
            network.kill(server_id)
        elif action == "restart" and server_id not in network.servers:
            network.start(server_id)
        elif action == "isolate":
            network.isolate(f"zk-{server_id}")
        elif action == "heal":
            network.heal()
            network.lose = lambda *_: False
        elif action == "lose":
            network.lose = lambda *_: network.rng.random() < 0.1
        elif action == "write":
            tasks.append(Task(write(f"/n{len(tasks)}")))
        network.run_for([0.5, 3, 300, 12_000][amount])
        for leader in network.leaders():
            epoch = network.servers[leader].storage.current_epoch
            assert leader_of.setdefault(epoch, leader) == leader
    network.heal()
    network.lose = lambda *_: False
    for server_id in (1, 2, 3):
        if server_id not in network.servers:
            network.start(server_id)
    network.run_until(lambda: all(task.done for task in tasks))
    for task in tasks:
        task.result()
    network.settle()
    network.run_for(15_000)
    snapshots = [server.storage.tree.snapshot() for server in network.servers.values()]
    assert snapshots[0] == snapshots[1] == snapshots[2]
    paths = {record.path for record in snapshots[0].nodes} - {"/"}
    assert set(confirmed) <= paths <= {f"/n{i}" for i in range(len(tasks))}
