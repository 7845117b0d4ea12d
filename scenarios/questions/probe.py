"""Findings, of which the answers of ``questions`` are built, and a probe at the controller.

A finding holds the states read from a run and the claims they carry. A claim whose condition does
not hold is kept and reported as a contradiction: no conclusion is printed that the run did not
show.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...election.strategies import Strategy
from ...protocol.admin import CreateTopicsRequest, NewTopic
from ...protocol.values import TopicPartition
from ...statemachines.machines.machine_states import ElectionOutcomes
from ...statemachines.machines.transitions import PartitionState
from ...testing.handles.admin import AdminClient
from ...testing.simulation import Simulation
from ...testing.views import PartitionView

SEED = 3
CONTROLLER = 1
"""Broker that leads the cluster in every run: it starts first and holds none of the replicas."""
BROKERS = 4


@dataclass
class Finding:
    """The answer to a question for one emulated version."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    """States that prove the answer, one text per column."""
    clauses: list[str] = field(default_factory=list)
    """Facts that the states show; together the conclusion."""
    contradictions: list[str] = field(default_factory=list)
    """Claims that the states do not show."""
    facts: dict[str, Any] = field(default_factory=dict)
    """The same states as plain values."""

    def row(self, *cells: object) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for the columns {self.columns}")
        self.rows.append(tuple(str(cell) for cell in cells))

    def claim(self, holds: bool, text: str) -> None:
        """A clause of the conclusion if the facts carry it, a contradiction otherwise."""
        (self.clauses if holds else self.contradictions).append(text)

    @property
    def conclusion(self) -> str:
        """The clauses that hold, a sentence each."""
        return sentence(self.clauses)


class Change(NamedTuple):
    """A state set in the partition state machine."""

    topic_partition: TopicPartition
    before: PartitionState
    after: PartitionState


class ElectionPass(NamedTuple):
    """A call that moved partitions to OnlinePartition."""

    strategy: str
    """``Offline``, ``ControlledShutdown``, ``PreferredReplica``, ``Reassign``."""
    partitions: tuple[TopicPartition, ...]
    outcomes: ElectionOutcomes
    """Of the partitions that were elected; initialised ones are absent."""


class Probe:
    """Listens to the active controller's partition state machine from now on."""

    def __init__(self, simulation: Simulation) -> None:
        self.changes: list[Change] = []
        self.passes: list[ElectionPass] = []
        simulation.running.require_controller().listen(self)

    def on_partition_state(
        self, topic_partition: TopicPartition, before: PartitionState, after: PartitionState
    ) -> None:
        self.changes.append(Change(topic_partition, before, after))

    def on_election(
        self,
        strategy: Strategy | None,
        partitions: Sequence[TopicPartition],
        outcomes: ElectionOutcomes,
    ) -> None:
        name = type(strategy).__name__.removesuffix("Partition")
        self.passes.append(ElectionPass(name, tuple(partitions), outcomes))

    def path(self, topic: str, start: int = 0) -> str:
        """States a topic's first partition went through, as ``Online > Offline > Online``."""
        mine = [c for c in self.changes[start:] if c.topic_partition == TopicPartition(topic, 0)]
        if not mine:
            return "no change"
        return " > ".join(short_state(s) for s in (mine[0].before, *(c.after for c in mine)))


@contextmanager
def controller_log() -> Iterator[list[str]]:
    """Collect what the cluster logs, and keep it off the terminal."""
    lines: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.getLogger("fakekafka")
    handler, propagates = Collect(), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates


def simulate(kafka_version: str, config: dict[str, Any] | None = None, **more: Any) -> Simulation:
    """A started cluster of four brokers with Kafka's own configuration, led by broker 1."""
    more.setdefault("trace", False)
    simulation = Simulation(BROKERS, seed=SEED, kafka_version=kafka_version, config=config, **more)
    if simulation.controller.id != CONTROLLER:
        raise RuntimeError(f"broker {simulation.controller.id} leads the cluster, not {CONTROLLER}")
    return simulation


def create_unled(simulation: Simulation, name: str, replicas: Sequence[int]) -> None:
    """Create a topic none of whose replicas is alive, so that it gets no leader."""
    topic = NewTopic(name, -1, -1, ((0, tuple(replicas)),), ())
    AdminClient(simulation.running).request(CreateTopicsRequest((topic,), 1000))


def crash(simulation: Simulation, broker_id: int, topic: str = "orders") -> PartitionView:
    """Kill a broker, wait until the controller has dealt with it; the partition afterwards."""
    simulation.broker(broker_id).kill()
    context = simulation.running.require_controller().context
    simulation.run_until(lambda: broker_id not in context.brokers.live_or_shutting_down_broker_ids)
    simulation.run_for(1000)
    return simulation.partition(topic, 0)


def comes_back(simulation: Simulation, broker_id: int) -> PartitionView:
    """Start a broker and give it ten seconds to catch up; the partition afterwards."""
    simulation.broker(broker_id).start()
    simulation.run_for(10_000)
    return simulation.partition("orders", 0)


def elect_preferred(simulation: Simulation, topic: str = "orders") -> None:
    """Ask for a preferred election: by API, or by znode where the version has no API."""
    if simulation.behaviour.elect_leaders_api:
        simulation.elect_leaders("preferred", [(topic, 0)])
        return
    zk = simulation.running.require_controller().zk

    def create() -> Any:
        return zk.admin.create_preferred_replica_election([TopicPartition(topic, 0)])

    simulation.call(create, 10_000)
    simulation.run_for(1000)


def sentence(clauses: Sequence[str]) -> str:
    """The clauses as a text, one sentence for each."""
    if not clauses:
        return "Nothing that was expected could be seen."
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)


def short_state(state: PartitionState) -> str:
    """``Online`` for ``OnlinePartition``."""
    return str(state).removesuffix("Partition")


def leader_text(leader: int | None) -> str:
    return "none" if leader is None else str(leader)


def list_text(broker_ids: Sequence[int]) -> str:
    return "[" + ", ".join(str(broker_id) for broker_id in broker_ids) + "]"


def time_text(milliseconds: float) -> str:
    """Rounded for people: ``18 s``, ``120 ms``."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.0f} s"
    return f"{milliseconds:.0f} ms"


def setting(simulation: Simulation, name: str) -> Any:
    """A configuration of the brokers, as they run with it."""
    return simulation.processes[CONTROLLER].spec.config[name]


Answering = Callable[[str], Finding]
"""A question as a function from the emulated version to what was found."""
