"""Requests behind a cut that their senders gave up."""

from __future__ import annotations

from fakekafka import Simulation


def test_a_request_that_was_given_up_is_not_delivered_and_the_trace_says_so() -> None:
    """When a cut heals, requests that timed out are dropped, and the trace says so."""
    with Simulation(2, seed=3, trace=True) as simulation:
        simulation.create_topic("orders", assignment={0: [1, 2]})
        producer = simulation.producer(name="producer", request_timeout_ms=1000)
        producer.produce(("orders", 0), b"before")
        simulation.run_for(1000)
        simulation.network.partition(["producer"], ["broker-1", "broker-2"])
        producer.produce(("orders", 0), b"behind the cut")
        simulation.run_for(2500)
        simulation.network.heal()
        simulation.run_for(2000)
        trace = simulation.trace()
        held, dropped, released = (
            [
                event.message_id or 0
                for event in trace.filter(f"kind == {kind}")
                if event.actor == "producer" and event.why == why
            ]
            for kind, why in (("hold", "partitioned"), ("drop", "given up"), ("release", None))
        )
        delivered = {event.message_id for event in trace.filter("kind == deliver")}
        assert len(dropped) >= 2
        assert sorted(dropped + released) == sorted(held)
        assert not delivered & set(dropped)
        assert delivered >= set(released)
        assert simulation.partition("orders", 0).log_end_offset == 2
