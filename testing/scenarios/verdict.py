"""What a run of a scenario gave: its figures, and every promise that was broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..checks import loss_and_doubling, lost_and_doubled, replicas_identical
from .spec import ScenarioSpec

if TYPE_CHECKING:
    from ..simulation import Simulation
    from .story.play import StoryResult
    from .workload import Workload

METRICS = ("acknowledged", "failed", "retries", "messages", "events", "lost", "duplicated")
"""What a scenario may ask to be reported."""


@dataclass
class ScenarioResult:
    """What a run gave."""

    name: str
    seed: int
    problems: list[str] = field(default_factory=list)
    """Expectations that failed and promises that were broken; empty when all held."""
    metrics: dict[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    virtual_ms: float = 0.0
    story: StoryResult | None = None
    """The steps and the outcome, when the scenario is a story."""

    @property
    def ok(self) -> bool:
        return not self.problems


def judge(
    spec: ScenarioSpec,
    simulation: Simulation,
    workloads: Sequence[Workload],
    result: ScenarioResult,
) -> None:
    """Fill in the figures, and what was promised and is not so.

    What is acknowledged with acks=all is there, once if the producer is idempotent; all replicas
    are identical. Only a cluster that has settled can be judged: else the last two figures are
    missing.
    """
    metrics: dict[str, float] = {
        "acknowledged": sum(len(workload.acknowledged) for workload in workloads),
        "failed": sum(workload.failed for workload in workloads),
        "retries": sum(workload.retries for workload in workloads),
        "messages": simulation.runtime.network.messages_sent,
        "events": simulation.runtime.events_run,
    }
    if spec.stop.settle:
        metrics.update(lost=0, duplicated=0)
        for topic in spec.cluster.topics:
            writing = [workload for workload in workloads if workload.spec.topic == topic.name]
            if writing:
                _judge_records(spec, simulation, topic.name, writing, result, metrics)
        same = replicas_identical(simulation, [topic.name for topic in spec.cluster.topics])
        result.problems += same.problems
    wanted = spec.metrics or METRICS
    result.metrics = {name: value for name, value in metrics.items() if name in wanted}


def _judge_records(
    spec: ScenarioSpec,
    simulation: Simulation,
    topic: str,
    workloads: Sequence[Workload],
    result: ScenarioResult,
    metrics: dict[str, float],
) -> None:
    """Compare what clients were promised of one topic with what can be read."""
    count = next(t.partitions for t in spec.cluster.topics if t.name == topic)
    read = [r.value for n in range(count) for r in simulation.consume(topic, n)]
    promised = [v for w in workloads if w.spec.acks == -1 for v in w.acknowledged]
    lost, doubled = lost_and_doubled(promised, read)
    metrics["lost"] += len(lost)
    metrics["duplicated"] += len(doubled)
    once = tuple(w.prefix for w in workloads if w.spec.idempotent)
    problems = loss_and_doubling(
        [] if _loses_on_purpose(spec, topic) else lost,
        [value for value in doubled if value is not None and value.startswith(once)],
    )
    result.problems += [f"{topic}: {text}" for text in problems]


def _loses_on_purpose(spec: ScenarioSpec, topic: str) -> bool:
    """Whether acknowledged records may get lost: it powers off, or elects uncleanly."""
    config = {**spec.cluster.config}
    for topic_spec in spec.cluster.topics:
        if topic_spec.name == topic:
            config.update(topic_spec.config)
    unclean = str(config.get("unclean.leader.election.enable", "false")).lower() == "true"
    return unclean or any(
        fault.action == "power_off" or fault.arguments.get("election") == "unclean"
        for fault in spec.faults
    )
