"""``Simulation``: a cluster in virtual time, deterministic, one event at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from ..actors.broker.spec import SimulatedListener
from ..actors.clients.consumer import ConsumerSettings, SimulatedConsumer
from ..actors.clients.group_consumer import GroupConsumerSettings, SimulatedGroupConsumer
from ..actors.clients.producer import ProducerSettings, SimulatedProducer
from ..actors.clients.transactional_producer import (
    SimulatedTransactionalProducer,
    TransactionalProducerSettings,
)
from ..actors.clients.transformer import SimulatedTransformer, TransformerSettings
from ..actors.network.costs import CostedNetwork, Costs
from ..actors.network.latency import Constant
from ..actors.node import Node
from ..actors.runtime.runtime import VIRTUAL_EPOCH_MS
from ..actors.runtime.virtual import VirtualRuntime
from ..protocol.data import ACKS_ALL
from ..protocol.errors import UsageError
from ..protocol.names import broker_name
from ..protocol.security.configuration import SecurityConfig
from ..protocol.values import TopicPartition
from ..protocol.versions import DEFAULT_KAFKA_VERSION, Behaviour
from ..tracing.header import build_header
from ..zkfake.server.storage import ZooKeeperStorage
from . import arguments
from .assembly import ClusterPlan, Equipment, assemble
from .emulated_cluster import EmulatedCluster
from .recording import hash_seed
from .running import WaitTimeout
from .virtual_time import VirtualTimeCluster

if TYPE_CHECKING:
    from ..actors.interfaces import StateObserver, TraceSink
    from ..programs.notes import Note
    from ..programs.program import Main
    from ..programs.programs import Programs
    from ..tracing.events import Event
    from ..tracing.reading.reader import Trace
    from .handles.program import ProgramHandle
    from .parameters.client_options import (
        ConsumerOptions,
        GroupConsumerOptions,
        ProducerOptions,
        TransactionalProducerOptions,
        TransformerOptions,
    )
    from .security import ClusterSecurity

T = TypeVar("T")
C = TypeVar("C", bound=Node)

DEFAULT_LATENCY_MS = 0.25
_START_TIMEOUT_MS = 120_000


class Simulation(EmulatedCluster):
    """A cluster in virtual time: the same arguments and seed give the same events, byte for byte.

    Configuration defaults are Kafka's own, as virtual time costs nothing to wait for.
    ``latency_ms`` is the one-way delay of every link until ``network.latency`` changes it.
    ``costs`` is the time that ZooKeeper and the controller take for their work; none by default.
    ``behaviour`` replaces the flags of the release, for a cluster that differs from every release
    (``dataclasses.replace`` of the flags of one).

    ``security`` gives the listeners that programs reach, as for ``Cluster``: the first listener has
    port 9092, the others the ports after it.

    ``recorder`` is an object with the ``event`` method of ``tracing.Recorder``; the default
    records in memory. A recorder with only ``state_listener`` and ``log_listener`` receives changes
    of state. ``recorder=None`` with ``trace=False`` runs without recording.
    """

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
        costs: Costs | None = None,
        behaviour: Behaviour | None = None,
        recorder: TraceSink | StateObserver | None = None,
        trace: bool = True,
        start: bool = True,
        security: SecurityConfig | Mapping[str, Any] | str | None = None,
    ) -> None:
        self._security = _security_of(security, brokers)
        super().__init__(
            ClusterPlan.check(
                brokers,
                kafka_version=kafka_version,
                config=_with_security(self._security, config, kafka_version),
                topics=topics,
                zookeepers=zookeepers,
                racks=racks,
                restart_delay_ms=restart_delay_ms,
                test_friendly=False,
                flags=behaviour,
            )
        )
        self.seed: int = arguments.integer("seed", seed)
        """Seed of everything that is random."""
        self.is_explored: bool = False
        """True while ``fakekafka explore`` injects faults into the run; a test then leaves out
        faults of its own."""
        self._clients = 0
        self._started = False
        if recorder is None and trace:
            from ..tracing.recording.recorder import Recorder

            recorder = Recorder()
        self.recorder: Any = recorder
        """Recorder of the run; None if there is none."""
        network = None if costs is None else partial(CostedNetwork, costs=costs)
        runtime = VirtualRuntime(self.seed, network)
        latency_ms = arguments.number("latency_ms", latency_ms, "milliseconds")
        latency = Constant(latency_ms)
        self.usual_latency: str = str(latency)
        runtime.network.set_latency(latency)
        self._running = VirtualTimeCluster(
            runtime,
            self.seed,
            *assemble(self._plan, runtime, simulated_equipment(self._plan, self._security)),
        )
        if start:
            self.start()

    def start(self) -> Self:
        """Start every process and run until the cluster serves."""
        self._running.require_going()
        if self._started:
            return self
        self._started = True
        self.runtime.record(self.recorder)
        self.runtime.note("start", "scenario", f"Kafka {self.kafka_version}, seed {self.seed}")
        starts = self._start_processes()
        self.run_until(lambda: self._has_started(starts), _START_TIMEOUT_MS)
        if self._security is not None:
            self._security.attach(self._running)
            self._security.create_users()
        self.create_initial_topics()
        return self

    @property
    def running(self) -> VirtualTimeCluster:
        return self._running

    @property
    def runtime(self) -> VirtualRuntime:
        return self._running.runtime

    def _shown(self) -> str:
        return f", seed {self.seed}, t={self.now_ms:g} ms"

    @property
    def failures(self) -> list[tuple[str, BaseException]]:
        """Unexpected exceptions: bugs of the emulation or of your observers; normally empty."""
        return self.runtime.failures

    @property
    def costs(self) -> Costs | None:
        """Cost model of the control plane; None without ``Simulation(costs=...)``. With it, another
        model can be assigned, which takes effect at once."""
        network = self.runtime.network
        return network.costs if isinstance(network, CostedNetwork) else None

    @costs.setter
    def costs(self, costs: Costs) -> None:
        network = self.runtime.network
        if not isinstance(network, CostedNetwork):
            raise UsageError("costs can be changed only if Simulation(costs=...) was given some")
        network.costs = costs

    def stop(self) -> None:
        """End the run and drop every actor and event.

        The recording is kept; ``records``, ``log_bytes``, ``partition`` and ``topics`` still work.
        """
        self._running.end()
        if self._security is not None:
            self._security.attach(None)
            self._security.remove_files()

    @property
    def security(self) -> ClusterSecurity:
        """Certificates, users and tokens for programs; ``UsageError`` without ``security``."""
        if self._security is None:
            raise UsageError("give Simulation a security, such as 'PLAINTEXT;CLIENTS:SASL_SSL'")
        return self._security

    # -- time ----------------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        """Virtual milliseconds since the start of the run."""
        return self._running.now_ms

    def step(self) -> bool:
        """Run one event; return False if there is none left."""
        return self._running.step()

    def run_for(self, duration_ms: float) -> int:
        """Run for a span of virtual time; return the number of events."""
        return self._running.run_for(duration_ms)

    def run_until(
        self,
        condition: Callable[[], object],
        timeout_ms: float = 60_000,
        every_ms: float | None = None,
    ) -> None:
        """Run until a condition holds after an event.

        ``every_ms`` is an interval of virtual time at which a costly condition is checked instead.
        Raises ``WaitTimeout`` if ``timeout_ms`` of virtual time pass first. The error names the
        condition, the last values of its parts, and the seed.
        """
        self._running.run_until(condition, timeout_ms, every_ms)

    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        """Run until a condition holds, as ``run_until`` does, with a timeout in virtual seconds."""
        self._running.wait_until(condition, timeout_s)

    def break_on(self, what: str | Callable[[Event], object], timeout_ms: float = 60_000) -> Event:
        """Run until a breakpoint matches an event; return that event.

        ``what`` is a breakpoint, such as ``"change broker-*/orders-0/isr"``, ``"crash of
        broker-1"`` or ``"LeaderAndIsrRequest to broker-2"``, or a function that is called with
        every event. Raises ``WaitTimeout`` if ``timeout_ms`` of virtual time pass first.
        """
        from ..tracing.debugger.breakpoints import Watcher, breakpoint_of
        from ..tracing.debugger.recorder_watch import RecorderWatch

        trace = self.trace()
        state = dict(trace.state_at(trace.stored.last_seq)) if len(trace) else {}
        watch = RecorderWatch(self.recorder, Watcher([breakpoint_of(what)], state))
        self.run_until(watch.check, timeout_ms)
        number = watch.seen - 1
        return self.trace().event(number)

    # -- clients -------------------------------------------------------------------------------

    def _client(self, node_class: type[C], name: str | None, kind: str, settings: Any) -> C:
        self._running.require_going()
        self._clients += 1
        name = self._free_name(f"{kind}-{self._clients}" if name is None else name)
        process = self.runtime.process(name)
        client: C = self.runtime.spawn(node_class, name, process, self.broker_ids, settings)
        return client

    def _free_name(self, name: str) -> str:
        taken = self._running.machines()
        if not arguments.text("name", name) or name in taken:
            arguments.refuse(
                "name", name, f"a name that is not taken; taken are {', '.join(taken)}"
            )
        return name

    def producer(
        self, name: str | None = None, **settings: Unpack[ProducerOptions]
    ) -> SimulatedProducer:
        """Start a modelled producer with settings of ``ProducerSettings``, or ``acks="all"``."""
        if settings.get("acks") == "all":
            settings["acks"] = ACKS_ALL
        chosen = _settings(ProducerSettings, settings)
        return self._client(SimulatedProducer, name, "producer", chosen)

    def consumer(
        self,
        partitions: Sequence[tuple[str, int]],
        name: str | None = None,
        **settings: Unpack[ConsumerOptions],
    ) -> SimulatedConsumer:
        """Start a modelled consumer of these partitions, with settings of ``ConsumerSettings``."""
        keys = arguments.partition_keys(partitions)
        settings.setdefault("sends_leader_epoch", self.behaviour.consumer_sends_leader_epoch)
        chosen = _settings(ConsumerSettings, settings)
        consumer = self._client(SimulatedConsumer, name, "consumer", chosen)
        consumer.assign(TopicPartition(topic, partition) for topic, partition in keys)
        return consumer

    def transactional_producer(
        self,
        transactional_id: str,
        name: str | None = None,
        **settings: Unpack[TransactionalProducerOptions],
    ) -> SimulatedTransactionalProducer:
        """Start a modelled transactional producer; its methods are coroutines for ``start_task``.

        Settings are those of ``TransactionalProducerSettings``.
        """
        settings.setdefault("raises_epoch", self.behaviour.ending_needs_equal_epoch)
        chosen = _settings(
            TransactionalProducerSettings, {"transactional_id": transactional_id, **settings}
        )
        return self._client(SimulatedTransactionalProducer, name, "transactional-producer", chosen)

    def transformer(
        self,
        transactional_id: str,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, int]],
        name: str | None = None,
        **settings: Unpack[TransformerOptions],
    ) -> SimulatedTransformer:
        """Start a modelled application that copies each record of its inputs to its outputs,
        exactly once.

        Settings are those of ``TransformerSettings``.
        """
        settings.setdefault("raises_epoch", self.behaviour.ending_needs_equal_epoch)
        copied = {
            which: tuple(TopicPartition(*key) for key in arguments.partition_keys(keys))
            for which, keys in (("inputs", inputs), ("outputs", outputs))
        }
        chosen = _settings(
            TransformerSettings, {"transactional_id": transactional_id, **copied, **settings}
        )
        return self._client(SimulatedTransformer, name, "transformer", chosen)

    def group_consumer(
        self,
        group_id: str,
        topics: Sequence[str],
        name: str | None = None,
        **settings: Unpack[GroupConsumerOptions],
    ) -> SimulatedGroupConsumer:
        """Start a modelled consumer in a group, with settings of ``GroupConsumerSettings``.

        Its ``rebalances`` lists the partitions it was assigned and lost. ``leave()`` makes it leave
        the group, ``halt()`` makes it die.
        """
        settings.setdefault("sends_leader_epoch", self.behaviour.consumer_sends_leader_epoch)
        subscribed = {"group_id": group_id, "topics": tuple(topics)}
        chosen = _settings(GroupConsumerSettings, {**settings, **subscribed})
        return self._client(SimulatedGroupConsumer, name, "consumer", chosen)

    # -- programs ------------------------------------------------------------------------------

    def _programs(self) -> Programs:
        """Return the programs of this simulation; the first call lets them reach the brokers."""
        running = self._running
        running.require_going()
        if running.programs is None:
            from ..programs.programs import Programs

            running.programs = Programs(
                running.runtime,
                self.seed,
                self.kafka_version,
                running.processes.values,
                self._security,
                running.acts,
            )
        return running.programs

    def program(
        self, main: Main, *args: Any, name: str | None = None, **options: Any
    ) -> ProgramHandle:
        """Start an asyncio program: ``main``, an ``async def`` function, with these arguments.

        It runs in virtual time beside the cluster, in an event loop of its own, on a machine of
        the simulated network that has its ``name``. In the program the cluster answers at
        ``kafka:9092``, each broker at an address such as ``broker-1:9092``, and each program at its
        name.

        An error that ``main`` or a callback raises is raised by the call that runs events, such as
        ``run_for``. While ``result`` of the handle waits, it raises the error of ``main``.
        """
        from .handles.program import ProgramHandle

        programs = self._programs()
        self._clients += 1
        name = self._free_name(f"program-{self._clients}" if name is None else name)
        arguments.main(main)
        program = programs.add(name, main, args, options)
        if self._running.begun is not None:
            self._running.begun(program)
        return ProgramHandle(self._running, program)

    def note(self, text: str, **values: Any) -> Note:
        """Add a note to the trace, from the code of a program or from the test."""
        return self._programs().note(arguments.text("text", text), values)

    def notes(self, text: str | None = None, **values: Any) -> list[Note]:
        """Return the notes so far that have this text and these values, oldest first."""
        return self._programs().notes.matching(text, values)

    def wait_for_note(
        self, text: str, count: int = 1, timeout_s: float = 60, **values: Any
    ) -> list[Note]:
        """Run until a note was added ``count`` times; return these notes.

        Raises ``WaitTimeout`` if ``timeout_s`` virtual seconds pass first.
        """
        notes = self._programs().notes

        def it_was_noted() -> bool:
            return len(notes.matching(text, values)) >= count

        try:
            self.wait_until(it_was_noted, timeout_s)
        except WaitTimeout as error:
            found, latest = notes.matching(text, values), notes.matching(None, {})[-5:]
            told = "; ".join(f"{note} by {note.program}" for note in latest) or "none"
            error.add_note(f"{text!r} was noted {len(found)} times; the last notes are: {told}")
            raise
        return notes.matching(text, values)

    # -- the recording -------------------------------------------------------------------------

    @property
    def events(self) -> Sequence[Event]:
        """The events recorded so far."""
        if self.recorder is None:
            raise UsageError("this simulation records nothing; make it without trace=False")
        events: Sequence[Event] = self.recorder.events
        return events

    @property
    def fingerprint(self) -> str:
        """Hash over all events so far; equal runs have equal fingerprints."""
        if self.recorder is None:
            raise UsageError("this simulation records nothing; make it without trace=False")
        return str(self.recorder.fingerprint())

    def trace(self) -> Trace:
        """Return the recording up to this moment, to be queried like the trace of a file."""
        if not hasattr(self.recorder, "trace"):
            raise UsageError("this simulation keeps no events; use the default recorder")
        from ..tracing.reading.reader import Trace

        return Trace(self.recorder.trace(self._header()))

    def save(self, path: str | Path) -> None:
        """Write the recording as a ``.fktrace`` file."""
        if not hasattr(self.recorder, "save"):
            raise UsageError("this simulation keeps no events; use the default recorder")
        self.recorder.save(path, self._header())

    def _header(self) -> dict[str, Any]:
        ids = self._plan.broker_ids
        counted = self._plan.generates_ids or ids == tuple(range(1, len(ids) + 1))
        brokers = len(ids) if counted else list(ids)
        return build_header(
            mode="sim",
            kafka_version=self.kafka_version,
            seed=self.seed,
            config=self._plan.config,
            virtual_epoch_ms=VIRTUAL_EPOCH_MS,
            reproduce=f"Simulation(brokers={brokers}, seed={self.seed})",
            hash_seed="" if self._running.programs is None else hash_seed.in_words(),
        )


def _security_of(
    given: SecurityConfig | Mapping[str, Any] | str | None, brokers: int | Sequence[int]
) -> ClusterSecurity | None:
    """Return listeners, users and certificates; None if no security is given."""
    if given is None:
        return None
    from ..wire.kafka.security.certificates import require_cryptography
    from .security import ClusterSecurity

    config = SecurityConfig.of(given)
    if config.uses_tls:
        require_cryptography()
    names = map(broker_name, arguments.broker_ids(brokers))
    return ClusterSecurity(config, "kafka", *names, wall_s=lambda: VIRTUAL_EPOCH_MS / 1000)


def _with_security(
    security: ClusterSecurity | None, config: Mapping[str, Any] | None, kafka_version: str
) -> Mapping[str, Any] | None:
    """Return the user's configuration on top of that of the security settings."""
    if security is None:
        return config
    flags = arguments.behaviour_flags(kafka_version, None)
    values = security.config.broker_config(flags.acl_authorizer, flags.delegation_tokens)
    return {**values, **arguments.broker_config(config)}


def simulated_equipment(plan: ClusterPlan, security: ClusterSecurity | None = None) -> Equipment:
    """Return the equipment of brokers without sockets, with disks in memory."""
    specs = None if security is None else security.config.listeners
    listeners = (
        (("PLAINTEXT", "PLAINTEXT"),)
        if specs is None
        else tuple((spec.name, spec.protocol) for spec in specs)
    )
    return Equipment(
        lambda *_: SimulatedListener(listeners),
        lambda _: plan.memory_disk(),
        lambda _: ZooKeeperStorage(),
    )


def _settings(settings_class: type[T], values: Mapping[str, Any]) -> T:
    known = [field.name for field in dataclasses.fields(settings_class)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            hint = arguments.nearest(name, known)
            raise UsageError(f"{settings_class.__name__} has no setting {name!r}{hint}")
    return settings_class(**values)
