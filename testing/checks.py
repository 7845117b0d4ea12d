"""Checks at the end of a run: no record lost or read twice, replicas identical."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .handles.partitions import Partitions

if TYPE_CHECKING:
    from .emulated_cluster import EmulatedCluster


@dataclass(frozen=True)
class Verdict:
    """The result of a check, which is true if no problem was found."""

    checked: int
    """Number of values or logs that were compared."""
    problems: tuple[str, ...] = field(default=())
    """Descriptions of all problems found."""

    def __bool__(self) -> bool:
        return not self.problems


def lost_and_duplicated(
    acknowledged: Iterable[bytes], read: Iterable[bytes | None]
) -> tuple[list[bytes], list[bytes | None]]:
    """Return acknowledged values that were not read, and values that were read more than once."""
    counts = Counter(read)
    lost = [value for value in acknowledged if value not in counts]
    return lost, [value for value, count in counts.items() if count > 1]


def describe_lost_and_duplicated(
    lost: Sequence[bytes], duplicated: Sequence[bytes | None]
) -> tuple[str, ...]:
    """Describe lost records, and records that were read more than once."""
    problems = []
    if lost:
        problems.append(f"{len(lost)} acknowledged records are lost, the first is {lost[0]!r}")
    if duplicated:
        problems.append(
            f"{len(duplicated)} records were read twice, the first is {duplicated[0]!r}"
        )
    return tuple(problems)


def acknowledged_exactly_once(
    acknowledged: Iterable[bytes], read: Iterable[bytes | None]
) -> Verdict:
    """Check that every acknowledged value was read, and no value was read more than once."""
    wanted = list(acknowledged)
    return Verdict(len(wanted), describe_lost_and_duplicated(*lost_and_duplicated(wanted, read)))


def replicas_identical(cluster: EmulatedCluster, topics: Iterable[str]) -> Verdict:
    """Check that all replicas of every partition hold the same bytes.

    They are compared from the highest log start offset on, as each replica applies retention at
    its own times.
    """
    problems = []
    checked = 0
    for topic in topics:
        for number in range(_partition_count(cluster, topic)):
            view = cluster.partition(topic, number)
            start = max(view.replica(broker).log_start_offset for broker in view.replicas)
            logs = {
                broker: Partitions(cluster.running).log_bytes(topic, number, broker, start)
                for broker in view.replicas
            }
            checked += len(logs)
            if len(set(logs.values())) > 1:
                sizes = ", ".join(f"broker {b}: {len(log)} bytes" for b, log in logs.items())
                problems.append(f"{topic}-{number}: replicas differ ({sizes})")
    return Verdict(checked, tuple(problems))


def fully_replicated(cluster: EmulatedCluster, topics: Iterable[str]) -> bool:
    """Return whether all replicas of every partition are in the ISR, and their log end offsets and
    high watermarks are equal."""
    for topic in topics:
        for number in range(_partition_count(cluster, topic)):
            view = cluster.partition(topic, number)
            if view.leader is None or set(view.isr) != set(view.replicas):
                return False
            ends = {view.replica(broker).log_end_offset for broker in view.replicas}
            marks = {view.replica(broker).high_watermark for broker in view.replicas}
            if len(ends) > 1 or marks != ends:
                return False
    return True


def _partition_count(cluster: EmulatedCluster, topic: str) -> int:
    return Partitions(cluster.running).partition_count(topic)
