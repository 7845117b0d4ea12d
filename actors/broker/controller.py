"""The controller actor: one ``KafkaController`` with its event queue and ZooKeeper session.

Every broker process has a controller, active or not. Its node holds the process's only ZooKeeper
session, so that each of the controller's reads and writes is a message of the actor
``controller-N``. The broker in the same process shares the session, as in Kafka.
"""

from __future__ import annotations

from ...protocol.values import BrokerInfo
from ...statemachines.controller.controller import KafkaController
from ...statemachines.controller.queue import QueuedEvent
from ...statemachines.zookeeper.client import KafkaZkClient
from ..delivery import Delivery
from ..interfaces import AbstractRuntime, Process
from ..session_node import SessionNode
from .controller_channels import ControllerChannels
from .spec import BrokerSpec


class ControllerActor(SessionNode):
    """Hosts the controller core and the ZooKeeper client of one broker process."""

    def __init__(
        self, runtime: AbstractRuntime, name: str, process: Process, spec: BrokerSpec
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
        self.broker_info: BrokerInfo | None = None
        self.zk: KafkaZkClient = KafkaZkClient(self.zk_client, spec.behaviour, self._work)
        self.channels: ControllerChannels = ControllerChannels(self, config["request.timeout.ms"])
        self.controller: KafkaController = KafkaController(
            broker_id=spec.broker_id,
            host=self,
            config=config,
            behaviour=spec.behaviour,
            zk=self.zk,
            channels=self.channels,
            mailbox=self,
            broker_info=self._own_info,
            log=self.log,
            work=self._work,
        )

    def _own_info(self) -> BrokerInfo:
        if self.broker_info is None:
            raise RuntimeError(f"{self.name} registers before its listener is bound")
        return self.broker_info

    def _work(self, kind: str, amount: int) -> None:
        self.port.network.work(self.machine, kind, amount)

    # -- the mailbox of events -----------------------------------------------------------------

    def post(self, queued: QueuedEvent) -> bool:
        """Number and record an event; False if a rule of the network holds it back."""
        queued.letter, is_held = self.port.network.post_to_self(self, queued.event, queued)
        return not is_held

    def deliver(self, queued: QueuedEvent) -> None:
        """Deliver an event like any other message."""
        self.port.network.arrive(queued.letter)

    def withdraw(self, queued: QueuedEvent) -> None:
        """Record that the event was preempted."""
        self.port.network.withdraw(queued.letter, "preempted")

    # -- receiving -----------------------------------------------------------------------------

    def handle(self, delivery: Delivery) -> None:
        if type(delivery.context) is QueuedEvent:
            delivery.context.take()
        else:
            super().handle(delivery)

    def on_halt(self) -> None:
        self.controller.crash()
        self.channels.shutdown()
        super().on_halt()
