"""Forces an order of events: the follower's fetches are held, so that acks=all has to wait."""

from __future__ import annotations

from fakekafka import Simulation
from fakekafka.protocol.values import TopicPartition

WHERE = TopicPartition("orders", 0)

with Simulation(brokers=2, topics={"orders": 1}) as simulation:
    producer = simulation.producer(acks=-1)
    producer.produce(WHERE, b"first")
    simulation.run_until(lambda: producer.acknowledged == 1)

    simulation.network.hold(
        lambda delivery: (
            type(delivery.message).__name__ == "FetchRequest" and delivery.message.replica_id >= 0
        )
    )
    producer.produce(WHERE, b"second")
    simulation.run_for(3000)
    view = simulation.partition(*WHERE)
    print(
        f"while held: log end {view.log_end_offset}, high watermark {view.high_watermark}, "
        f"acknowledged {producer.acknowledged}"
    )

    print(f"released: {simulation.network.release()} message")
    simulation.run_until(lambda: producer.acknowledged == 2)
    view = simulation.partition(*WHERE)
    print(f"then: log end {view.log_end_offset}, high watermark {view.high_watermark}")
