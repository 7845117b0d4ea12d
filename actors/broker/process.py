"""A broker as a process: start, kill, power off, shut down."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.awaiting import Pending
from ...protocol.errors import ErrorCode, FakeKafkaError, KafkaError, UsageError
from ...protocol.names import broker_name, controller_name, new_broker_name
from ...statemachines.broker.broker_id import named_broker_ids
from ..runtime.runtime import Runtime
from ..surroundings import Process
from .broker import Broker
from .broker_id_finder import BrokerIdFinder
from .controller import ControllerActor
from .spec import BrokerSpec


class BrokerProcess:
    """One broker's life: the object survives, its nodes come and go."""

    def __init__(self, runtime: Runtime, spec: BrokerSpec) -> None:
        self.runtime = runtime
        self.spec = spec
        self._new_id = spec.broker_id
        """Below 0: what the process is known by while the broker's id is not."""
        self.name: str = _process_name(spec.broker_id)
        self.process: Process = runtime.process(self.name)
        self.broker: Broker | None = None
        self.controller_node: ControllerActor | None = None
        self.id_finder: BrokerIdFinder | None = None
        """Runs at the start of a broker that does not know its id."""
        self.running: Pending[None] = Pending()
        """Done when the broker that was started last serves, or cannot start."""
        self.on_id: Callable[[BrokerProcess, int], object] = lambda _process, _broker_id: None
        """Called when the broker is about to be known by another id."""
        self.starts: int = 0

    @property
    def is_alive(self) -> bool:
        """Whether the process exists; it may still be starting or shutting down."""
        return self.is_finding_id or (self.broker is not None and not self.broker.stopped)

    @property
    def is_finding_id(self) -> bool:
        """Whether the process exists and does not know yet which broker it is."""
        return self.id_finder is not None

    @property
    def state(self) -> str:
        if self.is_finding_id:
            return "starting"
        return self.broker.state if self.broker is not None else "not_running"

    def start(self) -> None:
        """Start the process; ``running`` tells when it serves.

        Raises ``UsageError`` when it already runs.
        """
        if self.is_alive:
            raise UsageError(f"{self.name} is already running; kill it or shut it down first")
        self.starts += 1
        if self.runtime.recorder is not None and self.starts > 1:
            self.runtime.note("restart", self.name, f"{self.name} starts again")
        self.running = Pending()
        if self._new_id < 0 and named_broker_ids(self.spec.meta_properties()) != [
            self.spec.broker_id
        ]:
            self._find_id()
        else:
            self._start_broker()

    def _start_broker(self) -> None:
        spec = self.spec
        # A new process: what the old one's peers still send it must not reach the new one.
        self._take_process()
        endpoints = spec.listener.bind(spec.broker_id)
        controller = self.runtime.spawn(
            ControllerActor, controller_name(spec.broker_id), self.process, spec
        )
        self.controller_node = controller
        self.broker = self.runtime.spawn(
            Broker, self.name, self.process, spec, controller, endpoints, self._exited, self.halt
        )
        self.broker.running.add_done_callback(self._started)

    def _take_process(self) -> None:
        """Run as the process of the broker's name, on the machine it has."""
        clock = self.process.clock
        self.process = self.runtime.process(self.name)
        self.process.clock = clock

    def _started(self, broker_running: Pending[None]) -> None:
        self.running.settle(broker_running.exception)

    def _find_id(self) -> None:
        self._be_known_as(self._new_id)
        self._take_process()
        self.id_finder = self.runtime.spawn(
            BrokerIdFinder, self.name, self.process, self.spec, self._found_id, self._failed
        )

    def _found_id(self, broker_id: int) -> None:
        self.runtime.note("note", self.name, f"starts as broker {broker_id}")
        self.runtime.kill_process(self.process, silently=False)
        try:
            self._be_known_as(broker_id)
            self._start_broker()
            # Not before: other threads would take a process without either for one that is down.
            self.id_finder = None
        except FakeKafkaError as error:
            self._failed(error)

    def _be_known_as(self, broker_id: int) -> None:
        """Take the id; ``KafkaError`` DUPLICATE_BROKER_REGISTRATION if another broker has it."""
        if broker_id == self.spec.broker_id:
            return
        self.on_id(self, broker_id)
        self.runtime.processes.pop(self.name, None)
        self.spec.broker_id = broker_id
        self.name = _process_name(broker_id)

    def _failed(self, error: FakeKafkaError) -> None:
        """The broker has no id, or none of its own: it cannot start."""
        self.runtime.note("note", self.name, f"start failed: {error}")
        self.running.set_exception(error)
        self.spec.disk.kill()
        self._end(silently=False)

    def kill(self) -> None:
        """End the process at once, as ``kill -9`` does: the page cache survives."""
        self._die("crash", f"{self.name} is killed", silently=False)
        self.spec.disk.kill()

    def power_off(self, *, torn: bool = False) -> None:
        """Cut the machine's power: what was not flushed is gone, peers hear nothing.

        ``torn`` has it happen while the disk writes: some bytes of that are there.
        """
        middle = " in the middle of a write" if torn else ""
        self._die("crash", f"{self.name} loses power{middle}", silently=True)
        self.spec.disk.power_off(torn=self._survive if torn else None)

    def _survive(self, unflushed_bytes: int) -> int:
        return self.runtime.torn_writes.randint(0, unflushed_bytes)

    def shift_clock(self, shift_ms: int) -> None:
        """Set the wall clock of its machine forward, or back."""
        text = f"the clock of {self.name} is set {shift_ms:+d} ms"
        self.runtime.note("fault", self.name, text)
        self.runtime.shift_clock(self.process, shift_ms)

    def halt(self, reason: str) -> None:
        """The broker ends itself (Kafka: ``Exit.halt``)."""
        self._die("crash", f"{self.name} halts: {reason}", silently=False)
        self.spec.disk.kill()

    def shutdown(self) -> Pending[bool]:
        """Begin a controlled shutdown; the outcome tells whether leadership could be moved."""
        if self.is_finding_id:
            done: Pending[bool] = Pending()
            self._exited()
            self.spec.disk.kill()
            done.set_result(True)  # it led nothing
            return done
        if self.broker is None or not self.is_alive:
            raise UsageError(f"{self.name} is not running; there is nothing to shut down")
        return self.broker.begin_shutdown()

    def forget_nodes(self) -> None:
        """The runtime has stopped, and all nodes with it."""
        self.broker = self.controller_node = self.id_finder = None

    def _exited(self) -> None:
        """The broker has finished its shutdown: the process ends."""
        self.spec.listener.close()
        self.runtime.note("stop", self.name, f"{self.name} has shut down")
        self._abandon_start()
        self._end(silently=False)

    def _die(self, kind: str, text: str, *, silently: bool) -> None:
        if not self.is_alive:
            raise UsageError(f"{self.name} is not running")
        self.runtime.note(kind, self.name, text)
        if silently:
            self.spec.listener.lose_power()
        else:
            self.spec.listener.close()
        self._abandon_start()
        self._end(silently=silently)

    def _abandon_start(self) -> None:
        if self.is_finding_id:
            self.running.set_exception(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "killed"))

    def _end(self, *, silently: bool) -> None:
        broker = self.broker
        if broker is not None:
            broker.set_state("not_running")
        self.runtime.kill_process(self.process, silently=silently)
        self.forget_nodes()


def _process_name(broker_id: int) -> str:
    return broker_name(broker_id) if broker_id >= 0 else new_broker_name(-broker_id)
