"""A cost model: the time that ZooKeeper, the controller and the data plane need for their work.

Without it a simulated process spends no time on anything, and virtual time passes on links only.
With it each process has one processor, whose work for one message delays what the process sends
next. Each machine has one outgoing link of limited bandwidth, and each broker has one disk.
A ZooKeeper server processes requests one after another. A write is answered once a quorum has it on
disk; many writes may wait for that concurrently. The number of requests in flight is up to the
client, and so depends on the emulated version and on ``zookeeper.max.in.flight.requests``.
"""

from __future__ import annotations

import math
from typing import Any

from ...protocol.control import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from ...protocol.data import FetchRequest, FetchResponse, ProduceRequest
from ...protocol.declaring.methods import field_names
from ...protocol.errors import UsageError
from ...protocol.names import broker_id_of
from ...protocol.values import changed, frozen
from ...statemachines.zookeeper.timed_work import LOGGED_PARTITIONS, ZOOKEEPER_ANSWERS
from ...zkfake.messages import (
    ClientPacket,
    CloseSession,
    CreateRequest,
    DeleteRequest,
    MultiRequest,
    SetDataRequest,
)
from ..delivery import Delivery
from ..interfaces import AbstractRuntime
from .network import Network
from .sizes import message_bytes, record_bytes

_CONTROL_REQUESTS = (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)
_WRITES = (CreateRequest, SetDataRequest, MultiRequest, DeleteRequest, CloseSession)


@frozen
class Costs:
    """Times in milliseconds and rates in megabytes per second; 0 stands for no cost. The latency of
    links is added to these."""

    zookeeper_request_ms: float = 0.0
    """Processor time of a ZooKeeper server per request; the requests of all clients share it."""
    zookeeper_commit_ms: float = 0.0
    """Time from a write's turn at the server to its quorum; concurrent writes wait in parallel."""
    controller_answer_ms: float = 0.0
    """Processor time of the controller per answer of ZooKeeper, spent once a batch is complete."""
    controller_request_ms: float = 0.0
    """Processor time of the controller per request that it sends to a broker."""
    controller_partition_ms: float = 0.0
    """Processor time of the controller per partition in a request to a broker."""
    logged_partition_ms: float = 0.0
    """Processor time of the controller per partition in a log line. Until 1.0 each election logged
    every partition (KAFKA-6116); 0 is Kafka without that line."""
    broker_request_ms: float = 0.0
    """Processor time of a broker per produce or fetch request, taken one after another."""
    disk_append_ms: float = 0.0
    """Disk time of a broker per message with records that it appends, as leader or follower."""
    disk_mb_per_s: float = 0.0
    """Disk throughput of a broker for the records that it appends; 0 is unlimited."""
    link_mb_per_s: float = 0.0
    """Throughput of a machine for all that it sends, one message after another; 0 is unlimited."""

    def __post_init__(self) -> None:
        for name in field_names(Costs):
            value = getattr(self, name)
            if not value >= 0 or math.isinf(value):
                unit = "MB/s" if name.endswith("mb_per_s") else "milliseconds"
                raise UsageError(f"{name} must be {unit} >= 0, not {value!r}")


PUBLISHED_2018 = Costs(
    zookeeper_request_ms=0.014,
    zookeeper_commit_ms=1.45,
    controller_answer_ms=0.05,
    controller_request_ms=0.182,
    controller_partition_ms=0.006,
    logged_partition_ms=0.00288,
)
"""Calibrated from the figures published for KAFKA-5642: five brokers, five ZooKeeper servers, 2018.

docs/guides/benchmarks.md gives the source of each constant.
"""
PUBLISHED_2018_LATENCY_MS = 0.062
"""One-way delay of a link that belongs to ``PUBLISHED_2018``."""


class _Sender:
    """The state of a sending process: when it and its link are free, and how many messages wait."""

    __slots__ = ("busy_until_us", "link_free_us", "waiting")

    def __init__(self) -> None:
        self.busy_until_us = 0.0
        self.link_free_us = 0.0
        self.waiting = 0


class CostedNetwork(Network):
    """A network in which messages wait for the processes that send and receive them."""

    def __init__(self, runtime: AbstractRuntime, costs: Costs) -> None:
        super().__init__(runtime)
        self.costs = costs
        self._senders: dict[str, _Sender] = {}
        self._free_us: dict[str, float] = {}
        """Time at which the processor of a ZooKeeper server or a broker is free."""
        self._link_free_us: dict[tuple[str, str], float] = {}
        """Time until which messages from a client to a server wait for earlier requests."""

    def work(self, machine: str, kind: str, amount: int) -> None:
        costs = self.costs
        if kind == ZOOKEEPER_ANSWERS:
            self._spend(machine, amount * costs.controller_answer_ms)
        elif kind == LOGGED_PARTITIONS:
            self._spend(machine, amount * costs.logged_partition_ms)

    def _spend(self, machine: str, duration_ms: float) -> None:
        if duration_ms:
            sender = self._senders.setdefault(machine, _Sender())
            now = self._runtime.now_us()
            sender.busy_until_us = max(now, sender.busy_until_us) + duration_ms * 1000

    # -- leaving -------------------------------------------------------------------------------

    def transmit(self, delivery: Delivery) -> None:
        machine, message = delivery.sender.machine, delivery.message
        if isinstance(message, _CONTROL_REQUESTS):
            partitions = len(message.partition_states)
            costs = self.costs
            self._spend(
                machine, costs.controller_request_ms + partitions * costs.controller_partition_ms
            )
        if self.costs.link_mb_per_s:
            sender = self._senders.setdefault(machine, _Sender())
            begun_us = max(self._runtime.now_us(), sender.busy_until_us, sender.link_free_us)
            size = message_bytes(message)
            sender.link_free_us = begun_us + size / self.costs.link_mb_per_s
        elif machine not in self._senders:
            super().transmit(delivery)
            return
        sender = self._senders[machine]
        free_us = max(sender.busy_until_us, sender.link_free_us)
        wait_us = math.ceil(free_us - self._runtime.now_us())
        if wait_us <= 0 and not sender.waiting:
            super().transmit(delivery)
            return

        def leave() -> None:
            sender.waiting -= 1
            self._numbered += 1
            Network.transmit(self, changed(delivery, message_id=self._numbered))

        self._numbered -= 1  # counted and numbered when it leaves
        # The message leaves after all that wait already, including any that leaves right now.
        sender.waiting += 1
        self._runtime.call_later(None, max(1, wait_us), leave)

    # -- arriving ------------------------------------------------------------------------------

    def arrive(self, delivery: Delivery) -> None:
        link = (delivery.sender.machine, delivery.target.machine)
        message = delivery.message
        is_request = type(message) is ClientPacket
        if isinstance(message, (ProduceRequest, FetchRequest, FetchResponse)):
            self._take(link[1], delivery)
            return
        if not is_request and link not in self._link_free_us:
            super().arrive(delivery)
            return
        now = self._runtime.now_us()
        done_us = float(now)
        if is_request:
            done_us = self._serve(link[1], message)
            self._link_free_us[link] = max(done_us, self._link_free_us.get(link, 0.0))
        # A session's requests are answered in order, so a read waits for the writes before it.
        done_us = max(done_us, self._link_free_us[link])
        if done_us <= now:
            super().arrive(delivery)
        else:
            self._runtime.call_later(
                None, math.ceil(done_us - now), lambda: Network.arrive(self, delivery)
            )

    def _take(self, machine: str, delivery: Delivery) -> None:
        """Deliver a data-plane message to a broker once the messages before it are processed."""
        costs, message = self.costs, delivery.message
        is_broker = broker_id_of(machine) is not None
        work_ms = 0.0
        if is_broker:
            if type(message) is not FetchResponse:
                work_ms = costs.broker_request_ms
            size = record_bytes(message)
            if size:
                work_ms += costs.disk_append_ms
                if costs.disk_mb_per_s:
                    work_ms += size / costs.disk_mb_per_s / 1000
        now = self._runtime.now_us()
        free_us = self._free_us.get(machine, 0.0) if is_broker else 0.0
        if not work_ms and free_us <= now:
            super().arrive(delivery)
            return
        done_us = self._free_us[machine] = max(now, free_us) + work_ms * 1000
        self._runtime.call_later(
            None, math.ceil(done_us - now), lambda: Network.arrive(self, delivery)
        )

    def _serve(self, server: str, packet: Any) -> float:
        """Return the time at which a server has processed a request that arrives now."""
        costs = self.costs
        start_us = max(self._runtime.now_us(), self._free_us.get(server, 0.0))
        done_us = self._free_us[server] = start_us + costs.zookeeper_request_ms * 1000
        if isinstance(packet.request, _WRITES):
            return done_us + costs.zookeeper_commit_ms * 1000
        return done_us
