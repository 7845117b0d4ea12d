"""The partition state machine
(docs/kafka/partition-states.md, docs/kafka/election.md#strategies)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fakekafka.election.strategies import OfflinePartition
from fakekafka.protocol.values import TopicPartition
from fakekafka.statemachines.machines.machine_states import ElectionOutcomes
from fakekafka.statemachines.machines.transitions import PARTITION_PREDECESSORS, PartitionState
from fakekafka.tests.support.controller_core import Core, MakeCore
from fakekafka.tests.support.present import present
from fakekafka.zkfake.messages import CreateRequest, MultiRequest

TP = TopicPartition("t", 0)
NEW, ONLINE = PartitionState.NEW, PartitionState.ONLINE
OFFLINE, NON_EXISTENT = PartitionState.OFFLINE, PartitionState.NON_EXISTENT


def creates_state(request: Any) -> bool:
    return (
        isinstance(request, MultiRequest)
        and isinstance(request.operations[1], CreateRequest)
        and request.operations[1].path.endswith("/state")
    )


def test_an_unknown_partition_becomes_new(core: Core) -> None:
    """CP-1."""
    core.move([TP], NEW)
    assert core.context.states.partition_state(TP) is NEW


def test_an_unknown_partition_cannot_come_online(core: Core) -> None:
    """CP-2: no requests are sent."""
    core.client.requests.clear()
    assert core.move([TP], ONLINE, OfflinePartition()) == {}
    assert core.context.states.partition_state(TP) is NON_EXISTENT
    assert (core.client.requests, core.channels.sent) == ([], [])


def test_an_unknown_partition_cannot_go_offline(core: Core) -> None:
    """CP-3."""
    core.move([TP], OFFLINE)
    assert core.context.states.partition_state(TP) is NON_EXISTENT


def test_a_new_partition_is_initialised_with_its_online_replicas(core: Core) -> None:
    """CP-4: created under the guard, LeaderAndIsr with is_new to the ISR, no outcome."""
    core.assign(TP, 5)
    core.put(TP, NEW)
    assert core.move([TP], ONLINE, OfflinePartition()) == {}
    assert core.context.states.partition_state(TP) is ONLINE
    assert core.stored(TP) == (5, 0, (5,), 0, 1)
    [state] = core.channels.leader_and_isr()[5]
    assert (state.leader, state.leader_epoch, state.isr, state.is_new) == (5, 0, (5,), True)
    assert all(isinstance(r, MultiRequest) for r in core.client.requests[-4:-1])


def test_initialisation_ignores_the_strategy_and_leaves_dead_replicas_out(
    make_core: MakeCore,
) -> None:
    """CP-83: the first *online* replica leads, online replicas are the ISR
    (docs/kafka/partition-states.md#initialisation)."""
    core = make_core(5, 6)
    core.assign(TP, 4, 6, 5)
    core.put(TP, NEW)
    core.move([TP], ONLINE, None)
    assert core.stored(TP) == (6, 0, (6, 5), 0, 1)
    assert sorted(core.channels.leader_and_isr()) == [5, 6]


def test_a_leaving_broker_gets_no_leader_and_isr_of_a_new_partition(make_core: MakeCore) -> None:
    """LeaderAndIsr goes to the first ISR, which does not contain that broker."""
    core = make_core(5, 6)
    core.assign(TP, 6, 5)
    core.put(TP, NEW)
    core.context.brokers.shutting_down_broker_ids.add(6)
    core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP) == (5, 0, (5,), 0, 1)
    assert set(core.channels.leader_and_isr()) == {5}
    assert set(core.channels.update_metadata()) == {5, 6}


def test_initialisation_needs_a_live_replica(core: Core) -> None:
    """The reason is logged; the partition stays New and is tried again at every trigger."""
    core.assign(TP, 9)
    core.put(TP, NEW)
    assert core.move([TP], ONLINE, OfflinePartition()) == {}
    assert core.context.states.partition_state(TP) is NEW
    assert "No assigned replica is alive" in core.errors()
    core.register(9)
    core.run(core.partitions.trigger_online_partition_state_change())
    assert core.context.states.partition_state(TP) is ONLINE


def test_a_failing_creation_leaves_the_partition_new(core: Core) -> None:
    """CP-5: the client raises an exception, and the batch is sent empty."""
    core.assign(TP, 5)
    core.put(TP, NEW)
    core.client.fail_next(creates_state, RuntimeError("lost"))
    assert core.move([TP], ONLINE, OfflinePartition()) == {}
    assert core.context.states.partition_state(TP) is NEW
    assert core.channels.sent == []


def test_an_existing_state_node_leaves_the_partition_new(core: Core) -> None:
    """CP-6: NODEEXISTS."""
    core.have(TP, NEW, (5,), 4, (4,), cached=False)
    core.move([TP], ONLINE, OfflinePartition())
    assert core.context.states.partition_state(TP) is NEW
    assert core.context.topics.partition_leadership_info(TP) is None
    assert present(core.stored(TP))[0] == 4


@pytest.mark.parametrize("target", list(PartitionState))
@pytest.mark.parametrize("current", list(PartitionState))
def test_only_the_eight_legal_pairs_change_state(
    core: Core, current: PartitionState, target: PartitionState
) -> None:
    """CP-7, CP-8, CP-11, CP-12, CP-13, CP-18, CP-19 and every other pair."""
    core.assign(TP, 5)
    core.put(TP, current)
    if current in (ONLINE, OFFLINE):
        core.lead(TP, 5, (5,))
    core.move([TP], target, OfflinePartition())
    legal = current in PARTITION_PREDECESSORS[target]
    assert core.context.states.partition_state(TP) is (target if legal else current)
    assert (core.errors() == "") == legal


def test_an_illegal_transition_is_logged_with_its_legal_predecessors(core: Core) -> None:
    """The log names the partition, both states, and the legal previous states."""
    core.put(TP, ONLINE)
    core.move([TP], NON_EXISTENT)
    assert core.logged == [
        (
            "error",
            "partition t-0 cannot move from OnlinePartition to NonExistentPartition: it would "
            "have to be in one of the states OfflinePartition",
        )
    ]


def test_an_empty_list_opens_no_batch(core: Core) -> None:
    """This holds even if the last batch was not sent."""
    core.batch.add_stop_replica_request_for_brokers([5], TP, False)
    assert core.move([], ONLINE, OfflinePartition()) == {}
    assert core.errors() == ""


def test_the_offline_count_follows_the_states(core: Core) -> None:
    """CP-20, CP-22: four partitions go offline, then online again or away."""
    tps = [TopicPartition("t", n) for n in range(4)]
    for tp in tps:
        core.assign(tp, 5)
    core.move(tps, NEW)
    core.move(tps, OFFLINE)
    assert core.context.states.offline_partition_count == 4
    for tp in tps:
        core.lead(tp, -1, (5,))
    core.move(tps, ONLINE, OfflinePartition())
    assert core.context.states.offline_partition_count == 0
    core.move(tps, OFFLINE)
    core.context.topics.queue_topic_deletion(["t"])
    core.move(tps, NON_EXISTENT)
    assert core.context.states.offline_partition_count == 0


def test_the_offline_count_leaves_started_deletions_alone(core: Core) -> None:
    """CP-21."""
    tps = [TopicPartition("t", n) for n in range(4)]
    core.move(tps, NEW)
    core.context.topics.queue_topic_deletion(["t"])
    core.context.topics.begin_topic_deletion(["t"])
    core.move(tps, OFFLINE)
    assert core.context.states.offline_partition_count == 0


def test_startup_derives_states_and_elects(make_core: MakeCore) -> None:
    """Without leadership a partition is New, with an online leader Online and left alone, otherwise
    Offline; then the trigger runs."""
    core = make_core(5)
    fresh, healthy, dead = (TopicPartition(t, 0) for t in ("fresh", "healthy", "dead"))
    for tp in (fresh, healthy, dead):
        core.assign(tp, 6, 5)
    core.lead(healthy, 5, (5,))
    core.lead(dead, 6, (6,))
    core.run(core.partitions.startup())
    states = {tp.topic: core.context.states.partition_state(tp) for tp in (fresh, healthy, dead)}
    assert states == {"fresh": ONLINE, "healthy": ONLINE, "dead": OFFLINE}
    assert core.stored(fresh) == (5, 0, (5,), 0, 1)
    assert core.stored(healthy) == (5, 0, (5,), 0, 1)


def test_the_trigger_leaves_other_topics_and_queued_ones_alone(core: Core) -> None:
    """Given a topic, only its partitions are tried; topics queued for deletion never are."""
    tps = {t: TopicPartition(t, 0) for t in ("wanted", "other", "queued")}
    for tp in tps.values():
        core.assign(tp, 5)
        core.put(tp, NEW)
    core.context.topics.queue_topic_deletion(["queued"])
    core.run(core.partitions.trigger_online_partition_state_change("wanted"))
    assert core.context.states.partitions_in_states([ONLINE]) == [tps["wanted"]]
    core.run(core.partitions.trigger_online_partition_state_change())
    assert core.context.states.partitions_in_states([NEW]) == [tps["queued"]]


def test_a_failing_channel_is_every_partitions_outcome(core: Core) -> None:
    """The next batch starts empty nevertheless."""
    core.have(TP, OFFLINE, (5,), -1, (5,))
    core.channels.failure = RuntimeError("no queue")
    assert isinstance(core.move([TP], ONLINE, OfflinePartition())[TP], Exception)
    core.channels.failure = None
    core.batch.new_batch()


class Heard:
    """A listener that records its calls."""

    def __init__(self) -> None:
        self.states: list[tuple[PartitionState, PartitionState]] = []
        self.elections: list[tuple[Any, list[TopicPartition], list[TopicPartition]]] = []

    def on_partition_state(
        self, _topic_partition: TopicPartition, before: PartitionState, after: PartitionState
    ) -> None:
        self.states.append((before, after))

    def on_election(
        self, strategy: Any, partitions: Sequence[TopicPartition], outcomes: ElectionOutcomes
    ) -> None:
        self.elections.append((strategy, list(partitions), list(outcomes)))


def test_a_listener_gets_every_state_and_every_round_of_elections(core: Core) -> None:
    """Moves from Online to Online are included, and so are moves without an election."""
    heard = Heard()
    core.context.states.listeners.append(heard)
    core.assign(TP, 5)
    core.put(TP, NEW)
    core.move([TP], ONLINE, None)
    strategy = OfflinePartition()
    core.move([TP], ONLINE, strategy)
    core.move([TP], OFFLINE)
    core.move([], ONLINE, strategy)
    assert heard.states == [(NON_EXISTENT, NEW), (NEW, ONLINE), (ONLINE, ONLINE), (ONLINE, OFFLINE)]
    assert heard.elections == [(None, [TP], []), (strategy, [TP], [TP])]
