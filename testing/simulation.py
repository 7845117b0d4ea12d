"""``Simulation``: the same cluster in virtual time, deterministic, one event at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ..actors.broker.spec import SimulatedListener
from ..actors.clients.consumer import ConsumerSettings, SimulatedConsumer
from ..actors.clients.producer import ProducerSettings, SimulatedProducer
from ..actors.network.costs import ControlPlaneCosts, CostedNetwork
from ..actors.network.latency import Constant
from ..actors.runtime.runtime import VIRTUAL_EPOCH_MS
from ..actors.runtime.virtual import VirtualRuntime
from ..protocol.awaiting import Task
from ..protocol.data import ACKS_ALL
from ..protocol.errors import UsageError
from ..protocol.values import TopicPartition
from ..protocol.versions import DEFAULT_KAFKA_VERSION
from ..tracing.header import build_header
from . import arguments
from .assembly import ClusterBase
from .cluster import WaitTimeout
from .condition_text import failed_wait

T = TypeVar("T")

DEFAULT_LATENCY_MS = 0.25
_START_TIMEOUT_MS = 120_000


class Simulation(ClusterBase):
    """A cluster whose time is virtual: same arguments and seed, same events, byte for byte.

    Configuration defaults are Kafka's own: waiting costs nothing here. ``latency_ms`` is the
    one-way delay of every link until ``network.latency`` changes it. ``costs`` is what ZooKeeper
    and the controller take time for; by default nothing does.

    ``recorder`` is an object with the ``event`` method of ``tracing.Recorder``; the default
    records in memory. ``recorder=None`` with ``trace=False`` runs without recording.
    """

    _test_friendly = False
    runtime: VirtualRuntime

    def __init__(
        self,
        brokers: int | Sequence[int] = 3,
        *,
        seed: int = 0,
        kafka_version: str = DEFAULT_KAFKA_VERSION,
        config: Mapping[str, Any] | None = None,
        topics: Mapping[str, Any] | None = None,
        zookeepers: int = 1,
        racks: Sequence[str | None] | None = None,
        restart_delay_ms: float | None = None,
        latency_ms: float = DEFAULT_LATENCY_MS,
        costs: ControlPlaneCosts | None = None,
        recorder: Any = None,
        trace: bool = True,
        start: bool = True,
    ) -> None:
        super().__init__(
            brokers,
            kafka_version=kafka_version,
            config=config,
            topics=topics,
            zookeepers=zookeepers,
            racks=racks,
            restart_delay_ms=restart_delay_ms,
        )
        self.seed = arguments.integer("seed", seed)
        self._latency_ms = arguments.number("latency_ms", latency_ms, "milliseconds")
        self._costs = costs
        self._clients = 0
        self._ended = False
        if recorder is None and trace:
            from ..tracing.recorder import Recorder

            recorder = Recorder()
        self.recorder = recorder
        self._assemble()
        if start:
            self.start()

    def start(self) -> Simulation:
        """Start every process and run until the cluster serves."""
        self._require_going()
        if self._started:
            return self
        self._started = True
        self.runtime.recorder = self.recorder
        self._start_processes()
        self.run_until(self._has_started, _START_TIMEOUT_MS)
        self._create_initial_topics()
        return self

    @property
    def costs(self) -> ControlPlaneCosts | None:
        """What the control plane takes time for, from now on; None without a cost model."""
        network = self.runtime.network
        return network.costs if isinstance(network, CostedNetwork) else None

    @costs.setter
    def costs(self, costs: ControlPlaneCosts) -> None:
        network = self.runtime.network
        if not isinstance(network, CostedNetwork):
            raise UsageError("costs can be changed where Simulation was given some, even if zero")
        network.costs = costs

    def stop(self) -> None:
        """End the run: drop every actor and event.

        The recording stays, and what ``records``, ``log_bytes``, ``partition`` and ``topics`` tell.
        """
        self._ended = True
        self.runtime.recorder = None
        self.runtime.stop()

    def __enter__(self) -> Simulation:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _require_going(self) -> None:
        super()._require_going()
        if self._ended:
            raise UsageError(
                "the simulation has been stopped: its logs and its recording can be read, but "
                "nothing happens in it any more; make a new one"
            )

    def _require_waiting(self) -> None:
        self._require_going()
        if self.runtime.is_running:
            raise UsageError(
                "what is called while events run, such as an observer, cannot run events itself: "
                "let it note what it saw, and act after step, run_for or run_until"
            )

    # -- time ----------------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        """Virtual milliseconds since the start of the run."""
        return self.runtime.now_us() / 1000

    def step(self) -> bool:
        """Run one event; False when nothing is left to happen."""
        self._require_waiting()
        happened = self.runtime.step()
        self._raise_failure()
        return happened

    def run_for(self, duration_ms: float) -> int:
        """Run for a span of virtual time; gives the number of events."""
        self._require_waiting()
        arguments.number("duration_ms", duration_ms, "milliseconds")
        count = self.runtime.run(self.runtime.now_us() + int(duration_ms * 1000))
        self._raise_failure()
        return count

    def run_until(
        self,
        condition: Callable[[], object],
        timeout_ms: float = 60_000,
        every_ms: float | None = None,
    ) -> None:
        """Run until a condition holds after an event.

        With ``every_ms`` it is asked only so often in virtual time: for costly conditions.
        Raises ``WaitTimeout`` when ``timeout_ms`` of virtual time pass first; it names the
        condition, what its parts gave at last, and the seed.
        """
        self._require_going()
        arguments.condition(condition)
        arguments.number("timeout_ms", timeout_ms, "milliseconds")
        if every_ms is not None:
            arguments.number("every_ms", every_ms, "milliseconds", above_zero=True)
            self._run_until_every(condition, timeout_ms, every_ms)
            return
        if condition():
            return
        self._require_waiting()
        limit_us = self.runtime.now_us() + int(timeout_ms * 1000)
        while True:
            self.runtime.run(limit_us, until=condition)
            self._raise_failure()
            if self.runtime.condition_held:
                return
            if self.runtime.now_us() >= limit_us or self.runtime.next_time_us() is None:
                raise self._too_late(condition, timeout_ms)

    def _run_until_every(
        self, condition: Callable[[], object], timeout_ms: float, every_ms: float
    ) -> None:
        limit_ms = self.now_ms + timeout_ms
        while not condition():
            if self.now_ms >= limit_ms:
                raise self._too_late(condition, timeout_ms)
            self.run_for(every_ms)

    def _too_late(self, condition: Callable[[], object], timeout_ms: float) -> WaitTimeout:
        state = f"seed {self.seed}, t={self.now_ms:g} ms; {self._state_text()}"
        return WaitTimeout(failed_wait(condition, f"{timeout_ms:g} virtual ms", state))

    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        """``run_until`` under the name it has on ``Cluster``; virtual seconds."""
        arguments.number("timeout_s", timeout_s, "seconds")
        self.run_until(condition, timeout_s * 1000)

    def _raise_failure(self) -> None:
        if self.runtime.failures:
            name, error = self.runtime.failures[0]
            error.add_note(f"raised in {name}, seed {self.seed}, t={self.now_ms:g} ms")
            raise error

    def call(self, function: Callable[[], Coroutine[Any, Any, T]], timeout_ms: float) -> T:
        self._require_waiting()
        task = Task(function())
        self.run_until(lambda: task.done, timeout_ms)
        return task.result()

    # -- clients -------------------------------------------------------------------------------

    def _client(self, node_class: type[Any], name: str | None, kind: str, settings: Any) -> Any:
        self._require_going()
        self._clients += 1
        if name is None:
            name = f"{kind}-{self._clients}"
        taken = self.network._machines()
        if not arguments.text("name", name) or name in taken:
            arguments.refuse("name", name, f"a name of its own; taken are {', '.join(taken)}")
        return self.runtime.spawn(
            node_class, name, self.runtime.process(name), self.broker_ids, settings
        )

    def producer(self, name: str | None = None, **settings: Any) -> SimulatedProducer:
        """A modelled producer; settings are those of ``ProducerSettings``, ``acks`` also "all"."""
        if settings.get("acks") == "all":
            settings["acks"] = ACKS_ALL
        chosen = _settings(ProducerSettings, settings)
        producer: SimulatedProducer = self._client(SimulatedProducer, name, "producer", chosen)
        return producer

    def consumer(
        self,
        partitions: Sequence[tuple[str, int]],
        name: str | None = None,
        **settings: Any,
    ) -> SimulatedConsumer:
        """A modelled consumer of these partitions; settings are those of ``ConsumerSettings``."""
        keys = arguments.partition_keys(partitions)
        settings.setdefault("sends_leader_epoch", self.behaviour.fetch_epoch_fencing)
        chosen = _settings(ConsumerSettings, settings)
        consumer: SimulatedConsumer = self._client(SimulatedConsumer, name, "consumer", chosen)
        consumer.assign(TopicPartition(topic, partition) for topic, partition in keys)
        return consumer

    # -- the recording -------------------------------------------------------------------------

    @property
    def events(self) -> Any:
        """What was recorded so far."""
        if self.recorder is None:
            raise UsageError("this simulation runs without recording (trace=False)")
        return self.recorder.events

    @property
    def fingerprint(self) -> str:
        """Digest of all events so far: equal runs have equal fingerprints."""
        if self.recorder is None:
            raise UsageError("this simulation runs without recording (trace=False)")
        return str(self.recorder.fingerprint())

    def save(self, path: str | Path) -> None:
        """Write the recording as a ``.fktrace`` file."""
        if not hasattr(self.recorder, "save"):
            raise UsageError("this simulation keeps no events; use the default recorder")
        self.recorder.save(path, self._header())

    def _header(self) -> dict[str, Any]:
        ids = self.broker_ids
        brokers = len(ids) if ids == tuple(range(1, len(ids) + 1)) else list(ids)
        return build_header(
            mode="sim",
            kafka_version=self.kafka_version,
            seed=self.seed,
            config=self._config,
            virtual_epoch_ms=VIRTUAL_EPOCH_MS,
            reproduce=f"Simulation(brokers={brokers}, seed={self.seed})",
        )

    # -- on this runtime -----------------------------------------------------------------------

    def _make_runtime(self) -> VirtualRuntime:
        runtime = VirtualRuntime(self.seed)
        if self._costs is not None:
            runtime.network = CostedNetwork(runtime, self._costs)
        runtime.network.set_latency(Constant(self._latency_ms))
        return runtime

    def _make_listener(self, broker_id: int) -> SimulatedListener:
        return SimulatedListener(broker_id)


def _settings(settings_class: type[T], values: Mapping[str, Any]) -> T:
    known = [field.name for field in dataclasses.fields(settings_class)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            hint = arguments.nearest(name, known)
            raise UsageError(f"{settings_class.__name__} has no setting {name!r}{hint}")
    return settings_class(**values)
