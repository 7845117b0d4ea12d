"""The most common waits of tests: for a leader, for replicas in sync, for records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...protocol.errors import NotThereYet
from .. import arguments
from ..running import WaitTimeout
from .groups import Groups
from .partitions import Partitions, partition_key

if TYPE_CHECKING:
    from ...protocol.values import TopicPartition
    from ..running import RunningCluster
    from ..views import ConsumerRecord, GroupView, PartitionView

_SHOWN_MAX = 10
"""Maximum number of partitions that the error of a wait describes."""


class Waits:
    """Waits for common conditions; ``WaitTimeout`` describes the current state."""

    def __init__(self, running: RunningCluster) -> None:
        self._running = running
        self._partitions = Partitions(running)

    def for_leader(
        self, topic: str, partition: int, other_than: int | None, timeout_s: float
    ) -> int:
        """Wait for a leader that is alive and knows that it leads; return its broker id."""
        key = partition_key(topic, partition)
        if other_than is not None:
            arguments.integer("other_than", other_than)

        def is_there() -> bool:
            found = self._serving_leader(key)
            return found is not None and found != other_than

        wanted = f"a leader of {key}"
        if other_than is not None:
            wanted += f" other than broker {other_than}"
        self._wait(is_there, wanted, timeout_s, lambda: self._describe_partitions([key]))
        leader = self._view(key).leader
        assert leader is not None
        return leader

    def _serving_leader(self, key: TopicPartition) -> int | None:
        view = self._view(key)
        if view.leader is None or self._running.processes[view.leader].process.paused:
            return None
        replica = view.replica(view.leader)
        is_serving = replica.role == "leader" and replica.leader_epoch >= view.leader_epoch
        return view.leader if is_serving else None

    def for_in_sync(self, topic: str, partition: int | None, timeout_s: float) -> None:
        """Wait until every replica is in the ISR."""
        keys = self._keys(topic, partition)

        def are_in_sync() -> bool:
            views = [self._view(key) for key in keys()]
            return bool(views) and all(set(v.isr) == set(v.replicas) for v in views)

        which = topic if partition is None else f"{topic}-{partition}"
        wanted = f"every replica of {which} in sync"
        self._wait(are_in_sync, wanted, timeout_s, lambda: self._describe_partitions(keys()))

    def for_records(
        self, topic: str, count: int, partition: int | None, timeout_s: float
    ) -> list[ConsumerRecord]:
        """Wait for at least ``count`` records below the high watermark, and return all of these;
        0 waits until all records of the leaders are below it."""
        arguments.integer("count", count, 0)
        keys = self._keys(topic, partition)

        def is_there() -> bool:
            views = [self._view(key) for key in keys()]
            if count:
                return sum(map(_replicated, views)) >= count and len(records()) >= count
            return bool(views) and all(
                view.leader is not None and view.high_watermark == view.log_end_offset >= 0
                for view in views
            )

        def records() -> list[ConsumerRecord]:
            return [record for key in keys() for record in self._replicated_records(key)]

        def state() -> str:
            return f"there are {len(records())}; {self._describe_partitions(keys())}"

        which = topic if partition is None else f"{topic}-{partition}"
        wanted = f"{count} records in {which}" if count else f"all records of {which} replicated"
        self._wait(is_there, wanted, timeout_s, state)
        return records()

    def for_group(self, group_id: str, members: int | None, timeout_s: float) -> GroupView:
        """Wait until a group is stable, with a number of members if given; return a snapshot."""
        groups = Groups(self._running)
        if members is not None:
            arguments.integer("members", members, 1)

        def is_stable() -> bool:
            found = groups.group(group_id)
            return found.state == "Stable" and members in (None, len(found.members))

        wanted = f"a stable group {group_id!r}"
        if members is not None:
            wanted += f" of {members} members"
        self._wait(is_stable, wanted, timeout_s, lambda: repr(groups.group(group_id)))
        return groups.group(group_id)

    def _keys(self, topic: str, partition: int | None) -> Callable[[], list[TopicPartition]]:
        """Return a function that lists the partitions, as some may be created during the wait."""
        first = partition_key(topic, 0 if partition is None else partition)
        if partition is not None:
            return lambda: [first]
        return lambda: self._partitions.keys(topic)

    def _view(self, key: TopicPartition) -> PartitionView:
        return self._partitions.partition(key.topic, key.partition)

    def _replicated_records(self, key: TopicPartition) -> list[ConsumerRecord]:
        view = self._view(key)
        if view.leader is None:
            return []
        stored = self._partitions.records(key.topic, key.partition, view.leader)
        return [r for r in stored if view.log_start_offset <= r.offset < view.high_watermark]

    def _wait(
        self,
        condition: Callable[[], object],
        wanted: str,
        timeout_s: float,
        state: Callable[[], str],
    ) -> None:
        try:
            self._running.wait_until(condition, timeout_s)
        except WaitTimeout:
            unit = self._running.unit_of_seconds
            message = f"{wanted} not there within {timeout_s:g} {unit}"
            try:
                shown = state()
            except NotThereYet as error:
                shown = str(error)
            text = f"{message}; {shown} ({self._running.describe()})"
            raise WaitTimeout(text) from None

    def _describe_partitions(self, keys: list[TopicPartition]) -> str:
        """Describe leader, ISR and offsets of partitions."""
        shown = [describe_partition(self._view(key)) for key in keys[:_SHOWN_MAX]]
        if len(keys) > _SHOWN_MAX:
            shown.append(f"and {len(keys) - _SHOWN_MAX} partitions more")
        return "; ".join(shown) or "the topic does not exist"


def _replicated(view: PartitionView) -> int:
    """Return the number of offsets between the log start offset and the high watermark."""
    return max(0, view.high_watermark - view.log_start_offset) if view.leader is not None else 0


def describe_partition(view: PartitionView) -> str:
    """Describe a partition: ``orders-0: leader 1 (epoch 2), ISR [1, 2] of [1, 2, 3]; ...``."""
    leader = "no leader" if view.leader is None else f"leader {view.leader}"
    replicas: list[Any] = [view.replica(broker) for broker in view.replicas]
    ends = ", ".join(
        f"broker {r.broker_id} has no log"
        if r.role == "none"
        else f"broker {r.broker_id} ends at {r.log_end_offset} (high watermark {r.high_watermark})"
        for r in replicas
    )
    return (
        f"{view.topic}-{view.partition}: {leader} (epoch {view.leader_epoch}), "
        f"ISR {list(view.isr)} of {list(view.replicas)}; {ends}"
    )
