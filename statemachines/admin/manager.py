"""The admin APIs as a broker serves them (Kafka's ``ZkAdminManager``).

Creating, deleting and growing topics is for the active controller's broker; configurations may be
asked of any. Refusals are answers, never exceptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Protocol

from ...protocol import admin as api
from ...protocol.config import BrokerConfig
from ...protocol.control import UpdateMetadataPartitionState
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host import Host
from ...protocol.topic_names import TakenNames, validate_topic_name
from ...protocol.values import BrokerInfo, TopicPartition
from ...protocol.versions import Behaviour
from ..broker.config_entries import ConfigValues
from ..controller.controller import KafkaController
from ..zookeeper.client import KafkaZkClient
from .configs import ConfigAdmin
from .partitions import PartitionAdmin
from .topics import TopicAdmin

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


class MetadataView(Protocol):
    """What is read of the broker's metadata cache."""

    def topics(self) -> tuple[str, ...]: ...
    def contains_topic(self, topic: str) -> bool: ...
    def topic_name(self, topic_id: str) -> str | None: ...
    def partition_state(
        self, topic_partition: TopicPartition
    ) -> UpdateMetadataPartitionState | None: ...
    def partition_states(self) -> Iterator[UpdateMetadataPartitionState]: ...
    def alive_brokers(self) -> tuple[BrokerInfo, ...]: ...


Wait = Callable[[Callable[[], object], float], Awaitable[bool]]
"""Await a predicate over the metadata cache for at most so many ms; whether it came true."""


class AdminManager:
    """Serves admin requests: each method takes a request and answers its response."""

    def __init__(
        self,
        *,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        zk: KafkaZkClient,
        controller: KafkaController,
        metadata_cache: MetadataView,
        wait: Wait,
    ) -> None:
        self.host = host
        self.config = config
        self.behaviour = behaviour
        self.zk = zk
        self.controller = controller
        self.metadata = metadata_cache
        self.wait = wait
        self._topics = TopicAdmin(self)
        self._partitions = PartitionAdmin(self)
        self._configs = ConfigAdmin(self)
        self._being_created: dict[str, None] = {}

    async def create_topics(self, request: api.CreateTopicsRequest) -> api.CreateTopicsResponse:
        """Create topics and wait for their leaders (docs/kafka/topics.md#creation)."""
        return await self._topics.create_topics(request)

    async def delete_topics(self, request: api.DeleteTopicsRequest) -> api.DeleteTopicsResponse:
        """Mark topics for deletion and wait until they are gone."""
        return await self._topics.delete_topics(request)

    async def create_partitions(
        self, request: api.CreatePartitionsRequest
    ) -> api.CreatePartitionsResponse:
        """Grow topics and wait for the new leaders."""
        return await self._topics.create_partitions(request)

    async def elect_leaders(self, request: api.ElectLeadersRequest) -> api.ElectLeadersResponse:
        """Elect preferred or unclean leaders and wait until they are known."""
        return await self._partitions.elect_leaders(request)

    async def alter_partition_reassignments(
        self, request: api.AlterPartitionReassignmentsRequest
    ) -> api.AlterPartitionReassignmentsResponse:
        """Start, redirect or cancel reassignments."""
        return await self._partitions.alter_partition_reassignments(request)

    async def list_partition_reassignments(
        self, request: api.ListPartitionReassignmentsRequest
    ) -> api.ListPartitionReassignmentsResponse:
        """Reassignments under way."""
        return await self._partitions.list_partition_reassignments(request)

    async def describe_configs(
        self, request: api.DescribeConfigsRequest
    ) -> api.DescribeConfigsResponse:
        """Configurations of topics and of this broker, with their sources."""
        return await self._configs.describe_configs(request)

    async def alter_configs(self, request: api.AlterConfigsRequest) -> api.AlterConfigsResponse:
        """Replace or change overrides of topics and brokers."""
        return await self._configs.alter_configs(request)

    async def config_values(self) -> ConfigValues:
        return await self._configs.values()

    # --- topics created because a client asked for their metadata

    async def auto_create(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Create missing topics from this very broker; what to answer for each
        (docs/kafka/administration.md#metadata).

        LEADER_NOT_AVAILABLE is the answer for what was created or is there already, and
        UNKNOWN_TOPIC_OR_PARTITION while another request of this broker creates it. Kafka's
        ``DefaultAutoTopicCreationManager.createTopicsInZk``.
        """
        answers: dict[str, ErrorCode] = {}
        taken = self.taken_names()
        for name in names:
            answers[name] = (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if name in self._being_created
                else self.check_auto_creation(name, taken)
            )
        wanted = [name for name, error in answers.items() if error == ErrorCode.NONE]
        self._being_created.update(dict.fromkeys(wanted))
        try:
            results = await self._topics.create_here([self.auto_topic(name) for name in wanted])
        finally:
            for name in wanted:
                del self._being_created[name]
        for result in results:
            is_there = result.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            answers[result.name] = ErrorCode.LEADER_NOT_AVAILABLE if is_there else result.error
        return answers

    def taken_names(self) -> TakenNames:
        """The topics there are; those of one request are added by ``check_auto_creation``."""
        return TakenNames(self.metadata.topics())

    def check_auto_creation(self, name: str, taken: TakenNames) -> ErrorCode:
        """Whether a missing topic may be created (docs/kafka/administration.md#metadata).

        A topic that collides with one earlier in the same request is refused as well: ``taken``
        is the same for all of a request.
        """
        try:
            validate_topic_name(name, self.behaviour)
        except KafkaError as error:
            return error.code
        if taken.colliding(name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if self.auto_topic(name).replication_factor > len(self.metadata.alive_brokers()):
            return ErrorCode.INVALID_REPLICATION_FACTOR
        taken.add(name)
        return ErrorCode.NONE

    def auto_topic(self, name: str) -> api.NewTopic:
        """The topic that is created for a missing one: internal topics have their own shape."""
        config = self.config
        if name == OFFSETS_TOPIC:
            return api.NewTopic(
                name,
                config["offsets.topic.num.partitions"],
                config["offsets.topic.replication.factor"],
                (),
                (
                    ("compression.type", "producer"),
                    ("cleanup.policy", "compact"),
                    ("segment.bytes", str(config["offsets.topic.segment.bytes"])),
                ),
            )
        if name == TRANSACTIONS_TOPIC:
            return api.NewTopic(
                name,
                config["transaction.state.log.num.partitions"],
                config["transaction.state.log.replication.factor"],
                (),
                (
                    ("unclean.leader.election.enable", "false"),
                    ("compression.type", "uncompressed"),
                    ("cleanup.policy", "compact"),
                    ("min.insync.replicas", str(config["transaction.state.log.min.isr"])),
                ),
            )
        return api.NewTopic(name, config["num.partitions"], config["default.replication.factor"])
