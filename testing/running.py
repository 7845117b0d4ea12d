"""``RunningCluster``: the running part of a cluster, between its start and its stop."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ..protocol.errors import ErrorCode, FakeKafkaError, KafkaError, NotThereYet, UsageError
from ..protocol.names import TCP_CLIENTS
from . import arguments

if TYPE_CHECKING:
    from ..actors.broker.broker import Broker
    from ..actors.broker.process import BrokerProcess
    from ..actors.node import Node
    from ..actors.runtime.runtime import Runtime
    from ..actors.zookeeper.process import ZooKeeperProcess

T = TypeVar("T")


class WaitTimeout(FakeKafkaError, TimeoutError):
    """A condition did not become true in time."""


def is_not_yet(error: Exception) -> bool:
    """Return whether an error raised by a condition only means that the condition does not hold
    yet, as something it reads does not exist."""
    return isinstance(error, NotThereYet) or (
        isinstance(error, KafkaError) and error.code.is_retriable
    )


class RunningCluster(abc.ABC):
    """The processes of a started cluster, with waits in real or virtual time.

    Handles hold this object, not the ``Cluster`` or ``Simulation`` that users hold. A cluster that
    is stopped and started again has a new one; the handles of the old one refuse every call.
    """

    unit_of_seconds = "s"
    """Unit of waits in error messages."""

    def __init__(
        self,
        zookeepers: dict[int, ZooKeeperProcess],
        processes: dict[int, BrokerProcess],
        admin: Node,
    ) -> None:
        self.zookeepers: dict[int, ZooKeeperProcess] = zookeepers
        self.processes: dict[int, BrokerProcess] = processes
        self._id_lock = threading.Lock()
        for process in processes.values():
            process.on_id = self._register_broker_id
        self.admin: Node = admin
        """The node that sends the API's own requests."""

    # -- differences of real and virtual time --------------------------------------------------

    @property
    @abc.abstractmethod
    def runtime(self) -> Runtime: ...

    @abc.abstractmethod
    def require_going(self) -> None:
        """Raise ``UsageError`` if the cluster has been stopped or cannot be acted on."""

    @abc.abstractmethod
    def require_own_process(self) -> None:
        """Raise ``UsageError`` in a forked child, whose copy of the cluster has no threads."""

    @abc.abstractmethod
    def require_waiting(self) -> None:
        """Raise ``UsageError`` in a thread that the cluster itself runs on."""

    @abc.abstractmethod
    def call(self, function: Callable[[], Coroutine[Any, Any, T]], timeout_ms: float) -> T:
        """Run a coroutine inside the admin node and return its result."""

    @abc.abstractmethod
    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        """Wait until a condition holds; raises ``WaitTimeout``."""

    def in_process(self, process: Any, function: Callable[[], T]) -> T:
        """Run a function as part of a process (None for no process) and return its result."""
        return self.runtime.run_in(process, function)

    # -- processes -----------------------------------------------------------------------------

    def _register_broker_id(self, changed: BrokerProcess, broker_id: int) -> None:
        """Enter a broker under the id it found. The table is replaced, not changed, as other
        threads may iterate over it."""
        with self._id_lock:  # in the threaded runtime two brokers may do this at once
            if broker_id in self.processes:
                raise KafkaError(
                    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                    f"{changed.name} has the log directories of broker {broker_id}, "
                    "which is in the cluster already",
                )
            self.processes = {
                broker_id if process is changed else known_id: process
                for known_id, process in self.processes.items()
            }

    def broker_process(self, broker_id: int) -> BrokerProcess:
        """Return the process of a broker that a user named by its id."""
        arguments.integer("broker_id", broker_id)
        process = self.processes.get(broker_id)
        if process is None:
            raise UsageError(f"there is no broker {broker_id!r}; ids are {list(self.processes)}")
        return process

    def machines(self) -> list[str]:
        """Return the names of all machines on the network."""
        return [*self.runtime.processes, TCP_CLIENTS]

    def living_brokers(self) -> list[Broker]:
        """Return the brokers whose processes run, in the order of the argument ``brokers``."""
        brokers = [process.broker for process in self.processes.values()]
        return [broker for broker in brokers if broker is not None]

    def active_controllers(self) -> list[Any]:
        """Return all controllers that consider themselves active."""
        self.require_own_process()
        controllers = [broker.controller for broker in self.living_brokers()]
        return [controller for controller in controllers if controller.is_active]

    def active_controller(self) -> Any:
        """Return the active controller with the highest epoch, or None.

        A controller that was cut off may not know yet that it was replaced.
        """
        return max(self.active_controllers(), key=lambda found: found.epoch, default=None)

    def require_controller(self) -> Any:
        """Return the active controller; ``NotThereYet`` while there is none."""
        controller = self.active_controller()
        if controller is None:
            raise NotThereYet(
                "no controller is active now; wait_until(lambda: cluster.controller.id)"
            )
        return controller

    # -- state ---------------------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """True if every living broker serves and knows the controller and all living brokers."""
        if any(process.is_finding_id for process in self.processes.values()):
            return False
        alive = self.living_brokers()
        if any(broker.state != "running" for broker in alive):
            return False
        ids = {broker.broker_id for broker in alive}
        return all(
            broker.metadata_cache.controller_id in ids
            and ids <= {info.id for info in broker.metadata_cache.alive_brokers()}
            for broker in alive
        )

    def describe(self) -> str:
        """Describe the state of controller and brokers for errors."""
        controller = self.active_controller()
        controller_id = None if controller is None else controller.broker_id
        states = ", ".join(f"{b}: {process.state}" for b, process in self.processes.items())
        return f"controller {controller_id}, brokers {states}"
