"""Questions 1 and 2: the partition state machine, and the leader of a new topic."""

from __future__ import annotations

from functools import partial

from ...protocol.values import TopicPartition
from ...statemachines.machines.transitions import PARTITION_PREDECESSORS, PartitionState
from ...testing.simulation import Simulation
from .probe import (
    Finding,
    Probe,
    controller_log,
    crash,
    create_offline_topic,
    elect_preferred,
    leader_text,
    list_text,
    short_state,
    simulate,
)


def _make_every_transition(simulation: Simulation) -> None:
    """Take partitions through every legal state transition."""
    simulation.create_topic("orders", assignment={0: [2, 3]})
    simulation.create_topic("gone", assignment={0: [2]})
    crash(simulation, 2)
    simulation.broker(2).start()
    simulation.run_for(40_000)
    elect_preferred(simulation)
    crash(simulation, 3)
    crash(simulation, 2)
    crash(simulation, 4)
    create_offline_topic(simulation, "late", [4])
    create_offline_topic(simulation, "never", [4])
    simulation.run_for(2000)
    for topic in ("never", "gone"):  # without a leader: deleted in the states New and Offline
        simulation.call(partial(_delete, simulation, topic), 10_000)
    simulation.run_for(2000)
    for broker_id in (4, 3, 2):
        simulation.broker(broker_id).start()
        simulation.run_for(40_000)
    simulation.delete_topic("late")


async def _delete(simulation: Simulation, topic: str) -> None:
    await simulation.running.require_controller().zk.admin.create_delete_topic_path(topic)


def partition_state_machine(kafka_version: str) -> Finding:
    """1: the table of legal transitions, each observed in a run, and a refused illegal one."""
    finding = Finding(("to state", "number", "legal from", "seen in the run"))
    config = {"delete.topic.enable": "true"}
    with controller_log() as lines, simulate(kafka_version, config) as simulation:
        probe = Probe(simulation)
        _make_every_transition(simulation)
        orders = TopicPartition("orders", 0)
        before = simulation.controller.partition_state("orders", 0)
        lines.clear()
        machine = simulation.running.require_controller().partition_state_machine
        simulation.call(
            lambda: machine.handle_state_changes([orders], PartitionState.NON_EXISTENT), 10_000
        )
        after = simulation.controller.partition_state("orders", 0)
    seen = {(change.before, change.after) for change in probe.changes}
    legal = {(p, to) for to, previous in PARTITION_PREDECESSORS.items() for p in previous}
    for target in PartitionState:
        previous = PARTITION_PREDECESSORS[target]
        finding.row(
            target,
            target.value,
            ", ".join(short_state(state) for state in previous),
            ", ".join(short_state(s) for s in PartitionState if (s, target) in seen) or "never",
        )
    refusal = lines[-1] if lines else "nothing was logged"
    finding.row("refused", "", refusal, f"stayed {after}")
    finding.facts = {
        "legal": sorted(f"{p} > {to}" for p, to in legal),
        "seen": sorted(f"{p} > {to}" for p, to in seen),
        "refusal": refusal,
        "state_after_refusal": after,
    }
    pairs = len(PartitionState) ** 2
    finding.claim(
        seen <= legal,
        f"it is a table of {len(PartitionState)} states in the controller's memory; "
        f"{len(legal)} of {pairs} changes are legal, and the run made only these",
    )
    finding.claim(seen == legal, f"it made each of the {len(legal)}")
    finding.claim(
        before == after and "cannot move" in refusal,
        f"an illegal change ({before} to NonExistentPartition) is logged and changes nothing",
    )
    return finding


def leader_of_a_new_topic(kafka_version: str) -> Finding:
    """2: the first assigned replica that is online; no election takes place."""
    finding = Finding(("assigned", "alive", "states", "leader", "epoch", "ISR"))
    with controller_log(), simulate(kafka_version) as simulation:
        probe = Probe(simulation)
        cases = finding.facts
        assignment = {0: [3, 4, 2]}
        simulation.create_topic("all-alive", assignment=assignment)
        _row(finding, simulation, probe, "all-alive", "3, 4, 2")
        simulation.create_topic("holder", assignment=assignment)
        crash(simulation, 3, "holder")
        simulation.create_topic("first-dead", assignment=assignment)
        _row(finding, simulation, probe, "first-dead", "4, 2")
        create_offline_topic(simulation, "none-alive", [3])
        simulation.run_for(1000)
        state = simulation.controller.partition_state("none-alive", 0)
        finding.row("[3]", "none", probe.path("none-alive"), "none", "-", "-")
        simulation.broker(3).start()
        simulation.run_for(1000)
        _row(finding, simulation, probe, "none-alive", "3, started later")
    cases["none_alive_state"] = state
    elected = [
        partition.topic
        for one in probe.passes
        for partition in one.outcomes
        if partition.topic != "holder" and partition.topic != "all-alive"
    ]
    cases["elected_by_strategy"] = elected
    alive, first_dead = cases["all-alive"], cases["first-dead"]
    finding.claim(
        alive["leader"] == 3 and first_dead["leader"] == 4,
        "the leader is the first assigned replica that is online",
    )
    finding.claim(
        alive["isr"] == [3, 4, 2] and first_dead["isr"] == [4, 2],
        "the first ISR holds all online replicas in the order of the assignment",
    )
    finding.claim(
        not elected and alive["epoch"] == first_dead["epoch"] == 0,
        "no election strategy runs (New to Online is an initialisation with leader epoch 0)",
    )
    finding.claim(
        state == "NewPartition" and cases["none-alive"]["leader"] == 3,
        "with no replica alive the partition stays New until one of them starts",
    )
    return finding


def _row(finding: Finding, simulation: Simulation, probe: Probe, topic: str, alive: str) -> None:
    view = simulation.partition(topic, 0)
    finding.row(
        list_text(view.replicas),
        alive,
        probe.path(topic),
        leader_text(view.leader),
        view.leader_epoch,
        list_text(view.isr),
    )
    finding.facts[topic] = {
        "leader": view.leader,
        "epoch": view.leader_epoch,
        "isr": list(view.isr),
    }
