"""Steps for any cluster: faults and requests for its brokers, ZooKeeper, network and topics.

Power failures are limited to those that Kafka's guarantees cover. Kafka acknowledges a record once
every in-sync replica has it in memory. So a broker loses power only while other replicas are in
sync and nothing else is broken, and no other step follows until the controller has removed the
broker from every ISR.
"""

from __future__ import annotations

import json

from ..protocol.admin import (
    PREFERRED,
    SET,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    ConfigResource,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    NewPartitions,
    NewTopic,
)
from ..protocol.values import TopicPartition
from .step import Step
from .world import World

_TIMEOUT_MS = 30_000


class Wait(Step[World]):
    """Lets virtual time pass."""

    ms: int

    def do(self, world: World) -> bool:
        world.simulation.run_for(self.ms)
        return True


class Kill(Step[World]):
    broker: int

    def do(self, world: World) -> bool:
        if self.broker not in world.stoppable_brokers():
            return False
        world.simulation.broker(self.broker).kill()
        world.paused.discard(self.broker)
        return True


class PowerOff(Step[World]):
    broker: int
    is_torn: bool = False
    """True to lose power during a write, so that a log may end in the middle of a batch."""

    def do(self, world: World) -> bool:
        broker = self.broker
        if not world.is_calm() or any(view.isr == (broker,) for view in world.partitions()):
            return False
        world.simulation.broker(broker).power_off(torn=self.is_torn)
        return True

    def is_settled(self, world: World) -> bool:
        """Return True once the broker is in no ISR together with other replicas.

        It may still be the only replica of a new topic.
        """
        return all(
            self.broker not in isr or isr == [self.broker]
            for isr in (
                json.loads(data)["isr"]
                for path, data in world.simulation.zookeeper.tree().items()
                if data and path.startswith("/brokers/topics/") and path.endswith("/state")
            )
        )


class Start(Step[World]):
    broker: int
    is_repaired: bool = False
    """True to repair failed log directories first."""

    def do(self, world: World) -> bool:
        handle = world.simulation.broker(self.broker)
        if handle.is_alive:
            return False
        if self.is_repaired:
            world.repair(self.broker)
        handle.start(wait=False)
        return True


class Stop(Step[World]):
    """Begins the controlled shutdown of a broker."""

    broker: int

    def do(self, world: World) -> bool:
        if self.broker not in world.running():
            return False
        world.simulation.broker(self.broker).begin_shutdown()
        return True


class Freeze(Step[World]):
    """Pauses a broker, as SIGSTOP does."""

    broker: int

    def do(self, world: World) -> bool:
        if self.broker not in world.alive() or self.broker in world.paused:
            return False
        world.simulation.broker(self.broker).pause()
        world.paused.add(self.broker)
        return True


class Thaw(Step[World]):
    broker: int

    def do(self, world: World) -> bool:
        if self.broker not in world.paused:
            return False
        world.paused.discard(self.broker)
        if self.broker in world.alive():
            world.simulation.broker(self.broker).resume()
        return True


class ShiftBrokerClock(Step[World]):
    """Shifts the wall clock of a broker."""

    broker: int
    ms: int

    def do(self, world: World) -> bool:
        world.simulation.broker(self.broker).shift_clock(self.ms)
        return True


class SetClockRate(Step[World]):
    """Makes the clocks of a broker's machine run at another rate."""

    broker: int
    rate: float

    def do(self, world: World) -> bool:
        broker = world.simulation.broker(self.broker)
        if broker.clock_rate == self.rate:
            return False
        broker.set_clock_rate(self.rate)
        return True


class SetZookeeperClockRate(Step[World]):
    server: int
    rate: float

    def do(self, world: World) -> bool:
        server = world.simulation.zookeeper.server(self.server)
        if server.clock_rate == self.rate:
            return False
        server.set_clock_rate(self.rate)
        return True


class FailLogDir(Step[World]):
    broker: int
    index: int

    def do(self, world: World) -> bool:
        process = world.simulation.processes[self.broker]
        disk = process.spec.disk
        if (
            self.broker not in world.running()
            or self.broker in world.paused
            or process.broker is None
            or disk.directories[self.index] in disk.offline_dirs
        ):
            return False
        world.simulation.broker(self.broker).fail_log_dir(self.index)
        return True


class Expire(Step[World]):
    """Expires the ZooKeeper session of a broker."""

    broker: int

    def do(self, world: World) -> bool:
        servers = world.simulation.zookeepers.values()
        if self.broker not in world.alive() or not any(server.is_alive for server in servers):
            return False
        world.simulation.zookeeper.expire_session(self.broker)
        return True


class KillZookeeper(Step[World]):
    server: int

    def do(self, world: World) -> bool:
        if not world.simulation.zookeepers[self.server].is_alive:
            return False
        world.simulation.zookeeper.server(self.server).kill()
        return True


class StartZookeeper(Step[World]):
    server: int

    def do(self, world: World) -> bool:
        if world.simulation.zookeepers[self.server].is_alive:
            return False
        world.simulation.zookeeper.server(self.server).start()
        return True


class Resign(Step[World]):
    """Makes the controller resign, but only while nothing else is broken."""

    def do(self, world: World) -> bool:
        if not world.is_calm() or not world.all_know_controller():
            return False
        world.simulation.controller.resign()
        return True


# -- the network ---------------------------------------------------------------------------------


class Isolate(Step[World]):
    machine: str

    def do(self, world: World) -> bool:
        world.simulation.network.isolate(self.machine)
        world.has_network_faults = True
        return True


class Cut(Step[World]):
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    both_ways: bool

    def do(self, world: World) -> bool:
        network = world.simulation.network
        network.partition(self.sources, self.targets, both_ways=self.both_ways)
        world.has_network_faults = True
        return True


class Heal(Step[World]):
    """Ends all network partitions and message losses."""

    def do(self, world: World) -> bool:
        if not world.has_network_faults:
            return False
        world.simulation.network.heal()
        world.has_network_faults = False
        return True


class Lose(Step[World]):
    """Drops a share of the messages from one machine to another."""

    share: float
    source: str
    target: str

    def do(self, world: World) -> bool:
        world.simulation.network.drop(self.share, self.source, self.target)
        world.has_network_faults = True
        return True


class Latency(Step[World]):
    ms: float
    source: str
    target: str

    def do(self, world: World) -> bool:
        world.simulation.network.latency(self.ms, source=self.source, target=self.target)
        return True


# -- requests to the controller ------------------------------------------------------------------


class Reassign(Step[World]):
    moves: tuple[tuple[TopicPartition, tuple[int, ...]], ...]

    def do(self, world: World) -> bool:
        world.request(str(self), AlterPartitionReassignmentsRequest(self.moves))
        return True


class Cancel(Step[World]):
    """Cancels the reassignment of a partition."""

    topic: str
    partition: int

    def do(self, world: World) -> bool:
        where = TopicPartition(self.topic, self.partition)
        world.request(str(self), AlterPartitionReassignmentsRequest(((where, None),)))
        return True


class CreateTopic(Step[World]):
    topic: str
    partitions: int
    replication_factor: int

    def do(self, world: World) -> bool:
        if self.topic not in world.created:
            world.created.append(self.topic)
        topic = NewTopic(self.topic, self.partitions, self.replication_factor)
        world.request(str(self), CreateTopicsRequest((topic,), _TIMEOUT_MS))
        return True


class Delete(Step[World]):
    topic: str

    def do(self, world: World) -> bool:
        world.deleted.add(self.topic)
        world.request(str(self), DeleteTopicsRequest((self.topic,), _TIMEOUT_MS))
        return True


class Grow(Step[World]):
    """Increases the number of partitions of a topic to ``partitions``."""

    topic: str
    partitions: int

    def do(self, world: World) -> bool:
        grown = NewPartitions(self.topic, self.partitions, ())
        world.request(str(self), CreatePartitionsRequest((grown,), _TIMEOUT_MS))
        return True


class Configure(Step[World]):
    """Changes a configuration of a topic."""

    topic: str
    name: str
    value: str

    def do(self, world: World) -> bool:
        entries = ((self.name, SET, self.value),)
        resource = ConfigResource(TOPIC_RESOURCE, self.topic)
        world.request(str(self), AlterConfigsRequest(((resource, entries),)))
        return True


class ElectPreferred(Step[World]):
    """Requests a preferred leader election for all partitions."""

    def do(self, world: World) -> bool:
        world.request(str(self), ElectLeadersRequest(PREFERRED, None))
        return True
