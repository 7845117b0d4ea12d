"""A confluent-kafka consumer in a process of its own that reads and checks partitions.

Usage: reader_process.py SERVERS TOPIC ISOLATION POSITIONS, the last a JSON list with the next
offset and the next value of each partition. Offsets must be consecutive, and no value may be
skipped. Each line of standard output is such a list, written several times a second while the
client is alive; a violation is written as a JSON string and ends the process.
"""

from __future__ import annotations

import json
import sys

from confluent_kafka import Consumer, TopicPartition
from fakekafka.tests.support.present import present

REPORT_MS = 200


def main(servers: str, topic: str, isolation: str, start: str) -> None:
    positions: list[tuple[int, int]] = json.loads(start)

    def report(_statistics: str) -> None:
        """Called by librdkafka's main thread with statistics; silence means that it hangs."""
        print(json.dumps(positions), flush=True)

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": isolation,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "statistics.interval.ms": REPORT_MS,
            "stats_cb": report,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, n, offset) for n, (offset, _) in enumerate(positions)])
    while True:
        for message in consumer.consume(1000, 0.1):
            partition = present(message.partition())
            if message.error() is not None:
                print(json.dumps(f"partition {partition}: {message.error()}"), flush=True)
                return
            offset, value = message.offset(), int(present(message.value()))
            next_offset, next_value = positions[partition]
            if offset != next_offset or value > next_value:
                text = f"{value} at offset {offset}, not {next_value} at {next_offset}"
                print(json.dumps(f"partition {partition}: {text}"), flush=True)
                return
            positions[partition] = (offset + 1, value + 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
