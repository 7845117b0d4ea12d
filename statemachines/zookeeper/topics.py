"""``KafkaZkClient`` for nodes of topics: assignments and partition states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...protocol import znode_paths, znode_payloads
from ...protocol.values import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicPartition,
    message,
)
from ...zkfake.messages import CreateRequest, SetDataRequest, ZkCode, ZkResponse, ZooKeeperError
from .errors import ControllerMoved
from .requests import UNGUARDED, ZkRequests
from .shared_values import SharedValues


@message
class TopicIdReplicaAssignment:
    """A topic as its znode describes it."""

    topic: str
    topic_id: str | None
    assignment: tuple[tuple[TopicPartition, ReplicaAssignment], ...]
    """Partitions with their assignments, in the order of their numbers."""


@message
class UpdateLeaderAndIsrResult:
    """Outcome of writing many partition states (CP-74)."""

    finished: dict[TopicPartition, LeaderAndIsr | Exception]
    """Leadership that was written, with the new version, or the error that cannot be retried."""
    to_retry: list[TopicPartition]
    """Partitions with a version conflict, to be read and decided again."""


class ZkTopics:
    """Reads and writes topics, their assignments and the leadership of their partitions."""

    def __init__(self, requests: ZkRequests) -> None:
        self._requests = requests
        self.shared: SharedValues = SharedValues()
        """Decoded and encoded values that partitions share."""

    # --- topics

    async def get_all_topics_in_cluster(self, register_watch: bool = False) -> list[str]:
        """Return the sorted names of all topics."""
        return await self._requests.get_children(znode_paths.BROKER_TOPICS, register_watch)

    async def topic_exists(self, topic: str) -> bool:
        return await self._requests.path_exists(znode_paths.topic_path(topic))

    async def get_replica_assignment_and_topic_ids_for_topics(
        self, topics: Iterable[str]
    ) -> list[TopicIdReplicaAssignment]:
        """Return assignments and ids in the order given, without missing topics; arms the watches
        of registered handlers."""
        names = list(topics)
        found = []
        shared = self.shared.assignments()
        answers = await self._requests.get_data_for_paths(
            [znode_paths.topic_path(topic) for topic in names]
        )
        for topic, response in zip(names, answers, strict=True):
            if response.code == ZkCode.NONODE:
                continue
            response.raise_if_failed()
            stored = znode_payloads.decode_topic(response.data, shared)
            pairs = tuple((TopicPartition(topic, p), a) for p, a in stored.assignment)
            found.append(TopicIdReplicaAssignment(topic, stored.topic_id, pairs))
        return found

    async def get_full_replica_assignment_for_topics(
        self, topics: Iterable[str]
    ) -> dict[TopicPartition, ReplicaAssignment]:
        """Return the assignments of all partitions of the topics; arms the watches of registered
        handlers."""
        found = await self.get_replica_assignment_and_topic_ids_for_topics(topics)
        return {tp: assignment for topic in found for tp, assignment in topic.assignment}

    async def create_topic_assignment(
        self, topic: str, assignment: Mapping[int, ReplicaAssignment], topic_id: str | None = None
    ) -> None:
        """Create a topic's znode; raises ``ZooKeeperError`` (NODEEXISTS)."""
        payload = self._topic_payload(assignment, topic_id)
        await self._requests.create_recursive(znode_paths.topic_path(topic), payload)

    async def set_topic_assignment(
        self,
        topic: str,
        topic_id: str | None,
        assignment: Mapping[TopicPartition, ReplicaAssignment],
        guard: int = UNGUARDED,
    ) -> None:
        """Replace a topic's assignment (all partitions); raises ``ControllerMoved``."""
        response = await self.set_topic_assignment_raw(topic, topic_id, assignment, guard)
        if response.code != ZkCode.OK:
            raise ZooKeeperError(response.code, znode_paths.topic_path(topic))

    async def set_topic_assignment_raw(
        self,
        topic: str,
        topic_id: str | None,
        assignment: Mapping[TopicPartition, ReplicaAssignment],
        guard: int = UNGUARDED,
    ) -> ZkResponse:
        """Do the same as ``set_topic_assignment``, but return the response whatever its code."""
        by_number = {tp.partition: replicas for tp, replicas in assignment.items()}
        payload = self._topic_payload(by_number, topic_id)
        return await self._requests.write_one(
            SetDataRequest(znode_paths.topic_path(topic), payload), guard
        )

    async def set_topic_ids(
        self, topics: Sequence[TopicIdReplicaAssignment], guard: int = UNGUARDED
    ) -> None:
        """Rewrite the znodes of topics with their new ids; raises ``ControllerMoved``."""
        requests = [
            SetDataRequest(
                znode_paths.topic_path(topic.topic),
                self._topic_payload(
                    {tp.partition: replicas for tp, replicas in topic.assignment}, topic.topic_id
                ),
            )
            for topic in topics
        ]
        for response in await self._requests.write(requests, guard):
            response.raise_if_failed()

    def _topic_payload(
        self, assignment: Mapping[int, ReplicaAssignment], topic_id: str | None
    ) -> bytes:
        return znode_payloads.encode_topic(
            assignment, self._requests.behaviour.topic_znode_version, topic_id
        )

    # --- partitions

    async def create_topic_partitions(
        self, topics: Iterable[str], guard: int = UNGUARDED
    ) -> list[ZkResponse]:
        """Create the topics' ``partitions`` nodes; returns responses whatever their codes."""
        requests = [CreateRequest(znode_paths.topic_partitions_path(topic)) for topic in topics]
        return await self._requests.write(requests, guard)

    async def create_topic_partition(
        self, partitions: Iterable[TopicPartition], guard: int = UNGUARDED
    ) -> list[ZkResponse]:
        """Create the partitions' own nodes; returns responses whatever their codes."""
        requests = [CreateRequest(znode_paths.topic_partition_path(tp)) for tp in partitions]
        return await self._requests.write(requests, guard)

    async def create_topic_partition_states_raw(
        self,
        leadership: Mapping[TopicPartition, LeaderIsrAndControllerEpoch],
        guard: int = UNGUARDED,
    ) -> list[ZkResponse]:
        """Create state nodes and their missing parents; returns the responses of the state nodes.

        Raises ``ControllerMoved``. The parents' codes are ignored, as most of them exist.
        """
        await self.create_topic_partitions(dict.fromkeys(tp.topic for tp in leadership), guard)
        await self.create_topic_partition(leadership, guard)
        requests = [
            CreateRequest(znode_paths.topic_partition_state_path(tp), self.shared.payload(decision))
            for tp, decision in leadership.items()
        ]
        return await self._requests.write(requests, guard)

    async def set_topic_partition_states_raw(
        self,
        leadership: Mapping[TopicPartition, LeaderIsrAndControllerEpoch],
        guard: int = UNGUARDED,
    ) -> list[ZkResponse]:
        """Set state nodes, each only if its version is still the one in its value."""
        requests = [
            SetDataRequest(
                znode_paths.topic_partition_state_path(tp),
                self.shared.payload(decision),
                decision.leader_and_isr.zk_version,
            )
            for tp, decision in leadership.items()
        ]
        return await self._requests.write(requests, guard)

    async def get_topic_partition_states_raw(
        self, partitions: Sequence[TopicPartition]
    ) -> list[ZkResponse]:
        """Read state nodes; returns responses in order whatever their codes. Arms the watches of
        registered handlers."""
        return await self._requests.get_data_for_paths(
            [znode_paths.topic_partition_state_path(p) for p in partitions]
        )

    async def get_topic_partition_states(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch]:
        """Return the stored leadership, without partitions that have none; arms the watches of
        registered handlers."""
        answers = await self.get_topic_partition_states_raw(partitions)
        found = {}
        for topic_partition, response in zip(partitions, answers, strict=True):
            if response.code == ZkCode.NONODE:
                continue
            response.raise_if_failed()
            leadership = self.shared.leadership(response)
            if leadership is not None:
                found[topic_partition] = leadership
        return found

    async def get_topic_partition_state(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch | None:
        found = await self.get_topic_partition_states((topic_partition,))
        return found.get(topic_partition)

    async def update_leader_and_isr(
        self,
        leader_and_isrs: Mapping[TopicPartition, LeaderAndIsr],
        controller_epoch: int,
        guard: int = UNGUARDED,
    ) -> UpdateLeaderAndIsrResult:
        """Write leadership, each value only if its version is still the stored one (CP-74).

        Raises ``ControllerMoved``; any other exception is returned as every partition's failure.
        """
        if not leader_and_isrs:
            return UpdateLeaderAndIsrResult({}, [])
        decisions = {
            tp: LeaderIsrAndControllerEpoch(value, controller_epoch)
            for tp, value in leader_and_isrs.items()
        }
        try:
            answers = await self.set_topic_partition_states_raw(decisions, guard)
        except ControllerMoved:
            raise
        except Exception as error:
            return UpdateLeaderAndIsrResult(dict.fromkeys(leader_and_isrs, error), [])
        finished: dict[TopicPartition, LeaderAndIsr | Exception] = {}
        to_retry: list[TopicPartition] = []
        for (tp, value), response in zip(leader_and_isrs.items(), answers, strict=True):
            if response.code == ZkCode.OK and response.stat is not None:
                finished[tp] = value.with_zk_version(response.stat.version)
            elif response.code == ZkCode.BADVERSION:
                to_retry.append(tp)
            else:
                finished[tp] = ZooKeeperError(
                    response.code, znode_paths.topic_partition_state_path(tp)
                )
        return UpdateLeaderAndIsrResult(finished, to_retry)

    async def update_partition_isr(
        self, topic_partition: TopicPartition, leader_and_isr: LeaderAndIsr, controller_epoch: int
    ) -> int | None:
        """Write the ISR as the partition's leader does in releases before AlterIsr
        (docs/kafka/isr.md#changes-through-zookeeper).

        Returns the new version, also if the same content is stored already; None on a conflict.
        """

        def is_mine(stored: bytes | None) -> bool:
            found = znode_payloads.decode_partition_state(stored, 0)
            wanted = LeaderIsrAndControllerEpoch(
                leader_and_isr.with_zk_version(0), controller_epoch
            )
            return found == wanted

        succeeded, version = await self._requests.conditional_update_path(
            znode_paths.topic_partition_state_path(topic_partition),
            znode_payloads.encode_partition_state(leader_and_isr, controller_epoch),
            leader_and_isr.zk_version,
            is_mine,
        )
        return version if succeeded else None

    async def delete_topic_znode(self, topic: str, guard: int = UNGUARDED) -> None:
        """Delete a topic with its partitions; raises ``ControllerMoved``."""
        await self._requests.delete_recursive(znode_paths.topic_path(topic), guard)
