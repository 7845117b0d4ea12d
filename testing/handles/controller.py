"""Handle of the active controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ...protocol.values import PartitionReplica
from ...zkfake.messages import ZkCode, ZooKeeperError
from .. import arguments
from .network import NetworkHandle
from .partitions import partition_key
from .roles import broker_process
from .zookeeper import ZooKeeperHandle

if TYPE_CHECKING:
    from ...actors.delivery import Delivery
    from ..running import RunningCluster


class ControllerHandle:
    """The active controller, on whichever broker it is."""

    __slots__ = ("_running",)

    def __init__(self, running: RunningCluster) -> None:
        self._running = running

    def __repr__(self) -> str:
        controller = self._running.active_controller()
        if controller is None:
            return "<no controller>"
        return f"<controller {controller.broker_id}, epoch {controller.epoch}>"

    @property
    def id(self) -> int | None:
        """Broker id of the active controller; None during an election."""
        controller = self._running.active_controller()
        return None if controller is None else controller.broker_id

    @property
    def epoch(self) -> int:
        """Controller epoch; ``NotThereYet`` during an election."""
        return int(self._running.require_controller().epoch)

    def partition_state(self, topic: str, partition: int) -> str:
        """Return the state in the partition state machine, such as ``OnlinePartition``."""
        key = partition_key(topic, partition)
        state = self._running.require_controller().context.states.partition_state(key)
        return str(state)

    def replica_state(self, topic: str, partition: int, broker_id: int) -> str:
        """Return the state in the replica state machine, such as ``OnlineReplica``."""
        key = partition_key(topic, partition)
        replica = PartitionReplica(*key, arguments.integer("broker_id", broker_id))
        state = self._running.require_controller().context.states.replica_state(replica)
        return str(state)

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the active controller, by Kafka's names."""
        controller = self._running.require_controller()
        process = self._running.processes[controller.broker_id].process
        return dict(self._running.in_process(process, controller.metrics.snapshot))

    def resign(self) -> None:
        """Delete ``/controller`` and wait until an election, open to all brokers, has a winner.

        ``WaitTimeout`` if no broker notices the deletion, which can happen just after an election
        (docs/kafka/controller-failover.md#election).
        """
        controller = self._running.require_controller()

        async def resign() -> None:
            try:
                await controller.zk.requests.delete_path("/controller")
            except ZooKeeperError as error:
                if error.code != ZkCode.SESSIONEXPIRED:  # which deletes the znode, too
                    raise

        old_epoch = controller.epoch
        self._running.call(resign, 10000)

        def another_controller_is_elected() -> bool:
            controller = self._running.active_controller()
            return controller is not None and controller.epoch > old_epoch

        self._running.wait_until(another_controller_is_elected)

    def move_to(self, broker: int | str) -> None:
        """Make a broker the active controller.

        Deletes ``/controller``, as ``resign`` does, while ZooKeeper's messages to all other brokers
        are held back, so that this broker learns of it first and is elected. No effect if it is the
        controller already; ``WaitTimeout`` if it is paused or cut off and so cannot be elected.
        """
        running = self._running
        chosen = broker_process(running, broker)
        self._running.require_controller()
        if chosen.state != "running":
            raise UsageError(
                f"{chosen.name} is {chosen.state}; choose a running broker as controller"
            )
        broker_id = chosen.spec.broker_id
        if self.id == broker_id:
            return
        others = {process.name for process in running.processes.values()} - {chosen.name}
        servers = {process.name for process in running.zookeepers.values()}

        def is_news_to_others(delivery: Delivery) -> bool:
            return delivery.sender.machine in servers and delivery.target.machine in others

        hold = NetworkHandle(running).hold(is_news_to_others)
        try:
            ZooKeeperHandle(running).delete("/controller")
            running.wait_until(lambda: self.id == broker_id)
        finally:
            hold.end()
        # The former controller considers itself active until it learns of the election.
        running.wait_until(lambda: len(self._running.active_controllers()) == 1)
