"""Brokers fence control requests for their own earlier epoch or from a former controller."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.control import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    StopReplicaPartitionState,
    StopReplicaRequest,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.whole_clusters import CURRENT, ask, running

TP = TopicPartition("t", 0)
NEW = TopicPartition("new", 0)
KINDS = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")


def request(kind: str, controller_epoch: int, broker_epoch: int) -> Any:
    """Return a control request to broker 2 that would take effect if it were accepted."""
    sender = (1, controller_epoch, broker_epoch)
    if kind == "LeaderAndIsr":
        state = LeaderAndIsrPartitionState(*NEW, controller_epoch, 2, 0, (2,), 0, (2,), is_new=True)
        return LeaderAndIsrRequest(*sender, (state,))
    if kind == "UpdateMetadata":
        heard = UpdateMetadataPartitionState(*NEW, controller_epoch, 2, 0, (2,), 0, (2,))
        return UpdateMetadataRequest(*sender, (heard,), ())
    return StopReplicaRequest(*sender, (StopReplicaPartitionState(*TP, 9, True),))


def took_effect(simulation: Simulation, kind: str) -> bool:
    broker = simulation.processes[2].broker
    assert broker is not None
    if kind == "LeaderAndIsr":
        hosted = broker.replica_manager.hosted.partition(NEW)
        return hosted is not None and hosted.is_leader
    if kind == "UpdateMetadata":
        return broker.metadata_cache.contains(NEW)
    return simulation.processes[2].spec.disk.directory_of(TP) is None


@pytest.mark.parametrize("version", CURRENT)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("age", "expected"),
    [(-1, ErrorCode.STALE_BROKER_EPOCH), (0, ErrorCode.NONE), (1, ErrorCode.NONE)],
)
def test_a_request_for_an_earlier_life_of_the_broker_is_refused(
    version: str, kind: str, age: int, expected: ErrorCode
) -> None:
    """CP-76, CP-77, CP-78: a lower broker epoch is stale; a higher one is accepted, as the
    controller may know it first.
    """
    with running(2, version, topics={"t": {"assignment": {0: [2, 1]}}}) as simulation:
        own = simulation.zookeeper.stat("/brokers/ids/2").czxid
        answer = ask(simulation, 2, request(kind, simulation.controller.epoch, own + age))
        assert answer.error is expected
        assert took_effect(simulation, kind) is (expected is ErrorCode.NONE)


@pytest.mark.parametrize("version", CURRENT)
@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_epoch_of_minus_one_switches_the_check_off(version: str, kind: str) -> None:
    """An epoch is stale only if it is lower and not -1; requests before CP-76 carried none
    (docs/kafka/controller-failover.md#broker-epochs).
    """
    with running(2, version, topics={"t": {"assignment": {0: [2, 1]}}}) as simulation:
        answer = ask(simulation, 2, request(kind, simulation.controller.epoch, -1))
        assert answer.error is ErrorCode.NONE
        assert took_effect(simulation, kind)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_of_a_deposed_controller_is_refused(version: str, kind: str) -> None:
    """CP-79: a broker remembers the highest controller epoch; no controller has epoch 0."""
    with running(2, version, topics={"t": {"assignment": {0: [2, 1]}}}) as simulation:
        assert simulation.controller.epoch >= 1
        answer = ask(simulation, 2, request(kind, 0, -1))
        assert answer.error is ErrorCode.STALE_CONTROLLER_EPOCH
        assert not took_effect(simulation, kind)
        answer = ask(simulation, 2, request(kind, simulation.controller.epoch + 1, -1))
        assert answer.error is ErrorCode.NONE
        answer = ask(simulation, 2, request(kind, simulation.controller.epoch, -1))
        assert answer.error is ErrorCode.STALE_CONTROLLER_EPOCH, "the newer epoch was remembered"
