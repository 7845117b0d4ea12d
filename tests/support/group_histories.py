"""Random histories of a group: members come, go and die, and so do brokers.

``python -m fakekafka.tests.support.group_histories --runs 200 --seed 1`` runs the seeds 1 to 200.
At the end every partition has one owner and everything was read. On the way no partition has two
owners in one generation, and no committed offset is lost. With ``--protocol consumer`` the
coordinator assigns (KIP-848), and no partition has two owners at any moment.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import dataclass, field
from typing import Any

from fakekafka import Simulation
from fakekafka.actors.clients.group_consumer import AssignmentChange, SimulatedGroupConsumer
from fakekafka.protocol.errors import UsageError
from fakekafka.protocol.internal_topics import OFFSETS_TOPIC
from fakekafka.protocol.values import TopicPartition

PARTITIONS = 6
STEPS = 14
MEMBERS_MAX = 5
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
SERVER_ASSIGNORS = ("uniform", "range")
KEEPING_VERSIONS = ("2.8", "3.9")
"""Those that lose no replicated record when brokers die; older ones may (KIP-101, KIP-279)."""
_HEALED_MS = 300_000


@dataclass
class GroupWorld:
    """A cluster, a group, and what is known of it."""

    simulation: Simulation
    rng: random.Random
    assignor: str
    kills_brokers: bool
    protocol: str = "classic"
    members: list[SimulatedGroupConsumer] = field(default_factory=list)
    claims: dict[tuple[int, TopicPartition], str] = field(default_factory=dict)
    """(generation, partition) -> who owned it then; static members by their instance."""
    acknowledged: dict[TopicPartition, int] = field(default_factory=dict)
    """The largest offset that the coordinator said it has kept."""
    problems: list[str] = field(default_factory=list)
    produced: int = 0
    joined: int = 0

    # -- steps ---------------------------------------------------------------------------------

    def join(self, instance: str | None = None) -> None:
        self.joined += 1
        consumer = self.simulation.group_consumer(
            "g",
            ["t"],
            name=f"member-{self.joined}",
            **self._protocol_settings(),
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            auto_commit_interval_ms=self.rng.choice((500, 5000)),
            group_instance_id=instance,
        )
        owner = instance or consumer.name
        if self.protocol == "consumer":
            consumer.on_rebalance = lambda what: self._assigned(consumer, what)
        else:
            consumer.on_rebalance = lambda what: self._rebalanced(consumer, owner, what)
        self.members.append(consumer)

    def _protocol_settings(self) -> dict[str, Any]:
        if self.protocol == "classic":
            return {"assignor": self.assignor}
        return {"group_protocol": "consumer", "group_remote_assignor": self.assignor}

    def _assigned(self, consumer: SimulatedGroupConsumer, change: AssignmentChange) -> None:
        """Nobody who lives, and whom the coordinator knows, reads what another is given."""
        if change.kind != "assigned":
            return
        coordinated = self._group()
        for other in self.members:
            if coordinated is None or other.member_id not in coordinated.members:
                continue  # its session has ended, which it does not know yet
            both = sorted(set(other.owned) & set(change.partitions))
            if other is not consumer and both:
                self.problems.append(f"{both} have two owners: {consumer.name}, {other.name}")

    def _rebalanced(
        self, consumer: SimulatedGroupConsumer, owner: str, rebalance: AssignmentChange
    ) -> None:
        if rebalance.kind != "assigned":
            return
        for partition in consumer.owned:
            other = self.claims.setdefault((rebalance.generation, partition), owner)
            if other != owner:
                self.problems.append(
                    f"{partition} has two owners in generation {rebalance.generation}: "
                    f"{other} and {owner}"
                )

    def note_commits(self) -> None:
        for member in self.members:
            for partition, offset in member.committed.items():
                known = self.acknowledged.get(partition, -1)
                self.acknowledged[partition] = max(known, offset)

    def leave(self) -> None:
        member = self.members[self.rng.randrange(len(self.members))]
        member.leave()
        self.simulation.run_for(200)
        self._gone(member)

    def die(self) -> None:
        member = self.members[self.rng.randrange(len(self.members))]
        member.halt()
        self._gone(member)
        instance = member.group_settings.group_instance_id
        if instance is not None:
            if self.protocol == "consumer":
                self.simulation.run_for(60_000)  # its place is not given away before
            self.join(instance)

    def _gone(self, member: SimulatedGroupConsumer) -> None:
        self.note_commits()
        member.halt()
        self.members.remove(member)

    def kill_coordinator(self) -> None:
        """Often in the middle of a rebalance that has just begun."""
        if self.rng.random() < 0.7 and len(self.members) < MEMBERS_MAX:
            self.join()
            self.simulation.run_for(self.rng.choice((1, 3, 50, 3000, 6000)))
        leader = self._coordinator_id()
        if leader is not None:
            self._kill(leader)

    def _group(self) -> Any:
        """The group at its coordinator."""
        leader = self._coordinator_id()
        broker = None if leader is None else self.simulation.processes[leader].broker
        if broker is None:
            return None
        return broker.groups.groups.get("g") or broker.groups.consumer_groups.get("g")

    def _coordinator_id(self) -> int | None:
        try:
            return self.simulation.partition(OFFSETS_TOPIC, 0).leader
        except UsageError:
            return None  # nobody has looked for it yet

    def kill_broker(self) -> None:
        self._kill(self.rng.choice(self.simulation.broker_ids))

    def _kill(self, broker_id: int) -> None:
        living = [b for b in self.simulation.broker_ids if self.simulation.broker(b).is_alive]
        if broker_id in living and len(living) == len(self.simulation.broker_ids):
            self.simulation.broker(broker_id).kill()

    def start_brokers(self) -> None:
        for broker_id in self.simulation.broker_ids:
            if not self.simulation.broker(broker_id).is_alive:
                self.simulation.broker(broker_id).start()

    def produce(self) -> None:
        for _ in range(self.rng.randrange(1, 20)):
            partition = self.rng.randrange(PARTITIONS)
            self.simulation.produce("t", str(self.produced), partition=partition)
            self.produced += 1

    def step(self) -> None:
        choices = ["produce", "join", "leave", "die", "join static", "wait"]
        if self.kills_brokers:
            choices += ["kill coordinator", "kill broker", "start"]
        choice = self.rng.choice(choices)
        is_full = len(self.members) >= MEMBERS_MAX
        if choice == "join" and not is_full:
            self.join()
        elif choice == "join static" and not is_full:
            taken = {m.group_settings.group_instance_id for m in self.members}
            free = [name for name in ("s-1", "s-2") if name not in taken]
            if free:
                self.join(free[0])
        elif choice in ("leave", "die") and len(self.members) > 1:
            self.leave() if choice == "leave" else self.die()
        elif choice == "kill coordinator":
            self.kill_coordinator()
        elif choice == "kill broker":
            self.kill_broker()
        elif choice == "start":
            self.start_brokers()
        elif choice == "produce" and not self.kills_brokers:
            self.produce()
        self.simulation.run_for(self.rng.choice((1, 10, 500, 4000, 15_000)))
        self.note_commits()

    # -- the end -------------------------------------------------------------------------------

    def owns_all(self) -> bool:
        """Whether the living members own every partition once."""
        owned = sorted(p for member in self.members for p in member.owned)
        return owned == [TopicPartition("t", number) for number in range(PARTITIONS)]

    def has_read_all(self) -> bool:
        ends = {
            TopicPartition("t", number): self.simulation.partition("t", number).log_end_offset
            for number in range(PARTITIONS)
        }
        positions = {p: m.positions.get(p) for m in self.members for p in m.owned}
        return positions == ends

    def finish(self) -> None:
        self.start_brokers()
        self.simulation.run_for(30_000)
        # A static member whose place was not released when it came is none any more.
        self.members = [m for m in self.members if m.membership.failure is None]
        if not self.members:
            self.join()
        self.produce()
        self.simulation.run_until(self.owns_all, _HEALED_MS, every_ms=100)
        self.simulation.run_until(self.has_read_all, _HEALED_MS, every_ms=100)
        self.simulation.run_for(10_000)
        self.note_commits()
        group = self._group()
        for partition, offset in sorted(self.acknowledged.items()):
            value = None if group is None else group.offsets.get(partition)
            if value is None or value.offset < offset:
                self.problems.append(f"{partition}: {offset} was committed, there is {value}")
        if self.simulation.failures:
            self.problems.append(f"failures: {self.simulation.failures}")


def run(seed: int, version: str | None = None, protocol: str = "classic") -> list[str]:
    """Run a history; its problems, none if all is well."""
    rng = random.Random(f"group history {seed}")
    kills_brokers = rng.random() < 0.75
    versions = KEEPING_VERSIONS if kills_brokers else ("0.10", "1.1", *KEEPING_VERSIONS)
    chosen = version or rng.choice(versions)
    is_classic = protocol == "classic"
    assignors = ASSIGNORS if is_classic else SERVER_ASSIGNORS
    topics = {"t": {"partitions": PARTITIONS, "replication_factor": 3}}
    config: dict[str, Any] = {
        "offsets.topic.num.partitions": 1,
        "min.insync.replicas": rng.choice((1, 2)),
        "group.initial.rebalance.delay.ms": rng.choice((0, 3000)),
    }
    if not is_classic:
        chosen = "3.9"
        config["group.coordinator.rebalance.protocols"] = "classic,consumer"
        config["group.consumer.min.session.timeout.ms"] = 10_000
        config["group.consumer.min.heartbeat.interval.ms"] = 500
        config["group.consumer.session.timeout.ms"] = 10_000
        config["group.consumer.heartbeat.interval.ms"] = rng.choice((500, 3000))
    with Simulation(
        3, seed=seed, kafka_version=chosen, topics=topics, config=config, trace=False
    ) as simulation:
        world = GroupWorld(simulation, rng, rng.choice(assignors), kills_brokers, protocol)
        world.produce()
        world.join()
        for _ in range(STEPS):
            world.step()
        world.finish()
        return world.problems


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--version")
    parser.add_argument("--protocol", default="classic")
    asked = parser.parse_args()
    failed = 0
    for seed in range(asked.seed, asked.seed + asked.runs):
        try:
            problems = run(seed, asked.version, asked.protocol)
        except Exception as error:
            problems = [f"{type(error).__name__}: {error}"]
        for problem in problems:
            print(f"seed {seed}: {problem}")
        failed += bool(problems)
    print(f"{asked.runs} histories, {failed} with problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
