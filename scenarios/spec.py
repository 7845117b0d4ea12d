"""The contents of a scenario as values: cluster, network, workload, faults, stop, expectations.

Each field made with ``declared`` is a key of the TOML form, which ``scenarios/file.py`` reads; a
scenario can also be built from these classes directly. Times are virtual milliseconds. Times of
workloads, faults and the stop count from the moment when the cluster runs and its topics exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..actors.clients.assignors import ASSIGNORS
from ..actors.network.costs import Costs
from ..protocol.versions import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS, Behaviour, behaviour
from ..testing.handles.roles import BrokerReference
from ..testing.parameters.cluster_kinds import LATENCY, MACHINE, REPLICA_LISTS, TOPIC, TOPIC_CONFIG
from ..testing.parameters.kinds import (
    COUNT,
    FLAG,
    INDEX,
    MEGABYTES_PER_SECOND,
    MILLISECONDS,
    NAME,
    OBJECT,
    PROBABILITY,
    STRING,
    choice,
    number,
    tuple_of,
    whole,
)
from ..testing.parameters.parameter import NO_DEFAULT, declared, tables_of
from .conditions import CONDITION, Condition
from .file_kinds import (
    ACKS,
    BROKERS,
    BUDGET,
    BUDGETS,
    CONDITIONS,
    EPOCHS,
    RECORD_SIZES,
    RECORD_VALUES,
    ROLES,
    TIME_OR_END,
)
from .story.logs import LOG, LogPattern

ZOOKEEPERS_MAX = 99
PARTITIONS_MAX = 1_000_000
CLIENTS_MAX = 10_000
"""Maximum number of producers, consumers or members of one workload or group."""
RATE_PER_S_MAX = 1_000_000
"""Maximum arrivals of an open loop per second: one per microsecond, the clock's resolution."""
_TIMES_MAX = 1_000_000
SEED = whole(0, limit=2**64)

ROUNDS = "2.8-rounds"
"""Name in stories for a 2.8 whose followers truncate by the epoch requests of 2.0 to 2.7, as they
do while ``inter.broker.protocol.version`` is below 2.7."""
STORY_VERSIONS = (*KAFKA_VERSIONS, ROUNDS)


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic that is created before the scenario's own time starts."""

    name: str
    partitions: int = declared(1, whole(1, PARTITIONS_MAX), "how many")
    replication_factor: int = declared(
        3, COUNT, "replicas of each", default_words="3, or as many as there are brokers"
    )
    assignment: tuple[tuple[int, ...], ...] = declared(
        (),
        REPLICA_LISTS,
        "the replicas of each partition, the preferred leader first; instead of the two counts",
    )
    config: dict[str, Any] = declared({}, TOPIC_CONFIG, "its configuration")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    brokers: int | tuple[int, ...] = declared(
        3, BROKERS, "how many, with ids from 1 on, or a list of their ids"
    )
    racks: tuple[str | None, ...] | None = declared(
        None, tuple_of(STRING, "a list of racks", ["a", "b", ""]),
        'a name for each broker; "" for a broker without a rack',
    )  # fmt: skip
    topics: tuple[TopicSpec, ...] = declared((), OBJECT, "by their names")
    config: dict[str, Any] = declared(
        {}, OBJECT, "configuration of every broker", default_words="Kafka's"
    )
    kafka_version: str = declared(
        DEFAULT_KAFKA_VERSION, STRING, "the release that the cluster behaves like"
    )
    """A version in ``KAFKA_VERSIONS``, or in a story also ``ROUNDS``."""
    zookeepers: int = declared(1, whole(1, ZOOKEEPERS_MAX), "servers of the ensemble")
    restart_delay_ms: float | None = declared(
        None,
        number("milliseconds", 1.0),
        "how long a broker waits before it tries to start again if it is still registered",
        default_words="3000",
    )
    clients: tuple[str, ...] = ()
    """Names of the modelled clients' machines."""

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
        """Return the flags of the release, with the older truncation for ``ROUNDS``."""
        if self.kafka_version == ROUNDS:
            return behaviour(self.release, truncation="leader_epoch")
        return behaviour(self.release)


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """Latency, loss and bandwidth of a single link, in one direction."""

    source: int | str = declared(NO_DEFAULT, MACHINE, "who sends")
    target: int | str = declared(NO_DEFAULT, MACHINE, "who gets it")
    latency: dict[str, Any] | None = declared(None, LATENCY, "in this direction")
    loss: float | None = declared(None, PROBABILITY, "in this direction")
    bandwidth_mb_per_s: float | None = declared(None, MEGABYTES_PER_SECOND, "in this direction")


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    latency: dict[str, Any] = declared(
        {"constant_ms": 0.25},
        LATENCY,
        "one way: constant_ms = 1, uniform_ms = [low, high] or lognormal_ms = [median, sigma]",
    )
    """Keyword arguments of ``network.latency``."""
    loss: float = declared(
        0.0, PROBABILITY, "probability that a message is lost, once the cluster runs"
    )
    bandwidth_mb_per_s: float | None = declared(
        None,
        MEGABYTES_PER_SECOND,
        "what each link sends in a second, one message after another, once the cluster runs; a "
        "message has the bytes of its records and 100 more",
        default_words="no limit",
    )
    links: tuple[LinkSpec, ...] = declared(
        (), tables_of(LinkSpec), "what differs on single links, an array of tables"
    )


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Clients that write to (and read from) one topic.

    ``open``: records arrive at ``rate_per_s`` whatever the cluster does, and the time that they
    wait counts. ``closed``: each client keeps ``in_flight`` records unanswered.
    """

    topic: str = declared("", TOPIC, "a name in cluster.topics", default_words="the only one")
    name: str = declared(
        "workload",
        NAME,
        "the names of its clients and the values of its records begin with it",
        default_words="workload-1",
    )
    model: Literal["open", "closed"] = declared(
        "open",
        choice("open", "closed"),
        "open: records arrive at a rate whatever the cluster does; closed: each producer keeps "
        "in_flight requests unanswered",
    )
    rate_per_s: float = declared(
        100.0,
        number(least=0.001, most=RATE_PER_S_MAX),
        f"of an open loop, over all its producers; at most {RATE_PER_S_MAX:,}",
    )
    in_flight: int = declared(1, COUNT, "of a closed loop, for each producer")
    producers: int = declared(1, whole(0, CLIENTS_MAX), "how many")
    consumers: int = declared(0, whole(0, CLIENTS_MAX), "how many")
    partitions: tuple[int, ...] | None = declared(
        None,
        tuple_of(INDEX, "a list of partition numbers", [0, 1], least=1),
        "their numbers; records go to them in turn",
        default_words="all",
    )
    record_bytes: tuple[int, int] = declared(
        (100, 100), RECORD_SIZES, "a size, or [smallest, largest]", default_words="100"
    )
    """Smallest and largest size of record values, which are distributed uniformly between."""
    acks: int = declared(-1, ACKS, '0, 1 or "all"', default_words='"all"')
    idempotent: bool = declared(
        True,
        FLAG,
        "whether producers are idempotent, so that each record must be there exactly once",
        default_words='true with acks = "all"',
    )
    linger_ms: float = declared(0.0, MILLISECONDS, "as the producer's linger.ms")
    start_ms: float = declared(0.0, MILLISECONDS, "when its clients begin")
    stop_ms: float | None = declared(
        None, MILLISECONDS, "when they stop sending", default_words="the end"
    )
    settings: dict[str, Any] = field(default_factory=dict)
    """Other settings of the producers, by the names of ``ProducerSettings``."""

    @property
    def producer_names(self) -> list[str]:
        """Names of the producers, which are also the names of their machines."""
        return [f"{self.name}-producer-{number + 1}" for number in range(self.producers)]

    @property
    def consumer_names(self) -> list[str]:
        return [f"{self.name}-consumer-{number + 1}" for number in range(self.consumers)]


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Consumers that read topics as the members of one group."""

    topics: tuple[str, ...] = declared(
        (),
        tuple_of(TOPIC, "a list of topics", ["orders"]),
        "names in cluster.topics",
        default_words="the only one",
    )
    group_id: str = declared("group-1", NAME)
    members: int = declared(1, whole(1, CLIENTS_MAX), "how many")
    assignor: str = declared("range", choice(*ASSIGNORS), f"one of {', '.join(ASSIGNORS)}")
    is_static: bool = declared(
        False, FLAG, "whether members have an instance id, their name (KIP-345)"
    )
    session_timeout_ms: int = declared(45_000, COUNT, "as the consumer's setting")
    heartbeat_interval_ms: int = declared(3000, COUNT, "as the consumer's setting")
    auto_commit_interval_ms: int = declared(5000, COUNT, "as the consumer's setting")
    start_ms: float = declared(0.0, MILLISECONDS, "when the first member joins")
    join_every_ms: float = declared(
        0.0, MILLISECONDS, "how long after the one before each of the others joins"
    )

    @property
    def member_names(self) -> list[str]:
        """Names of the members, which are also the names of their machines."""
        return [f"{self.group_id}-member-{number + 1}" for number in range(self.members)]


@dataclass(frozen=True, slots=True)
class TransformerSpec:
    """An application that copies each record of one topic to another exactly once."""

    input: str = declared(NO_DEFAULT, TOPIC, "a name in cluster.topics")
    output: str = declared(NO_DEFAULT, TOPIC, "another one")
    name: str = declared("transformer-1", NAME, "of its machine")
    transactional_id: str = declared("transformer-1", NAME, default_words="its name")
    consumer_group: str = declared(
        "transformer-1",
        NAME,
        "the group whose offsets say how far it has read",
        default_words="its name",
    )
    transaction_timeout_ms: int = declared(
        60_000, COUNT, "when the coordinator aborts what it left open"
    )
    start_ms: float = declared(0.0, MILLISECONDS, "when it begins")


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """An action on the cluster at a time, or as soon as a condition holds.

    ``action`` is a name in ``scenarios.actions.ACTIONS``; ``arguments`` are the keys of the action.
    With ``when``, the condition is watched from ``at_ms`` on, and the fault acts ``after_ms`` after
    it first holds. ``times`` > 1 repeats the action every ``every_ms``.
    """

    action: str = declared(NO_DEFAULT, STRING, "one of those below, whose keys stand beside it")
    at_ms: float = declared(0.0, MILLISECONDS, "when it acts, or begins to watch for its condition")
    when: Condition | None = declared(
        None, CONDITION, "it acts when this holds for the first time, from at_ms on"
    )
    after_ms: float = declared(0.0, MILLISECONDS, "how long after the condition")
    times: int = declared(1, whole(1, _TIMES_MAX), "how often")
    every_ms: float = declared(0.0, MILLISECONDS, "how long after the time before")
    expect: tuple[Condition, ...] = declared(
        (), CONDITIONS, "a condition, or a list of them, that must hold after it"
    )
    expect_within_ms: float = declared(0.0, MILLISECONDS, "how long it may take until they hold")
    broker: BrokerReference | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopSpec:
    """The end of a scenario: when a condition holds, but at a given time at the latest."""

    at_ms: float = declared(60_000.0, MILLISECONDS, "the end at the latest")
    when: Condition | None = declared(None, CONDITION, "a condition that ends it earlier")
    max_handled: int | None = declared(
        None, COUNT, "a run that has handled so many messages and timers has failed"
    )
    settle: bool = declared(
        True,
        FLAG,
        "whether at the end everything is healed, the brokers that are down are started, and every "
        "partition must become fully replicated",
    )
    settle_timeout_ms: float = declared(
        120_000.0, MILLISECONDS, "a cluster that takes longer has failed"
    )


@dataclass(frozen=True, slots=True)
class ExpectSpec:
    """A condition that must hold within a span after a time, or after the end (``at_ms`` None)."""

    that: Condition = declared(NO_DEFAULT, CONDITION, "what must hold")
    at_ms: float | None = declared(None, TIME_OR_END, "when", default_words='"end"')
    within_ms: float = declared(0.0, MILLISECONDS, "how much later it may become true")
    message: str = declared("", STRING, "describes the broken expectation")


@dataclass(frozen=True, slots=True)
class ReplicaExpect:
    """The expected state of one broker's replica; a field that is None is not checked."""

    role: str | None = declared(None, choice(*ROLES), "none: not told of the partition yet")
    log: LogPattern | None = declared(None, LOG)
    log_end_offset: int | None = declared(None, INDEX)
    high_watermark: int | None = declared(None, INDEX)
    epochs: str | None = declared(None, EPOCHS, "the leader-epoch cache")


@dataclass(frozen=True, slots=True)
class StateExpect:
    """The state that is expected after a step or awaited; fields that are None are not checked."""

    replicas: dict[int, ReplicaExpect] = field(default_factory=dict)
    leader: int | None = None
    """Broker id of the leader; -1 for no leader."""
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    """Members of the ISR, in any order."""
    answers: dict[str, str] = field(default_factory=dict)
    """Answers to clients, by record value or name of a read."""


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action of a step; ``arguments`` are the keys of the action."""

    action: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A named step of a story: its actions, and the state expected after them."""

    name: str
    actions: tuple[ActionSpec, ...] = ()
    expect: StateExpect = StateExpect()


@dataclass(frozen=True, slots=True)
class OutcomeExpect:
    """The expected outcome of the whole run."""

    lost: tuple[str, ...] = declared(
        (), RECORD_VALUES, "acknowledged records that the leader no longer has"
    )
    duplicated: tuple[str, ...] = declared((), RECORD_VALUES, "records that it has twice")
    differ_at: int | None = declared(
        None, INDEX, "first offset at which two replicas hold different records"
    )


@dataclass(frozen=True, slots=True)
class StorySpec:
    """A sequence of steps about one partition, for the listed versions."""

    topic: str
    partition: int
    names: dict[str, int]
    """Broker ids, by the story's names for the brokers."""
    versions: tuple[str, ...]
    steps: tuple[StepSpec, ...]
    outcome: OutcomeExpect = OutcomeExpect()

    def creates_topic(self, topic: str) -> bool:
        """Return whether a step creates the topic, so that it must not exist at the start."""
        actions = (action.action for step in self.steps for action in step.actions)
        return topic == self.topic and "create_topic" in actions


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """The parameters of a batch of the scenario."""

    runs: int = declared(20, COUNT, "seeds for each combination of the matrix")
    warm_up_ms: float = declared(
        0.0, MILLISECONDS, "what arrives before does not count in latencies"
    )
    budget: dict[str, float] = declared(
        {}, BUDGET, f"the most that one run may take: {', '.join(BUDGETS)}"
    )


@dataclass(frozen=True, slots=True)
class ScenarioSpec:
    """A whole scenario."""

    name: str = declared("", STRING, "shown in reports", default_words="the file's name")
    description: str = declared("", STRING, "for readers")
    seed: int = declared(0, SEED, "used if the command gives none")
    cluster: ClusterSpec = ClusterSpec()
    network: NetworkSpec = NetworkSpec()
    costs: Costs | None = None
    """Time that processes, disks and links take; None for no time."""
    workloads: tuple[WorkloadSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    transformers: tuple[TransformerSpec, ...] = ()
    faults: tuple[FaultSpec, ...] = ()
    stop: StopSpec = StopSpec()
    expect: tuple[ExpectSpec, ...] = ()
    story: StorySpec | None = None
    """Story with steps, instead of workloads, a stop and expectations."""
    metrics: tuple[str, ...] = declared(
        (), tuple_of(STRING, "a list of figures", ["lost"]), "which figures are shown",
        default_words="all",
    )  # fmt: skip
    matrix: dict[str, tuple[Any, ...]] = declared(
        {},
        OBJECT,
        "dotted key to a list of values, for batches; a single run says that it ignores it",
    )
    batch: BatchSpec = BatchSpec()
    parameters: dict[str, Any] = field(default_factory=dict)
    """Values that override those of the file, by dotted key."""
    text: str = ""
    """TOML source of the scenario, which yields the same scenario with ``parameters``."""
    source: str = "<scenario>"
    """File name, for messages."""
