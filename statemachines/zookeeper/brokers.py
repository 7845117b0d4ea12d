"""``KafkaZkClient`` for nodes of the controller, of brokers and of the whole cluster."""

from __future__ import annotations

from ...protocol import znode_paths, znode_payloads
from ...protocol.errors import FakeKafkaError
from ...protocol.values import BrokerInfo
from ...protocol.znode_payloads import FeatureZnode, ProducerIdBlock
from ...zkfake.messages import (
    CreateRequest,
    DeleteRequest,
    MultiRequest,
    SetDataRequest,
    ZkCode,
    ZooKeeperError,
)
from .errors import ControllerMoved
from .requests import UNGUARDED, ZkRequests, parents_of

_LONG_MAX = 2**63 - 1
_FIRST_EPOCH_BEFORE_2_1 = (1, 1)
"""First controller epoch, and the version that an old controller *assumes* for the node it just
created with it; the real version is 0."""


class ZkBrokers:
    """Handles controller election, broker registration, cluster id, features, producer ids."""

    def __init__(self, requests: ZkRequests) -> None:
        self._requests = requests

    async def create_top_level_paths(self) -> None:
        """Create the znodes that every broker creates when it starts
        (docs/kafka/zookeeper.md#znodes)."""
        paths: dict[str, None] = {}
        for path in znode_paths.persistent_paths(self._requests.behaviour):
            paths.update(dict.fromkeys(parents_of(path)))
            paths[path] = None
        for response in await self._requests.send([CreateRequest(path) for path in paths]):
            if response.code != ZkCode.NODEEXISTS:
                response.raise_if_failed()

    # --- controller

    async def get_controller_id(self) -> int | None:
        """Return the broker id in ``/controller``; arms the watch of a registered handler."""
        data, _ = await self._requests.get_data_and_stat(znode_paths.CONTROLLER)
        return znode_payloads.decode_controller(data)

    async def get_controller_epoch(self) -> tuple[int, int] | None:
        """Return (epoch, version) of ``/controller_epoch``; None if the node is missing."""
        data, stat = await self._requests.get_data_and_stat(znode_paths.CONTROLLER_EPOCH)
        return (
            None if stat is None else (znode_payloads.decode_controller_epoch(data), stat.version)
        )

    async def set_controller_epoch(self, epoch: int, expected_version: int) -> tuple[ZkCode, int]:
        """Set the epoch if the version matches; returns (code, new version)
        (Kafka: ``setControllerEpochRaw``)."""
        response = await self._requests.send_one(
            SetDataRequest(
                znode_paths.CONTROLLER_EPOCH,
                znode_payloads.encode_controller_epoch(epoch),
                expected_version,
            )
        )
        return response.code, 0 if response.stat is None else response.stat.version

    async def create_controller_epoch(self, epoch: int) -> ZkCode:
        """Create ``/controller_epoch``; returns the code (Kafka: ``createControllerEpochRaw``)."""
        response = await self._requests.send_one(
            CreateRequest(
                znode_paths.CONTROLLER_EPOCH, znode_payloads.encode_controller_epoch(epoch)
            )
        )
        return response.code

    async def register_controller_and_increment_controller_epoch(
        self, controller_id: int, timestamp_ms: int = 0
    ) -> tuple[int, int]:
        """Try to win the election; returns (controller epoch, version of ``/controller_epoch``).

        Raises ``ControllerMoved`` if another broker won
        (docs/kafka/controller-failover.md#election).
        """
        payload = znode_payloads.encode_controller(
            controller_id, timestamp_ms, self._requests.behaviour.controller_znode_version
        )
        if not self._requests.behaviour.epoch_created_in_one_transaction:
            return await self._register_then_increment(payload)
        epoch, version = await self._get_or_create_controller_epoch()
        epoch += 1
        response = await self._requests.send_one(
            MultiRequest(
                (
                    CreateRequest(znode_paths.CONTROLLER, payload, ephemeral=True),
                    SetDataRequest(
                        znode_paths.CONTROLLER_EPOCH,
                        znode_payloads.encode_controller_epoch(epoch),
                        version,
                    ),
                )
            )
        )
        if response.code == ZkCode.OK:
            stat = response.results[1].stat
            return epoch, version + 1 if stat is None else stat.version
        if response.code in (ZkCode.NODEEXISTS, ZkCode.BADVERSION):
            return await self._check_own_registration(controller_id, epoch)
        raise ZooKeeperError(response.code, znode_paths.CONTROLLER)

    async def _get_or_create_controller_epoch(self) -> tuple[int, int]:
        known = await self.get_controller_epoch()
        if known is not None:
            return known
        code = await self.create_controller_epoch(0)
        if code == ZkCode.OK:
            return 0, 0
        if code == ZkCode.NODEEXISTS:
            known = await self.get_controller_epoch()
            if known is not None:
                return known
            raise FakeKafkaError("/controller_epoch was deleted while it was read")
        raise ZooKeeperError(code, znode_paths.CONTROLLER_EPOCH)

    async def _check_own_registration(self, controller_id: int, epoch: int) -> tuple[int, int]:
        """Return (epoch, version) if this broker has won after all; else raise ``ControllerMoved``.

        A transaction that is repeated after a lost connection fails if the first try succeeded.
        """
        current_id = await self.get_controller_id()
        if current_id is None:
            raise ControllerMoved("the controller node vanished during the election")
        if current_id == controller_id:
            known = await self.get_controller_epoch()
            if known is not None and known[0] == epoch:
                return known
        raise ControllerMoved(f"broker {current_id} won the controller election")

    async def _register_then_increment(self, payload: bytes) -> tuple[int, int]:
        """Become controller first and raise the epoch in a second step, as before 2.1."""
        try:
            await self._requests.create_checked_ephemeral(znode_paths.CONTROLLER, payload)
        except ZooKeeperError as error:
            if error.code != ZkCode.NODEEXISTS:
                raise
            raise ControllerMoved("another broker won the controller election") from None
        known = await self.get_controller_epoch()
        if known is not None:
            epoch, version = known
            code, new_version = await self.set_controller_epoch(epoch + 1, version)
            if code == ZkCode.OK:
                return epoch + 1, new_version
            if code != ZkCode.NONODE:
                raise ControllerMoved("another broker raised the controller epoch")
        code = await self.create_controller_epoch(_FIRST_EPOCH_BEFORE_2_1[0])
        if code == ZkCode.OK:
            return _FIRST_EPOCH_BEFORE_2_1
        raise ControllerMoved("another broker created the controller epoch")

    async def delete_controller(self, guard: int = UNGUARDED) -> None:
        """Delete ``/controller``; raises ``ControllerMoved`` if the epoch has changed."""
        response = await self._requests.write_one(DeleteRequest(znode_paths.CONTROLLER), guard)
        if response.code != ZkCode.NONODE:
            response.raise_if_failed()

    # --- brokers

    async def register_broker(self, broker: BrokerInfo, timestamp_ms: int = 0) -> int:
        """Register a broker and return its broker epoch (the node's czxid).

        Raises ``ZooKeeperError`` (NODEEXISTS) if another session registered the id. A second
        registration in the same session changes nothing.
        """
        payload = znode_payloads.encode_broker(
            broker, timestamp_ms, self._requests.behaviour.broker_znode_version
        )
        path = znode_paths.broker_id_path(broker.id)
        return (await self._requests.create_checked_ephemeral(path, payload)).czxid

    async def get_sorted_broker_list(self) -> list[int]:
        """Return the sorted registered ids; arms the child watch of a registered handler."""
        return sorted(
            int(name) for name in await self._requests.get_children(znode_paths.BROKER_IDS)
        )

    async def get_all_broker_and_epochs_in_cluster(self) -> list[tuple[BrokerInfo, int]]:
        """Return registered brokers in the order of their ids, with their epochs; arms the watches
        of registered handlers."""
        ids = await self.get_sorted_broker_list()
        found = []
        answers = await self._requests.get_data_for_paths(
            [znode_paths.broker_id_path(i) for i in ids]
        )
        for broker_id, response in zip(ids, answers, strict=True):
            if response.code == ZkCode.NONODE:
                continue
            stat = response.raise_if_failed().stat
            czxid = -1 if stat is None else stat.czxid
            found.append((znode_payloads.decode_broker(broker_id, response.data), czxid))
        return found

    async def get_all_brokers_in_cluster(self) -> list[BrokerInfo]:
        return [broker for broker, _epoch in await self.get_all_broker_and_epochs_in_cluster()]

    async def get_broker(self, broker_id: int) -> BrokerInfo | None:
        """Return a registered broker, or None; arms the data watch of a registered handler."""
        data, stat = await self._requests.get_data_and_stat(znode_paths.broker_id_path(broker_id))
        return None if stat is None else znode_payloads.decode_broker(broker_id, data)

    async def generate_broker_sequence_id(self) -> int:
        """Return the next number for automatic broker ids, counted from 1."""
        request = SetDataRequest(znode_paths.BROKER_SEQUENCE_ID, b"")
        response = await self._requests.send_one(request)
        if response.code == ZkCode.NONODE:
            await self._requests.make_sure_persistent_path_exists(znode_paths.BROKER_SEQUENCE_ID)
            response = await self._requests.send_one(request)
        stat = response.raise_if_failed().stat
        return 0 if stat is None else stat.version

    # --- cluster id, features, producer ids

    async def get_cluster_id(self) -> str | None:
        data, stat = await self._requests.get_data_and_stat(znode_paths.CLUSTER_ID)
        return None if stat is None else znode_payloads.decode_cluster_id(data)

    async def create_or_get_cluster_id(self, proposed_cluster_id: str) -> str:
        """Propose a cluster id and return the stored one, which is the first ever proposed."""
        known = await self.get_cluster_id()
        if known is not None:
            return known
        try:
            await self._requests.create_recursive(
                znode_paths.CLUSTER_ID, znode_payloads.encode_cluster_id(proposed_cluster_id)
            )
        except ZooKeeperError as error:
            if error.code != ZkCode.NODEEXISTS:
                raise
            known = await self.get_cluster_id()
            if known is None:
                raise FakeKafkaError("/cluster/id was deleted while it was read") from None
            return known
        return proposed_cluster_id

    async def get_feature_znode(self) -> tuple[FeatureZnode | None, int]:
        """Return (finalised features, version of the node), or (None, -2) if it is missing."""
        data, version = await self._requests.get_data_and_version(znode_paths.FEATURE)
        return (None if version < 0 else znode_payloads.decode_features(data)), version

    async def create_feature_znode(self, node: FeatureZnode) -> None:
        payload = znode_payloads.encode_features(
            node, self._requests.behaviour.feature_znode_version
        )
        response = await self._requests.send_one(CreateRequest(znode_paths.FEATURE, payload))
        response.raise_if_failed()

    async def update_feature_znode(self, node: FeatureZnode) -> int:
        """Replace the features and return the node's new version, which is the features epoch."""
        payload = znode_payloads.encode_features(
            node, self._requests.behaviour.feature_znode_version
        )
        request = SetDataRequest(znode_paths.FEATURE, payload)
        stat = (await self._requests.send_one(request)).raise_if_failed().stat
        return 0 if stat is None else stat.version

    async def allocate_producer_id_block(self, broker_id: int) -> tuple[int, int]:
        """Take the next 1000 producer ids and return (first, last), both inclusive.

        Repeats a compare-and-set until it succeeds. Before 3.0, where brokers take blocks
        themselves, a version conflict counts as success if the stored block is the one written.
        """
        path = znode_paths.PRODUCER_ID_BLOCK
        while True:
            data, version = await self._requests.get_data_and_version(path)
            if version < 0:
                await self._requests.make_sure_persistent_path_exists(path)
                continue
            given = znode_payloads.decode_producer_id_block(data)
            first = 0 if given is None else given.last + 1
            last = first + znode_payloads.PRODUCER_ID_BLOCK_SIZE - 1
            if last > _LONG_MAX:
                raise FakeKafkaError("all producer ids have been given out")
            block = ProducerIdBlock(broker_id, first, last)

            def is_mine(stored: bytes | None, block: ProducerIdBlock = block) -> bool:
                return znode_payloads.decode_producer_id_block(stored) == block

            payload = znode_payloads.encode_producer_id_block(block)
            by_controller = self._requests.behaviour.producer_ids_from_controller
            succeeded, _ = await self._requests.conditional_update_path(
                path, payload, version, None if by_controller else is_mine
            )
            if succeeded:
                return first, last
