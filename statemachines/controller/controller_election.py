"""The controller's election and resignation, also after a new ZooKeeper session
(docs/kafka/controller-failover.md)."""

from __future__ import annotations

from ...protocol.awaiting import Cancelled, Pending
from ..zookeeper.errors import ControllerMoved
from .active_controller import NO_CONTROLLER
from .events import ControllerChange, Expire, Reelect, RegisterBrokerAndReelect, Startup
from .flows.failover import Failover
from .parts import ControllerParts
from .registration import BrokerRegistration


class ControllerElection:
    """Stands for election as controller, finds out which broker won, and resigns."""

    def __init__(
        self, parts: ControllerParts, registration: BrokerRegistration, failover: Failover
    ) -> None:
        self._parts = parts
        self._registration = registration
        self._failover = failover
        self.first_election_done: Pending[None] = Pending()
        """Completed once this broker has stood for election after its start."""

    # --- events

    async def process_startup(self, _event: Startup) -> None:
        try:
            await self._parts.watches.watch_controller()
            await self.elect()
        finally:
            self.first_election_done.set_result(None)

    async def process_controller_change(self, _event: ControllerChange) -> None:
        """Resign if another broker is the controller. If ``/controller`` is already deleted again,
        stand for election up to 1.0, as its client reports the deletion at this point
        (docs/kafka/controller-failover.md#election)."""
        parts = self._parts
        await self.maybe_resign()
        is_deleted = parts.active_controller.id == NO_CONTROLLER
        if is_deleted and not parts.behaviour.pipelined_zookeeper:
            await self.elect()

    async def process_reelect(self, _event: Reelect) -> None:
        await self.maybe_resign()
        await self.elect()

    async def process_expire(self, _event: Expire) -> None:
        self._parts.active_controller.forget()
        self.resign()

    async def process_register_broker_and_reelect(self, _event: RegisterBrokerAndReelect) -> None:
        parts = self._parts
        if not parts.behaviour.new_session_stands_before_registration:
            await self._registration.register_again()
            await self.maybe_resign()
            await self.elect()
            return
        # 0.10: a broker that still finds itself in /controller resigns and does not stand again,
        # while the node keeps all other brokers from being elected (KAFKA-4229).
        await parts.watches.watch_controller()
        parts.active_controller.forget()
        self.resign()
        if await parts.zk.brokers.get_controller_id() != parts.active_controller.broker_id:
            await self.elect()
        await self._registration.register_again()

    # --- election and resignation

    async def elect(self) -> None:
        """Try to become the controller (docs/kafka/controller-failover.md#election)."""
        parts, active, context = self._parts, self._parts.active_controller, self._parts.context
        await self._read_controller_id()
        if active.id != NO_CONTROLLER:
            return
        broker_id = active.broker_id
        try:
            (
                epoch,
                zk_version,
            ) = await parts.zk.brokers.register_controller_and_increment_controller_epoch(
                broker_id, parts.host.wall_ms()
            )
            context.epoch = epoch
            context.epoch_zk_version = zk_version
            active.id = broker_id
            parts.log("info", f"broker {broker_id} is the controller of epoch {epoch}")
            await self._failover.on_controller_failover()
        except Cancelled:
            raise
        except ControllerMoved as moved:
            parts.log("info", f"broker {broker_id} is not the controller: {moved}")
            await self.maybe_resign()
            if active.is_this_broker and context.epoch == 0:
                # Before 2.1 a broker may win the node but not the epoch. It then gives up the node.
                await self.trigger_controller_move()
        except Exception as error:
            parts.log("error", f"becoming the controller failed: {error!r}")
            await self.trigger_controller_move()

    async def maybe_resign(self) -> None:
        """Read which broker is the controller, and resign if this broker no longer is
        (docs/kafka/controller-failover.md#resignation)."""
        active = self._parts.active_controller
        was_active = active.is_this_broker
        await self._parts.watches.watch_controller()
        await self._read_controller_id()
        if was_active and not active.is_this_broker:
            self.resign()

    async def trigger_controller_move(self) -> None:
        """Resign and delete ``/controller``, so that all brokers stand for election."""
        parts = self._parts
        await self._read_controller_id()
        if not parts.is_active:
            parts.log("warn", "no longer the controller: there is nothing to resign")
            return
        zk_version = parts.context.epoch_zk_version
        parts.active_controller.forget()
        self.resign()
        try:
            await parts.zk.brokers.delete_controller(zk_version)
        except ControllerMoved as moved:
            parts.log("info", f"another broker already owns /controller: {moved}")

    def resign(self) -> None:
        """Stop watches, timers and requests, and clear the context
        (docs/kafka/controller-failover.md#resignation)."""
        self._failover.on_controller_resignation()

    async def _read_controller_id(self) -> None:
        controller_id = await self._parts.zk.brokers.get_controller_id()
        self._parts.active_controller.id = NO_CONTROLLER if controller_id is None else controller_id
