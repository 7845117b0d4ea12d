"""Finds the id of a starting broker that does not know it: the stored id, or a generated one.

Kafka's broker finds its id in the middle of its start, in the ZooKeeper session that it keeps. Here
actors are named after ids, so the finder has a session of its own, and the broker's actors start
when that session has ended (docs/kafka/brokers.md#start-of-a-broker).
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.awaiting import Cancelled, RequestTimeout
from ...protocol.errors import FakeKafkaError
from ...statemachines.broker.broker_id import check_meta_properties, resolve_broker_id
from ...statemachines.zookeeper.client import KafkaZkClient
from ...zkfake.client.client import ZooKeeperClient
from ...zkfake.messages import ZooKeeperError
from ..interfaces import AbstractRuntime, Process
from ..node import Node
from ..session_node import SessionNode
from .spec import BrokerSpec


async def connect(node: Node, client: ZooKeeperClient, spec: BrokerSpec) -> None:
    """Open a session; raises ``RequestTimeout`` if no server accepts it in time."""
    config = spec.config
    limit_ms = config["zookeeper.connection.timeout.ms"] or config["zookeeper.session.timeout.ms"]
    client.start()
    timeout_timer = node.call_later_ms(limit_ms, client.close)
    try:
        await client.wait_until_connected()
    except ZooKeeperError as error:
        raise RequestTimeout(f"no ZooKeeper server answered within {limit_ms} ms") from error
    timeout_timer.cancel()


async def find_broker_id(spec: BrokerSpec, zk: KafkaZkClient, cluster_id: str) -> int:
    """Return the id of a starting broker, by its configuration, log directories and ZooKeeper.

    Raises ``KafkaError`` INVALID_CONFIG if these contradict each other.
    """
    stored_id = check_meta_properties(
        spec.meta_properties(), cluster_id, spec.config["broker.id"], spec.behaviour
    )
    return await resolve_broker_id(spec.config, stored_id, zk)


class BrokerIdFinder(SessionNode):
    """Finds the broker's id, ends its own session, and reports the id to the process."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        spec: BrokerSpec,
        found: Callable[[int], object],
        failed: Callable[[FakeKafkaError], object],
    ) -> None:
        config = spec.config
        super().__init__(
            runtime,
            name,
            process,
            spec.zookeepers,
            config["zookeeper.session.timeout.ms"],
            config["zookeeper.max.in.flight.requests"],
        )
        self._spec = spec
        self._found = found
        self._failed = failed
        self._zk = KafkaZkClient(self.zk_client, spec.behaviour)

    def on_start(self) -> None:
        self.start_task(self._find())

    async def _find(self) -> None:
        try:
            await connect(self, self.zk_client, self._spec)
            await self._zk.brokers.create_top_level_paths()
            cluster_id = await self._zk.brokers.create_or_get_cluster_id(self._spec.cluster_id)
            broker_id = await find_broker_id(self._spec, self._zk, cluster_id)
        except Cancelled:
            raise
        except FakeKafkaError as error:
            await self.zk_client.close()
            failure = error
            self.runtime.call_later(None, 0, lambda: self._failed(failure))
            return
        await self.zk_client.close()
        # The task must end before the node is halted.
        self.runtime.call_later(None, 0, lambda: None if self.stopped else self._found(broker_id))
