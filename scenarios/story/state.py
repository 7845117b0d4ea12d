"""The state of a story's partition, and its differences from an expected state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ...protocol.values import TopicPartition
from ...replication.log.checkpoint_formats import HIGH_WATERMARK_CHECKPOINT
from ..spec import ReplicaExpect, StateExpect, StorySpec
from .logs import LogRecord, format_epochs, format_log

if TYPE_CHECKING:
    from ...actors.broker.process import BrokerProcess
    from ...replication.log.storage import LogStorage
    from ...testing.simulation import Simulation

NO_LEADER = "none"


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica in the memory of its broker, or on its disk while the broker is off."""

    role: str
    """Role in the broker's own view: ``leader``, ``follower``, ``none`` or ``off``."""
    records: tuple[LogRecord, ...]
    high_watermark: int
    """High watermark; the checkpoint on disk if the broker is off or does not host the partition
    yet."""
    epochs: tuple[tuple[int, int], ...]

    @property
    def log(self) -> str:
        return format_log(self.records)


@dataclass(frozen=True, slots=True)
class StoryState:
    """The partition after a step, with leader, epoch and ISR as stored in ZooKeeper."""

    leader: int
    """Broker id of the leader; -1 if there is none."""
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: dict[int, ReplicaState]
    """Assigned replicas of the brokers that the story names, by broker id."""
    answers: dict[str, str] = field(default_factory=dict)
    """Answers that clients received so far, by record value or name of a read."""


def read_state(simulation: Simulation, story: StorySpec, answers: Mapping[str, str]) -> StoryState:
    """Return the state of everything that a story can check."""
    where = TopicPartition(story.topic, story.partition)
    try:
        path = f"/brokers/topics/{where.topic}/partitions/{where.partition}/state"
        written = json.loads(simulation.zookeeper.get(path) or b"{}")
        topic = json.loads(simulation.zookeeper.get(f"/brokers/topics/{where.topic}") or b"{}")
    except UsageError:  # the topic does not exist yet
        written, topic = {}, {}
    assigned = topic.get("partitions", {}).get(str(where.partition), [])
    return StoryState(
        written.get("leader", -1),
        written.get("leader_epoch", -1),
        tuple(written.get("isr", ())),
        {
            broker_id: _replica(simulation.processes[broker_id], where)
            for broker_id in story.names.values()
            if broker_id in assigned
        },
        dict(answers),
    )


def _replica(process: BrokerProcess, where: TopicPartition) -> ReplicaState:
    broker = process.broker
    hosted = None if broker is None else broker.replica_manager.hosted.partition(where)
    stored = process.spec.disk.stored(where)
    records = () if stored is None else _records(stored)
    if hosted is not None and hosted.log is not None:
        role = "leader" if hosted.is_leader else "follower"
        return ReplicaState(role, records, hosted.log.high_watermark, tuple(hosted.log.epochs))
    role = "none" if process.is_alive else "off"
    if stored is None:
        return ReplicaState(role, (), 0, ())
    checkpoint = stored.directory.checkpoints.get(HIGH_WATERMARK_CHECKPOINT, {})
    epochs = zip(stored.epochs or (), stored.epoch_starts or (), strict=True)
    return ReplicaState(role, records, checkpoint.get(where, 0), tuple(epochs))


def _records(stored: LogStorage) -> tuple[LogRecord, ...]:
    return tuple(
        LogRecord((record.value or b"").decode(), batch.partition_leader_epoch)
        for segment in stored.segments
        for batch in segment.batches
        if not batch.is_control
        for record in batch.records()
    )


# -- comparing ---------------------------------------------------------------------------------


def differences(expected: StateExpect, state: StoryState, story: StorySpec) -> list[str]:
    """Return every difference between a state and the expected one, in words."""
    names = {broker_id: name for name, broker_id in story.names.items()}
    found: list[str] = []
    for broker_id, replica in expected.replicas.items():
        actual = state.replicas.get(broker_id)
        name = names.get(broker_id, str(broker_id))
        if actual is None:
            found.append(f"broker {name}: holds no replica of {story.topic}-{story.partition}")
        else:
            found += [f"broker {name}: {text}" for text in _replica_differences(replica, actual)]
    if expected.leader is not None and expected.leader != state.leader:
        wanted = broker_name(expected.leader, names)
        found.append(f"leader: expected {wanted}, is {broker_name(state.leader, names)}")
    if expected.leader_epoch not in (None, state.leader_epoch):
        found.append(f"leader_epoch: expected {expected.leader_epoch}, is {state.leader_epoch}")
    if expected.isr is not None and sorted(expected.isr) != sorted(state.isr):
        wanted = format_isr(expected.isr, names)
        found.append(f"isr: expected {wanted}, is {format_isr(state.isr, names)}")
    for name, answer in expected.answers.items():
        actual_answer = state.answers.get(name, "never sent")
        if actual_answer != answer and not actual_answer.startswith(f"{answer} at "):
            found.append(f"answers.{name}: expected {answer!r}, is {actual_answer!r}")
    return found


def _replica_differences(expected: ReplicaExpect, actual: ReplicaState) -> list[str]:
    found = []
    if expected.log is not None and not expected.log.matches(actual.records):
        found.append(f"log: expected {expected.log.text}, is {actual.log}")
    pairs: list[tuple[str, Any, Any]] = [
        ("role", expected.role, actual.role),
        ("log_end_offset", expected.log_end_offset, len(actual.records)),
        ("high_watermark", expected.high_watermark, actual.high_watermark),
        ("epochs", expected.epochs, format_epochs(actual.epochs)),
    ]
    for name, wanted, value in pairs:
        if wanted is not None and wanted != value:
            found.append(f"{name}: expected {wanted!r}, is {value!r}")
    return found


def broker_name(broker_id: int, names: Mapping[int, str]) -> str:
    """Return the story's name of a broker, or its id if it has none."""
    return NO_LEADER if broker_id < 0 else names.get(broker_id, str(broker_id))


def format_isr(isr: tuple[int, ...], names: Mapping[int, str]) -> str:
    return "{" + ", ".join(sorted(broker_name(broker_id, names) for broker_id in isr)) + "}"
