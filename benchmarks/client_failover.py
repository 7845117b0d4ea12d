"""Time that clients are without a leader, with their default settings and with settings for tests.

A producer sends a record, waits for its acknowledgement and sends the next; the figure is the
longest pause between two acknowledgements around a fault of the leader. The environment variable
KAFKAJS names a directory with ``node_modules/kafkajs``, KAFKA_CLIENTS a class path with Java's
kafka-clients.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures import IS_SMALL, ended_early, line

ROUNDS = 1
LIMIT_S = 12
TOPIC = "orders"

CONFLUENT = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "topic.metadata.refresh.interval.ms": 20,
    "socket.timeout.ms": 1000,
}
KAFKA_PYTHON = {
    "retry_backoff_ms": 10,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "request_timeout_ms": 1000,
}
AIOKAFKA = {"retry_backoff_ms": 10, "request_timeout_ms": 1000}
KAFKAJS = {"initialRetryTime": 10, "maxRetryTime": 50, "retries": 100}
JAVA = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "request.timeout.ms": 1000,
}

_NODE = """
const { Kafka, logLevel } = require('kafkajs');
const fast = JSON.parse(process.argv[2]);
const retry = Object.keys(fast).length ? fast : { retries: 100 };
const options = Object.keys(fast).length ? { requestTimeout: 1000, connectionTimeout: 500 } : {};
const kafka = new Kafka({ brokers: process.argv[1].split(','), logLevel: logLevel.NOTHING, retry,
  ...options });
(async () => {
  const producer = kafka.producer({ retry });
  await producer.connect();
  for (;;) {
    try {
      await producer.send({ topic: 'orders', messages: [{ value: 'x', partition: 0 }] });
      process.stdout.write('ack\\n');
    } catch (error) { /* sent again */ }
    await new Promise(done => setTimeout(done, 1));
  }
})();
"""

_JAVA = """
import java.util.Properties;
import org.apache.kafka.clients.producer.*;
public class Send {
  public static void main(String[] given) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", given[0]);
    settings.put("linger.ms", "0");
    for (int i = 1; i + 1 < given.length; i += 2) settings.put(given[i], given[i + 1]);
    if (given.length > 1) settings.put("delivery.timeout.ms", "60000");
    String bytes = "org.apache.kafka.common.serialization.ByteArraySerializer";
    settings.put("key.serializer", bytes);
    settings.put("value.serializer", bytes);
    Producer<byte[], byte[]> producer = new KafkaProducer<>(settings);
    for (;;) {
      try {
        producer.send(new ProducerRecord<>("orders", 0, null, new byte[1])).get();
        System.out.println("ack");
        System.out.flush();
      } catch (java.util.concurrent.ExecutionException again) { }
      Thread.sleep(1);
    }
  }
}
"""


class Acknowledgements:
    """The times of a client's acknowledgements. Setting ``ended`` makes the client stop."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.ended = threading.Event()
        self.failure: Exception | None = None
        """The error with which the client ended early."""

    def record(self) -> None:
        self.times.append(time.perf_counter())

    def longest_pause_ms(self) -> float:
        return max(b - a for a, b in itertools.pairwise(self.times)) * 1000


def _delivery_callback(errors: list[object]) -> Callable[[object, object], None]:
    return lambda error, _: errors.append(error)


def _confluent(servers: str, settings: dict[str, Any], acknowledgements: Acknowledgements) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "log_level": 0, **settings})
    while not acknowledgements.ended.is_set():
        errors: list[object] = []
        producer.produce(TOPIC, b"x", partition=0, on_delivery=_delivery_callback(errors))
        while not errors and not acknowledgements.ended.is_set():
            producer.poll(0.005)
        if errors and errors[0] is None:
            acknowledgements.record()
        time.sleep(0.001)


def _kafka_python(
    servers: str, settings: dict[str, Any], acknowledgements: Acknowledgements
) -> None:
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=servers.split(","), acks="all", **settings)
    while not acknowledgements.ended.is_set():
        try:
            producer.send(TOPIC, b"x", partition=0).get(LIMIT_S)
        except Exception:
            continue
        acknowledgements.record()
        time.sleep(0.001)
    producer.close(timeout=1)


def _aiokafka(servers: str, settings: dict[str, Any], acknowledgements: Acknowledgements) -> None:
    import aiokafka

    async def send() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, acks="all", **settings)
        await producer.start()
        while not acknowledgements.ended.is_set():
            try:
                await producer.send_and_wait(TOPIC, b"x", partition=0)
            except Exception:
                continue
            acknowledgements.record()
            await asyncio.sleep(0.001)
        await producer.stop()

    asyncio.run(send())


def _run_child(command: list[str], acknowledgements: Acknowledgements, **options: Any) -> None:
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, **options
        ) as child,
    ):
        assert child.stdout is not None

        def stop() -> None:
            acknowledgements.ended.wait()
            child.kill()

        threading.Thread(target=stop, daemon=True).start()
        for _ in child.stdout:
            acknowledgements.record()
        if not acknowledgements.ended.is_set():
            raise ended_early(child, errors)


def _kafkajs(servers: str, settings: dict[str, Any], acknowledgements: Acknowledgements) -> None:
    command = ["node", "-e", _NODE, "--", servers, json.dumps(settings)]
    _run_child(command, acknowledgements, cwd=os.environ["KAFKAJS"])


def _java(servers: str, settings: dict[str, Any], acknowledgements: Acknowledgements) -> None:
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "Send.java"
        source.write_text(_JAVA)
        pairs = [str(part) for pair in settings.items() for part in pair]
        classes = os.environ["KAFKA_CLIENTS"]
        _run_child(["java", "-cp", classes, str(source), servers, *pairs], acknowledgements)


def _run(
    client: Client, servers: str, settings: dict[str, Any], acknowledgements: Acknowledgements
) -> None:
    """Run a client in the current thread; an exception that it raises ends the measurement."""
    try:
        client(servers, settings, acknowledgements)
    except Exception as failure:
        acknowledgements.failure = failure


Client = Callable[[str, dict[str, Any], Acknowledgements], None]
CLIENTS: dict[str, tuple[Client, dict[str, Any]]] = {
    "confluent-kafka": (_confluent, CONFLUENT),
    "kafka-python": (_kafka_python, KAFKA_PYTHON),
    "aiokafka": (_aiokafka, AIOKAFKA),
}


def failover_ms(client: Client, settings: dict[str, Any], fault: Callable[[Any], object]) -> float:
    """Return the longest pause of a producer around a fault; -1 if it did not resume in time.

    Raises ``MeasurementFailed`` with the standard error if a client in its own process ends.
    """
    from fakekafka import Cluster

    with Cluster(3, topics={TOPIC: {"replication_factor": 3}}) as cluster:
        acknowledgements = Acknowledgements()
        arguments = (client, cluster.bootstrap_servers, settings, acknowledgements)
        thread = threading.Thread(target=_run, args=arguments, daemon=True)
        thread.start()
        try:
            cluster.wait_until(
                lambda: acknowledgements.failure or len(acknowledgements.times) >= 50, 60
            )
            if acknowledgements.failure is not None:
                raise acknowledgements.failure
            before = cluster.wait_for_leader(TOPIC)
            fault(cluster)
            fault_at_s = time.perf_counter()
            cluster.wait_for_leader(TOPIC, other_than=before, timeout_s=30)
            deadline = fault_at_s + LIMIT_S
            # Ten consecutive acknowledgements without another pause: the client has recovered.
            while time.perf_counter() < deadline:
                if (
                    len(acknowledgements.times) > 10
                    and acknowledgements.times[-10] > fault_at_s + 0.3
                ):
                    return acknowledgements.longest_pause_ms()
                if acknowledgements.failure is not None:
                    raise acknowledgements.failure
                time.sleep(0.01)
            return -1
        finally:
            acknowledgements.ended.set()
            cluster.network.heal()
            for broker_id in cluster.broker_ids:
                if cluster.broker(broker_id).is_paused:
                    cluster.broker(broker_id).resume()
            thread.join(5)


FAULTS: dict[str, Callable[[Any], object]] = {
    "kill(expire_session=True)": lambda c: c.broker(f"leader:{TOPIC}-0").kill(expire_session=True),
    "kill()": lambda c: c.broker(f"leader:{TOPIC}-0").kill(),
    "isolate()": lambda c: c.network.isolate(f"leader:{TOPIC}-0"),
    "pause()": lambda c: c.broker(f"leader:{TOPIC}-0").pause(),
}


def measure() -> None:
    """Print the median for each client, fault and kind of settings."""
    clients = dict(CLIENTS)
    if "KAFKAJS" in os.environ:
        clients["KafkaJS"] = (_kafkajs, KAFKAJS)
    if "KAFKA_CLIENTS" in os.environ:
        clients["Java"] = (_java, JAVA)
    for name, (client, fast) in clients.items():
        # At the small size only one fault is measured: default settings take seconds.
        faults, kinds = list(FAULTS.items()), [("for tests", fast), ("defaults", {})]
        for fault, inject in faults[:1] if IS_SMALL else faults:
            for kind, settings in kinds[:1] if IS_SMALL else kinds:
                pauses_ms = [failover_ms(client, settings, inject) for _ in range(ROUNDS)]
                recovered = [f"{value:.0f}" for value in pauses_ms if value >= 0]
                text = f"{statistics.median(map(float, recovered)):,.0f} ms" if recovered else "-"
                if stuck := len(pauses_ms) - len(recovered):
                    text += f" ({stuck} of {len(pauses_ms)} not in {LIMIT_S} s)"
                line(f"{name}, {fault}, {kind}", text)
