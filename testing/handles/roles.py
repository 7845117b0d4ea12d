"""Brokers by role, such as ``leader:orders-0``, ``controller`` or ``coordinator:my-group``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...protocol.errors import NotThereYet, UsageError, nearest_names
from ...protocol.java_hashing import bucket_of, java_string_hash
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition
from .. import arguments
from .partitions import Partitions

if TYPE_CHECKING:
    from ...actors.broker.process import BrokerProcess
    from ..running import RunningCluster

_EXAMPLES = (
    "controller",
    "random",
    "leader:orders-0",
    "follower:orders-0",
    "preferred:orders-0",
    "coordinator:my-group",
    "transaction-coordinator:my-id",
)
_OF_PARTITION = re.compile(r"(leader|follower|preferred):(.+)-(\d+)")
_NTH_FOLLOWER = re.compile(r"(follower):(.+)-(\d+):([1-9]\d*)")
_COORDINATOR = re.compile(r"(coordinator|transaction-coordinator):(.+)")
_COORDINATOR_TOPICS = {
    "coordinator": "__consumer_offsets",
    "transaction-coordinator": "__transaction_state",
}


class BrokerReference:
    """A broker named by its id, or by the role that it has when it is looked up."""

    __slots__ = ("key", "nth", "partition", "role", "text", "topic", "value")

    def __init__(self, value: int | str) -> None:
        self.text: str = str(value)
        self.value: int | None = value if isinstance(value, int) else None
        self.role: str = "id"
        self.topic: str = ""
        self.partition: int = -1
        self.nth: int = 1
        """Position among the living followers in the order of the assignment, counted from 1."""
        self.key: str = ""
        """The group or transactional id of a coordinator."""
        if isinstance(value, str):
            self._parse(value)

    def _parse(self, text: str) -> None:
        nth = _NTH_FOLLOWER.fullmatch(text)
        match = nth or _OF_PARTITION.fullmatch(text)
        coordinator = _COORDINATOR.fullmatch(text)
        if text in ("controller", "random"):
            self.role = text
        elif match is not None:
            self.role, self.topic, self.partition = match[1], match[2], int(match[3])
            self.nth = 1 if nth is None else int(nth[4])
        elif coordinator is not None:
            self.role, self.key = coordinator[1], coordinator[2]
        else:
            import difflib  # needed only for this error

            near = difflib.get_close_matches(text, _EXAMPLES, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"{text!r} names no broker; {meant}write an id such as 1, or a role: 'controller', "
                "'random', 'leader:orders-0', 'follower:orders-0', 'follower:orders-0:2', "
                "'preferred:orders-0', 'coordinator:my-group' or 'transaction-coordinator:my-id'"
            )

    def resolve(self, running: RunningCluster) -> int | None:
        """Return the id of the broker with the role now; None if no broker has it."""
        if self.role == "id":
            return self.value
        if self.role == "controller":
            found = running.active_controller()
            return None if found is None else int(found.broker_id)
        if self.role == "random":
            alive = [b for b, process in running.processes.items() if process.is_alive]
            return int(running.runtime.rng.choice(alive)) if alive else None
        if self.key:
            return self._coordinator(running)
        view = Partitions(running).partition(self.topic, self.partition)
        if self.role == "leader":
            return view.leader
        if self.role == "preferred":
            return view.replicas[0]
        followers = [
            broker
            for broker in view.replicas
            if broker != view.leader and running.broker_process(broker).is_alive
        ]
        return followers[self.nth - 1] if self.nth <= len(followers) else None

    def _coordinator(self, running: RunningCluster) -> int | None:
        partitions = Partitions(running)
        topic = _COORDINATOR_TOPICS[self.role]
        count = partitions.partition_count(topic)
        if not count:
            return None
        number = bucket_of(java_string_hash(self.key), count)
        newest = partitions.newest_metadata(TopicPartition(topic, number))
        return newest.leader if newest is not None and newest.leader >= 0 else None

    def require(self, running: RunningCluster) -> int:
        """Return the id of the broker with the role now; ``NotThereYet`` if no broker has it."""
        found = self.resolve(running)
        if found is None:
            raise NotThereYet(f"no broker has the role {self.text!r} now")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerReference) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"BrokerReference({self.text!r})"


def broker_process(running: RunningCluster, broker: int | str) -> BrokerProcess:
    """Return the process of a broker that a user named by its id, its name or its role."""
    if not isinstance(broker, str):
        return running.broker_process(broker)
    for process in running.processes.values():
        if process.name == broker:
            return process
    if re.fullmatch(r"broker--?\d+", broker):
        names = nearest_names(broker, map(broker_name, running.processes))
        raise UsageError(f"there is no broker {broker!r}{names}")
    return running.broker_process(BrokerReference(broker).require(running))


def machine_name(running: RunningCluster, machine: int | str) -> str:
    """Return the name of a machine given by its name, or by the id or role of its broker."""
    if isinstance(machine, int):
        return running.broker_process(machine).name
    if not isinstance(machine, str):
        right = "a broker id, or a name such as 'zk-1' or 'leader:orders-0'"
        arguments.refuse("a machine", machine, right)
    known = running.machines()
    if machine in known:
        return machine
    if machine in ("controller", "random") or ":" in machine:
        return broker_process(running, machine).name
    raise UsageError(f"there is no machine {machine!r}{nearest_names(machine, known)}")
