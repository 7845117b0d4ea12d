"""``KafkaZkClient`` for configurations, requests made by creating a znode, and notifications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...protocol import znode_paths, znode_payloads
from ...protocol.config import BrokerConfig, TopicConfig
from ...protocol.values import TopicPartition
from ...zkfake.messages import ZkCode, ZooKeeperError
from .requests import UNGUARDED, ZkRequests


class ZkAdmin:
    """Reads and writes configurations, topic deletions, admin requests and notifications."""

    def __init__(self, requests: ZkRequests) -> None:
        self._requests = requests

    # --- configurations

    async def get_log_configs(
        self, topics: Iterable[str], broker_config: BrokerConfig
    ) -> tuple[dict[str, TopicConfig], dict[str, Exception]]:
        """Return (configurations by topic, errors by topic that could not be read).

        A topic's overrides apply over the broker's values, which a topic without a config node has.
        """
        names = list(topics)
        paths = [znode_paths.config_entity_path(znode_paths.TOPICS, topic) for topic in names]
        configs: dict[str, TopicConfig] = {}
        failed: dict[str, Exception] = {}
        for topic, response in zip(
            names, await self._requests.get_data_for_paths(paths), strict=True
        ):
            try:
                if response.code == ZkCode.NONODE:
                    overrides = {}
                else:
                    overrides = znode_payloads.decode_config(response.raise_if_failed().data)
                configs[topic] = TopicConfig(broker_config, overrides)
            except Exception as error:
                failed[topic] = error
        return configs, failed

    async def get_entity_configs(self, entity_type: str, entity_name: str) -> dict[str, str]:
        """Return the overrides of one entity; empty if it has no node."""
        data, _ = await self._requests.get_data_and_stat(
            znode_paths.config_entity_path(entity_type, entity_name)
        )
        return znode_payloads.decode_config(data)

    async def get_all_entities_with_config(self, entity_type: str) -> list[str]:
        """Return the sorted names below ``/config/<type>``."""
        return await self._requests.get_children(
            f"{znode_paths.CONFIG}/{entity_type}", register_watch=False
        )

    async def get_all_entity_configs(self, entity_type: str) -> dict[str, dict[str, str]]:
        """Read the overrides of every entity of a type, by name, in two batches of requests."""
        names = await self.get_all_entities_with_config(entity_type)
        paths = [znode_paths.config_entity_path(entity_type, name) for name in names]
        answers = await self._requests.get_data_for_paths(paths)
        return {
            name: znode_payloads.decode_config(response.raise_if_failed().data)
            for name, response in zip(names, answers, strict=True)
            if response.code != ZkCode.NONODE
        }

    async def set_or_create_entity_configs(
        self, entity_type: str, entity_name: str, config: Mapping[str, str], guard: int = UNGUARDED
    ) -> None:
        """Replace an entity's overrides, creating the node and its parents if needed.

        Overrides that another client creates at the same time are replaced, too, as in Kafka.
        """
        path = znode_paths.config_entity_path(entity_type, entity_name)
        payload = znode_payloads.encode_config(config)
        try:
            await self._requests.set_or_create(path, payload, guard)
        except ZooKeeperError as error:
            if error.code != ZkCode.NODEEXISTS:
                raise
            await self._requests.set_or_create(path, payload, guard)

    async def delete_topic_configs(self, topics: Iterable[str], guard: int = UNGUARDED) -> None:
        paths = [znode_paths.config_entity_path(znode_paths.TOPICS, topic) for topic in topics]
        await self._requests.delete_all(paths, guard)

    async def create_config_change_notification(self, entity_path: str) -> str:
        """Notify every broker of a change of ``topics/t`` or the like; returns the path created."""
        await self._requests.make_sure_persistent_path_exists(znode_paths.CONFIG_CHANGES)
        return await self._requests.create_sequential(
            f"{znode_paths.CONFIG_CHANGES}/{znode_paths.CONFIG_CHANGE_PREFIX}",
            znode_payloads.encode_config_change(entity_path),
        )

    # --- topic deletion

    async def create_delete_topic_path(self, topic: str) -> None:
        """Request a topic's deletion; raises ``ZooKeeperError`` (NODEEXISTS) if it is pending."""
        await self._requests.create_recursive(znode_paths.delete_topics_topic_path(topic))

    async def is_topic_marked_for_deletion(self, topic: str) -> bool:
        return await self._requests.path_exists(znode_paths.delete_topics_topic_path(topic))

    async def get_topic_deletions(self) -> list[str]:
        """Return the sorted topics whose deletion is requested; arms the child watch."""
        return await self._requests.get_children(znode_paths.DELETE_TOPICS)

    async def delete_topic_deletions(self, topics: Iterable[str], guard: int = UNGUARDED) -> None:
        paths = [znode_paths.delete_topics_topic_path(topic) for topic in topics]
        await self._requests.delete_all(paths, guard)

    # --- reassignment and preferred election by znode

    async def reassign_partitions_in_progress(self) -> bool:
        """Return whether the znode exists; arms the watch of a registered handler."""
        return await self._requests.path_exists(znode_paths.REASSIGN_PARTITIONS)

    async def get_partition_reassignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the target replicas in the znode; empty if it is missing or malformed, which
        Kafka logs and ignores."""
        data, stat = await self._requests.get_data_and_stat(znode_paths.REASSIGN_PARTITIONS)
        if stat is None:
            return {}
        try:
            return znode_payloads.decode_reassign_partitions(data)
        except ValueError:
            return {}

    async def set_or_create_partition_reassignment(
        self, reassignment: Mapping[TopicPartition, Iterable[int]], guard: int = UNGUARDED
    ) -> None:
        """Write the znode; raises ``ControllerMoved``."""
        await self._requests.set_or_create(
            znode_paths.REASSIGN_PARTITIONS,
            znode_payloads.encode_reassign_partitions(reassignment),
            guard,
        )

    async def create_partition_reassignment(
        self, reassignment: Mapping[TopicPartition, Iterable[int]]
    ) -> None:
        """Request reassignments as the legacy tool does; raises ``ZooKeeperError`` (NODEEXISTS)."""
        await self._requests.create_recursive(
            znode_paths.REASSIGN_PARTITIONS, znode_payloads.encode_reassign_partitions(reassignment)
        )

    async def delete_partition_reassignment(self, guard: int = UNGUARDED) -> None:
        await self._requests.delete_all((znode_paths.REASSIGN_PARTITIONS,), guard)

    async def create_preferred_replica_election(self, partitions: Iterable[TopicPartition]) -> None:
        """Request preferred leaders as the legacy tool; raises ``ZooKeeperError`` (NODEEXISTS)."""
        await self._requests.create_recursive(
            znode_paths.PREFERRED_REPLICA_ELECTION, znode_payloads.encode_partition_list(partitions)
        )

    async def get_preferred_replica_election(self) -> list[TopicPartition]:
        """Return the requested partitions without duplicates; empty if there is no znode."""
        data, _ = await self._requests.get_data_and_stat(znode_paths.PREFERRED_REPLICA_ELECTION)
        return znode_payloads.decode_partition_list(data)

    async def delete_preferred_replica_election(self, guard: int = UNGUARDED) -> None:
        await self._requests.delete_all((znode_paths.PREFERRED_REPLICA_ELECTION,), guard)

    # --- ISR changes and log directory events

    async def _numbers(self, parent: str, register_watch: bool = True) -> list[int]:
        """Return the sequence numbers of notifications, in order."""
        names = await self._requests.get_children(parent, register_watch)
        return sorted(map(znode_paths.sequence_number, names))

    async def _existing(self, paths: Iterable[str]) -> list[bytes | None]:
        """Return the data of the nodes that exist."""
        responses = await self._requests.get_data_for_paths(list(paths))
        return [r.raise_if_failed().data for r in responses if r.code != ZkCode.NONODE]

    async def propagate_isr_changes(self, partitions: Iterable[TopicPartition]) -> str:
        """Notify the controller of ISR changes; returns the path created (CP-189)."""
        return await self._requests.create_sequential(
            f"{znode_paths.ISR_CHANGE_NOTIFICATION}/{znode_paths.ISR_CHANGE_PREFIX}",
            znode_payloads.encode_partition_list(partitions),
        )

    async def get_all_isr_change_notifications(self) -> list[int]:
        """Return the sequence numbers in order; arms the child watch."""
        return await self._numbers(znode_paths.ISR_CHANGE_NOTIFICATION)

    async def get_partitions_from_isr_change_notifications(
        self, sequence_numbers: Iterable[int]
    ) -> list[TopicPartition]:
        """Return the partitions, with repetitions, in the given notifications that still exist."""
        found = await self._existing(map(znode_paths.isr_change_path, sequence_numbers))
        return [tp for data in found for tp in znode_payloads.decode_partition_list(data)]

    async def delete_isr_change_notifications(
        self, sequence_numbers: Iterable[int] | None = None, guard: int = UNGUARDED
    ) -> None:
        """Delete the given notifications, or all for None; raises ``ControllerMoved``."""
        if sequence_numbers is None:
            sequence_numbers = await self._numbers(znode_paths.ISR_CHANGE_NOTIFICATION, False)
        paths = map(znode_paths.isr_change_path, sequence_numbers)
        await self._requests.delete_all(tuple(paths), guard)

    async def propagate_log_dir_event(self, broker_id: int) -> str:
        """Notify the controller of a failed log directory; returns the path created (CP-190)."""
        return await self._requests.create_sequential(
            f"{znode_paths.LOG_DIR_EVENT_NOTIFICATION}/{znode_paths.LOG_DIR_EVENT_PREFIX}",
            znode_payloads.encode_log_dir_event(broker_id),
        )

    async def get_all_log_dir_event_notifications(self) -> list[int]:
        """Return the sequence numbers in order; arms the child watch."""
        return await self._numbers(znode_paths.LOG_DIR_EVENT_NOTIFICATION)

    async def get_broker_ids_from_log_dir_events(
        self, sequence_numbers: Iterable[int]
    ) -> list[int]:
        """Return the brokers, with repetitions, in the given notifications that still exist."""
        found = await self._existing(map(znode_paths.log_dir_event_path, sequence_numbers))
        brokers = map(znode_payloads.decode_log_dir_event, found)
        return [broker_id for broker_id in brokers if broker_id is not None]

    async def delete_log_dir_event_notifications(
        self, sequence_numbers: Iterable[int] | None = None, guard: int = UNGUARDED
    ) -> None:
        """Delete the given notifications, or all for None; raises ``ControllerMoved``."""
        if sequence_numbers is None:
            sequence_numbers = await self._numbers(znode_paths.LOG_DIR_EVENT_NOTIFICATION, False)
        paths = map(znode_paths.log_dir_event_path, sequence_numbers)
        await self._requests.delete_all(tuple(paths), guard)
