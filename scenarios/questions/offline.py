"""Questions 3, 4 and 8: which replica may lead after all were offline, and when replicas leave the
ISR."""

from __future__ import annotations

from typing import Any

from .probe import (
    Finding,
    Probe,
    controller_log,
    crash,
    leader_text,
    list_text,
    restart,
    setting,
    simulate,
    time_text,
)

_SETTINGS: tuple[tuple[str, bool | None], ...] = (("off", False), ("on", True), ("default", None))


def _unclean_election_config(allowed: bool | None) -> dict[str, Any]:
    if allowed is None:
        return {}
    return {"unclean.leader.election.enable": str(allowed).lower()}


def outsider_after_all_offline(kafka_version: str) -> Finding:
    """3: a replica that was not in the ISR leads only if unclean election is allowed."""
    columns = ("unclean election", "moment", "state", "leader", "ISR", "records")
    finding = Finding(columns)
    for name, allowed in _SETTINGS:
        _run_outsider(finding, kafka_version, name, allowed)
    facts = finding.facts
    off, on, default = facts["off"], facts["on"], facts["default"]
    finding.claim(
        off["leader_after_outsider"] is None,
        "no: with unclean election off, broker 4, which was not in the ISR, does not become leader",
    )
    finding.claim(
        off["leader_at_end"] == 2 and off["lost"] == 0,
        "the partition waits for the last ISR member (2), and no acknowledged record is lost",
    )
    finding.claim(
        on["leader_after_outsider"] == 4 and on["unclean_elections"] == 1,
        "with unclean election on, broker 4 leads at once, "
        f"and {on['lost']} of {on['acknowledged']} acknowledged records are lost",
    )
    default_name = "on" if facts["unclean_default"] else "off"
    finding.claim(
        default["leader_after_outsider"] == facts[default_name]["leader_after_outsider"],
        f"unclean election is {default_name} by default",
    )
    left = [one["isr_when_all_dead"] for one in (off, on)]
    finding.claim(
        left in ([[2], []], [[2], [2]]),
        "the last member stays in the ISR when it dies"
        if left[1]
        else "the last member stays in the ISR when it dies only with unclean election off; with "
        "unclean election on the ISR becomes empty",
    )
    return finding


def _run_outsider(finding: Finding, kafka_version: str, name: str, allowed: bool | None) -> None:
    with controller_log(), simulate(kafka_version, _unclean_election_config(allowed)) as simulation:
        flag = setting(simulation, "unclean.leader.election.enable")
        if allowed is None:
            finding.facts["unclean_default"] = flag
        label = f"{name} ({'on' if flag else 'off'})" if allowed is None else name
        simulation.create_topic("orders", assignment={0: [2, 3, 4]})
        simulation.produce("orders", ["a", "b"])
        crash(simulation, 4)
        simulation.produce("orders", ["c", "d", "e"])
        crash(simulation, 3)
        alone = simulation.partition("orders", 0)
        dead = crash(simulation, 2)
        outsider = restart(simulation, 4)
        unclean = simulation.controller.metrics["UncleanLeaderElectionsPerSec"]
        moments = [("2 alone alive", alone), ("all dead", dead), ("4 started", outsider)]
        end = restart(simulation, 2)
        moments.append(("2 started", end))
        left = len(simulation.consume("orders"))
    if allowed is None:
        moments = moments[2:3]  # shows which of the two settings is the default
    for moment, view in moments:
        led = view.leader is not None
        finding.row(
            label,
            moment,
            view.state.removesuffix("Partition"),
            leader_text(view.leader),
            list_text(view.isr),
            view.log_end_offset if led else "-",
        )
    finding.facts[name] = {
        "isr_when_all_dead": list(dead.isr),
        "leader_after_outsider": outsider.leader,
        "leader_at_end": end.leader,
        "unclean_elections": unclean,
        "acknowledged": 5,
        "lost": 5 - left,
    }


def start_one_by_one(kafka_version: str) -> Finding:
    """4: the last ISR member, not the first to start, unless unclean election is allowed."""
    columns = ("died", "unclean", "ISR left", "started in turn: leader after each", "leads")
    finding = Finding(columns)
    leaders = {}
    for died in ("4, then 3, then 2", "all at once"):
        for name, allowed in _SETTINGS[:2]:
            leaders[died, name] = _run_one_by_one(finding, kafka_version, died, name, allowed)
    in_turn, at_once = leaders["4, then 3, then 2", "off"], leaders["all at once", "off"]
    finding.claim(
        in_turn["leaders"] == [None, None, 2] and in_turn["isr"] == [2],
        "not the first to start: with unclean election off, the only replica left in the ISR "
        "becomes leader; here that is the last one to die (2), although it starts last",
    )
    finding.claim(
        len(at_once["isr"]) == 1
        and [x for x in at_once["leaders"] if x is not None][:1] == at_once["isr"],
        "if all die at once, the controller takes them out of the ISR one after the other, and "
        f"the partition waits for the last one, {at_once['isr']}",
    )
    on = [leaders[died, "on"] for died in ("4, then 3, then 2", "all at once")]
    finding.claim(
        all(one["leaders"][0] == one["order"][0] for one in on),
        "with unclean election on, the first to start leads",
    )
    finding.claim(
        all(one["leaders"][-1] == one["leaders"][0] for one in on),
        "the replicas that start later follow it",
    )
    return finding


def _run_one_by_one(
    finding: Finding, kafka_version: str, died: str, name: str, allowed: bool | None
) -> dict[str, Any]:
    with controller_log(), simulate(kafka_version, _unclean_election_config(allowed)) as simulation:
        simulation.create_topic("orders", assignment={0: [2, 3, 4]})
        if died == "all at once":
            order = (2, 3, 4)
            for broker_id in (4, 3):
                simulation.broker(broker_id).kill()
            dead = crash(simulation, 2)
        else:
            order = (4, 3, 2)
            for broker_id in (4, 3, 2):
                dead = crash(simulation, broker_id)
        leaders = [restart(simulation, broker_id).leader for broker_id in order]
    steps = zip(order, leaders, strict=True)
    finding.row(
        died,
        name,
        list_text(dead.isr),
        ", ".join(f"{broker_id}: {leader_text(leader)}" for broker_id, leader in steps),
        leader_text(leaders[-1]),
    )
    facts = {"isr": list(dead.isr), "order": list(order), "leaders": leaders}
    finding.facts[f"{died}, unclean {name}"] = facts
    return facts


def leaving_the_isr(kafka_version: str) -> Finding:
    """8: not at the crash, but when the session expires; the last member stays."""
    columns = ("crashed", "ISR before", "1 s later", "ISR after", "left after", "leader, epoch")
    finding = Finding(columns)
    with controller_log(), simulate(kafka_version, trace=True) as simulation:
        session_ms = setting(simulation, "zookeeper.session.timeout.ms")
        lag_ms = setting(simulation, "replica.lag.time.max.ms")
        unclean = setting(simulation, "unclean.leader.election.enable")
        simulation.create_topic("orders", assignment={0: [2, 3, 4]})
        probe = Probe(simulation)
        for broker_id, role in ((4, "follower"), (2, "leader"), (3, "last member")):
            finding.facts[role] = _crash_and_measure(finding, simulation, broker_id, role)
        path = probe.path("orders")
    facts = finding.facts
    follower, leader, last = facts["follower"], facts["leader"], facts["last member"]
    both = (follower, leader)
    finding.claim(
        all(one["isr_soon"] == one["isr_before"] for one in both),
        "no, they are still in the ISR one second after the crash",
    )
    slowest_ms = max(one["left_after_ms"] for one in both)
    finding.claim(
        all(session_ms / 2 <= one["left_after_ms"] <= session_ms * 1.5 for one in both)
        and slowest_ms < lag_ms,
        f"they leave when the ZooKeeper session ends ({time_text(slowest_ms)}, session timeout "
        f"{time_text(session_ms)}), without waiting for replica.lag.time.max.ms "
        f"({time_text(lag_ms)})",
    )
    finding.claim(
        all(one["epoch_after"] == one["epoch_before"] + 1 for one in both),
        "the controller removes them, which raises the leader epoch by one",
    )
    kept = last["isr_after"] == [3]
    finding.claim(
        last["leader"] is None and (kept or not last["isr_after"]),
        "the last member of the ISR stays in it and the partition has no leader"
        if kept
        else "because unclean election is on by default, the last member leaves too, and the ISR "
        "is empty",
    )
    facts.update(session_ms=session_ms, lag_ms=lag_ms, unclean=unclean, path=path)
    return finding


def _crash_and_measure(
    finding: Finding, simulation: Any, broker_id: int, role: str
) -> dict[str, Any]:
    before = simulation.partition("orders", 0)
    crashed_ms = simulation.now_ms
    simulation.broker(broker_id).kill()
    simulation.run_for(1000)
    soon = simulation.partition("orders", 0)
    context = simulation.running.require_controller().context
    if role == "last member":
        simulation.run_until(lambda: simulation.partition("orders", 0).leader is None)
    else:
        simulation.run_until(lambda: broker_id not in simulation.partition("orders", 0).isr)
    after_ms = simulation.now_ms - crashed_ms
    noticed = broker_id not in context.brokers.live_or_shutting_down_broker_ids
    simulation.run_for(1000)
    after = simulation.partition("orders", 0)
    stays = broker_id in after.isr
    finding.row(
        f"{broker_id} ({role})",
        list_text(before.isr),
        list_text(soon.isr),
        list_text(after.isr),
        "stays" if stays else time_text(after_ms),
        f"{leader_text(after.leader)}, {before.leader_epoch} > {after.leader_epoch}",
    )
    return {
        "isr_before": list(before.isr),
        "isr_soon": list(soon.isr),
        "isr_after": list(after.isr),
        "left_after_ms": after_ms,
        "controller_knew": noticed,
        "leader": after.leader,
        "epoch_before": before.leader_epoch,
        "epoch_after": after.leader_epoch,
    }
