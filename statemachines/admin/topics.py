"""CreateTopics, DeleteTopics and CreatePartitions (docs/kafka/topics.md,
docs/kafka/administration.md#topics).

Source: Kafka's ``ZkAdminManager`` and ``AdminZkClient``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...election.assignment import (
    assign_added_partitions,
    assign_replicas_to_brokers,
    broker_metadatas,
)
from ...protocol import znode_paths
from ...protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
    TopicResult,
)
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.release_configs import InvalidTopicConfig, release_configs
from ...protocol.topic_names import TakenNames, has_collision_characters, validate_topic_name
from ...protocol.values import NO_LEADER, ReplicaAssignment, TopicPartition, changed
from ...zkfake.messages import ZkCode, ZooKeeperError
from ..zookeeper.topic_ids import random_topic_id
from .checks import (
    Assignment,
    PartitionAllowance,
    all_finished,
    check_count,
    duplicate_names,
    duplicate_topic_error,
    error_results,
    not_controller,
    split_duplicates,
    unknown_topic_error,
    validate_added,
    validate_assignment,
    with_timeout_error,
)
from .config_entries import ConfigValues
from .configs import ConfigDescriptions
from .parts import AdminParts

_UNKNOWN_ID, _NOT_AUTHORIZED = ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED


class TopicAdmin:
    """Serves clients' requests to create, delete and grow topics, on the controller only."""

    def __init__(self, parts: AdminParts, configs: ConfigDescriptions) -> None:
        self._parts = parts
        self._configs = configs
        self._listed: list[str] = []
        self._taken = TakenNames(())

    # --- CreateTopics

    async def create_topics(
        self, request: CreateTopicsRequest, client_id: str = ""
    ) -> CreateTopicsResponse:
        """Create each valid topic independently, then wait for leaders."""
        if not self._parts.controller.is_active:
            message = "" if self._parts.behaviour.create_topics_generated else None
            names = [topic.name for topic in request.topics]
            return CreateTopicsResponse(not_controller(names, message))
        topics, results = split_duplicates(request.topics, client_id, self._parts.behaviour)
        results = [*await self.create_in_zookeeper(topics, request.validate_only), *results]
        if any(result.error == ErrorCode.NONE for result in results):
            # Read only now, so that nothing comes between the checks of a topic and its creation.
            values = self._configs.values()
            results = [_with_entries(result, values) for result in results]
        if not request.validate_only:
            created = [result for result in results if result.error == ErrorCode.NONE]
            counts: dict[str, Sequence[int]] = {
                result.name: range(result.partitions) for result in created
            }
            for topic in request.topics:
                if topic.assignment and topic.name in counts:
                    counts[topic.name] = [number for number, _ in topic.assignment]
            late = await self._wait_for_leaders(counts, request.timeout_ms)
            results = [with_timeout_error(result, result.name in late) for result in results]
        return CreateTopicsResponse(tuple(results))

    async def create_in_zookeeper(
        self, topics: Sequence[NewTopic], validate_only: bool = False
    ) -> list[TopicResult]:
        """Write valid topics to ZooKeeper, whether this broker is the controller or not."""
        repeated = duplicate_names([topic.name for topic in topics])
        allowance = self._allowance()
        results: list[TopicResult] = []
        for topic in topics:
            try:
                if topic.name in repeated:
                    raise duplicate_topic_error()
                results.append(await self._create(topic, validate_only, allowance))
            except KafkaError as error:
                results.append(TopicResult(topic.name, error.code, error.message))
            except ZooKeeperError as failure:
                self._parts.controller.log("warn", f"creating topic {topic.name}: {failure}")
                results.append(TopicResult(topic.name, ErrorCode.UNKNOWN_SERVER_ERROR))
        return results

    def _allowance(self) -> PartitionAllowance:
        return PartitionAllowance(self._parts.config["max.partitions.per.request"])

    async def _create(
        self, topic: NewTopic, validate_only: bool, allowance: PartitionAllowance
    ) -> TopicResult:
        name = topic.name
        behaviour = self._parts.behaviour
        if behaviour.existing_topics_refused_first and self._parts.metadata.contains_topic(name):
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        null = [key for key, value in topic.config if value is None]
        if not behaviour.existing_topics_refused_first:
            if null:  # Kafka puts the value into a ``Properties``, which throws
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._validate_config({key: value for key, value in topic.config if value is not None})
        if null:
            if self._parts.behaviour.null_topic_config_is_invalid_config:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"Null value not supported for topic configs: {','.join(null)}",
                )
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Null value not supported for topic configs : {','.join(null)}",
            )
        lists = [replicas for _, replicas in topic.assignment]
        allowance.take(len(lists) or topic.partitions, lists)
        assignment = self._assign(topic)
        config = {key: value for key, value in topic.config if value is not None}
        await self._validate(name, assignment, config)
        topic_id = ""
        if self._parts.behaviour.topic_ids:
            topic_id = random_topic_id(self._parts.host.rng)
        if not validate_only:
            await self._write(name, assignment, config, topic_id)
        return TopicResult(
            name,
            ErrorCode.NONE,
            None,
            "" if validate_only else topic_id,
            len(assignment),
            len(next(iter(assignment.values()))),  # before 2.3 there may be no partition 0
            tuple(config.items()),
        )

    def _assign(self, topic: NewTopic) -> Assignment:
        if topic.assignment:
            if topic.partitions != -1 or topic.replication_factor != -1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "Both numPartitions or replicationFactor and replicasAssignments were set. "
                    "Both cannot be used at the same time.",
                )
            # If a partition is named twice, the last one counts, as Kafka puts them into a map.
            return dict(topic.assignment)
        config = self._parts.config
        partitions = topic.partitions
        factor = topic.replication_factor
        has_defaults = self._parts.behaviour.default_counts_for_new_topics
        # As in Kafka, brokers are in the order of the metadata, not sorted.
        brokers = [(broker.id, broker.rack) for broker in self._parts.metadata.alive_brokers()]
        return assign_replicas_to_brokers(
            brokers,
            config["num.partitions"] if has_defaults and partitions == -1 else partitions,
            config["default.replication.factor"] if has_defaults and factor == -1 else factor,
            rng=self._parts.host.rng,
        )

    async def _validate(
        self, name: str, assignment: Mapping[int, Sequence[int]], config: Mapping[str, str]
    ) -> None:
        """Check a new topic, in the order of ``AdminZkClient.validateTopicCreate``; raises
        ``KafkaError``."""
        validate_topic_name(name, self._parts.behaviour)
        zk = self._parts.zk
        if self._parts.behaviour.creation_waits_for_deletion and (
            await zk.admin.is_topic_marked_for_deletion(name)
        ):
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion."
            )
        if await zk.topics.topic_exists(name):
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if has_collision_characters(name):
            topics = await zk.topics.get_all_topics_in_cluster()
            if name in topics:  # created since the check above; it must not collide with itself
                raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
            self._update_taken_names(topics)
            other = self._taken.colliding(name)
            if other is not None:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{name}' collides with existing topics: {other}",
                )
        behaviour = self._parts.behaviour
        map_name = "HashMap" if behaviour.maps_shown_as_hash_maps else "Map"
        validate_assignment(assignment, behaviour.assignments_may_have_gaps, map_name)
        self._validate_config(config)

    def _validate_config(self, config: Mapping[str, str]) -> None:
        """Check a topic's configuration; raises ``KafkaError``."""
        try:
            if config:
                release_configs(self._parts.config.kafka_version).validate_topic(config)
        except ValueError as error:
            code = ErrorCode.INVALID_CONFIG
            unexpected = self._parts.behaviour.bad_topic_configs_unexpected
            if unexpected and not isinstance(error, InvalidTopicConfig):
                code = ErrorCode.UNKNOWN_SERVER_ERROR
            raise KafkaError(code, str(error)) from None

    def _update_taken_names(self, topics: list[str]) -> None:
        """Update the taken names with a listing, which usually only adds a few to the last one."""
        if topics == self._listed:
            return
        known, listed = set(self._listed), set(topics)
        if known <= listed:
            for name in sorted(listed - known):
                self._taken.add(name)
        else:
            self._taken = TakenNames(topics)
        self._listed = topics

    async def _write(
        self, name: str, assignment: Assignment, config: Mapping[str, str], topic_id: str
    ) -> None:
        """Write the nodes of a topic, first the configuration, which brokers need for the log."""
        zk = self._parts.zk
        await zk.admin.set_or_create_entity_configs(znode_paths.TOPICS, name, config)
        replicas = {number: ReplicaAssignment(r) for number, r in assignment.items()}
        try:
            await zk.topics.create_topic_assignment(name, replicas, topic_id or None)
        except ZooKeeperError as error:
            if error.code != ZkCode.NODEEXISTS:
                raise
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."
            ) from None

    async def _wait_for_leaders(
        self, partitions: Mapping[str, Sequence[int]], timeout_ms: int
    ) -> frozenset[str]:
        """Wait until partitions have leaders in the local metadata, and return the topics of those
        that have none.

        With a timeout of 0 or below there is no wait, and all topics are returned.
        """
        if timeout_ms <= 0:
            return frozenset(partitions)
        waiting = [
            TopicPartition(t, number) for t, numbers in partitions.items() for number in numbers
        ]
        await self._parts.wait(
            all_finished(waiting, self._has_leader),
            timeout_ms,
            lambda: self._parts.hosts_of(waiting),
        )
        return frozenset(tp.topic for tp in waiting if not self._has_leader(tp))

    def _has_leader(self, topic_partition: TopicPartition) -> bool:
        state = self._parts.metadata.partition_state(topic_partition)
        return state is not None and state.leader != NO_LEADER

    # --- DeleteTopics

    async def delete_topics(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        """Mark topics for deletion, then wait until they are gone from the local metadata."""
        parts = self._parts
        requested: list[tuple[str | None, str]] = [(name, "") for name in request.topics]
        requested += [(None, topic_id) for topic_id in request.topic_ids]
        requested += [(None, "")] * request.nameless
        requested += request.names_with_ids
        if not parts.controller.is_active:
            return DeleteTopicsResponse(error_results(requested, ErrorCode.NOT_CONTROLLER))
        checks_switch = not parts.behaviour.deletion_is_tried_when_disabled
        if checks_switch and not parts.config["delete.topic.enable"]:
            return DeleteTopicsResponse(error_results(requested, ErrorCode.TOPIC_DELETION_DISABLED))
        if request.names_with_ids:
            return DeleteTopicsResponse(error_results(requested, ErrorCode.INVALID_REQUEST))
        results: list[TopicResult] = []
        for requested_name, topic_id in requested:
            name = parts.metadata.topic_name(topic_id) if topic_id else requested_name
            try:
                if name is None:  # an unknown id, or a topic without name and id
                    raise KafkaError(_UNKNOWN_ID if topic_id else _NOT_AUTHORIZED)
                await self._mark_for_deletion(name)
                results.append(TopicResult(name, ErrorCode.NONE, None, topic_id))
            except KafkaError as error:
                results.append(TopicResult(name or "", error.code, None, topic_id))
        marked = [result.name for result in results if result.error == ErrorCode.NONE]
        late = await self._wait_for_deletion(marked, request.timeout_ms)
        return DeleteTopicsResponse(tuple(with_timeout_error(r, r.name in late) for r in results))

    async def _mark_for_deletion(self, name: str) -> None:
        """Mark a topic for deletion, if it is not yet; raises ``KafkaError``
        (UNKNOWN_TOPIC_OR_PARTITION)."""
        zk = self._parts.zk
        if not self._parts.metadata.contains_topic(name) or not await zk.topics.topic_exists(name):
            raise unknown_topic_error(name)
        try:
            await zk.admin.create_delete_topic_path(name)
        except ZooKeeperError as error:
            if error.code != ZkCode.NODEEXISTS:
                raise

    async def _wait_for_deletion(self, topics: Sequence[str], timeout_ms: int) -> frozenset[str]:
        if timeout_ms <= 0:
            return frozenset(topics)
        metadata = self._parts.metadata
        await self._parts.wait(
            lambda: not any(metadata.contains_topic(topic) for topic in topics), timeout_ms
        )
        return frozenset(topic for topic in topics if metadata.contains_topic(topic))

    # --- CreatePartitions

    async def create_partitions(self, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        """Grow each topic independently, then wait until all of its partitions have leaders.

        As in Kafka's ``ZkAdminManager.createPartitions``, the wait includes old partitions: if one
        of these stays offline, the error is REQUEST_TIMED_OUT although the topic has grown.
        """
        if not self._parts.controller.is_active:
            return CreatePartitionsResponse(not_controller([t.name for t in request.topics]))
        repeated = duplicate_names([topic.name for topic in request.topics])
        allowance = self._allowance()
        results: list[TopicResult] = []
        partitions: dict[str, Sequence[int]] = {}
        for topic in {topic.name: topic for topic in request.topics}.values():
            try:
                if topic.name in repeated:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
                if not topic.name:  # ZooKeeper's PathUtils throws for this path
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
                await self._create_partitions(topic, request.validate_only, allowance)
                partitions[topic.name] = range(topic.count)
                results.append(TopicResult(topic.name, ErrorCode.NONE, None, "", topic.count))
            except KafkaError as error:
                results.append(TopicResult(topic.name, error.code, error.message or None))
        if not request.validate_only:
            late = await self._wait_for_leaders(partitions, request.timeout_ms)
            results = [with_timeout_error(r, r.name in late) for r in results]
        return CreatePartitionsResponse(tuple(results))

    async def _create_partitions(
        self, topic: NewPartitions, validate_only: bool, allowance: PartitionAllowance
    ) -> None:
        """Add partitions to a topic; raises ``KafkaError``."""
        zk, name = self._parts.zk, topic.name
        if (
            not self._parts.behaviour.reassignment_api
            and await zk.admin.reassign_partitions_in_progress()
        ):
            # Before 2.4 the topics' znodes do not say which partitions are being reassigned.
            raise KafkaError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS, "A partition reassignment is in progress."
            )
        found = await zk.topics.get_replica_assignment_and_topic_ids_for_topics([name])
        if not found:
            raise unknown_topic_error(name)
        if await zk.admin.is_topic_marked_for_deletion(name):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
        full = dict(found[0].assignment)
        if any(assignment.is_being_reassigned for assignment in full.values()):
            raise KafkaError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{name}'.",
            )
        check_count(topic.count, len(full))
        existing = {tp.partition: assignment.replicas for tp, assignment in full.items()}
        racks = broker_metadatas(
            [(broker.id, broker.rack) for broker in await zk.brokers.get_all_brokers_in_cluster()]
        )
        increment = topic.count - len(full)
        allowance.take(increment, topic.assignment or ())
        if topic.assignment is not None:
            added = validate_added(
                topic.assignment, existing, increment, [broker_id for broker_id, _ in racks]
            )
        else:
            added = assign_added_partitions(existing, racks, increment)
        if not validate_only:
            for number, replicas in added.items():
                full[TopicPartition(name, number)] = ReplicaAssignment(tuple(replicas))
            await zk.topics.set_topic_assignment(name, found[0].topic_id, full)


def _with_entries(result: TopicResult, values: ConfigValues) -> TopicResult:
    """Return the result of a creation with the values in force for the topic (KIP-525)."""
    if result.error != ErrorCode.NONE:
        return result
    config = {name: value for name, value in result.config if value is not None}
    return changed(result, config_entries=values.topic_entries(config))
