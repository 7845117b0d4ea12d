"""Questions 6 and 7: clients during an election, and how long a partition is unavailable."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

from ...actors.clients.client import RETRY_BACKOFF_MS
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ...testing.simulation import Simulation
from ...tracing.story.timeline import read_story
from .probe import (
    Finding,
    Probe,
    controller_log,
    crash,
    elect_preferred,
    restart,
    setting,
    simulate,
    time_text,
)

INTERVAL_MS = 20


class _Traffic:
    """A producer that sends a record to one partition every 20 ms, and the answers to it."""

    def __init__(self, simulation: Simulation, topic: str) -> None:
        self._simulation = simulation
        self._where = TopicPartition(topic, 0)
        self.producer = simulation.producer(
            f"producer-{topic}", enable_idempotence=simulation.behaviour.idempotent_producers
        )
        self.acked_at_ms: list[float] = []
        self.acknowledged: list[bytes] = []
        self.errors: list[ErrorCode] = []
        self.sent = 0
        self.running = True
        self._send()

    def _send(self) -> None:
        if not self.running:
            return
        value = b"%06d" % self.sent
        self.sent += 1

        def answered(error: ErrorCode, _offset: int) -> None:
            if error == ErrorCode.NONE:
                self.acked_at_ms.append(self._simulation.now_ms)
                self.acknowledged.append(value)
            else:
                self.errors.append(error)

        self.producer.produce(self._where, value, callback=answered)
        self._simulation.runtime.call_later(self.producer, INTERVAL_MS * 1000, self._send)

    def acked_since(self, start_ms: float) -> Callable[[], bool]:
        return lambda: bool(self.acked_at_ms) and self.acked_at_ms[-1] > start_ms

    def longest_gap_ms(self, start_ms: float) -> float:
        """Return the longest time between acknowledgements, from the last before ``start_ms``."""
        before = [time for time in self.acked_at_ms if time <= start_ms][-1:]
        times = before + [time for time in self.acked_at_ms if time > start_ms]
        return max((b - a for a, b in itertools.pairwise(times)), default=float("inf"))


def clients_during_an_election(kafka_version: str) -> Finding:
    """6: they fail or wait, poll the metadata, and continue with the new leader."""
    finding = Finding(("client", "leader crashes (2 to 3)", "leader moves (3 to 2, both alive)"))
    facts = finding.facts
    with controller_log(), simulate(kafka_version, trace=True) as simulation:
        simulation.create_topic("orders", assignment={0: [2, 3, 4]})
        consumer = simulation.consumer([("orders", 0)])
        traffic = _Traffic(simulation, "orders")
        simulation.run_for(2000)
        crash_seq = _last_seq(simulation)
        crashed_ms = simulation.now_ms
        simulation.broker(2).kill()
        simulation.run_until(traffic.acked_since(crashed_ms + 100), 120_000)
        simulation.run_for(2000)
        facts["crash"] = _observe(simulation, crash_seq, crashed_ms, traffic)
        simulation.broker(2).start()
        simulation.run_until(lambda: 2 in simulation.partition("orders", 0).isr, 120_000)
        simulation.run_for(2000)
        move_seq = _last_seq(simulation)
        moved_ms = simulation.now_ms
        elect_preferred(simulation)
        simulation.run_for(3000)
        facts["move"] = _observe(simulation, move_seq, moved_ms, traffic)
        traffic.running = False
        simulation.run_for(5000)
        values = [record.value for record in simulation.records("orders", 0)]
        facts["sent"] = traffic.sent
        facts["acknowledged"] = len(traffic.acknowledged)
        facts["retries"] = traffic.producer.retries
        facts["lost"] = len(set(traffic.acknowledged) - {v for v in values if v is not None})
        facts["doubled"] = len(values) - len(set(values))
        facts["read"] = consumer.records_read
        facts["stored"] = len(values)
        facts["idempotent"] = traffic.producer.settings.enable_idempotence
    _client_rows(finding)
    _client_claims(finding)
    return finding


def _last_seq(simulation: Simulation) -> int:
    return len(simulation.events) - 1


def _observe(
    simulation: Simulation, after_seq: int, start_ms: float, traffic: _Traffic
) -> dict[str, Any]:
    """Count the requests and errors of the clients since an event, from the recorded messages."""
    sent: Counter[str] = Counter()
    errors: dict[str, Counter[str]] = {"producer": Counter(), "consumer": Counter()}
    for event in simulation.events:
        if event.seq <= after_seq:
            continue
        client = event.actor.partition("-")[0]
        if client not in errors:
            continue
        if event.kind == "send":
            sent[f"{client} {event.type}"] += 1
        elif event.kind == "deliver" and event.type in ("ProduceResponse", "FetchResponse"):
            for entry in event.fields.get("partitions") or ():
                if entry["error"] != "NONE":
                    errors[client][entry["error"]] += 1
        elif event.kind == "deliver" and event.type in ("Disconnected", "RequestTimeout"):
            errors[client][str(event.type)] += 1
    return {
        "metadata_producer": sent["producer MetadataRequest"],
        "metadata_consumer": sent["consumer MetadataRequest"],
        "errors_producer": dict(sorted(errors["producer"].items())),
        "errors_consumer": dict(sorted(errors["consumer"].items())),
        "gap_ms": traffic.longest_gap_ms(start_ms),
    }


def _errors(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "none"


def _client_rows(finding: Finding) -> None:
    facts = finding.facts
    lost, moved = facts["crash"], facts["move"]
    for client in ("producer", "consumer"):
        finding.row(
            f"{client}: errors heard",
            _errors(lost[f"errors_{client}"]),
            _errors(moved[f"errors_{client}"]),
        )
        finding.row(
            f"{client}: metadata requests", lost[f"metadata_{client}"], moved[f"metadata_{client}"]
        )
    finding.row("producer: longest wait", time_text(lost["gap_ms"]), time_text(moved["gap_ms"]))
    finding.row(
        "records over both",
        f"{facts['sent']} sent, {facts['acknowledged']} acknowledged",
        f"{facts['lost']} lost, {facts['doubled']} doubled, {facts['read']} read",
    )


def _client_claims(finding: Finding) -> None:
    facts = finding.facts
    lost, moved = facts["crash"], facts["move"]
    finding.claim(
        all(
            0.8 < lost[f"metadata_{client}"] * RETRY_BACKOFF_MS / lost["gap_ms"] < 1.25
            and "Disconnected" in lost[f"errors_{client}"]
            for client in ("producer", "consumer")
        ),
        "while there is no leader, both clients keep trying the dead one and ask the other "
        "brokers for metadata every retry.backoff.ms",
    )
    stale = [name for name in moved["errors_producer"] if name.startswith("NOT_LEADER")]
    finding.claim(
        bool(stale),
        "when the old leader is alive, it answers "
        f"{stale[0] if stale else 'NOT_LEADER'}, so they refresh their metadata and "
        "retry at the new leader",
    )
    finding.claim(
        facts["retries"] > 0 and facts["acknowledged"] == facts["sent"] and facts["lost"] == 0,
        "the producer retries by itself: with acks=all every record is acknowledged and none is "
        "lost",
    )
    finding.claim(
        facts["read"] == facts["stored"],
        "the consumer continues at its position and reads every record",
    )
    if facts["idempotent"]:
        finding.claim(facts["doubled"] == 0, "with idempotence no record is stored twice")


def unavailability(kafka_version: str) -> Finding:
    """7: the partition accepts no writes until the new leader has taken over; measure how long.

    The gaps are the longest times without an acknowledgement: for the partition whose leader moves
    (orders), for one that broker 2 only follows, and for one without a replica on broker 2.
    """
    columns = ("event", "states", "epoch", "gap: orders", "gap: followed", "gap: apart")
    finding = Finding(columns)
    facts = finding.facts
    for name, act in _EVENTS.items():
        facts[name] = _measure(finding, kafka_version, name, act)
    down, shutdown, preferred = (facts[name] for name in _EVENTS)
    session_ms = down["session_ms"]
    finding.claim(
        down["path"] == "Online > Offline > Online" and down["epoch"] == [0, 1],
        "a crash takes the partition from Online to Offline and back, and its leader epoch rises "
        "by one",
    )
    finding.claim(
        0.7 * down["led_ms"] < down["noticed_ms"] < down["led_ms"],
        "after the crash the partition accepts no writes for "
        f"{time_text(down['led_ms'])}; nearly all of that is the time until the session ends "
        f"(timeout {time_text(session_ms)}); election and take-over need "
        f"{_short_time_text(down['took_over_ms'])}, and the rest passes until the client asks "
        "again",
    )
    quick = (shutdown, preferred)
    finding.claim(
        all(one["led_ms"] <= RETRY_BACKOFF_MS + 3 * INTERVAL_MS for one in quick)
        and all(one["path"] == "Online > Online" for one in quick),
        "a controlled shutdown or a preferred election moves the leader without passing Offline "
        f"({time_text(shutdown['led_ms'])} and {time_text(preferred['led_ms'])}, mostly the "
        "client's back-off)",
    )
    finding.claim(
        down["followed_ms"] > session_ms / 2,
        "with acks=all, partitions that the dead broker only follows wait too, until it is out "
        "of their ISR",
    )
    finding.claim(
        all(facts[name]["apart_ms"] <= 2 * INTERVAL_MS for name in _EVENTS),
        "partitions without a replica on the broker are not affected",
    )
    return finding


def _short_time_text(milliseconds: float) -> str:
    return "less than 10 ms" if milliseconds < 10 else time_text(milliseconds)


_EVENTS: dict[str, Callable[[Simulation], object]] = {
    "crash": lambda simulation: simulation.broker(2).kill(),
    "controlled shutdown": lambda simulation: simulation.broker(2).begin_shutdown(),
    "preferred election": elect_preferred,
}


def _measure(
    finding: Finding, kafka_version: str, name: str, act: Callable[[Simulation], object]
) -> dict[str, Any]:
    with controller_log(), simulate(kafka_version, trace=name == "crash") as simulation:
        simulation.create_topic("orders", assignment={0: [2, 3, 4]})
        simulation.create_topic("followed", assignment={0: [3, 2, 4]})
        simulation.create_topic("apart", assignment={0: [3, 4]})
        if name == "preferred election":  # needs another broker as the leader first
            crash(simulation, 2)
            restart(simulation, 2)
            simulation.run_for(30_000)
        streams = {topic: _Traffic(simulation, topic) for topic in ("orders", "followed", "apart")}
        simulation.run_for(1000)
        probe = Probe(simulation)
        before = simulation.partition("orders", 0)
        start_ms = simulation.now_ms
        act(simulation)
        has_resumed = [stream.acked_since(start_ms + 1000) for stream in streams.values()]
        simulation.run_until(lambda: all(acked() for acked in has_resumed), 120_000)
        simulation.run_for(1000)
        after = simulation.partition("orders", 0)
        gaps = [stream.longest_gap_ms(start_ms) for stream in streams.values()]
        result = {
            "session_ms": setting(simulation, "zookeeper.session.timeout.ms"),
            "path": probe.path("orders"),
            "leader": [before.leader, after.leader],
            "epoch": [before.leader_epoch, after.leader_epoch],
            "led_ms": gaps[0],
            "followed_ms": gaps[1],
            "apart_ms": gaps[2],
        }
        if name == "crash":
            result |= _phases(simulation)
    epochs = f"{before.leader_epoch} > {after.leader_epoch}"
    what = f"{name} ({before.leader} to {after.leader})"
    finding.row(what, result["path"], epochs, *(time_text(gap) for gap in gaps))
    return result


def _phases(simulation: Simulation) -> dict[str, float]:
    """Return the time until the crash was noticed, and from then until the new leader took over."""
    story = read_story(simulation.events)
    found = story.crashes[-1]
    times = [outage.took_over_us for outage in story.outages if outage.cause is found]
    took_over_us = min((time_us for time_us in times if time_us is not None), default=None)
    if found.noticed_us is None or took_over_us is None:
        return {"noticed_ms": float("inf"), "took_over_ms": float("inf")}
    return {
        "noticed_ms": (found.noticed_us - found.begun_us) / 1000,
        "took_over_ms": (took_over_us - found.noticed_us) / 1000,
    }
