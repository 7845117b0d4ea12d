"""Chains of causes: every event leads back to a root, and ``why`` shows the relevant events."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from fakekafka import Event, Simulation, Trace
from fakekafka.tests.support.traces import acknowledge, fetch
from fakekafka.tracing.events import ROOT_KINDS
from fakekafka.tracing.format import CHUNK_EVENTS
from fakekafka.tracing.reading.causes import why
from fakekafka.tracing.recording.recorder import Recorder

VERSIONS = ("0.10", "1.1", "2.8", "3.9")
CONFIG = {"zookeeper.session.timeout.ms": 6000, "replica.lag.time.max.ms": 2000}


def faulty_run(version: str) -> Trace:
    """Return a trace of clients running through a crash, a pause, a partition, message losses, a
    held message, an expired session, a controlled shutdown and restarts.
    """
    with Simulation(3, seed=5, kafka_version=version, config=CONFIG, zookeepers=3) as simulation:
        simulation.create_topic("t", partitions=2, replication_factor=3)
        producer = simulation.producer(acks="all")
        simulation.consumer([("t", 0), ("t", 1)])
        simulation.group_consumer("g", ["t"])

        def go_on(for_ms: float) -> None:
            for number in range(4):
                producer.produce(("t", number % 2), b"v")
                simulation.run_for(for_ms / 4)

        go_on(2000)
        simulation.broker(2).kill()
        go_on(9000)
        simulation.broker(2).start(wait=False)
        simulation.broker(3).pause()
        go_on(9000)
        simulation.broker(3).resume()
        simulation.network.isolate(1)
        go_on(9000)
        simulation.network.heal()
        simulation.network.drop(0.05)
        go_on(2000)
        simulation.network.heal()
        simulation.network.hold(lambda delivery: delivery.target.machine == "broker-1")
        go_on(500)
        simulation.network.release()
        simulation.run_until(lambda: simulation.controller.id, 30_000)
        simulation.zookeeper.expire_session(2)
        go_on(3000)
        simulation.broker(3).begin_shutdown()
        go_on(3000)
        simulation.zookeeper.server(1).kill()
        go_on(5000)
        return simulation.trace()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_every_chain_of_causes_ends_at_a_root(version: str) -> None:
    """Every chain of causes ends at the start, a test's step, a fault or a client's operation.
    Every cause is an earlier event, and that of a delivery is the sending of the same message.
    """
    trace = faulty_run(version)
    root: list[Event] = []
    for event in trace.events:
        if event.kind in ROOT_KINDS:
            root.append(event)
            continue
        assert event.cause is not None, event
        assert event.cause < event.seq
        cause = trace.event(event.cause)
        assert cause.time_us <= event.time_us
        if event.kind == "deliver" and event.message_id:
            assert (cause.kind, cause.message_id) == ("send", event.message_id)
            assert (cause.actor, cause.peer) == (event.peer, event.actor)
        root.append(root[event.cause])
    assert {event.kind for event in root} == {*ROOT_KINDS}
    assert root[0].kind == "start"


def silenced(fault: Callable[[Simulation, int], object]) -> Trace:
    """Apply a fault to a broker, not the controller, until its partition has another leader."""
    with Simulation(3, seed=1, config=CONFIG) as simulation:
        simulation.create_topic("t", assignment={0: [2, 3]})
        assert simulation.controller.id != 2
        producer = simulation.producer(acks=1)
        producer.produce(("t", 0), b"v")
        simulation.run_for(500)
        fault(simulation, 2)
        producer.produce(("t", 0), b"v")
        simulation.run_until(lambda: simulation.partition("t", 0).leader == 3, 30_000)
        simulation.run_for(2000)
        return simulation.trace()


FAULTS: dict[str, tuple[Callable[[Simulation, int], object], str]] = {
    "crash": (lambda s, b: s.broker(b).kill(), "broker-2 is killed"),
    "power": (lambda s, b: s.broker(b).power_off(), "broker-2 loses power"),
    "pause": (lambda s, b: s.broker(b).pause(), "paused"),
    "cut": (lambda s, b: s.network.isolate(b), "partition [['broker-2'], "),
    "expiry": (lambda s, b: s.broker(b).kill(expire_session=True), "session expired"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_cause_of_an_expired_session_is_the_fault_that_silenced_its_client(name: str) -> None:
    """A session's expiry is caused by the fault that silenced its client, not by its last ping."""
    fault, text = FAULTS[name]
    trace = silenced(fault)
    (expiry,) = trace.filter("kind == expire and actor == 'zk-1'")
    assert expiry.cause is not None
    assert (trace.event(expiry.cause).why or "").startswith(text)
    took_over = next(c for c in trace.changes("broker-3/t-0/role") if c.new == "leader").event
    assert (trace.why(took_over)[-1].why or "").startswith(text)


def test_why_the_new_leader_appended_in_a_few_lines() -> None:
    """The chain is: the kill, the session's expiry, the watch, LeaderAndIsr, the append; answered
    requests to ZooKeeper are folded.
    """
    trace = silenced(lambda simulation, broker: simulation.broker(broker).kill())
    first = next(
        change.event
        for change in trace.changes("broker-3/t-0/log_end_offset")
        if change.event.type == "ProduceRequest"
    )
    chain = trace.why(first)
    told = [(event.kind, event.type) for event in chain]
    assert told[:2] == [("deliver", "ProduceRequest"), ("deliver", "LeaderAndIsrRequest")]
    assert told[-3:] == [("deliver", "WatchEvent"), ("expire", None), ("crash", None)]
    assert len(chain) <= 8
    seqs = [event.seq for event in chain]
    assert seqs == sorted(seqs, reverse=True)
    whole = trace.why(chain[1], is_folded=False)
    assert len(whole) > len(chain)
    assert {event.seq for event in chain[1:]} <= {event.seq for event in whole}


def test_effects_of_a_kill_reach_the_clients_errors() -> None:
    """The effects of a crash include the producer's failed request and the new leader."""
    trace = silenced(lambda simulation, broker: simulation.broker(broker).kill())
    crash = next(trace.filter("kind == crash"))
    tree = trace.effects(crash, limit=5000)
    waiting, seen = [tree], []
    while waiting:
        node = waiting.pop()
        seen.append((node.event.kind, node.event.type, node.event.actor))
        waiting += node.children
    assert ("deliver", "Disconnected", "producer-1") in seen or (
        "client_retry", "produce", "producer-1"
    ) in seen  # fmt: skip
    assert ("deliver", "LeaderAndIsrRequest", "broker-3") in seen


def test_all_messages_of_an_operation_belong_to_it() -> None:
    """All messages of a produce operation carry it: request, replication and acknowledgement."""
    with Simulation(3, seed=1) as simulation:
        simulation.create_topic("t", assignment={0: [2, 3]})
        producer = simulation.producer(acks="all")
        producer.produce(("t", 0), b"first")
        simulation.run_for(1000)
        producer.produce(("t", 0), b"v")
        simulation.run_for(1000)
        trace = simulation.trace()
    begun = list(trace.filter("kind == client_invoke"))[-1]
    mine = list(trace.filter(f"op == {begun.seq}"))
    assert mine[0].seq == begun.seq
    assert (mine[-1].kind, mine[-1].why) == ("client_ok", "offset 1")
    types = [event.type for event in mine if event.kind == "deliver"]
    assert types == [
        "ProduceRequest", "FetchResponse", "FetchRequest", "ProduceResponse",
    ]  # fmt: skip


def test_a_periodic_timer_is_one_line_of_a_folded_chain() -> None:
    """A repeated poll is caused by what started the polling, not by the poll before."""
    with Simulation(1, topics={"orders": 1}, kafka_version="3.9") as simulation:
        simulation.group_consumer("g", ["orders"], name="g1")
        simulation.run_for(30_000)
        trace = simulation.trace()
    last = list(trace.filter("kind == timer_fire and actor == g1"))[-1]
    whole, folded = trace.why(last, is_folded=False), trace.why(last)
    ticks = [event for event in whole if (event.kind, event.type) == (last.kind, last.type)]
    assert len(ticks) == 1
    assert whole[1].time_us < 1_000_000
    kinds = [(event.kind, event.actor, event.type) for event in folded]
    pairs = [a == b and a[0] == "timer_fire" for a, b in pairwise(kinds)]
    assert not any(pairs)
    assert (folded[0].seq, folded[-1].seq) == (last.seq, whole[-1].seq)


def test_an_answer_stays_in_the_chain_when_its_change_comes_after_a_full_chunk() -> None:
    """A response stays in the folded chain if its change became an event of the next chunk."""
    recorder = Recorder()
    for number in range(CHUNK_EVENTS - 4):
        recorder.event(number, "step", "scenario", None, None, None, None)
    asked = recorder.event(5000, "send", "a", "b", fetch(1), 1, 0)
    heard = recorder.event(5001, "deliver", "b", "a", fetch(1), 1, asked)
    answered = recorder.event(5002, "send", "b", "a", acknowledge(1), 2, heard)
    told = recorder.event(5003, "deliver", "a", "b", acknowledge(1), 2, answered)
    recorder.state(told, "a/offset", 2, 1, 5004)
    assert len(recorder) == told + 2
    assert [event.seq for event in why(recorder.trace(), told + 1)] == [told + 1, told, 0]


def test_unknown_types_and_fields_are_mistakes() -> None:
    """A filter with an unknown type, kind or field is refused and suggests the nearest name."""
    with Simulation(1, seed=1) as simulation:
        trace = simulation.trace()
    for expression, hint in {
        "type == 'LeaderAndIsrReqest'": "unknown type 'LeaderAndIsrReqest'; did you mean "
        "'LeaderAndIsrRequest'",
        "kind == 'delivr'": "unknown kind 'delivr'; did you mean 'deliver'",
        "payload.contrller_epoch > 1": "unknown field 'contrller_epoch'; did you mean "
        "'controller_epoch'",
        "type in ('FetchRequest', 'FetchReponse')": "did you mean 'FetchResponse'",
    }.items():
        with pytest.raises(Exception, match=hint):
            list(trace.filter(expression))
    assert list(trace.filter("type == 'EndTxnRequest'")) == []
