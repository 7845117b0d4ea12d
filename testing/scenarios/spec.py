"""What a scenario says, as values: cluster, network, workload, faults, stop, expectations.

The TOML form is read by ``scenarios/file.py``; a scenario may as well be built from these by hand.
Times are virtual milliseconds: those of workloads, faults and the stop count from the moment at
which the cluster stands and its topics exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ...actors.network.costs import Costs
from ...protocol.versions import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS, Behaviour, behaviour
from ..handles.roles import BrokerReference
from .conditions import Condition
from .story.logs import LogPattern

DEFAULT_LATENCY_MS = 0.25

ROUNDS = "2.8-rounds"
"""What a story calls 2.8 with followers that truncate by the epoch requests of 2.0 to 2.7, as they
do while ``inter.broker.protocol.version`` is below 2.7."""
STORY_VERSIONS = (*KAFKA_VERSIONS, ROUNDS)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic created before anything else happens."""

    name: str
    partitions: int = 1
    replication_factor: int = 3
    assignment: tuple[tuple[int, ...], ...] = ()
    """Replicas per partition, given instead of the two counts."""
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    brokers: int | tuple[int, ...] = 3
    """How many, with ids from 1, or the ids."""
    racks: tuple[str | None, ...] | None = None
    topics: tuple[TopicSpec, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    kafka_version: str = DEFAULT_KAFKA_VERSION
    """One of ``KAFKA_VERSIONS``; in a story also ``ROUNDS``."""
    zookeepers: int = 1
    clients: tuple[str, ...] = ()
    """Machines of the modelled clients."""
    restart_delay_ms: float | None = None

    @property
    def broker_ids(self) -> tuple[int, ...]:
        if isinstance(self.brokers, int):
            return tuple(range(1, self.brokers + 1))
        return self.brokers

    @property
    def release(self) -> str:
        """The emulated release."""
        return "2.8" if self.kafka_version == ROUNDS else self.kafka_version

    def behaviour(self) -> Behaviour:
        """The flags of the release, with the older truncation where it is asked for."""
        if self.kafka_version == ROUNDS:
            return behaviour(self.release, truncation="leader_epoch")
        return behaviour(self.release)


@dataclass(frozen=True, slots=True)
class LatencySpec:
    """One-way delay: ``constant`` (first), ``uniform`` (first, second), ``lognormal`` (median,
    sigma); milliseconds, sigma without unit."""

    model: Literal["constant", "uniform", "lognormal"] = "constant"
    first: float = DEFAULT_LATENCY_MS
    second: float = 0.0

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``network.latency``."""
        if self.model == "constant":
            return {"constant_ms": self.first}
        return {f"{self.model}_ms": (self.first, self.second)}


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """What differs on one link, in one direction."""

    source: int | str
    target: int | str
    latency: LatencySpec | None = None
    loss: float | None = None
    bandwidth_mb_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    latency: LatencySpec = LatencySpec()
    loss: float = 0.0
    links: tuple[LinkSpec, ...] = ()
    bandwidth_mb_per_s: float | None = None


CLIENTS_MAX = 10_000
"""Producers, consumers or members of one table of a workload or group."""
MOST_PER_S = 1_000_000
"""Arrivals of an open loop: one in every tick of the clock."""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Clients writing to (and reading from) one topic.

    ``open``: records arrive at ``rate_per_s`` whatever the cluster does, and their waiting
    counts. ``closed``: each client keeps ``in_flight`` records unanswered and no more.
    """

    topic: str
    name: str = "workload"
    model: Literal["open", "closed"] = "open"
    rate_per_s: float = 100.0
    in_flight: int = 1
    producers: int = 1
    consumers: int = 0
    partitions: tuple[int, ...] | None = None
    """None: all of the topic, in turn."""
    record_bytes: tuple[int, int] = (100, 100)
    """Smallest and largest record value; evenly spread between."""
    acks: int = -1
    idempotent: bool = True
    linger_ms: float = 0.0
    start_ms: float = 0.0
    stop_ms: float | None = None
    """None: until the scenario stops."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Other settings of its producers, by the names of ``ProducerSettings``."""

    @property
    def producer_names(self) -> list[str]:
        """Names of its producers, which are the names of their machines, too."""
        return [f"{self.name}-producer-{number + 1}" for number in range(self.producers)]

    @property
    def consumer_names(self) -> list[str]:
        return [f"{self.name}-consumer-{number + 1}" for number in range(self.consumers)]


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Consumers that read topics together as the members of one group."""

    topics: tuple[str, ...]
    group_id: str = "group-1"
    members: int = 1
    assignor: str = "range"
    is_static: bool = False
    """Whether members have an instance id (KIP-345), which is their name."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3000
    auto_commit_interval_ms: int = 5000
    start_ms: float = 0.0
    join_every_ms: float = 0.0
    """How long after the one before each member joins."""

    @property
    def member_names(self) -> list[str]:
        """Names of its members, which are the names of their machines, too."""
        return [f"{self.group_id}-member-{number + 1}" for number in range(self.members)]


@dataclass(frozen=True, slots=True)
class TransformerSpec:
    """An application that copies each record of a topic to another one exactly once."""

    input: str
    output: str
    name: str = "transformer-1"
    transactional_id: str = "transformer-1"
    consumer_group: str = "transformer-1"
    """The group whose offsets say how far it has read."""
    transaction_timeout_ms: int = 60_000
    start_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """Something done to the cluster at a time, or as soon as a condition holds.

    ``action`` is one of ``scenarios.actions.ACTIONS``; ``arguments`` are its own keys. With
    ``when``, ``at_ms`` is the time from which the condition is watched; it acts ``after_ms``
    later. ``times`` > 1 repeats it every ``every_ms``.
    """

    action: str
    at_ms: float = 0.0
    when: Condition | None = None
    after_ms: float = 0.0
    times: int = 1
    every_ms: float = 0.0
    broker: BrokerReference | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    expect: tuple[Condition, ...] = ()
    """Must hold within ``expect_within_ms`` after the action."""
    expect_within_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class StopSpec:
    """When the scenario ends: at a time, or when a condition holds, at the latest then."""

    at_ms: float = 60_000.0
    when: Condition | None = None
    max_handled: int | None = None
    """A run that has handled so many messages and timers has failed; None without a limit."""
    settle: bool = True
    """Heal the network, start every broker and wait until all is replicated before judging."""
    settle_timeout_ms: float = 120_000.0


@dataclass(frozen=True, slots=True)
class ExpectSpec:
    """What must hold: at a time (and within a span after it), or at the end (``at_ms`` None)."""

    that: Condition
    at_ms: float | None = None
    within_ms: float = 0.0
    message: str = ""


@dataclass(frozen=True, slots=True)
class ReplicaExpect:
    """What one broker's replica must look like; a field that is None is not checked."""

    role: str | None = None
    """``leader``, ``follower``, ``none`` (not told of the partition yet) or ``off``."""
    log: LogPattern | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None
    epochs: str | None = None
    """The leader-epoch cache as ``epoch@first offset``: ``0@0 2@12``."""


@dataclass(frozen=True, slots=True)
class StateExpect:
    """What must hold after a step, or what it waits for; None or missing is not checked."""

    replicas: dict[int, ReplicaExpect] = field(default_factory=dict)
    leader: int | None = None
    """Broker id; -1: the partition has no leader."""
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    """In any order."""
    answers: dict[str, str] = field(default_factory=dict)
    """By record value or name of a read: what the client was told."""


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One thing a step does; ``arguments`` are its own keys."""

    action: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A named step of a story: what is done, and what must hold once it is."""

    name: str
    actions: tuple[ActionSpec, ...] = ()
    expect: StateExpect = StateExpect()


@dataclass(frozen=True, slots=True)
class OutcomeExpect:
    """What the whole run must have led to."""

    lost: tuple[str, ...] = ()
    """Acknowledged records that the leader no longer has."""
    duplicated: tuple[str, ...] = ()
    differ_at: int | None = None
    """First offset at which two replicas hold different records."""


@dataclass(frozen=True, slots=True)
class StorySpec:
    """An ordered script about one partition, for the versions it names."""

    topic: str
    partition: int
    names: dict[str, int]
    """What the story calls its brokers."""
    versions: tuple[str, ...]
    steps: tuple[StepSpec, ...]
    outcome: OutcomeExpect = OutcomeExpect()

    def creates(self, topic: str) -> bool:
        """Whether a step creates the topic, which then does not exist before."""
        actions = (action.action for step in self.steps for action in step.actions)
        return topic == self.topic and "create_topic" in actions


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """What a batch of the scenario does beside what it says."""

    runs: int = 20
    """Seeds for each combination of the matrix."""
    warm_up_ms: float = 0.0
    """What arrives before does not count in latencies."""
    budget: dict[str, float] = field(default_factory=dict)
    """The most that a run may take: ``events``, ``virtual_s``, ``wall_s`` and ``memory_mb``."""


@dataclass(frozen=True, slots=True)
class ScenarioSpec:
    """A whole scenario."""

    name: str
    description: str = ""
    seed: int = 0
    """Used when the command line gives none."""
    cluster: ClusterSpec = ClusterSpec()
    network: NetworkSpec = NetworkSpec()
    costs: Costs | None = None
    """What processes, disks and links take time for; None: nothing does."""
    workloads: tuple[WorkloadSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    transformers: tuple[TransformerSpec, ...] = ()
    faults: tuple[FaultSpec, ...] = ()
    stop: StopSpec = StopSpec()
    expect: tuple[ExpectSpec, ...] = ()
    story: StorySpec | None = None
    """Steps in order, instead of workloads, faults, a stop and expectations."""
    metrics: tuple[str, ...] = ()
    """Names of what to report; empty: everything."""
    matrix: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Dotted key to the values it takes; see ``scenario_file.expand_matrix``."""
    batch: BatchSpec = BatchSpec()
    parameters: dict[str, Any] = field(default_factory=dict)
    """What was set over the file: dotted key to value."""
    text: str = ""
    """The TOML it was read from; with ``parameters`` it gives this very scenario again."""
    source: str = "<scenario>"
    """File name, for messages."""
