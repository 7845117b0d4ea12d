"""Findings, from which answers to questions are built, and a probe that observes the controller.

A finding holds states observed in a run and claims about them. A claim whose condition does not
hold is reported as a contradiction, so that no conclusion is printed which the run did not show.
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
"""Broker that is the controller in every run, as it starts first; it holds none of the replicas."""
BROKERS = 4


@dataclass
class Finding:
    """The answer to a question for one emulated version."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    """States that support the answer, one text per column."""
    clauses: list[str] = field(default_factory=list)
    """Claims that the states support, which form the conclusion."""
    contradictions: list[str] = field(default_factory=list)
    """Claims that the states do not support."""
    facts: dict[str, Any] = field(default_factory=dict)
    """The states as plain values."""

    def row(self, *cells: object) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for the columns {self.columns}")
        self.rows.append(tuple(str(cell) for cell in cells))

    def claim(self, holds: bool, text: str) -> None:
        """Add a clause to the conclusion if the claim holds, a contradiction otherwise."""
        (self.clauses if holds else self.contradictions).append(text)

    @property
    def conclusion(self) -> str:
        """The clauses, one sentence each."""
        return sentence(self.clauses)


class Change(NamedTuple):
    """A state change in the partition state machine."""

    topic_partition: TopicPartition
    before: PartitionState
    after: PartitionState


class ElectionPass(NamedTuple):
    """A call that moved partitions to OnlinePartition."""

    strategy: str
    """Strategy: ``Offline``, ``ControlledShutdown``, ``PreferredReplica`` or ``Reassign``."""
    partitions: tuple[TopicPartition, ...]
    outcomes: ElectionOutcomes
    """Outcomes of the elections; partitions that were only initialised are absent."""


class Probe:
    """Records the changes in the active controller's partition state machine from now on."""

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
        """Return the states of a topic's partition 0, such as ``Online > Offline > Online``."""
        mine = [c for c in self.changes[start:] if c.topic_partition == TopicPartition(topic, 0)]
        if not mine:
            return "no change"
        return " > ".join(short_state(s) for s in (mine[0].before, *(c.after for c in mine)))


@contextmanager
def controller_log() -> Iterator[list[str]]:
    """Collect the cluster's log messages and keep them off the terminal."""
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
    """Start a cluster of four brokers with Kafka's defaults, whose controller is broker 1."""
    more.setdefault("trace", False)
    simulation = Simulation(BROKERS, seed=SEED, kafka_version=kafka_version, config=config, **more)
    if simulation.controller.id != CONTROLLER:
        raise RuntimeError(f"broker {simulation.controller.id} leads the cluster, not {CONTROLLER}")
    return simulation


def create_offline_topic(simulation: Simulation, name: str, replicas: Sequence[int]) -> None:
    """Create a topic whose replicas are all offline, so that it has no leader."""
    topic = NewTopic(name, -1, -1, ((0, tuple(replicas)),), ())
    AdminClient(simulation.running).request(CreateTopicsRequest((topic,), 1000))


def crash(simulation: Simulation, broker_id: int, topic: str = "orders") -> PartitionView:
    """Kill a broker, wait until the controller has handled it, and return the partition."""
    simulation.broker(broker_id).kill()
    context = simulation.running.require_controller().context
    simulation.run_until(lambda: broker_id not in context.brokers.live_or_shutting_down_broker_ids)
    simulation.run_for(1000)
    return simulation.partition(topic, 0)


def restart(simulation: Simulation, broker_id: int) -> PartitionView:
    """Start a broker, give it ten seconds to catch up, and return the partition."""
    simulation.broker(broker_id).start()
    simulation.run_for(10_000)
    return simulation.partition("orders", 0)


def elect_preferred(simulation: Simulation, topic: str = "orders") -> None:
    """Request a preferred election: by API, or by znode if the version has no API."""
    if simulation.behaviour.elect_leaders_api:
        simulation.elect_leaders("preferred", [(topic, 0)])
        return
    zk = simulation.running.require_controller().zk

    def create() -> Any:
        return zk.admin.create_preferred_replica_election([TopicPartition(topic, 0)])

    simulation.call(create, 10_000)
    simulation.run_for(1000)


def sentence(clauses: Sequence[str]) -> str:
    """Join clauses into a text, one sentence each."""
    if not clauses:
        return "Nothing that was expected could be seen."
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)


def short_state(state: PartitionState) -> str:
    """Return the short name of a state: ``Online`` for ``OnlinePartition``."""
    return str(state).removesuffix("Partition")


def leader_text(leader: int | None) -> str:
    return "none" if leader is None else str(leader)


def list_text(broker_ids: Sequence[int]) -> str:
    return "[" + ", ".join(str(broker_id) for broker_id in broker_ids) + "]"


def time_text(milliseconds: float) -> str:
    """Format a time, rounded: ``18 s``, ``120 ms``."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.0f} s"
    return f"{milliseconds:.0f} ms"


def setting(simulation: Simulation, name: str) -> Any:
    """Return a configuration value of the running brokers."""
    return simulation.processes[CONTROLLER].spec.config[name]


AnswerFunction = Callable[[str], Finding]
"""Answers a question for an emulated version."""
