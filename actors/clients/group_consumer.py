"""A modelled consumer that subscribes to topics and reads what its group assigns to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...protocol.awaiting import Task
from ...protocol.data import MetadataResponse
from ...protocol.groups import CONSUMER_PROTOCOL
from ...protocol.values import TopicPartition
from ..interfaces import AbstractRuntime, Process
from .assigned_member import AssignedMember
from .assignment_change import AssignmentChange as AssignmentChange
from .assignors import Partitions
from .consumer import SimulatedConsumer
from .group_member import GroupMember
from .group_settings import GroupConsumerSettings as GroupConsumerSettings


class SimulatedGroupConsumer(SimulatedConsumer):
    """Reads the partitions that its group assigns to it, from the committed offsets on."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        bootstrap: tuple[int, ...],
        settings: GroupConsumerSettings,
    ) -> None:
        super().__init__(runtime, name, process, bootstrap, settings)
        self.group_settings: GroupConsumerSettings = settings
        """Settings of the consumer."""
        self.rebalances: list[AssignmentChange] = []
        """Changes of the assignment, oldest first."""
        self.on_rebalance: Callable[[AssignmentChange], object] | None = None
        """Called with each ``AssignmentChange``; initially None."""
        self._partition_counts: dict[str, int] = {}
        self._topic_ids: dict[str, str] = {}
        kind = AssignedMember if settings.group_protocol == CONSUMER_PROTOCOL else GroupMember
        self.membership: GroupMember | AssignedMember = kind(
            self, self, settings, lambda: self._known_brokers
        )
        for topic in settings.topics:
            self.use_topic(topic)
        self.start_task(self.membership.run())
        if settings.enable_auto_commit:
            self._commit_later()

    # -- membership ----------------------------------------------------------------------------

    @property
    def member_id(self) -> str:
        """The member id, usually assigned by the coordinator."""
        return self.membership.member_id

    @property
    def generation(self) -> int:
        """The group's generation; -1 while the consumer is not a member."""
        return self.membership.generation

    @property
    def owned(self) -> Partitions:
        """The partitions that the group has assigned to this consumer."""
        return self.membership.owned

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """The offsets of this consumer's commits that the coordinator acknowledged."""
        return self.membership.committed

    def leave(self) -> Task[None]:
        """Commit and leave the group; the task completes when that is done."""
        return self.start_task(self.membership.leave())

    def commit(self) -> Task[bool]:
        """Commit the positions; the outcome of the task is True if all were accepted."""
        return self.start_task(self.membership.commit())

    def _commit_later(self) -> None:
        self.call_later_ms(self.group_settings.auto_commit_interval_ms, self._auto_commit)

    def _auto_commit(self) -> None:
        if self.membership.has_left:
            return
        self._commit_later()
        self.start_task(self.membership.commit())

    # -- called by the membership --------------------------------------------------------------

    def partition_counts(self) -> Mapping[str, int] | None:
        topics = self.group_settings.topics
        if any(topic not in self.partitions for topic in topics):
            self.refresh_metadata()
            return None
        self._partition_counts = {topic: self.partitions[topic] for topic in topics}
        return self._partition_counts

    def topic_name(self, topic_id: str) -> str | None:
        for topic, known in self._topic_ids.items():
            if known == topic_id:
                return topic
        self.refresh_metadata()
        return None

    def topic_id(self, topic: str) -> str:
        return self._topic_ids[topic]

    def partitions_assigned(
        self, partitions: Partitions, positions: Mapping[TopicPartition, int]
    ) -> None:
        self._record_change("assigned", partitions)
        self.seek({partition: positions.get(partition, -1) for partition in partitions})

    def partitions_revoked(self, partitions: Partitions, is_lost: bool) -> None:
        self._record_change("lost" if is_lost else "revoked", partitions)
        self.unassign(partitions)

    def read_positions(self, partitions: Partitions) -> dict[TopicPartition, int]:
        positions = self.positions
        return {p: positions[p] for p in partitions if positions.get(p, -1) >= 0}

    def _record_change(self, kind: str, partitions: Partitions) -> None:
        rebalance = AssignmentChange(self.now_ms(), kind, self.generation, partitions)
        self.rebalances.append(rebalance)
        if self.on_rebalance is not None:
            self.on_rebalance(rebalance)

    def _update_metadata(self, response: MetadataResponse) -> bool:
        """Take over metadata; the group's leader rejoins if the partitions of a topic changed."""
        again = super()._update_metadata(response)
        for topic in response.topics:
            if topic.name is not None and topic.topic_id:
                self._topic_ids[topic.name] = topic.topic_id
        if self.membership.is_leader and any(
            self.partitions.get(topic, count) != count
            for topic, count in self._partition_counts.items()
        ):
            self.membership.rejoin()
        return again
