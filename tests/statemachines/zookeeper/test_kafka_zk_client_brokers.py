"""Kafka's view of ZooKeeper: registrations and cluster-wide nodes
(docs/kafka/zookeeper.md#znodes, docs/kafka/controller-failover.md#broker-epochs)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol import znode_paths, znode_payloads
from fakekafka.protocol.values import BrokerInfo, EndPoint
from fakekafka.statemachines.zookeeper.requests import UNKNOWN_VERSION
from fakekafka.tests.support.run_now import run_now
from fakekafka.tests.support.zookeeper_fixture import BROKER, OTHER_DATA, ZkFixture, is_election
from fakekafka.zkfake.messages import CreateRequest, SetDataRequest, ZkCode, ZooKeeperError

# --- brokers


def test_a_broker_registers_with_its_epoch(fixture: ZkFixture) -> None:
    """CP-75: the broker epoch is the czxid; brokers are sorted by id."""
    zk = fixture.zk
    epochs = {
        i: run_now(zk.brokers.register_broker(BrokerInfo(i, (EndPoint("h", 9000 + i),))))
        for i in (10, 9)
    }
    found = run_now(zk.brokers.get_all_broker_and_epochs_in_cluster())
    assert [(broker.id, epoch) for broker, epoch in found] == [(9, epochs[9]), (10, epochs[10])]
    assert epochs[9] > epochs[10]
    assert run_now(zk.brokers.get_sorted_broker_list()) == [9, 10]
    assert [b.id for b in run_now(zk.brokers.get_all_brokers_in_cluster())] == [9, 10]
    stat = fixture.zookeeper.tree.nodes["/brokers/ids/9"].stat()
    assert (stat.czxid, stat.ephemeral_owner) == (epochs[9], fixture.client.session_id)


def test_a_registration_that_is_changed_keeps_its_epoch(fixture: ZkFixture) -> None:
    """A broker that announces other endpoints stays the same broker (KIP-380)."""
    zk = fixture.zk
    epoch = run_now(zk.brokers.register_broker(BROKER))
    changed = znode_payloads.encode_broker(OTHER_DATA, 0, 4)
    run_now(zk.requests.send_one(SetDataRequest(znode_paths.broker_id_path(1), changed)))
    ((broker, found),) = run_now(zk.brokers.get_all_broker_and_epochs_in_cluster())
    assert (broker.endpoints, found) == (OTHER_DATA.endpoints, epoch)


def test_registering_again_in_the_same_session_changes_nothing(fixture: ZkFixture) -> None:
    """CP-81: no error, data unchanged."""
    epoch = run_now(fixture.zk.brokers.register_broker(BROKER))
    assert run_now(fixture.zk.brokers.register_broker(OTHER_DATA)) == epoch
    assert run_now(fixture.zk.brokers.get_broker(1)) == BROKER


def test_another_session_cannot_take_an_id(fixture: ZkFixture) -> None:
    """CP-81, CP-195: NODEEXISTS, data unchanged."""
    run_now(fixture.zk.brokers.register_broker(BROKER))
    with pytest.raises(ZooKeeperError, match="NODEEXISTS"):
        run_now(fixture.beside().zk.brokers.register_broker(OTHER_DATA))
    assert run_now(fixture.zk.brokers.get_broker(1)) == BROKER


def test_a_leftover_of_the_own_expired_session_is_replaced(fixture: ZkFixture) -> None:
    """CP-81: recreated with another czxid (ZOOKEEPER-2985)."""
    epoch = run_now(fixture.zk.brokers.register_broker(BROKER))
    # The server has not removed the node of the old session yet.
    fixture.client.session_id = fixture.zookeeper.open_session(fixture.client.dispatch)
    new_epoch = run_now(fixture.zk.brokers.register_broker(OTHER_DATA))
    assert new_epoch > epoch
    assert run_now(fixture.zk.brokers.get_broker(1)) == OTHER_DATA
    owner = fixture.zookeeper.tree.nodes["/brokers/ids/1"].stat().ephemeral_owner
    assert owner == fixture.client.session_id


def test_a_registration_that_vanishes_during_the_check_is_created_again(fixture: ZkFixture) -> None:
    """It is deleted between the failed create and the read of its owner
    (docs/kafka/controller-failover.md#broker-epochs)."""
    fixture.client.fail_next(is_election, ZkCode.NODEEXISTS)
    assert run_now(fixture.zk.brokers.register_broker(BROKER)) > 0


def test_other_registration_errors_are_raised(fixture: ZkFixture) -> None:
    """An expired session is such an error."""
    fixture.client.fail_next(is_election, ZkCode.SESSIONEXPIRED)
    with pytest.raises(ZooKeeperError, match="SESSIONEXPIRED"):
        run_now(fixture.zk.brokers.register_broker(BROKER))


def test_automatic_ids_count_from_one(fixture: ZkFixture) -> None:
    """CP-194: the node's version is the sequence; it is created if missing."""
    zk = fixture.zk
    assert [run_now(zk.brokers.generate_broker_sequence_id()) for _ in range(2)] == [1, 2]
    bare = ZkFixture()
    assert run_now(bare.zk.brokers.generate_broker_sequence_id()) == 1


# --- cluster


def test_the_first_cluster_id_counts(fixture: ZkFixture) -> None:
    """Later proposals, and losers of the race to create it, get the first one."""
    assert run_now(fixture.zk.brokers.get_cluster_id()) is None
    assert run_now(fixture.zk.brokers.create_or_get_cluster_id("first")) == "first"
    assert run_now(fixture.zk.brokers.create_or_get_cluster_id("second")) == "first"
    raced = ZkFixture()

    def race(request: Any) -> bool:
        if isinstance(request, CreateRequest) and "/cluster" not in raced.zookeeper.tree.nodes:
            run_now(raced.beside().zk.brokers.create_or_get_cluster_id("winner"))
        return False

    raced.client.fail_next(race, ZkCode.OK)
    assert run_now(raced.zk.brokers.create_or_get_cluster_id("loser")) == "winner"


def test_features(fixture: ZkFixture) -> None:
    """The node's version is the epoch of the finalised features."""
    zk = fixture.zk
    assert run_now(zk.brokers.get_feature_znode()) == (None, UNKNOWN_VERSION)
    disabled, enabled = (
        znode_payloads.FeatureZnode(False),
        znode_payloads.FeatureZnode(True, (("f", 1, 3),)),
    )
    run_now(zk.brokers.create_feature_znode(disabled))
    assert run_now(zk.brokers.get_feature_znode()) == (disabled, 0)
    assert run_now(zk.brokers.update_feature_znode(enabled)) == 1
    assert run_now(zk.brokers.get_feature_znode()) == (enabled, 1)


def test_producer_id_blocks_never_overlap(fixture: ZkFixture) -> None:
    """Each block has a thousand ids, whichever broker requests it."""
    other = fixture.beside()
    assert run_now(fixture.zk.brokers.allocate_producer_id_block(1)) == (0, 999)
    assert run_now(other.zk.brokers.allocate_producer_id_block(2)) == (1000, 1999)
    assert run_now(ZkFixture().zk.brokers.allocate_producer_id_block(1)) == (0, 999)


def test_a_raced_producer_id_block_is_requested_again(fixture: ZkFixture) -> None:
    """Another broker took the block between read and write."""
    raced: list[Any] = []

    def race(request: Any) -> bool:
        if isinstance(request, SetDataRequest) and not raced:
            raced.append(request)
            run_now(fixture.beside().zk.brokers.allocate_producer_id_block(2))
        return False

    fixture.client.fail_next(race, ZkCode.OK)
    assert run_now(fixture.zk.brokers.allocate_producer_id_block(1)) == (1000, 1999)


def test_a_repeated_allocation_recognises_its_own_block(fixture: ZkFixture) -> None:
    """The answer to the first write was lost; no block is wasted."""
    fixture.client.fail_next(
        lambda r: isinstance(r, SetDataRequest), ZkCode.CONNECTIONLOSS, applied=True
    )
    assert run_now(fixture.zk.brokers.allocate_producer_id_block(1)) == (0, 999)
    assert run_now(fixture.zk.brokers.allocate_producer_id_block(1)) == (1000, 1999)


def test_producer_ids_run_out(fixture: ZkFixture) -> None:
    """The last id is the largest long."""
    last = znode_payloads.ProducerIdBlock(1, 2**63 - 1000, 2**63 - 1)
    payload = znode_payloads.encode_producer_id_block(last)
    run_now(fixture.zk.requests.conditional_update_path(znode_paths.PRODUCER_ID_BLOCK, payload, 0))
    with pytest.raises(Exception, match="given out"):
        run_now(fixture.zk.brokers.allocate_producer_id_block(1))
