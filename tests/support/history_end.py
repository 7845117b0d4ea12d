"""Healing the cluster of a random history, and what has to hold then."""

from __future__ import annotations

import json
from collections import Counter
from sys import maxsize
from typing import Any

from fakekafka import FakeKafkaError, KafkaError, WaitTimeout
from fakekafka.protocol import znode_paths
from fakekafka.protocol.values import NO_LEADER, TopicPartition
from fakekafka.statemachines.machines.transitions import PartitionState
from fakekafka.testing.checks import replicas_identical
from fakekafka.testing.views import PartitionView
from fakekafka.tests.support.history_world import World

SETTLE_MS = 400_000
"""Virtual time a healed cluster has to be whole again: producers may retry for 120 s of it."""
_LOAD_AFTER_HEALING_MS = 3000


def heal(world: World) -> None:
    """Undo every fault, as an operator would, and wait until the cluster is whole."""
    simulation = world.simulation
    simulation.network.heal()
    world.troubled_network = False
    for broker_id in sorted(world.paused):
        if simulation.broker(broker_id).is_alive:
            simulation.broker(broker_id).resume()
    world.paused.clear()
    for server_id, process in simulation.zookeepers.items():
        if not process.is_alive:
            simulation.zookeeper.server(server_id).start()
    simulation.run_for(_LOAD_AFTER_HEALING_MS)
    world.loads = False
    limit_ms = simulation.now_ms + SETTLE_MS
    while True:
        _mend_brokers(world)
        lacking = what_is_lacking(world)
        if lacking is None:
            return
        if simulation.now_ms >= limit_ms - SETTLE_MS / 2:
            _relieve_controller(world)
        if simulation.now_ms >= limit_ms - SETTLE_MS * 0.9 and _brokers_run(world) is None:
            _relieve_partitions(world)
        if simulation.now_ms >= limit_ms:
            raise WaitTimeout(f"not whole {SETTLE_MS / 1000:g} s after healing: {lacking}")
        simulation.run_for(500)


def _mend_brokers(world: World) -> None:
    simulation = world.simulation
    for broker_id, process in simulation.processes.items():
        handle = simulation.broker(broker_id)
        disk = process.spec.disk
        if disk.offline_dirs and handle.is_alive:  # what was in them is found at the next start
            if handle.state == "running":
                handle.begin_shutdown()
            continue
        if not handle.is_alive:
            for index in range(len(disk.directories)):
                handle.repair_log_dir(index)
            if broker_id in world.mended:  # it ended by itself
                _discard_cut_partitions(world, broker_id, disk)
            world.mended.add(broker_id)
            handle.start(wait=False)


def _discard_cut_partitions(world: World, broker_id: int, disk: Any) -> None:
    """What helps a broker of 0.10 that holds more than a leader that has cut its log (KIP-101): it
    ends itself at each start, because it may not cut what it has
    (``ReplicaFetcherThread.handleOffsetOutOfRange``)."""
    for where in world.cut_from:
        if broker_id not in _stored_isr(world, where) and disk.stored(where) is not None:
            disk.delete_log(where)


def _stored_isr(world: World, where: TopicPartition) -> list[int]:
    """The ISR that ZooKeeper has."""
    path = znode_paths.topic_partition_state_path(where)
    isr: list[int] = json.loads(world.simulation.zookeeper.get(path) or b"{}").get("isr", [])
    return isr


def _relieve_controller(world: World) -> None:
    """Let the controller move where Kafka needs that, as operators did.

    It cannot create what is there: it lost the answer to its write, and takes the partition for a
    new one (``PartitionStateMachine.initializeLeaderAndIsrForPartition``). And before brokers had
    epochs it missed that a broker had gone and come, and told it nothing (KAFKA-1120).
    """
    simulation = world.simulation
    if simulation.controller.id is None:
        return
    # 0.10.1 tells brokers who lives after it has told them whom to follow (KAFKA-4443).
    needed = 1 if simulation.behaviour.failover_announces_brokers_first else 2
    if not simulation.behaviour.broker_epochs and world.controller_moves < needed:
        world.controller_moves += 1
        world.relieved.update(world.main)
        simulation.controller.resign()
        return
    context = simulation.running.require_controller().context
    for where, state in context.states.partition_states.items():
        if state is PartitionState.NEW and where not in world.relieved:
            world.relieved.add(where)
            if znode_paths.topic_partition_state_path(where) in simulation.zookeeper.tree():
                simulation.controller.resign()
                return


def _relieve_partitions(world: World) -> None:
    """Give partitions a leader that lost theirs because a reassignment dropped it.

    ``KafkaController.updateCurrentReassignment`` stops replicas that an earlier request was adding
    and a later one does not want, even when one of them leads, or when nobody else is in sync. The
    partition then has no leader, but counts as online: no election comes, until the controller
    moves. Where the ISR names dropped replicas only, no election helps as long as these live, not
    even an unclean one (``PartitionStateMachine.collectUncleanLeaderElectionState``).
    """
    simulation = world.simulation
    for where in sorted(world.dropped):
        if simulation.controller.id is None:
            return
        context = simulation.running.require_controller().context
        leadership = context.topics.partition_leadership_info(where)
        if leadership is None or leadership.leader_and_isr.leader != NO_LEADER:
            continue
        isr = leadership.leader_and_isr.isr
        if world.dropped[where].issuperset(isr):
            _elect_without(world, where, isr)
        elif where not in world.relieved:
            world.relieved.add(where)
            simulation.controller.resign()
            return


def _elect_without(world: World, where: TopicPartition, brokers: tuple[int, ...]) -> None:
    """Elect from outside the ISR while its brokers are down; what the leader lacks is lost."""
    simulation = world.simulation
    for broker_id in brokers:
        if simulation.broker(broker_id).state == "running":
            simulation.broker(broker_id).begin_shutdown()

    def they_are_gone() -> bool:
        if simulation.controller.id is None:
            return False
        known = simulation.running.require_controller().context
        return not any(b in known.brokers.live_or_shutting_down_broker_ids for b in brokers)

    simulation.run_until(they_are_gone)
    simulation.elect_leaders("unclean", [where])
    view = simulation.partition(*where)
    if view.leader is not None:
        replica = view.replica(view.leader)
        since = [start for epoch, start in replica.epochs if epoch >= view.leader_epoch]
        end = min(since, default=replica.log_end_offset)
        world.lost_from[where] = min(end, world.lost_from.get(where, end))


def what_is_lacking(world: World) -> str | None:
    """What keeps the cluster from being whole, in words; None when nothing does."""
    for check in (_brokers_run, _control_is_idle, _clients_are_done, _metadata_agrees, _isr_full):
        lacking = check(world)
        if lacking is not None:
            return lacking
    return None


def _brokers_run(world: World) -> str | None:
    simulation = world.simulation
    for broker_id in simulation.broker_ids:
        state = simulation.broker(broker_id).state
        if state != "running":
            return f"broker {broker_id} is {state}"
    return None if simulation.controller.id is not None else "no controller is active"


def _control_is_idle(world: World) -> str | None:
    simulation = world.simulation
    tree = simulation.zookeeper.tree()
    pending = ["/admin/delete_topics/"]
    if simulation.behaviour.failover_drops_notifications:  # else what a dead controller left
        pending.append("/isr_change_notification/")  # waits for the next one to be written
    for path in tree:
        if path.startswith(tuple(pending)) or (
            path in ("/admin/reassign_partitions", "/admin/preferred_replica_election")
        ):
            return f"{path} is still there"
    unfinished = [text for text, task in world.requests if not task.done]
    if unfinished:
        return f"no answer yet to {unfinished[0]}"
    for topic in topics(world):
        if topic not in simulation.topics():
            return f"no broker knows topic {topic}"
    return None


def topics(world: World) -> list[str]:
    """The topics there are.

    A broker that was cut off while a topic was deleted may know it until it restarts: Kafka's
    brokers forget a topic by the request that tells of its end (``ZkMetadataCache``).
    """
    return world.simulation.zookeeper.children("/brokers/topics")


def _clients_are_done(world: World) -> str | None:
    unfinished = sum(producer.unfinished for producer in world.producers)
    return f"{unfinished} batches are not finished" if unfinished else None


def _metadata_agrees(world: World) -> str | None:
    simulation = world.simulation
    controller = simulation.running.require_controller().context
    for key in controller.topics.all_partitions():
        if controller.topics.partition_leadership_info(key) is None:
            return f"{key} has no leader at the controller"
        wanted = controller.topics.partition_leadership_info(key).leader_and_isr
        adding = controller.topics.partition_full_replica_assignment(key)
        if adding.adding or adding.removing:
            return f"{key} is still being reassigned: {adding}"
        for process in simulation.processes.values():
            broker = process.broker
            assert broker is not None
            known = broker.metadata_cache.partition_state(key)
            if known is None or (known.leader, known.leader_epoch) != (
                wanted.leader,
                wanted.leader_epoch,
            ):
                return f"{process.name} takes {known} for the state of {key}, not {wanted}"
            if len(broker.metadata_cache.alive_brokers()) != len(simulation.broker_ids):
                return f"{process.name} knows {broker.metadata_cache.alive_brokers()}"
    return None


def _is_replicated(world: World, view: PartitionView) -> bool:
    """Tell whether all replicas are in the ISR and at the leader's end.

    Leaders that write the ISR to ZooKeeper (2.4 to 2.6) may add a replica while the controller
    drops it, which then stays there (docs/kafka/reassignment.md#dropped-in-sync).
    """
    isr = set(view.isr)
    if not world.simulation.behaviour.alter_isr:
        isr -= world.dropped.get(TopicPartition(view.topic, view.partition), set())
    replicas = [view.replica(broker_id) for broker_id in view.replicas]
    ends = {replica.log_end_offset for replica in replicas}
    marks = {replica.high_watermark for replica in replicas}
    return view.leader is not None and isr == set(view.replicas) and marks == ends == {max(ends)}


def _isr_full(world: World) -> str | None:
    simulation = world.simulation
    for topic in topics(world):
        views = [simulation.partition(topic, number) for number in range(world.count(topic))]
        if not all(_is_replicated(world, view) for view in views):
            texts = [
                f"{v.topic}-{v.partition} leader {v.leader} isr {v.isr} of {v.replicas}, (end, hw) "
                + str(
                    {
                        b: (v.replica(b).log_end_offset, v.replica(b).high_watermark)
                        for b in v.replicas
                    }
                )
                for v in views
            ]
            return f"{topic} is not fully replicated: {'; '.join(texts)}"
    return None


def verdict(world: World) -> list[str]:
    """Everything that is wrong with a whole cluster's data, in words."""
    problems = [*world.problems, *_request_problems(world), *record_problems(world)]
    problems += _replica_problems(world)
    for topic, number in world.main:
        try:
            world.simulation.produce(topic, b"probe", partition=number)
        except FakeKafkaError as error:
            problems.append(f"{topic}-{number} takes no records: {error}")
    return problems


def _replica_problems(world: World) -> list[str]:
    """Replicas that differ, but for those that old releases leave so (KIP-101, KIP-279)."""
    problems = []
    for topic in topics(world):
        for problem in replicas_identical(world.simulation, [topic]).problems:
            name = problem.partition(": ")[0]
            if not any(str(where) == name for where in world.cut_from):
                problems.append(problem)
    return problems


def _request_problems(world: World) -> list[str]:
    problems = []
    for text, task in world.requests:
        error = task.exception
        if error is not None and not isinstance(error, KafkaError):
            problems.append(f"{text} raised {error!r}")
    return problems


def record_problems(world: World) -> list[str]:
    problems = [
        f"{where} offset {offset} was read as {before!r} and then as {after!r}"
        for where, offset, before, after in world.read_anew
        if not world.is_excused(where, offset)
    ]
    simulation = world.simulation
    stored = {key: simulation.records(*key) for key in world.main}
    by_offset = {key: {r.offset: r.value for r in found} for key, found in stored.items()}
    counts = {key: Counter(r.value for r in found) for key, found in stored.items()}
    lost = [
        (key, offset, value)
        for key, offset, value in world.acknowledged
        if value not in counts[key] and not world.is_excused(key, offset)
    ]
    if lost:
        problems.append(f"{len(lost)} acknowledged records are lost, the first is {lost[0]}")
    moved = [
        (key, offset, value, by_offset[key].get(offset))
        for key, offset, value in world.acknowledged
        if offset >= 0
        and value in counts[key]
        and by_offset[key].get(offset) != value
        and not world.is_excused(key, offset)
    ]
    if moved:
        problems.append(f"{len(moved)} records are not where they were acknowledged: {moved[0]}")
    changed = [
        (key, offset, value, by_offset[key].get(offset))
        for (key, offset), value in world.seen.items()
        if by_offset[key].get(offset) != value and not world.is_excused(key, offset)
    ]
    if changed:
        problems.append(f"{len(changed)} records were read and are not there: {changed[0]}")
    if world.options.idempotent:
        problems += _idempotence_problems(world, stored, counts)
    return problems


def _idempotence_problems(world: World, stored: Any, counts: Any) -> list[str]:
    """Records stored twice or out of order, but for what Kafka's own producer may store twice.

    It gives batches that it sent new numbers when it raises its epoch, stored or not
    (``TransactionManager.bumpIdempotentProducerEpoch``, KIP-360). A restarted broker remembers only
    the last batch of its snapshot, and refuses an earlier one that the producer sends again.
    Behind what a follower of an old release kept wrongly, the leader that it became knows of other
    batches than the one before it (``World.cut_from``).
    """
    problems = []
    for key, found in stored.items():
        renumbered = {value for where, value in world.renumbered if where == key}
        kept_from = world.cut_from.get(key, maxsize)
        excused = renumbered | {record.value for record in found if record.offset >= kept_from}
        found = [record for record in found if record.value not in excused]
        doubled = [
            value for value, count in counts[key].items() if count > 1 and value not in excused
        ]
        if doubled:
            problems.append(f"{key}: {len(doubled)} records are there twice, first {doubled[0]!r}")
        latest: dict[bytes, bytes] = {}
        acknowledged = {value for where, _, value in world.acknowledged if where == key}
        for record in found:
            name = record.value.split(b":")[0]
            if record.value in acknowledged and record.value <= latest.get(name, b""):
                problems.append(f"{key}: {record.value!r} comes after {latest[name]!r}")
                break
            if record.value in acknowledged:
                latest[name] = record.value
    return problems
