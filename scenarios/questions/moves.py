"""Questions 5 and 9: leadership after a broker returns, and the two strategies of one shutdown."""

from __future__ import annotations

import json
from typing import Any

from ...protocol.values import LeaderAndIsr, TopicPartition
from ...testing.simulation import Simulation
from .probe import (
    ElectionPass,
    Finding,
    Probe,
    controller_log,
    crash,
    elect_preferred,
    leader_text,
    list_text,
    restart,
    setting,
    simulate,
    time_text,
)

_MOVED = TopicPartition("moved", 0)
_SINGLE = TopicPartition("single", 0)


def return_of_the_leader(kafka_version: str) -> Finding:
    """5: the broker returns as a follower; only a preferred election makes it leader again."""
    finding = Finding(("auto rebalance", "moment", "leader", "epoch", "ISR"))
    facts = finding.facts
    with controller_log(), simulate(kafka_version) as simulation:
        facts["auto_rebalance_default"] = setting(simulation, "auto.leader.rebalance.enable")
        interval_s = setting(simulation, "leader.imbalance.check.interval.seconds")
        returned_ms = _crash_and_restart(finding, simulation, "on")
        simulation.run_until(
            lambda: simulation.partition("orders", 0).leader == 2, 2000 * interval_s
        )
        waited_ms = simulation.now_ms - returned_ms
        _row(finding, simulation, "on", f"{time_text(waited_ms)} after the return")
        facts["rebalanced_after_ms"] = waited_ms
    off = {"auto.leader.rebalance.enable": "false"}
    with controller_log(), simulate(kafka_version, off) as simulation:
        _crash_and_restart(finding, simulation, "off")
        simulation.run_for(2000 * interval_s)
        _row(finding, simulation, "off", f"{time_text(2000 * interval_s)} later")
        facts["off_later"] = simulation.partition("orders", 0).leader
        elect_preferred(simulation)
        simulation.run_for(1000)
        _row(finding, simulation, "off", "preferred election requested")
        facts["off_elected"] = simulation.partition("orders", 0).leader
    finding.claim(
        facts["leader_after_crash"] == 3 and facts["leader_after_return"] == 3,
        "no: broker 3, which was elected when 2 crashed, stays the leader, and 2 returns as a "
        "follower",
    )
    finding.claim(
        2 in facts["isr_after_catching_up"] and facts["role_after_return"] == "follower",
        "broker 2 joins the ISR again once it has caught up",
    )
    finding.claim(
        facts["auto_rebalance_default"] and waited_ms <= 2000 * interval_s,
        "it leads again when the periodic rebalance (on by default, every "
        f"{time_text(1000 * interval_s)}) runs a preferred election, as it is first in the "
        "assignment",
    )
    finding.claim(
        facts["off_later"] == 3 and facts["off_elected"] == 2,
        "with the rebalance off it leads again only after somebody has asked for that election",
    )
    return finding


def _crash_and_restart(finding: Finding, simulation: Simulation, setting_text: str) -> float:
    """Crash the leader and start it again; return the time of the start."""
    simulation.create_topic("orders", assignment={0: [2, 3, 4]})
    _row(finding, simulation, setting_text, "at first")
    crashed = crash(simulation, 2)
    _row(finding, simulation, setting_text, "2 crashed")
    returned_ms = simulation.now_ms
    returned = restart(simulation, 2)
    _row(finding, simulation, setting_text, "2 is back for 10 s")
    simulation.run_for(50_000)
    caught_up = simulation.partition("orders", 0)
    finding.facts.update(
        leader_after_crash=crashed.leader,
        leader_after_return=returned.leader,
        role_after_return=returned.replica(2).role,
        isr_after_catching_up=list(caught_up.isr),
    )
    return returned_ms


def _row(finding: Finding, simulation: Simulation, setting_text: str, moment: str) -> None:
    view = simulation.partition("orders", 0)
    finding.row(
        setting_text, moment, leader_text(view.leader), view.leader_epoch, list_text(view.isr)
    )


def two_strategies_of_a_shutdown(kafka_version: str) -> Finding:
    """9: the request moves leaders first; the deletion of the znode then triggers failure
    handling."""
    columns = ("controlled", "election", "strategy", "partitions", "outcome")
    finding = Finding(columns)
    controlled = _shut_down(finding, kafka_version, controlled=True)
    abrupt = _shut_down(finding, kafka_version, controlled=False)
    finding.facts.update(controlled=controlled, abrupt=abrupt)
    strategies = controlled["strategies"]
    finding.claim(
        strategies == ["ControlledShutdown", "Offline"],
        "because two different events reach the controller: first the broker's ControlledShutdown "
        "request, and later the deletion of its znode",
    )
    finding.claim(
        controlled["partitions"][:1] == [[str(_MOVED)]]
        and controlled["moved_by_request"] == {"leader": 3, "epoch": 1, "isr": [3, 4]},
        "the request moves what it can (moved-0 from 2 to 3) while the broker still serves",
    )
    finding.claim(
        controlled["partitions"][1:] == [[str(_SINGLE)]]
        and controlled["single_at_end"]["leader"] is None,
        "the deletion of the znode starts the ordinary failure handling, which finds the rest: "
        "single-0, whose only replica the request does not touch",
    )
    finding.claim(
        controlled["history"][-1] == [3, 1, [3, 4]],
        "it does not write the moved partition a second time (moved-0 keeps epoch 1)",
    )
    finding.claim(
        abrupt["strategies"] == ["Offline"] and abrupt["moved_at_end"]["leader"] == 3,
        "with controlled.shutdown.enable=false only the Offline strategy runs, for both partitions",
    )
    return finding


def _shut_down(finding: Finding, kafka_version: str, controlled: bool) -> dict[str, Any]:
    config = {} if controlled else {"controlled.shutdown.enable": "false"}
    label = "yes" if controlled else "no"
    with controller_log(), simulate(kafka_version, config) as simulation:
        simulation.create_topic("moved", assignment={0: [2, 3, 4]})
        simulation.create_topic("single", assignment={0: [2]})
        probe = Probe(simulation)
        simulation.broker(2).begin_shutdown()
        history = _leadership_history(simulation, probe)
        at_end = _leadership(simulation, "moved")
        single = _leadership(simulation, "single")
        state = simulation.controller.partition_state("single", 0)
    for number, one in enumerate(probe.passes, 1):
        finding.row(label, number, one.strategy, _partition_names(one), _outcome_text(one))
    states = (f"{leader}, epoch {epoch}, {list_text(isr)}" for leader, epoch, isr in history)
    finding.row(label, "-", "leader and ISR stored", str(_MOVED), "\n".join(states))
    first = probe.passes[0].outcomes.get(_MOVED)
    moved = None
    if isinstance(first, LeaderAndIsr):
        moved = {"leader": first.leader, "epoch": first.leader_epoch, "isr": list(first.isr)}
    return {
        "strategies": [one.strategy for one in probe.passes],
        "partitions": [[str(partition) for partition in one.partitions] for one in probe.passes],
        "moved_by_request": moved,
        "history": history,
        "moved_at_end": at_end,
        "single_at_end": {**single, "state": state},
    }


def _leadership_history(simulation: Simulation, probe: Probe) -> list[list[Any]]:
    """Return every (leader, epoch, ISR) in the znode of moved-0 until the controller had handled
    the end of broker 2."""
    history: list[list[Any]] = []
    context = simulation.running.require_controller().context

    def has_handled_shutdown() -> bool:
        data = simulation.zookeeper.get("/brokers/topics/moved/partitions/0/state") or b"{}"
        stored = json.loads(data)
        entry = [stored["leader"], stored["leader_epoch"], stored["isr"]]
        if not history or history[-1] != entry:
            history.append(entry)
        return bool(probe.passes) and 2 not in context.brokers.live_or_shutting_down_broker_ids

    simulation.run_until(has_handled_shutdown)
    end_ms = simulation.now_ms + 1000
    simulation.run_until(lambda: has_handled_shutdown() and simulation.now_ms >= end_ms)
    return history


def _leadership(simulation: Simulation, topic: str) -> dict[str, Any]:
    view = simulation.partition(topic, 0)
    return {"leader": view.leader, "epoch": view.leader_epoch, "isr": list(view.isr)}


def _partition_names(one: ElectionPass) -> str:
    return ", ".join(str(partition) for partition in one.partitions) or "none left"


def _outcome_text(one: ElectionPass) -> str:
    texts = []
    for partition, outcome in sorted(one.outcomes.items(), key=lambda item: str(item[0])):
        if isinstance(outcome, LeaderAndIsr):
            texts.append(
                f"{partition}: leader {outcome.leader}, epoch {outcome.leader_epoch}, "
                f"ISR {list_text(outcome.isr)}"
            )
        else:
            texts.append(f"{partition}: no leader found")
    return "\n".join(texts) or "nothing to elect"
