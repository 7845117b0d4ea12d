"""Generates the load of the measurements: confluent-kafka in a process that obeys commands.

One process with one producer and one consumer serves a whole comparison, so that starting,
connecting and fetching metadata are over before anything is timed. ``LoadClient`` controls it.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import Any

from benchmarks.figures import ended_early

_CHUNK = 1000
_WAIT_S = 0.005
"""Seconds that ``consume`` waits for a full chunk: short, or the last records are timed too late.
"""
_QUEUED_MAX = 50_000
"""Maximum number of records in the producer: enough for full batches, too few to run far ahead."""


class LoadClient:
    """A client process, ready to produce to and fetch from one cluster.

    Methods raise ``MeasurementFailed`` with the standard error of the process if it has ended.
    """

    def __init__(self, servers: str, batch_bytes: int = 1_000_000) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by __exit__
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.client", servers, str(batch_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> LoadClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):  # the process ended before it read this
            self._process.communicate()
        self._errors.close()

    def produce(self, topic: str, partitions: int, size: int, count: int) -> dict[str, Any]:
        """Produce ``count`` records of ``size`` bytes to all partitions, with acks=all.

        Returns ``records`` (acknowledged), ``seconds`` and ``cpu_s``, the client's CPU time.
        """
        return self._ask(do="produce", topic=topic, partitions=partitions, size=size, count=count)

    def fetch(self, topic: str, partitions: int) -> dict[str, Any]:
        """Fetch all records of a topic; return their number as ``records``.

        ``timed_records``, ``seconds`` and ``cpu_s`` count from the first answer to the last.
        """
        return self._ask(do="fetch", topic=topic, partitions=partitions)

    def time_records(self, topic: str, count: int) -> dict[str, Any]:
        """Send records of 100 bytes one after another, each when the last one is acknowledged.

        Returns ``median_us`` and ``p99_us`` of all but the first fifth.
        """
        return self._ask(do="time_records", topic=topic, count=count)

    def _ask(self, **command: Any) -> dict[str, Any]:
        pipes = self._process
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # the process has ended, see below
            pipes.stdin.write(json.dumps(command) + "\n")
            pipes.stdin.flush()
        answer = pipes.stdout.readline()
        if not answer:
            raise ended_early(pipes, self._errors)
        outcome: dict[str, Any] = json.loads(answer)
        return outcome


# -- the process ----------------------------------------------------------------------------------


class _Client:
    """The client inside the process."""

    def __init__(self, servers: str, batch_bytes: int) -> None:
        from confluent_kafka import Consumer, Producer

        self._servers = servers
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "acks": "all",
                "linger.ms": 5,
                "batch.size": batch_bytes,
                "queue.buffering.max.messages": _QUEUED_MAX,
                "delivery.report.only.error": True,
            }
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "bench",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "queued.max.messages.kbytes": 262_144,
                "queued.min.messages": 200_000,
                "fetch.queue.backoff.ms": 1,
            }
        )

    def produce(self, topic: str, partitions: int, size: int, count: int) -> dict[str, Any]:
        producer = self._producer
        failed: list[Any] = []

        def report(error: Any, message: Any) -> None:
            failed.append(error)

        value = b"x" * size
        for partition in range(partitions):
            producer.produce(topic, value, partition=partition, on_delivery=report)
        producer.flush()
        cpu_s, started = time.process_time(), time.perf_counter()
        produce = producer.produce
        for number in range(count):
            while True:
                try:
                    produce(topic, value, partition=number % partitions, on_delivery=report)
                    break
                except BufferError:
                    producer.poll(0.002)
            if number % _CHUNK == 0:
                producer.poll(0)
        producer.flush()
        return {
            "records": count - len(failed),
            "seconds": time.perf_counter() - started,
            "cpu_s": time.process_time() - cpu_s,
        }

    def time_records(self, topic: str, count: int) -> dict[str, Any]:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._servers, "acks": "all", "linger.ms": 0})
        times_s: list[float] = []
        errors: list[Any] = []
        for number in range(count):
            started = time.perf_counter()
            producer.produce(
                topic, b"x" * 100, partition=0, on_delivery=lambda error, _: errors.append(error)
            )
            while len(errors) == number:
                producer.poll(1)
            times_s.append(time.perf_counter() - started)
        if any(errors):
            raise RuntimeError(f"a record was not written: {next(filter(None, errors))}")
        kept = sorted(times_s[count // 5 :])
        return {
            "median_us": kept[len(kept) // 2] * 1e6,
            "p99_us": kept[len(kept) * 99 // 100] * 1e6,
        }

    def fetch(self, topic: str, partitions: int) -> dict[str, Any]:
        from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

        consumer = self._consumer
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
        ended: set[int] = set()
        read = untimed = 0
        cpu_s = started = last_cpu_s = last = 0.0
        while len(ended) < partitions:
            messages = consumer.consume(_CHUNK, _WAIT_S)
            ends = [
                (message.partition(), error)
                for message in messages
                if (error := message.error()) is not None
            ]
            for partition, error in ends:
                if error.code() != KafkaError._PARTITION_EOF or partition is None:
                    raise RuntimeError(f"{topic} cannot be read: {error}")
                ended.add(partition)
            if len(messages) == len(ends):
                continue
            read += len(messages) - len(ends)
            # The clock stops here, not at the end of the loop, which a last, empty fetch delays.
            last_cpu_s, last = time.process_time(), time.perf_counter()
            if not started:
                cpu_s, started, untimed = last_cpu_s, last, read
        consumer.unassign()
        return {
            "records": read,
            "timed_records": read - untimed,
            "seconds": last - started,
            "cpu_s": last_cpu_s - cpu_s,
        }


def main() -> None:
    """Execute the commands on standard input until it ends."""
    client = _Client(sys.argv[1], int(sys.argv[2]))
    for text in sys.stdin:
        command = json.loads(text)
        print(json.dumps(getattr(client, command.pop("do"))(**command)), flush=True)


if __name__ == "__main__":
    main()
