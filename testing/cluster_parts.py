"""What the groups of operations on a cluster share: its parts, by name."""

from __future__ import annotations

import abc
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from ..actors.node import Node
    from ..actors.runtime.runtime import Runtime
    from .handles import BrokerHandle, ControllerHandle, ZooKeeperHandle

T = TypeVar("T")


class ClusterParts(abc.ABC):
    """A cluster without its operations; ``ClusterBase`` makes the parts."""

    runtime: Runtime
    processes: dict[int, BrokerProcess]
    _admin: Node

    @abc.abstractmethod
    def call(self, function: Callable[[], Coroutine[Any, Any, T]], timeout_ms: float) -> T:
        """Run a coroutine inside the admin node and give its result."""

    @abc.abstractmethod
    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        """Wait until a condition holds; raises ``WaitTimeout``."""

    @abc.abstractmethod
    def broker(self, broker_id: int) -> BrokerHandle: ...

    @property
    @abc.abstractmethod
    def controller(self) -> ControllerHandle: ...

    @property
    @abc.abstractmethod
    def zookeeper(self) -> ZooKeeperHandle: ...

    @abc.abstractmethod
    def _require_own_process(self) -> None: ...

    def _in_process(self, process: Any, function: Callable[[], T]) -> T:
        return self.runtime.run_in(process, function)
