"""What a scenario says, as values: cluster, network, workload, faults, stop, expectations.

The TOML form is read by ``scenario_file``; a scenario may as well be built from these by hand.
Times are virtual milliseconds: those of workloads, faults and the stop count from the moment at
which the cluster stands and its topics exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..protocol.versions import DEFAULT_KAFKA_VERSION
from .conditions import BrokerReference, Condition

DEFAULT_LATENCY_MS = 0.25


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
    brokers: int = 3
    racks: tuple[str | None, ...] | None = None
    topics: tuple[TopicSpec, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    kafka_version: str = DEFAULT_KAFKA_VERSION
    zookeepers: int = 1


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


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    latency: LatencySpec = LatencySpec()
    loss: float = 0.0
    links: tuple[LinkSpec, ...] = ()


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


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """Something done to the cluster at a time, or as soon as a condition holds.

    ``action`` is one of ``scenario_file.ACTIONS``; ``arguments`` are its own keys. With
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
    max_events: int | None = None
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
class ScenarioSpec:
    """A whole scenario."""

    name: str
    description: str = ""
    seed: int = 0
    """Used when the command line gives none."""
    cluster: ClusterSpec = ClusterSpec()
    network: NetworkSpec = NetworkSpec()
    workloads: tuple[WorkloadSpec, ...] = ()
    faults: tuple[FaultSpec, ...] = ()
    stop: StopSpec = StopSpec()
    expect: tuple[ExpectSpec, ...] = ()
    metrics: tuple[str, ...] = ()
    """Names of what to report; empty: everything."""
    matrix: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Dotted key to the values it takes; see ``scenario_file.expand_matrix``."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """What was set over the file: dotted key to value."""
    text: str = ""
    """The TOML it was read from; with ``parameters`` it gives this very scenario again."""
    source: str = "<scenario>"
    """File name, for messages."""
