"""ACLs in ZooKeeper, as several brokers see and change them (Kafka: ``AclAuthorizer``)."""

from __future__ import annotations

import json

import pytest
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.security.acls import (
    Acl,
    AclEntry,
    AclFilter,
    AclOperation,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DescribeAclsRequest,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from fakekafka.protocol.versions import behaviour
from fakekafka.statemachines.security.acl_store import (
    AclStore,
    acl_path,
    decode_acl_change,
    decode_acls,
    encode_acl_change,
    encode_acls,
)
from fakekafka.statemachines.security.authorizer import Authorizer
from fakekafka.tests.support.hosts import START_MS, FakeHost
from fakekafka.tests.support.local_zookeeper import LocalZooKeeper
from fakekafka.tests.support.run_now import run_now
from fakekafka.tests.support.zookeeper_fixture import ZkFixture
from fakekafka.zkfake.messages import CreateRequest, DeleteRequest, SetDataRequest, ZkCode

ORDERS = Resource(ResourceType.TOPIC, "orders")
PREFIX = Resource(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
READ = AclEntry("User:alice", "*", AclOperation.READ, Permission.ALLOW)
WRITE = AclEntry("User:alice", "*", AclOperation.WRITE, Permission.ALLOW)
NO_WRITE = AclEntry("User:bob", "*", AclOperation.WRITE, Permission.DENY)


class Broker:
    """The ACLs of one broker."""

    def __init__(
        self, zookeeper: LocalZooKeeper, version: str = "2.8", has_authorizer: bool = True
    ) -> None:
        self.host = FakeHost()
        self.fixture = ZkFixture(version, zookeeper)
        flags = behaviour(version)
        self.authorizer = Authorizer(BrokerConfig({}, version), flags)
        self.logged: list[str] = []
        self.store = AclStore(
            self.host,
            self.fixture.zk,
            flags,
            self.authorizer if has_authorizer else None,
            lambda _level, text: self.logged.append(text),
        )
        run_now(self.store.start())

    def create(self, *acls: Acl) -> CreateAclsResponse:
        return run_now(self.store.create(CreateAclsRequest(acls)))

    def known_acls(self) -> dict[Resource, list[AclEntry]]:
        """Return the ACLs that the broker knows once all notifications are applied."""
        self.host.advance(0)
        found: dict[Resource, list[AclEntry]] = {}
        for acl in self.authorizer.acls(AclFilter()):
            found.setdefault(acl.resource, []).append(acl.entry)
        return found


@pytest.fixture
def zookeeper() -> LocalZooKeeper:
    return LocalZooKeeper(lambda: START_MS)


def test_an_acl_is_stored_and_announced_to_every_broker(zookeeper: LocalZooKeeper) -> None:
    """It is in the znode of its resource, and a notification names the resource."""
    one, other = Broker(zookeeper), Broker(zookeeper)
    assert one.create(Acl(ORDERS, READ)).results == ((ErrorCode.NONE, None),)
    assert one.known_acls() == other.known_acls() == {ORDERS: [READ]}
    assert json.loads(zookeeper.get("/kafka-acl/Topic/orders") or b"") == {
        "version": 1,
        "acls": [
            {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}
        ],
    }
    assert zookeeper.get("/kafka-acl-changes/acl_changes_0000000000") == b"Topic:orders"


def test_acls_of_a_prefix_are_kept_apart(zookeeper: LocalZooKeeper) -> None:
    """They are below ``/kafka-acl-extended``, which brokers before 2.0 do not read (KIP-290)."""
    one, other = Broker(zookeeper), Broker(zookeeper)
    one.create(Acl(PREFIX, READ), Acl(ORDERS, WRITE))
    assert other.known_acls() == {PREFIX: [READ], ORDERS: [WRITE]}
    assert zookeeper.children("/kafka-acl-extended/prefixed/Topic") == ["ord"]
    assert len(zookeeper.children("/kafka-acl-extended-changes")) == 1
    assert len(zookeeper.children("/kafka-acl-changes")) == 1


def test_acls_are_added_to_the_existing_ones_of_a_resource(zookeeper: LocalZooKeeper) -> None:
    """An ACL that exists already changes nothing and causes no notification."""
    one = Broker(zookeeper)
    one.create(Acl(ORDERS, READ))
    one.create(Acl(ORDERS, WRITE), Acl(ORDERS, READ))
    assert one.known_acls() == {ORDERS: [READ, WRITE]}
    assert len(zookeeper.children("/kafka-acl-changes")) == 2
    one.create(Acl(ORDERS, READ))
    assert len(zookeeper.children("/kafka-acl-changes")) == 2


def test_a_broker_that_starts_reads_all_acls(zookeeper: LocalZooKeeper) -> None:
    """It reads literal and prefixed ones, whose notifications may have been deleted."""
    one = Broker(zookeeper)
    one.create(Acl(ORDERS, READ), Acl(PREFIX, NO_WRITE))
    for path in [path for path in zookeeper.tree.walk() if "/acl_changes_" in path]:
        run_now(one.fixture.zk.requests.delete_path(path, recursive_delete=False))
    assert Broker(zookeeper).known_acls() == {ORDERS: [READ], PREFIX: [NO_WRITE]}


def test_before_2_0_a_broker_knows_no_prefixes(zookeeper: LocalZooKeeper) -> None:
    """It follows only the notifications of literal ACLs (KIP-290)."""
    Broker(zookeeper).create(Acl(PREFIX, READ), Acl(ORDERS, READ))
    old = Broker(zookeeper, "1.1")
    assert old.known_acls() == {ORDERS: [READ]}
    assert [followed.path for followed in old.store.followed] == ["/kafka-acl-changes"]


def create_against(
    other: Broker, one: Broker, kind: type[SetDataRequest | CreateRequest], lost_race: ZkCode
) -> None:
    """Let one broker create an ACL, and another broker create one just before the write."""
    raced: list[bool] = []

    def race(request: object) -> bool:
        if isinstance(request, kind) and request.path == acl_path(ORDERS) and not raced:
            raced.append(True)
            other.create(Acl(ORDERS, NO_WRITE))
        return False

    one.fixture.client.fail_next(race, lost_race)
    one.create(Acl(ORDERS, WRITE))
    assert raced


def test_a_concurrent_change_of_another_broker_is_kept(zookeeper: LocalZooKeeper) -> None:
    """The write expects the version that was read; after a conflict the change starts again."""
    one, other = Broker(zookeeper), Broker(zookeeper)
    one.create(Acl(ORDERS, READ))
    create_against(other, one, SetDataRequest, ZkCode.BADVERSION)
    assert one.known_acls() == {ORDERS: [READ, NO_WRITE, WRITE]}


def test_a_znode_that_another_broker_creates_concurrently_is_kept(
    zookeeper: LocalZooKeeper,
) -> None:
    """After NODEEXISTS the ACLs are read again."""
    one, other = Broker(zookeeper), Broker(zookeeper)
    create_against(other, one, CreateRequest, ZkCode.NODEEXISTS)
    assert one.known_acls() == {ORDERS: [NO_WRITE, WRITE]}


def test_an_acl_added_meanwhile_outlives_the_deletion_of_all_others(
    zookeeper: LocalZooKeeper,
) -> None:
    """The znode is deleted with the last ACL only if it has not changed since it was read."""
    one, other = Broker(zookeeper), Broker(zookeeper)
    one.create(Acl(ORDERS, READ))
    raced: list[bool] = []

    def race(request: object) -> bool:
        if isinstance(request, DeleteRequest) and request.path == acl_path(ORDERS) and not raced:
            raced.append(True)
            other.create(Acl(ORDERS, NO_WRITE))
        return False

    one.fixture.client.fail_next(race, ZkCode.BADVERSION)
    run_now(one.store.delete(DeleteAclsRequest((AclFilter(principal="User:alice"),))))
    assert raced
    assert one.known_acls() == other.known_acls() == {ORDERS: [NO_WRITE]}


def test_after_ten_lost_races_a_change_is_given_up(zookeeper: LocalZooKeeper) -> None:
    """Each attempt reads the ACLs again."""
    one = Broker(zookeeper)
    one.fixture.client.fail_next(
        lambda request: isinstance(request, CreateRequest) and request.path == acl_path(ORDERS),
        ZkCode.NODEEXISTS,
        times=10,
    )
    with pytest.raises(ValueError, match="changed concurrently in all 10 attempts"):
        one.create(Acl(ORDERS, WRITE))
    one.create(Acl(ORDERS, WRITE))
    assert one.known_acls() == {ORDERS: [WRITE]}


def test_deleted_acls_are_gone_at_every_broker(zookeeper: LocalZooKeeper) -> None:
    """Each filter's result has the ACLs it deleted; the znode is deleted with the last ACL."""
    one, other = Broker(zookeeper), Broker(zookeeper)
    one.create(Acl(ORDERS, READ), Acl(ORDERS, WRITE), Acl(PREFIX, READ))
    reads = AclFilter(operation=AclOperation.READ)
    of_orders = AclFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL)
    of_bob = AclFilter(principal="User:bob")
    response = run_now(one.store.delete(DeleteAclsRequest((reads, of_orders, of_bob))))
    assert [result.acls for result in response.results] == [
        (Acl(ORDERS, READ), Acl(PREFIX, READ)),
        (Acl(ORDERS, WRITE),),
        (),
    ]
    assert one.known_acls() == other.known_acls() == {}
    assert zookeeper.children("/kafka-acl/Topic") == []
    assert zookeeper.children("/kafka-acl-extended/prefixed/Topic") == []


def test_acls_that_a_filter_does_not_match_stay(zookeeper: LocalZooKeeper) -> None:
    """This includes other ACLs of the same resource."""
    one = Broker(zookeeper)
    one.create(Acl(ORDERS, READ), Acl(ORDERS, NO_WRITE))
    run_now(one.store.delete(DeleteAclsRequest((AclFilter(principal="User:alice"),))))
    assert one.known_acls() == {ORDERS: [NO_WRITE]}


def test_acls_are_described_by_a_filter(zookeeper: LocalZooKeeper) -> None:
    """MATCH finds all patterns that apply to a name."""
    one = Broker(zookeeper)
    everything = Resource(ResourceType.TOPIC, "*")
    one.create(Acl(ORDERS, READ), Acl(PREFIX, WRITE), Acl(everything, NO_WRITE))
    matching = AclFilter(ResourceType.TOPIC, "orders", PatternType.MATCH)
    response = run_now(one.store.describe(DescribeAclsRequest(matching)))
    assert response.error is ErrorCode.NONE
    assert set(response.acls) == {Acl(ORDERS, READ), Acl(PREFIX, WRITE), Acl(everything, NO_WRITE)}
    other_topic = AclFilter(ResourceType.TOPIC, "payments", PatternType.MATCH)
    response = run_now(one.store.describe(DescribeAclsRequest(other_topic)))
    assert response.acls == (Acl(everything, NO_WRITE),)


@pytest.mark.parametrize(
    ("acl", "text"),
    [
        (
            Acl(Resource(ResourceType.CLUSTER, "mine"), READ),
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        (Acl(Resource(ResourceType.TOPIC, ""), READ), "Invalid empty resource name"),
        (Acl(Resource(ResourceType.ANY, "t"), READ), "Failed to create ACL"),
        (Acl(Resource(ResourceType.TOPIC, "t", PatternType.MATCH), READ), "Failed to create ACL"),
        (
            Acl(ORDERS, AclEntry("User:a", "*", AclOperation.ANY, Permission.ALLOW)),
            "Failed to create ACL",
        ),
        (
            Acl(ORDERS, AclEntry("User:a", "*", AclOperation.READ, Permission.ANY)),
            "Failed to create ACL",
        ),
    ],
)
def test_an_acl_without_a_definite_resource_is_refused(
    zookeeper: LocalZooKeeper, acl: Acl, text: str
) -> None:
    """Other ACLs of the request are created."""
    one = Broker(zookeeper)
    response = one.create(acl, Acl(ORDERS, WRITE))
    assert response.results == ((ErrorCode.INVALID_REQUEST, text), (ErrorCode.NONE, None))
    assert one.known_acls() == {ORDERS: [WRITE]}


def test_a_filter_of_something_unknown_is_refused(zookeeper: LocalZooKeeper) -> None:
    """Nothing is deleted."""
    one = Broker(zookeeper)
    one.create(Acl(ORDERS, READ))
    unknown = AclFilter(operation=AclOperation.UNKNOWN)
    described = run_now(one.store.describe(DescribeAclsRequest(unknown)))
    assert (described.error, described.acls) == (ErrorCode.INVALID_REQUEST, ())
    (deleted,) = run_now(one.store.delete(DeleteAclsRequest((unknown,)))).results
    assert (deleted.error, deleted.acls) == (ErrorCode.INVALID_REQUEST, ())
    assert one.known_acls() == {ORDERS: [READ]}


def test_without_an_authorizer_every_request_is_refused(zookeeper: LocalZooKeeper) -> None:
    """Nothing is stored, and nothing is followed."""
    one = Broker(zookeeper, has_authorizer=False)
    disabled = ErrorCode.SECURITY_DISABLED
    assert one.store.followed == ()
    created = one.create(Acl(ORDERS, READ), Acl(ORDERS, WRITE))
    assert [error for error, _ in created.results] == [disabled, disabled]
    assert run_now(one.store.describe(DescribeAclsRequest(AclFilter()))).error is disabled
    (deleted,) = run_now(one.store.delete(DeleteAclsRequest((AclFilter(),)))).results
    assert deleted.error is disabled
    assert "/kafka-acl" not in zookeeper.tree.nodes


@pytest.mark.parametrize("resource", [ORDERS, PREFIX, Resource(ResourceType.GROUP, "a:b")])
def test_a_notification_names_its_resource(resource: Resource) -> None:
    """A literal resource is named as before 2.0, a prefix as JSON."""
    assert decode_acl_change(encode_acl_change(resource)) == resource


@pytest.mark.parametrize("data", [b"Nothing:t", b"{}", b'{"resourceType": 1}'])
def test_a_malformed_notification_raises_an_error(data: bytes) -> None:
    """Decoding raises ``ValueError``, upon which the notification is skipped."""
    with pytest.raises(ValueError, match="malformed ACL change"):
        decode_acl_change(data)


def test_stored_acls_survive_encoding() -> None:
    """An empty znode has no ACLs."""
    assert decode_acls(encode_acls((READ, NO_WRITE))) == (READ, NO_WRITE)
    assert decode_acls(b"") == decode_acls(None) == ()
    with pytest.raises(ValueError, match="malformed ACLs"):
        decode_acls(b'{"acls": [{"principal": "User:a"}]}')
