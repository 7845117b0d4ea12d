"""The verdict on a run of a scenario: its figures, and every broken promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..protocol.data import ACKS_ALL
from ..testing.checks import describe_lost_and_duplicated, replicas_identical
from ..testing.handles.partitions import Partitions
from .spec import FaultSpec, ScenarioSpec

if TYPE_CHECKING:
    from ..testing.simulation import Simulation
    from .story.play import StoryResult
    from .workload import Workload

METRICS = (
    "acknowledged",
    "failed",
    "retries",
    "messages",
    "handled",
    "lost",
    "lost_promised",
    "expired",
    "duplicated",
    "duplicated_promised",
)
"""Figures that a scenario can show; docs/reference/scenarios.md describes what each counts."""


@dataclass
class ScenarioResult:
    """The result of a run."""

    name: str
    seed: int
    problems: list[str] = field(default_factory=list)
    """Failed expectations and broken promises; empty if there are none."""
    metrics: dict[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    virtual_ms: float = 0.0
    story: StoryResult | None = None
    """Steps and outcome, if the scenario is a story."""

    @property
    def ok(self) -> bool:
        return not self.problems


def judge(
    spec: ScenarioSpec,
    simulation: Simulation,
    workloads: Sequence[Workload],
    expired: Mapping[str, Container[bytes | None]] | None,
    result: ScenarioResult,
) -> None:
    """Fill in the figures and the broken promises.

    Records acknowledged with acks=all must be present, exactly once if the producer is idempotent,
    and all replicas must be identical. All lost records are counted, and separately the lost
    records that a promise covered. ``expired`` holds the values that were deleted on purpose, by
    topic. It is None for a cluster that has not settled, which cannot be judged: the figures of
    records are then missing.
    """
    metrics: dict[str, float] = {
        "acknowledged": sum(len(workload.acknowledged) for workload in workloads),
        "failed": sum(workload.failed for workload in workloads),
        "retries": sum(workload.retries for workload in workloads),
        "messages": simulation.runtime.network.messages_sent,
        "handled": simulation.runtime.handled,
    }
    if expired is not None:
        metrics.update(dict.fromkeys(METRICS[5:], 0))
        for topic in spec.cluster.topics:
            writing = [workload for workload in workloads if workload.spec.topic == topic.name]
            if writing:
                expired_values = expired.get(topic.name, ())
                _judge_records(
                    spec, simulation, topic.name, writing, expired_values, result, metrics
                )
        same = replicas_identical(simulation, [topic.name for topic in spec.cluster.topics])
        result.problems += same.problems
    selected = spec.metrics or METRICS
    result.metrics = {name: value for name, value in metrics.items() if name in selected}


def _judge_records(
    spec: ScenarioSpec,
    simulation: Simulation,
    topic: str,
    workloads: Sequence[Workload],
    expired: Container[bytes | None],
    result: ScenarioResult,
    metrics: dict[str, float],
) -> None:
    """Compare the acknowledged records of one topic with the records that can be read."""
    fate = RecordsFate.of(
        simulation, topic, workloads, expired, may_lose=_may_lose_records(spec, topic)
    )
    for name, count in fate.counts().items():
        metrics[name] += count
    result.problems += [f"{topic}: {text}" for text in fate.problems()]


@dataclass(frozen=True)
class RecordsFate:
    """The fate of the records of one topic; docs/reference/scenarios.md defines the figures."""

    lost: list[bytes]
    """Acknowledged records that are missing, whatever was promised."""
    lost_promised: list[bytes]
    """Lost records that all in-sync replicas had acknowledged."""
    expired: int
    """Number of acknowledged records deleted on purpose, by retention, compaction or request."""
    duplicated: list[bytes]
    """Records that are present more than once."""
    duplicated_promised: list[bytes]
    """Duplicated records of idempotent producers."""

    @classmethod
    def of(
        cls,
        simulation: Simulation,
        topic: str,
        workloads: Sequence[Workload],
        expired: Container[bytes | None] = (),
        *,
        may_lose: bool = False,
    ) -> RecordsFate:
        """Read the topic and compare it with the workloads.

        With ``may_lose`` no acknowledgement promises that a record is kept.
        """
        count = Partitions(simulation.running).partition_count(topic)
        starts = [simulation.partition(topic, number).log_start_offset for number in range(count)]
        read = Counter(
            record.value
            for number, start in enumerate(starts)
            for record in simulation.consume(topic, number, start)
        )
        below_start = {
            record.value
            for number, start in enumerate(starts)
            if start  # otherwise no record can be below it
            for record in simulation.records(topic, number)
            if record.offset < start
        }
        lost: list[bytes] = []
        promised: list[bytes] = []
        expired_count = 0
        for workload in workloads:
            is_promised = workload.spec.acks == ACKS_ALL and not may_lose
            for value in workload.acknowledged:
                if value in read:
                    continue
                if value in expired or value in below_start:
                    expired_count += 1
                    continue
                lost.append(value)
                if is_promised:
                    promised.append(value)
        duplicated = [value for value, times in read.items() if times > 1 and value is not None]
        idempotent_prefixes = tuple(
            w.prefix for w in workloads if w.spec.idempotent and w.spec.acks == ACKS_ALL
        )
        return cls(
            lost,
            promised,
            expired_count,
            duplicated,
            [value for value in duplicated if value.startswith(idempotent_prefixes)],
        )

    def counts(self) -> dict[str, int]:
        """Return the counts by the names of figures."""
        return {
            "lost": len(self.lost),
            "lost_promised": len(self.lost_promised),
            "expired": self.expired,
            "duplicated": len(self.duplicated),
            "duplicated_promised": len(self.duplicated_promised),
        }

    def problems(self) -> tuple[str, ...]:
        """Return the broken promises in words."""
        return describe_lost_and_duplicated(self.lost_promised, self.duplicated_promised)


def _may_lose_records(spec: ScenarioSpec, topic: str) -> bool:
    """Return whether a topic may lose acknowledged records: by a power failure, an unclean election
    or its deletion."""
    config = {**spec.cluster.config}
    for topic_spec in spec.cluster.topics:
        if topic_spec.name == topic:
            config.update(topic_spec.config)
    unclean = str(config.get("unclean.leader.election.enable", "false")).lower() == "true"
    return unclean or any(_fault_may_lose_records(fault, topic) for fault in spec.faults)


def _fault_may_lose_records(fault: FaultSpec, topic: str) -> bool:
    arguments = fault.arguments
    if fault.action == "delete_topic":
        return bool(arguments["name"] == topic)
    if fault.action == "alter_config" and arguments["topic"] == topic:
        return str(arguments["config"].get("unclean.leader.election.enable")).lower() == "true"
    return fault.action == "power_off" or arguments.get("election") == "unclean"
