"""The znode tree: codes, versions, counters, transactions and snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.values import changed
from fakekafka.tests.support.present import present
from fakekafka.zkfake.messages import (
    CheckRequest,
    CloseSession,
    CreateRequest,
    CreateSession,
    DeleteRequest,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    SetDataRequest,
    SetWatches,
    Stat,
    SyncRequest,
    ZkCode,
    ZkResponse,
    ZooKeeperError,
)
from fakekafka.zkfake.tree import CONFIG_NODE, QUOTA_NODES, ZnodeTree

SESSION = 7
OTHER = 8


class Driver:
    """Applies requests with increasing zxids; the clock shows zxid * 10."""

    def __init__(self) -> None:
        self.tree = ZnodeTree()
        self(CreateSession(6000))
        self(CreateSession(6000), OTHER)

    def __call__(self, request: Any, session_id: int = SESSION) -> ZkResponse:
        zxid = self.tree.last_zxid + 1
        return self.tree.apply(zxid, zxid * 10, session_id, request)

    def read(self, request: Any) -> ZkResponse:
        return self.tree.read(request)

    def stat(self, path: str) -> Stat:
        return present(self.read(ExistsRequest(path)).raise_if_failed().stat)


@pytest.fixture
def zk() -> Driver:
    return Driver()


def test_a_new_node_carries_the_creating_transaction_in_its_stat(zk: Driver) -> None:
    """The zxid is 3, the first after two sessions, and versions start at 0."""
    response = zk(CreateRequest("/a", b"xyz"))
    assert response == ZkResponse(ZkCode.OK, "/a", Stat(3, 3, 3, 30, 30, 0, 0, 0, 0, 3, 0), zxid=3)
    assert zk.read(GetDataRequest("/a")).data == b"xyz"


def test_setting_data_moves_mzxid_mtime_and_version_only(zk: Driver) -> None:
    zk(CreateRequest("/a", b"x"))
    zk(SetDataRequest("/a", b"longer"))
    assert zk.stat("/a") == Stat(3, 4, 3, 30, 40, 1, 0, 0, 0, 6, 0)


def test_children_move_pzxid_and_cversion_of_the_parent(zk: Driver) -> None:
    """cversion counts additions and removals, and mzxid and version stay."""
    zk(CreateRequest("/a"))
    zk(CreateRequest("/a/b"))
    assert zk.stat("/a") == Stat(3, 3, 4, 30, 30, 0, 1, 0, 0, 0, 1)
    zk(CreateRequest("/a/c"))
    zk(DeleteRequest("/a/b"))
    assert zk.stat("/a") == Stat(3, 3, 6, 30, 30, 0, 3, 0, 0, 0, 1)


def test_data_may_be_absent_or_empty(zk: Driver) -> None:
    zk(CreateRequest("/none"))
    zk(CreateRequest("/empty", b""))
    assert zk.read(GetDataRequest("/none")).data is None
    assert zk.read(GetDataRequest("/empty")).data == b""


def test_a_recreated_node_starts_over_at_version_0_with_a_new_czxid(zk: Driver) -> None:
    zk(CreateRequest("/a"))
    zk(SetDataRequest("/a", b"1"))
    zk(DeleteRequest("/a"))
    stat = present(zk(CreateRequest("/a")).stat)
    assert (stat.version, stat.czxid) == (0, 6)


def test_children_are_listed_sorted_without_the_parents_path(zk: Driver) -> None:
    for name in ("c", "a", "b"):
        zk(CreateRequest(f"/{name}"))
    assert zk.read(GetChildrenRequest("/")).children == ("a", "b", "c")
    assert zk.read(GetChildrenRequest("/a")).children == ()


def no_write(request: Any) -> Any:
    """Return a request that a client may put into a multi, where no server accepts it."""
    return request


@pytest.mark.parametrize(
    ("prepared", "request_", "code"),
    [
        ((), CreateRequest("/a/b"), ZkCode.NONODE),
        (("/a",), CreateRequest("/a"), ZkCode.NODEEXISTS),
        ((), CreateRequest("/"), ZkCode.NODEEXISTS),
        ((), CreateRequest("/", sequential=True), ZkCode.OK),
        ((), CreateRequest("a"), ZkCode.BADARGUMENTS),
        ((), CreateRequest(""), ZkCode.BADARGUMENTS),
        ((), CreateRequest("/a/"), ZkCode.BADARGUMENTS),
        ((), CreateRequest("//a"), ZkCode.BADARGUMENTS),
        ((), CreateRequest("/./a"), ZkCode.BADARGUMENTS),
        ((), CreateRequest("/a/.."), ZkCode.BADARGUMENTS),
        ((), CreateRequest("/a\x00b"), ZkCode.BADARGUMENTS),
        ((), CreateRequest("/..a"), ZkCode.OK),
        ((), CreateRequest("/<default>"), ZkCode.OK),
        (("/a",), CreateRequest("/a/", sequential=True), ZkCode.OK),
        ((), DeleteRequest("/a"), ZkCode.NONODE),
        ((), DeleteRequest("/"), ZkCode.BADARGUMENTS),
        ((), DeleteRequest("a"), ZkCode.BADARGUMENTS),
        (("/a", "/a/b"), DeleteRequest("/a"), ZkCode.NOTEMPTY),
        (("/a", "/a/b"), DeleteRequest("/a", 3), ZkCode.BADVERSION),
        (("/a",), DeleteRequest("/a", 0), ZkCode.OK),
        ((), SetDataRequest("/a", b""), ZkCode.NONODE),
        (("/a",), SetDataRequest("/a", b"", 1), ZkCode.BADVERSION),
        (("/a",), SetDataRequest("/a", b"", 0), ZkCode.OK),
        ((), SetDataRequest("/", b"root"), ZkCode.OK),
        (("/a",), MultiRequest((no_write(GetDataRequest("/a")),)), ZkCode.UNIMPLEMENTED),
        ((), MultiRequest(()), ZkCode.OK),
        ((), MultiRequest((no_write(MultiRequest(())),)), ZkCode.UNIMPLEMENTED),
        ((), SetWatches(0, (), (), ()), ZkCode.UNIMPLEMENTED),
    ],
)
def test_writes_answer_zookeepers_codes(
    zk: Driver, prepared: tuple[str, ...], request_: object, code: ZkCode
) -> None:
    for path in prepared:
        zk(CreateRequest(path))
    assert zk(request_).code is code


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (GetDataRequest("/x"), ZkCode.NONODE),
        (GetDataRequest("x"), ZkCode.BADARGUMENTS),
        (ExistsRequest("/x"), ZkCode.NONODE),
        (GetChildrenRequest("/x"), ZkCode.NONODE),
        (CheckRequest("/x", 0), ZkCode.NONODE),
        (CheckRequest("/", 1), ZkCode.BADVERSION),
        (CheckRequest("/", 0), ZkCode.OK),
        (SyncRequest("/x"), ZkCode.OK),
        (DeleteRequest("/x"), ZkCode.UNIMPLEMENTED),
    ],
)
def test_reads_answer_zookeepers_codes(zk: Driver, request_: object, code: ZkCode) -> None:
    assert zk.read(request_).code is code


def test_an_epoch_node_is_set_created_and_compared_as_kafka_does(zk: Driver) -> None:
    """CP-71: set, create, create again, then set twice expecting version 0."""
    codes = [
        zk(request).code
        for request in (
            SetDataRequest("/epoch", b"0", 0),
            CreateRequest("/epoch", b"0"),
            CreateRequest("/epoch", b"0"),
            SetDataRequest("/epoch", b"1", 0),
            SetDataRequest("/epoch", b"2", 0),
        )
    ]
    assert codes == [ZkCode.NONODE, ZkCode.OK, ZkCode.NODEEXISTS, ZkCode.OK, ZkCode.BADVERSION]
    assert zk.stat("/epoch").version == 1


def test_a_failed_write_uses_up_a_zxid_and_changes_nothing(zk: Driver) -> None:
    before = zk.tree.snapshot()
    response = zk(DeleteRequest("/x"))
    assert response.zxid == before.last_zxid + 1 == zk.tree.last_zxid
    assert zk.tree.snapshot().nodes == before.nodes
    assert zk.tree.take_changes() == []


# --- sequential and ephemeral nodes


def test_sequential_names_carry_ten_digits_from_zero(zk: Driver) -> None:
    """CP-200: names end in ten digits, which count from 0."""
    paths = [zk(CreateRequest("/_", sequential=True)).path for _ in range(2)]
    assert paths == ["/_0000000000", "/_0000000001"]


def test_a_sequence_number_is_never_reused_and_counts_all_children(zk: Driver) -> None:
    """CP-200: the counter is the parent's, and survives deletions."""
    zk(CreateRequest("/n_", sequential=True))
    zk(DeleteRequest("/n_0000000000"))
    zk(CreateRequest("/plain"))
    assert zk(CreateRequest("/m_", sequential=True)).path == "/m_0000000002"


def test_an_ephemeral_node_names_its_session_and_has_no_children(zk: Driver) -> None:
    assert present(zk(CreateRequest("/e", ephemeral=True)).stat).ephemeral_owner == SESSION
    assert zk(CreateRequest("/e/x")).code is ZkCode.NOCHILDRENFOREPHEMERALS
    assert zk(CreateRequest("/e/x", sequential=True)).code is ZkCode.NOCHILDRENFOREPHEMERALS


def test_closing_a_session_removes_its_ephemeral_nodes_oldest_first(zk: Driver) -> None:
    for path, session_id in (("/b", SESSION), ("/a", SESSION), ("/other", OTHER)):
        zk(CreateRequest(path, ephemeral=True), session_id)
    zk(CreateRequest("/kept"))
    zk.tree.take_changes()
    zk(CloseSession())
    assert zk.tree.take_changes() == [
        (EventType.NODE_DELETED, "/b"),
        (EventType.NODE_DELETED, "/a"),
    ]
    assert list(zk.tree.walk()) == ["/", "/kept", "/other"]


def test_a_deleted_ephemeral_node_is_no_longer_the_sessions(zk: Driver) -> None:
    """Another session may take over the path, and closing the first session does not delete it."""
    zk(CreateRequest("/e", ephemeral=True))
    zk(DeleteRequest("/e"))
    zk(CreateRequest("/e", ephemeral=True), OTHER)
    zk(CloseSession())
    assert zk.stat("/e").ephemeral_owner == OTHER


def test_a_closed_session_writes_nothing_more(zk: Driver) -> None:
    zk(CloseSession())
    assert zk(CreateRequest("/a")).code is ZkCode.SESSIONEXPIRED
    assert zk(CloseSession()).code is ZkCode.SESSIONEXPIRED
    assert list(zk.tree.walk()) == ["/"]


# --- transactions


def test_a_multi_applies_all_its_operations_under_one_zxid(zk: Driver) -> None:
    response = zk(
        MultiRequest(
            (
                CheckRequest("/", 0),
                CreateRequest("/a", b"1"),
                CreateRequest("/a/s", sequential=True),
                SetDataRequest("/a", b"2", 0),
            )
        )
    )
    assert response.code is ZkCode.OK
    assert [r.code for r in response.results] == [ZkCode.OK] * 4
    assert response.results[2].path == "/a/s0000000000"
    stat = zk.stat("/a")
    assert (stat.czxid, stat.mzxid, stat.pzxid, stat.version) == (3, 3, 3, 1)


def test_a_failed_multi_names_the_first_failure_and_marks_what_follows(zk: Driver) -> None:
    """Results are OK before the failure, and RUNTIMEINCONSISTENCY after it, as in ZooKeeper."""
    response = zk(
        MultiRequest((CreateRequest("/a"), CheckRequest("/", 5), DeleteRequest("/missing")))
    )
    assert response.code is ZkCode.BADVERSION
    assert [(r.code, r.path) for r in response.results] == [
        (ZkCode.OK, "/a"),
        (ZkCode.BADVERSION, "/"),
        (ZkCode.RUNTIMEINCONSISTENCY, "/missing"),
    ]


def test_a_failed_multi_leaves_no_trace(zk: Driver) -> None:
    """All kinds of operations are undone: data, counters, pzxid, ownership and changes."""
    zk(CreateRequest("/a", b"old"))
    zk(CreateRequest("/a/gone", b"g", ephemeral=True))
    zk.tree.take_changes()
    before = zk.tree.snapshot()
    response = zk(
        MultiRequest(
            (
                SetDataRequest("/a", b"new"),
                CreateRequest("/a/e", ephemeral=True),
                DeleteRequest("/a/gone"),
                CreateRequest("/a/s", sequential=True),
                CreateRequest("/a/gone", b"again"),
                DeleteRequest("/a"),
            )
        )
    )
    assert response.code is ZkCode.NOTEMPTY
    assert zk.tree.snapshot() == before._replace(last_zxid=before.last_zxid + 1)
    assert zk.tree.take_changes() == []
    assert zk.tree.ephemerals_of(SESSION) == ["/a/gone"]


@pytest.mark.parametrize(
    "operation",
    [
        SetDataRequest("/a", b"new"),
        CreateRequest("/a/b"),
        CreateRequest("/a/b", ephemeral=True),
        CreateRequest("/a/b", sequential=True),
        DeleteRequest("/a/gone"),
    ],
    ids=["set", "create", "create ephemeral", "create sequential", "delete"],
)
def test_each_kind_of_operation_is_taken_back(zk: Driver, operation: Any) -> None:
    """Each operation is undone even if no other operation of the multi undoes the same change."""
    zk(CreateRequest("/a", b"old"))
    zk(CreateRequest("/a/gone", b"g", ephemeral=True))
    before = zk.tree.snapshot()
    zk(MultiRequest((operation, CheckRequest("/a", 99))))
    assert zk.tree.snapshot() == before._replace(last_zxid=before.last_zxid + 1)


def test_a_node_of_another_session_survives_a_failed_multi_that_named_it(zk: Driver) -> None:
    """An undone node has no owner, so the end of that session does not delete the path."""
    zk(MultiRequest((CreateRequest("/e", ephemeral=True), CheckRequest("/", 99))))
    zk(CreateRequest("/e", ephemeral=True), OTHER)
    zk(CloseSession())
    assert zk.stat("/e").ephemeral_owner == OTHER


def test_a_check_for_any_version_needs_the_node_alone(zk: Driver) -> None:
    """-1 matches every version, also that of a node that was written."""
    zk(CreateRequest("/a"))
    zk(SetDataRequest("/a", b"1"))
    assert [zk(CheckRequest("/a", version)).code for version in (-1, 1, 0)] == [
        ZkCode.OK,
        ZkCode.OK,
        ZkCode.BADVERSION,
    ]
    assert zk(CheckRequest("/missing", -1)).code is ZkCode.NONODE


def test_three_states_updated_together_fail_one_by_one(zk: Driver) -> None:
    """CP-74, generic part: right version, stale version and missing node in three guarded multis
    each have their own outcome.
    """
    zk(CreateRequest("/guard"))
    zk(CreateRequest("/p0"))
    zk(CreateRequest("/p1"))
    zk(SetDataRequest("/p1", b"x"))
    outcomes = [
        zk(MultiRequest((CheckRequest("/guard", 0), SetDataRequest(path, b"new", 0)))).results[1]
        for path in ("/p0", "/p1", "/p2")
    ]
    assert [r.code for r in outcomes] == [ZkCode.OK, ZkCode.BADVERSION, ZkCode.NONODE]
    assert present(outcomes[0].stat).version == 1


def test_a_node_is_deleted_with_the_version_returned_at_creation(zk: Driver) -> None:
    """CP-72: a node is registered, and deleted with the returned version."""
    version = present(zk(CreateRequest("/controller", b"1", ephemeral=True)).stat).version
    assert zk.read(GetDataRequest("/controller")).data == b"1"
    assert zk(DeleteRequest("/controller", version)).code is ZkCode.OK
    assert zk.read(GetDataRequest("/controller")).code is ZkCode.NONODE


def test_conditional_update_of_a_missing_node_or_wrong_version_is_refused(zk: Driver) -> None:
    """CP-200: the caller gets NONODE or BADVERSION, and no version."""
    assert zk(SetDataRequest("/a", b"", 0)).stat is None
    zk(CreateRequest("/a"))
    refused = zk(SetDataRequest("/a", b"", 4))
    assert (refused.code, refused.stat) == (ZkCode.BADVERSION, None)


# --- snapshots


def test_a_tree_restored_from_its_snapshot_behaves_as_the_original(zk: Driver) -> None:
    """A restored tree has equal counters, owners and closing order, so that servers stay equal."""
    zk(CreateRequest("/a"))
    zk(MultiRequest((CreateRequest("/a/z", ephemeral=True), CreateRequest("/a/b", ephemeral=True))))
    zk(CreateRequest("/a/s", sequential=True))
    zk(DeleteRequest("/a/s0000000002"))
    copy = Driver.__new__(Driver)
    copy.tree = ZnodeTree.restored(zk.tree.snapshot())
    zk.tree.take_changes()
    for driver in (zk, copy):
        driver(CreateRequest("/a/s", sequential=True))
        driver(CloseSession())
    assert copy.tree.snapshot() == zk.tree.snapshot()
    assert copy.tree.take_changes() == zk.tree.take_changes()


def test_a_snapshot_is_not_touched_by_later_writes(zk: Driver) -> None:
    zk(CreateRequest("/a", b"1"))
    snapshot = zk.tree.snapshot()
    zk(SetDataRequest("/a", b"2"))
    assert snapshot.nodes[1].data == b"1"


def test_a_failed_response_can_be_raised(zk: Driver) -> None:
    with pytest.raises(ZooKeeperError, match=r"NONODE\(-101\) for /x") as caught:
        zk(DeleteRequest("/x")).raise_if_failed()
    assert caught.value.code is ZkCode.NONODE


def test_responses_are_values_that_can_be_changed_into_others(zk: Driver) -> None:
    response = zk(CreateRequest("/a"))
    assert changed(response, code=ZkCode.CONNECTIONLOSS).path == "/a"
    assert response.is_ok


def test_an_invalid_path_finds_no_node(zk: Driver) -> None:
    """Nodes are found by complete absolute paths only."""
    zk(CreateRequest("/a"))
    zk(CreateRequest("/a/b"))
    for path in ("", "a", "a/b", "//a", "/a/", "/a//b", "/b", "/a/b/c"):
        assert zk.tree.find(path) is None
    assert zk.tree.find("/a/b") is zk.tree.nodes["/a/b"]
    assert (list(zk.tree.nodes), len(zk.tree.nodes)) == (["/", "/a", "/a/b"], 3)
    with pytest.raises(KeyError, match="/x"):
        zk.tree.nodes["/x"]


def test_many_nodes_are_cheap() -> None:
    """A node with one child refers to the child itself, without a dictionary."""
    zk = Driver()
    zk(CreateRequest("/p"))
    zk(CreateRequest("/p/state"))
    assert zk.tree.nodes["/p"].children is zk.tree.nodes["/p/state"]
    assert zk.tree.nodes["/p/state"].children is None


@pytest.mark.parametrize(
    ("paths", "names"),
    [(QUOTA_NODES, ("quota",)), ((*QUOTA_NODES, CONFIG_NODE), ("config", "quota"))],
)
def test_zookeeper_has_nodes_of_its_own(paths: tuple[str, ...], names: tuple[str, ...]) -> None:
    """``DataTree``: no transaction created these nodes, so all counters of their stat are 0, and
    ``cversion`` is below 0 by the number of children.
    """
    tree = ZnodeTree()
    tree.add_built_in_nodes(paths)
    tree.add_built_in_nodes(paths)
    listed = tree.read(GetChildrenRequest("/zookeeper")).raise_if_failed()
    assert listed.children == names
    assert listed.stat == Stat(0, 0, 0, 0, 0, 0, -len(names), 0, 0, 0, len(names))
    assert present(tree.read(ExistsRequest("/")).stat).cversion == -1
    assert tree.read(GetDataRequest("/zookeeper/quota")).data == b""
    assert ZnodeTree.restored(tree.snapshot()).snapshot() == tree.snapshot()


def test_zookeepers_own_nodes_stay() -> None:
    """The built-in nodes cannot be deleted, ``config`` is read-only, and clients write quotas."""
    zk = Driver()
    zk.tree.add_built_in_nodes((*QUOTA_NODES, CONFIG_NODE))
    for path in ("/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
        assert zk(DeleteRequest(path)).code is ZkCode.BADARGUMENTS
    assert zk(SetDataRequest("/zookeeper/config", b"x")).code is ZkCode.NOAUTH
    assert zk(CreateRequest("/zookeeper/config/a")).code is ZkCode.NOAUTH
    assert zk(CreateRequest("/zookeeper/quota/a")).code is ZkCode.OK
    assert zk(DeleteRequest("/zookeeper/quota/a")).code is ZkCode.OK


def test_the_first_sequential_node_of_the_root_has_number_0() -> None:
    """The built-in nodes of ZooKeeper are not counted."""
    zk = Driver()
    zk.tree.add_built_in_nodes((*QUOTA_NODES, CONFIG_NODE))
    assert zk(CreateRequest("/a", sequential=True)).path == "/a0000000000"
