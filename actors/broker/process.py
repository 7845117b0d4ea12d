"""A broker as a process that can be started, killed, powered off and shut down."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.awaiting import Pending
from ...protocol.errors import ErrorCode, FakeKafkaError, KafkaError, UsageError
from ...protocol.names import broker_name, controller_name, new_broker_name
from ...statemachines.broker.broker_id import named_broker_ids
from ..interfaces import Process
from ..runtime.runtime import Runtime
from .broker import Broker
from .broker_id_finder import BrokerIdFinder
from .controller import ControllerActor
from .spec import BrokerSpec


class BrokerProcess:
    """The process of one broker; this object survives restarts, unlike the process's nodes."""

    def __init__(self, runtime: Runtime, spec: BrokerSpec) -> None:
        self.runtime = runtime
        self.spec = spec
        self._new_id = spec.broker_id
        """First id of the broker; if below 0, it names the process while the real id is unknown."""
        self.name: str = _process_name(spec.broker_id)
        self.process: Process = runtime.process(self.name)
        self.broker: Broker | None = None
        self.controller_node: ControllerActor | None = None
        self.id_finder: BrokerIdFinder | None = None
        """Node that finds the id of a starting broker; None once the id is known."""
        self.running: Pending[None] = Pending()
        """Completes when the broker of the last start serves; fails if it cannot start."""
        self.on_id: Callable[[BrokerProcess, int], object] = lambda _process, _broker_id: None
        """Called with the process and the new id before the id of the broker changes."""
        self.starts: int = 0

    @property
    def is_alive(self) -> bool:
        """True while the process exists, including while it starts or shuts down."""
        return self.is_finding_id or (self.broker is not None and not self.broker.stopped)

    @property
    def is_finding_id(self) -> bool:
        """True while the process exists but does not know its broker id."""
        return self.id_finder is not None

    @property
    def state(self) -> str:
        if self.is_finding_id:
            return "starting"
        return self.broker.state if self.broker is not None else "not_running"

    def start(self) -> None:
        """Start the process; ``running`` completes when it serves.

        Raises ``UsageError`` if the process is already running.
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
        # A new process, as messages that peers still send to the old one must not reach it.
        self._replace_process()
        endpoints = spec.listener.bind(spec.broker_id)
        controller = self.runtime.spawn(
            ControllerActor, controller_name(spec.broker_id), self.process, spec
        )
        self.controller_node = controller
        self.broker = self.runtime.spawn(
            Broker, self.name, self.process, spec, controller, endpoints, self._exited, self.halt
        )
        self.broker.running.add_done_callback(self._started)

    def _replace_process(self) -> None:
        """Use the runtime's process of the broker's name, with the clock of the same machine."""
        clock = self.process.clock
        self.process = self.runtime.process(self.name)
        self.process.clock = clock

    def _started(self, broker_running: Pending[None]) -> None:
        self.running.settle(broker_running.exception)

    def _find_id(self) -> None:
        self._change_broker_id(self._new_id)
        self._replace_process()
        self.id_finder = self.runtime.spawn(
            BrokerIdFinder, self.name, self.process, self.spec, self._found_id, self._failed
        )

    def _found_id(self, broker_id: int) -> None:
        self.runtime.note("note", self.name, f"starts as broker {broker_id}")
        self.runtime.kill_process(self.process, silently=False)
        try:
            self._change_broker_id(broker_id)
            self._start_broker()
            # Last, as other threads take a process with neither finder nor broker for dead.
            self.id_finder = None
        except FakeKafkaError as error:
            self._failed(error)

    def _change_broker_id(self, broker_id: int) -> None:
        """Change the id; ``KafkaError`` DUPLICATE_BROKER_REGISTRATION if another broker has it."""
        if broker_id == self.spec.broker_id:
            return
        self.on_id(self, broker_id)
        self.runtime.processes.pop(self.name, None)
        self.spec.broker_id = broker_id
        self.name = _process_name(broker_id)

    def _failed(self, error: FakeKafkaError) -> None:
        """End the process, as its broker has no id or that of another, and cannot start."""
        self.runtime.note("note", self.name, f"start failed: {error}")
        self.running.set_exception(error)
        self.spec.disk.kill()
        self._end(silently=False)

    def kill(self) -> None:
        """End the process at once, like ``kill -9``; the page cache survives."""
        self._end_abruptly("crash", f"{self.name} is killed", silently=False)
        self.spec.disk.kill()

    def power_off(self, *, torn: bool = False) -> None:
        """Cut the machine's power: unflushed data is lost, and no connection is closed.

        With ``torn`` this happens during a write of the disk, of which a part survives.
        """
        middle = " in the middle of a write" if torn else ""
        self._end_abruptly("crash", f"{self.name} loses power{middle}", silently=True)
        self.spec.disk.power_off(torn=self._draw_surviving_bytes if torn else None)

    def _draw_surviving_bytes(self, unflushed_bytes: int) -> int:
        return self.runtime.torn_writes.randint(0, unflushed_bytes)

    def shift_clock(self, shift_ms: int) -> None:
        """Set the wall clock of the broker's machine forward, or back if ``shift_ms`` is below
        0."""
        text = f"the clock of {self.name} is set {shift_ms:+d} ms"
        self.runtime.note("fault", self.name, text)
        self.runtime.shift_clock(self.process, shift_ms)

    def halt(self, reason: str) -> None:
        """End the process because the broker halts itself (Kafka: ``Exit.halt``)."""
        self._end_abruptly("crash", f"{self.name} halts: {reason}", silently=False)
        self.spec.disk.kill()

    def shutdown(self) -> Pending[bool]:
        """Begin a controlled shutdown; the outcome is True if all leaderships were moved."""
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
        """Drop the references to the nodes, after they have been stopped."""
        self.broker = self.controller_node = self.id_finder = None

    def _exited(self) -> None:
        """End the process after the broker has finished its shutdown."""
        self.spec.listener.close()
        self.runtime.note("stop", self.name, f"{self.name} has shut down")
        self._abandon_start()
        self._end(silently=False)

    def _end_abruptly(self, kind: str, text: str, *, silently: bool) -> None:
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
