"""Random histories of an application that consumes, transforms and produces exactly once.

``python -m fakekafka.tests.support.transaction_histories --version 3.9 --runs 500 --jobs 2`` runs
the seeds 1 to 500. Brokers die while records are copied from one topic to another, those among them
that coordinate the transactions and the group; a second application takes the transactional id
over now and then. At the end readers of committed records have to find every record of the input
in the output, once and in its order. A history that does not end so is told with its seed.

One thing is excepted, because Kafka has it too (docs/kafka/groups-and-transactions.md): a broker
that does not know yet that it coordinates a group no longer answers with the positions it knows,
and who goes on from there copies again what was committed since.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fakekafka import Simulation
from fakekafka.actors.clients.transformer import SimulatedTransformer
from fakekafka.actors.delivery import Delivery
from fakekafka.protocol.data import READ_COMMITTED
from fakekafka.protocol.groups import OffsetFetchResponse
from fakekafka.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from fakekafka.protocol.java_hashing import bucket_of, java_string_hash
from fakekafka.protocol.names import broker_name
from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition

BROKERS = 4
PARTITIONS = 2
TRANSACTIONAL_ID = "copy"
GROUP_ID = "transformers"
HEALED_MS = 240_000
"""Virtual time that a healed cluster has to finish."""


@dataclass(frozen=True)
class Outcome:
    """How a history ended; whole when there are no problems."""

    version: str
    seed: int
    problems: tuple[str, ...]
    told: tuple[str, ...] = ()
    records: int = 0
    committed: int = 0
    aborted: int = 0
    fenced: int = 0
    kills: int = 0
    former: int = 0
    """Answers with positions that a former coordinator gave."""

    @property
    def command(self) -> str:
        shown = f"--version {self.version} --seed {self.seed} --tell"
        return f"python -m fakekafka.tests.support.transaction_histories {shown}"


class History:
    """A cluster, the applications, and what happens to them; the seed decides all."""

    def __init__(self, version: str, seed: int) -> None:
        self.version = version
        self.seed = seed
        self.chance = random.Random(f"transactions {seed}")
        self.simulation = Simulation(
            BROKERS,
            kafka_version=version,
            seed=seed,
            trace=False,
            config={
                "offsets.topic.num.partitions": 2,
                "transaction.state.log.num.partitions": 2,
                "default.replication.factor": 3,
                "min.insync.replicas": 2,
                "zookeeper.session.timeout.ms": 6000,
                "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2000,
            },
            topics={"in": PARTITIONS, "out": PARTITIONS},
        )
        self.told: list[str] = []
        self.kills = 0
        self.transformers: list[SimulatedTransformer] = []
        self.found: dict[TopicPartition, list[Record]] = {}
        """What readers of committed records got, of the input and of the output."""
        self.sent = 0
        self.former = 0
        self.simulation.runtime.network.observe(self._look)
        self.inputs = [TopicPartition("in", number) for number in range(PARTITIONS)]
        self.outputs = [TopicPartition("out", number) for number in range(PARTITIONS)]

    def tell(self, text: str) -> None:
        self.told.append(f"{self.simulation.now_ms:10.2f} ms  {text}")

    def _look(self, delivery: Delivery) -> None:
        """Note positions that come from a broker which coordinates the group no longer."""
        if type(delivery.message) is OffsetFetchResponse and not delivery.message.error:
            number = bucket_of(java_string_hash(GROUP_ID), PARTITIONS)
            leader = self.simulation.partition(OFFSETS_TOPIC, number).leader
            if leader is None or delivery.sender.name != broker_name(leader):
                self.former += 1
                self.tell(f"{delivery.sender.name} answers for a group of broker {leader}")

    # -- what happens --------------------------------------------------------------------------

    def play(self) -> list[str]:
        """Let it happen and heal; answers what is not whole."""
        simulation, chance = self.simulation, self.chance
        producer = simulation.producer(acks="all", max_in_flight=1)
        self.add_transformer()
        for _ in range(chance.randint(6, 14)):
            for _ in range(chance.randint(5, 30)):
                producer.produce(self.inputs[self.sent % PARTITIONS], b"%d" % self.sent)
                self.sent += 1
            simulation.run_for(chance.choice((5, 50, 300, 1500, 4000)))
            chance.choice(
                (self.kill, self.kill, self.kill_leader_of, self.kill_leader_of, self.start,
                 self.start, self.shut_down, self.take_over, self.pause)
            )()  # fmt: skip
        self.tell("heal")
        return self.heal()

    def add_transformer(self) -> None:
        """An application; the one before it that has the id becomes a zombie."""
        number = len(self.transformers) + 1
        returns = number == 1
        self.tell(f"application {number} starts")
        transformer = self.simulation.transformer(
            TRANSACTIONAL_ID,
            self.inputs,
            self.outputs,
            f"application-{number}",
            group_id=GROUP_ID,
            returns_when_fenced=returns,
            transaction_timeout_ms=self.chance.choice((5000, 60000)),
            delivery_timeout_ms=self.chance.choice((3000, 120000)),
            request_timeout_ms=self.chance.choice((1000, 30000)),
        )
        self.transformers.append(transformer)

    def take_over(self) -> None:
        if len(self.transformers) < 3:
            self.add_transformer()

    def alive(self) -> list[int]:
        return [b for b in self.simulation.broker_ids if self.simulation.broker(b).is_alive]

    def kill(self) -> None:
        self.kill_broker(self.chance.choice(self.alive()))

    def kill_leader_of(self) -> None:
        """Of a partition of the two internal topics, or of the output."""
        topic = self.chance.choice((TRANSACTIONS_TOPIC, OFFSETS_TOPIC, "out"))
        if topic in self.simulation.topics():
            number = self.chance.randrange(PARTITIONS)
            leader = self.simulation.partition(topic, number).leader
            if leader in self.alive():
                self.kill_broker(leader)

    def kill_broker(self, broker_id: int) -> None:
        if len(self.alive()) > BROKERS - 2:
            self.tell(f"broker {broker_id} is killed")
            self.kills += 1
            self.simulation.broker(broker_id).kill()

    def shut_down(self) -> None:
        alive = self.alive()
        if len(alive) > BROKERS - 2:
            broker_id = self.chance.choice(alive)
            self.tell(f"broker {broker_id} shuts down")
            self.simulation.broker(broker_id).begin_shutdown()
            self.simulation.run_for(2000)

    def pause(self) -> None:
        broker_id = self.chance.choice(self.alive())
        span_ms = self.chance.choice((100, 2000, 9000))
        self.tell(f"broker {broker_id} is paused for {span_ms} ms")
        broker = self.simulation.broker(broker_id)
        broker.pause()
        self.simulation.run_for(span_ms)
        if broker.is_alive:
            broker.resume()

    def start(self) -> None:
        dead = [b for b in self.simulation.broker_ids if b not in self.alive()]
        if dead:
            broker_id = self.chance.choice(dead)
            self.tell(f"broker {broker_id} starts")
            self.simulation.broker(broker_id).start(wait=False)

    # -- the end -------------------------------------------------------------------------------

    def heal(self, patience_ms: int = HEALED_MS) -> list[str]:
        simulation = self.simulation
        reader = simulation.consumer(self.inputs + self.outputs, isolation_level=READ_COMMITTED)

        def read(where: TopicPartition, batch: RecordBatch, _position: int) -> None:
            self.found.setdefault(where, []).extend(batch.records())

        reader.on_batch = read
        end_ms = simulation.now_ms + patience_ms
        while simulation.now_ms < end_ms and self.problems():
            self.start_all()  # one may still be shutting down
            simulation.run_for(2000)
        problems = self.problems()
        if not problems:  # nothing may come twice later
            simulation.run_for(20_000)
            problems = self.problems()
        problems += [f"{name}: {error!r}" for name, error in simulation.failures]
        return problems

    def start_all(self) -> None:
        for broker_id in self.simulation.broker_ids:
            if not self.simulation.broker(broker_id).is_alive:
                self.simulation.broker(broker_id).start(wait=False)

    def problems(self) -> list[str]:
        """What differs between the input and what is read of the output."""
        expected: dict[TopicPartition, dict[int, list[bytes | None]]] = {}
        for number, where in enumerate(self.inputs):
            for record in self.found.get(where, ()):
                output = self.outputs[record.offset % PARTITIONS]
                values = expected.setdefault(output, {}).setdefault(number, [])
                values.append(record.value)
        stored = {record.value for where in self.inputs for record in self.found.get(where, ())}
        problems = [] if len(stored) == self.sent else [f"{len(stored)} of {self.sent} are stored"]
        for where in self.outputs:
            found = [record.value for record in self.found.get(where, ())]
            of_inputs = expected.get(where, {})
            for number, wanted in of_inputs.items():
                members = set(wanted)
                got = [value for value in found if value in members]
                if got != wanted:
                    problems.append(
                        f"{where}, from input {number}: {len(got)} of {len(wanted)} records, "
                        f"{len(set(got))} different"
                    )
            if len(found) > sum(map(len, of_inputs.values())):
                problems.append(f"{where} has {len(found)} records, too many")
        return problems


def run(version: str, seed: int) -> Outcome:
    """Run it; every problem becomes words, exceptions of the emulation too."""
    history = History(version, seed)
    try:
        problems = history.play()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        problems = [f"{type(error).__name__}: {error} ({where})"]
    history.simulation.stop()
    if history.former and all("records" in problem for problem in problems):
        problems = []
    transformers = history.transformers
    return Outcome(
        version,
        seed,
        tuple(problems),
        tuple(history.told),
        sum(len(history.found.get(where, ())) for where in history.outputs),
        sum(transformer.committed for transformer in transformers),
        sum(transformer.aborted for transformer in transformers),
        sum(transformer.fenced for transformer in transformers),
        history.kills,
        history.former,
    )


def _run(task: tuple[str, int]) -> Outcome:
    return run(*task)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Histories that copy exactly once.")
    parser.add_argument("--version", default="3.9")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tell", action="store_true", help="say what happens")
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    tasks = [(chosen.version, seed) for seed in range(chosen.seed, chosen.seed + chosen.runs)]
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        outcomes = []
        for outcome in pool.imap(_run, tasks):
            outcomes.append(outcome)
            if chosen.tell:
                print("\n".join(outcome.told))
            if outcome.problems:
                print(f"seed {outcome.seed} ({outcome.version}): {outcome.command}")
                for problem in outcome.problems:
                    print(f"  {problem[:1000]}", flush=True)
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    print(
        f"{failed} of {len(outcomes)} histories did not end whole; "
        f"{sum(o.records for o in outcomes)} records, {sum(o.committed for o in outcomes)} "
        f"transactions committed, {sum(o.aborted for o in outcomes)} aborted, "
        f"{sum(o.fenced for o in outcomes)} times fenced, {sum(o.kills for o in outcomes)} kills, "
        f"{sum(o.former for o in outcomes)} answers of former coordinators; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
