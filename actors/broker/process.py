"""A broker as a process: start, kill, power off, shut down."""

from __future__ import annotations

from ...protocol.awaiting import Pending
from ...protocol.errors import UsageError
from ...protocol.names import broker_name, controller_name
from ..runtime.runtime import Runtime
from ..surroundings import Process
from .broker import Broker
from .controller import ControllerActor
from .spec import BrokerSpec


class BrokerProcess:
    """One broker's life: the object survives, its nodes come and go."""

    def __init__(self, runtime: Runtime, spec: BrokerSpec) -> None:
        self.runtime = runtime
        self.spec = spec
        self.name = broker_name(spec.broker_id)
        self.process: Process = runtime.process(self.name)
        self.broker: Broker | None = None
        self.controller_node: ControllerActor | None = None
        self.starts = 0

    @property
    def is_alive(self) -> bool:
        """Whether the process exists; it may still be starting or shutting down."""
        return self.broker is not None and not self.broker.stopped

    @property
    def state(self) -> str:
        return self.broker.state if self.broker is not None else "not_running"

    def start(self) -> None:
        """Start the process; ``broker.running`` tells when it serves.

        Raises ``UsageError`` when it already runs.
        """
        if self.is_alive:
            raise UsageError(f"{self.name} is already running; kill it or shut it down first")
        spec = self.spec
        self.starts += 1
        if self.runtime.recorder is not None and self.starts > 1:
            self.runtime.note("restart", self.name, f"{self.name} starts again")
        # A new process: what the old one's peers still send it must not reach the new one.
        self.process = self.runtime.process(self.name)
        endpoint = spec.listener.bind()
        controller = self.runtime.spawn(
            ControllerActor, controller_name(spec.broker_id), self.process, spec
        )
        self.controller_node = controller
        self.broker = self.runtime.spawn(
            Broker, self.name, self.process, spec, controller, endpoint, self._exited, self.halt
        )

    def kill(self) -> None:
        """End the process at once, as ``kill -9`` does: the page cache survives."""
        self._die("crash", f"{self.name} is killed", silently=False)
        self.spec.disk.kill()

    def power_off(self) -> None:
        """Cut the machine's power: what was not flushed is gone, peers hear nothing."""
        self._die("crash", f"{self.name} loses power", silently=True)
        self.spec.disk.power_off()

    def halt(self, reason: str) -> None:
        """The broker ends itself (Kafka: ``Exit.halt``)."""
        self._die("crash", f"{self.name} halts: {reason}", silently=False)
        self.spec.disk.kill()

    def shutdown(self) -> Pending[bool]:
        """Begin a controlled shutdown; the outcome tells whether leadership could be moved."""
        if self.broker is None or not self.is_alive:
            raise UsageError(f"{self.name} is not running; there is nothing to shut down")
        return self.broker.begin_shutdown()

    def _exited(self) -> None:
        """The broker has finished its shutdown: the process ends."""
        self.spec.listener.close()
        self.runtime.note("stop", self.name, f"{self.name} has shut down")
        self._end(silently=False)

    def _die(self, kind: str, text: str, *, silently: bool) -> None:
        if not self.is_alive:
            raise UsageError(f"{self.name} is not running")
        self.runtime.note(kind, self.name, text)
        self.spec.listener.close()
        self._end(silently=silently)

    def _end(self, *, silently: bool) -> None:
        broker = self.broker
        if broker is not None:
            broker.set_state("not_running")
        self.runtime.kill_process(self.process, silently=silently)
        self.broker = None
        self.controller_node = None
