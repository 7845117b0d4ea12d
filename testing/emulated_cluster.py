"""``EmulatedCluster``: the calls that ``Cluster`` and ``Simulation`` share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..protocol.data import ACKS_ALL
from ..protocol.errors import FakeKafkaError, UsageError
from . import arguments
from .restart import has_topic_leaders, is_restored

if TYPE_CHECKING:
    from ..actors.broker.process import BrokerProcess
    from ..actors.delivery import Delivery
    from ..actors.runtime.runtime import Runtime
    from ..actors.zookeeper.process import ZooKeeperProcess
    from ..protocol.admin import OngoingReassignment
    from ..protocol.awaiting import Pending
    from ..protocol.errors import ErrorCode
    from ..protocol.values import Request, TopicPartition
    from ..tracing.reading.reader import Trace
    from .assembly import ClusterPlan
    from .handles.admin import AdminClient
    from .handles.broker import BrokerHandle
    from .handles.controller import ControllerHandle
    from .handles.groups import Groups
    from .handles.injection import Answer, Injection
    from .handles.network import NetworkHandle
    from .handles.partitions import Partitions
    from .handles.records import RecordClient
    from .handles.waits import Waits
    from .handles.zookeeper import ZooKeeperHandle
    from .running import RunningCluster
    from .views import ConsumerRecord, GroupView, PartitionView

R = TypeVar("R")
T = TypeVar("T")


class EmulatedCluster(abc.ABC):
    """The common part of ``Cluster`` and ``Simulation``."""

    usual_latency = "0 ms"
    """Delay of all links that does not count as a fault."""

    def __init__(self, plan: ClusterPlan) -> None:
        self._plan = plan
        self._handles: dict[BrokerProcess, BrokerHandle] = {}
        self._injections = 0  # made so far

    def __repr__(self) -> str:
        try:
            state = self.running.describe()
        except FakeKafkaError as error:
            return f"<{type(self).__name__} {self.kafka_version}: {error}>"
        return f"<{type(self).__name__} {self.kafka_version}{self._shown()}: {state}>"

    def _shown(self) -> str:
        """Return text that ``repr`` adds before the state of the brokers."""
        return ""

    # -- life --------------------------------------------------------------------------------------

    @abc.abstractmethod
    def start(self) -> Self:
        """Start everything and wait until the cluster serves, as entering a ``with`` block does.

        Raises a ``UsageError`` that is also an ``OSError`` if a port of a ``Cluster`` is in use.
        """

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop everything, as leaving a ``with`` block does.

        A ``Simulation`` keeps its recording; its ``records``, ``log_bytes``, ``partition`` and
        ``topics`` still work.
        """

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # -- the recording -----------------------------------------------------------------------------

    @abc.abstractmethod
    def trace(self) -> Trace:
        """Return the recording up to this moment, to be queried like the trace of a file.

        A ``Cluster`` has one if it keeps events in memory, as with ``Cluster(trace=20_000)``.
        """

    @abc.abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the recording as a trace file, such as ``run.fktrace``."""

    # -- what runs -----------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def running(self) -> RunningCluster:
        """The running cluster; ``UsageError`` before the start, and after the stop of a
        ``Cluster``."""

    @abc.abstractmethod
    def wait_until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        """Wait until a condition holds; raise ``WaitTimeout`` after ``timeout_s``.

        The error names the condition and, for a lambda, the last values of its parts. A condition
        counts as false while it raises ``NotThereYet``, because a topic, a leader or a controller
        does not exist.
        """

    @property
    @abc.abstractmethod
    def failures(self) -> list[tuple[str, BaseException]]:
        """Unexpected exceptions: bugs of fakekafka, and what your observers and filters raised;
        normally empty."""

    @property
    def runtime(self) -> Runtime:
        return self.running.runtime

    @property
    def processes(self) -> dict[int, BrokerProcess]:
        return self.running.processes

    @property
    def zookeepers(self) -> dict[int, ZooKeeperProcess]:
        return self.running.zookeepers

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of all brokers, including brokers that are down.

        Brokers whose ids are generated (``broker.id=-1``) have -1, -2, ... until they know them.
        """
        return tuple(self.processes) if self._plan.generates_ids else self._plan.broker_ids

    @property
    def kafka_version(self) -> str:
        """The emulated release."""
        return self._plan.kafka_version

    @property
    def behaviour(self) -> Any:
        return self._plan.behaviour

    def call(self, function: Callable[[], Coroutine[Any, Any, T]], timeout_ms: float) -> T:
        """Run a coroutine inside the admin node and return its result."""
        return self.running.call(function, timeout_ms)

    def wait_for_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        other_than: int | None = None,
        timeout_s: float = 10,
    ) -> int:
        """Wait until a partition has a leader that serves; return its broker id.

        ``other_than`` is the id of a former leader. ``WaitTimeout`` names leader, ISR and offsets.
        """
        return self._waits.for_leader(topic, partition, other_than, timeout_s)

    def wait_for_in_sync(
        self, topic: str, partition: int | None = None, *, timeout_s: float = 10
    ) -> None:
        """Wait until every replica of a topic, or of one partition, is in the ISR."""
        self._waits.for_in_sync(topic, partition, timeout_s)

    def wait_for_records(
        self, topic: str, count: int, partition: int | None = None, *, timeout_s: float = 10
    ) -> list[ConsumerRecord]:
        """Wait until a topic, or one partition, has ``count`` replicated records; return them all.

        Records below the high watermark are replicated; control records do not count. They are
        listed partition by partition. ``count=0`` waits until all records of the leaders are
        replicated. ``WaitTimeout`` names leader, ISR and offsets.
        """
        return self._waits.for_records(topic, count, partition, timeout_s)

    # -- the start -----------------------------------------------------------------------------

    def _start_processes(self) -> list[Pending[None]]:
        """Start all processes; return for each broker what completes when it runs or has failed."""
        starts = []
        for zookeeper in self.zookeepers.values():
            zookeeper.start()
        for process in self.processes.values():
            process.start()
            starts.append(process.running)
        return starts

    def _has_started(self, starts: Iterable[Pending[None]]) -> bool:
        """Return whether the cluster serves; raise the error that kept a broker from starting."""
        all_started = True
        for broker_running in starts:
            if broker_running.done:
                broker_running.result()
            else:
                all_started = False
        if not all_started:
            return False
        running = self.running
        return running.is_settled and (not is_restored(running) or has_topic_leaders(running))

    def create_initial_topics(self) -> None:
        """Create the topics of the argument ``topics`` that do not exist yet."""
        if not self._plan.topics:
            return
        existing = self.topics()
        for name, shape in self._plan.topics.items():
            if name not in existing:  # a data directory may have it
                self.create_shaped_topic(name, shape)

    def create_shaped_topic(self, name: str, shape: Any) -> None:
        """Create a topic from a partition count or from arguments of ``create_topic``."""
        if isinstance(shape, Mapping):
            self.create_topic(name, **shape)
        else:
            replication_factor = min(3, len(self.broker_ids))
            self.create_topic(name, partitions=shape, replication_factor=replication_factor)

    # -- handles -------------------------------------------------------------------------------
    #
    # Each class is imported where it is used, as a cluster needs none of them to start.

    def broker(self, broker: int | str) -> BrokerHandle:
        """Return the handle of a broker, given by its id or by the role it has now.

        Roles are ``controller``, ``leader:orders-0``, ``follower:orders-0``,
        ``follower:orders-0:2``, ``preferred:orders-0``, ``coordinator:my-group``,
        ``transaction-coordinator:my-id`` and ``random``. Raises ``NotThereYet`` while no broker
        has the role.
        """
        from .handles.broker import BrokerHandle
        from .handles.roles import broker_process

        running = self.running
        process = broker_process(running, broker)
        handle = self._handles.get(process)
        if handle is None:
            handle = self._handles[process] = BrokerHandle(running, process)
        return handle

    @property
    def controller(self) -> ControllerHandle:
        """The active controller."""
        from .handles.controller import ControllerHandle

        return ControllerHandle(self.running)

    @property
    def zookeeper(self) -> ZooKeeperHandle:
        """ZooKeeper's znode tree and servers."""
        from .handles.zookeeper import ZooKeeperHandle

        return ZooKeeperHandle(self.running)

    @property
    def network(self) -> NetworkHandle:
        """The network, with its cuts, delays, losses, and messages that are held back."""
        from .handles.network import NetworkHandle

        return NetworkHandle(self.running)

    @property
    def _admin(self) -> AdminClient:
        from .handles.admin import AdminClient

        return AdminClient(self.running)

    @property
    def _partitions(self) -> Partitions:
        from .handles.partitions import Partitions

        return Partitions(self.running)

    @property
    def _groups(self) -> Groups:
        from .handles.groups import Groups

        return Groups(self.running)

    @property
    def _waits(self) -> Waits:
        from .handles.waits import Waits

        return Waits(self.running)

    @property
    def _record_client(self) -> RecordClient:
        from .handles.records import RecordClient

        return RecordClient(self.running)

    # -- topics and partitions -----------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, Any] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Create a topic and wait until every partition has a leader.

        ``assignment`` maps partition numbers to broker ids and replaces the two counts.
        ``replication_factor`` defaults to ``default.replication.factor``.
        """
        self._admin.create_topic(name, partitions, replication_factor, config, assignment)

    def create_topics(
        self, names: Sequence[str], partitions: int = 1, replication_factor: int = 1
    ) -> None:
        """Create many topics of the same shape with one request."""
        self._admin.create_topics(names, partitions, replication_factor)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until no living broker knows it."""
        self._admin.delete_topic(name)

    def create_partitions(
        self, topic: str, count: int, assignment: Sequence[Sequence[int]] = ()
    ) -> None:
        """Grow a topic to ``count`` partitions."""
        self._admin.create_partitions(topic, count, assignment)

    def alter_config(self, topic: str, config: Mapping[str, Any]) -> None:
        """Set configurations of a topic; others keep their values."""
        self._admin.alter_config(topic, config)

    def elect_leaders(
        self, election: str = "preferred", partitions: Sequence[tuple[str, int]] | None = None
    ) -> dict[TopicPartition, ErrorCode]:
        """Run a ``preferred`` or ``unclean`` election; return the error code of each partition."""
        return self._admin.elect_leaders(election, partitions)

    def reassign_partitions(self, targets: Mapping[tuple[str, int], Sequence[int] | None]) -> None:
        """Start moving partitions to other brokers; a target of None cancels a move."""
        self._admin.reassign_partitions(targets)

    def reassignments(self) -> tuple[OngoingReassignment, ...]:
        """Return the reassignments in progress."""
        return self._admin.reassignments()

    def topics(self) -> list[str]:
        """Return the sorted names of all topics that the living brokers know."""
        return self._partitions.topics()

    def partition(self, topic: str, partition: int) -> PartitionView:
        """Return a snapshot of a partition; ``NotThereYet`` if it does not exist.

        While no controller is active, or a new one is still loading, the snapshot shows the newest
        state that a living broker knows, and the states of the controller are empty.
        """
        return self._partitions.partition(topic, partition)

    def records(
        self, topic: str, partition: int | None = None, replica: int | str | None = None
    ) -> list[ConsumerRecord]:
        """Return the decoded records of a topic, or of one partition: the leaders' by default, or
        those of a ``replica``, given by its broker.

        They are listed partition by partition, including records that are not replicated yet, but
        without control records. ``NotThereYet`` if there is no such topic, leader or replica.
        """
        broker_id = None if replica is None else self.broker(replica).id
        return self._partitions.records(topic, partition, broker_id)

    def log_bytes(self, topic: str, partition: int, replica: int | str) -> bytes:
        """Return a replica's whole log as stored, to compare replicas byte by byte."""
        broker_id = self.broker(replica).id
        return self._partitions.log_bytes(topic, partition, broker_id)

    def group(self, group_id: str) -> GroupView:
        """Return a snapshot of a consumer group; an unknown group is ``Dead``."""
        return self._groups.group(group_id)

    def wait_for_group(
        self, group_id: str, members: int | None = None, timeout_s: float = 10
    ) -> GroupView:
        """Wait until a group is stable, with ``members`` members if given; return its snapshot.

        ``WaitTimeout`` describes the group.
        """
        return self._waits.for_group(group_id, members, timeout_s)

    # -- requests ------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: bytes | str | Iterable[bytes | str | None] | None,
        key: bytes | str | None = None,
        partition: int = 0,
        acks: int = ACKS_ALL,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> int:
        """Append one record, or a list of records; return the first offset.

        Retries as a client does while the partition has no leader. ``NotThereYet`` if the partition
        does not exist, as this call does not auto-create topics.
        """
        return self._record_client.produce(topic, value, key, partition, acks, headers)

    def consume(self, topic: str, partition: int = 0, offset: int = 0) -> list[ConsumerRecord]:
        """Return the records from ``offset`` to the high watermark, as a consumer sees them now.

        ``NotThereYet`` if the partition does not exist.
        """
        return self._record_client.consume(topic, partition, offset)

    def ask(self, broker: int | str, request: Request[R], timeout_s: float = 30) -> R:
        """Send a broker any request of Kafka, as another broker would; return its response.

        A ``FetchRequest`` of ``fakekafka.protocol.data`` returns a ``FetchResponse``, and so on.
        Other requests are in ``admin``, ``control``, ``groups``, ``transactions`` and ``security``
        of ``fakekafka.protocol``. The result is None for a ``ProduceRequest`` with ``acks=0``,
        which has no response. Raises ``Disconnected`` or ``RequestTimeout`` of
        ``fakekafka.protocol.awaiting``.
        """
        return self._admin.ask(broker, request, timeout_s)

    # -- interventions -------------------------------------------------------------------------

    def inject(
        self,
        api: str,
        error: str | int | Mapping[tuple[str, int], str | int] | None = None,
        times: int | None = 1,
        broker: int | str | None = None,
        delay_ms: float = 0,
        disconnect: bool = False,
        *,
        answer: Answer | None = None,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        nth: int = 1,
    ) -> Injection:
        """Answer, delay or disconnect the next ``times`` requests of an API (None: all of them).

        ``error`` is the name or number of one of Kafka's errors, or maps partitions to errors.
        ``delay_ms`` alone only delays the request; ``disconnect`` closes its connection.
        ``answer`` is a function that is called with the request and returns the response, an error,
        or None to let the request pass. In real time it runs on a thread of the cluster.

        ``topic``, ``partition``, ``client_id`` (with wildcards) and ``broker`` select the requests;
        ``nth=3`` lets the first two of them pass. If only some partitions of a request are
        selected, the broker serves the others.

        An event of the controller, such as ``BrokerChange``, can be delayed, too.
        """
        from .handles.injection import Injection
        from .handles.injection_arguments import read_effect, read_filter

        running = self.running
        running.require_going()
        effect = read_effect(error, answer, delay_ms, disconnect, topic)
        if times is not None:
            arguments.integer("times", times, 1)
        request_filter = read_filter(
            running,
            api,
            effect,
            broker=broker,
            topic=topic,
            partition=partition,
            client_id=client_id,
            nth=nth,
        )
        self._injections += 1
        number = self._injections

        def install() -> Injection:
            guard = running.require_own_process
            return Injection(number, running.runtime, request_filter, effect, times, guard)

        return running.in_process(None, install)

    @property
    def injections(self) -> list[Injection]:
        """The injections that may still affect a request, oldest first."""
        from .handles.injection import Injection

        running = self.running
        running.require_own_process()
        installed = running.runtime.network.interceptors
        found = [one for one in installed if isinstance(one, Injection)]
        return [injection for injection in found if injection.is_active]

    def injection(self, number: int) -> Injection:
        """Return the active injection with an ``id``; ``UsageError`` if there is none."""
        for injection in self.injections:
            if injection.id == number:
                return injection
        active = [injection.id for injection in self.injections]
        raise UsageError(f"there is no active injection {number!r}; active are {active}")

    def observe(self, function: Callable[[Delivery], object]) -> Callable[[], None]:
        """Call a function with every ``Delivery`` that arrives; return a function that stops this.

        ``reset`` stops it, too. In real time the function runs on a thread of the cluster, so it
        must not wait for the cluster: let it record what it sees, and act elsewhere. A function
        that raises is removed: a ``Simulation`` raises the error at once, a ``Cluster`` keeps it in
        ``failures``.
        """
        running = self.running
        running.require_going()
        arguments.function("function", function, "seen.append")
        network = running.runtime.network
        running.in_process(None, lambda: network.observe(function))

        def end() -> None:
            running.in_process(None, lambda: network.stop_observing(function))

        return end
