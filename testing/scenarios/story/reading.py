"""Reading stories: ``[story]``, ``[[step]]`` and ``[outcome]`` of a scenario file.

A story's brokers have names, and its versions stand in groups. An expectation may be overlaid per
group (``[step.expect.old]``) or per version, so a file says in one place what differs by version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..pieces import PARTITION_NAME, check_partition
from ..spec import (
    STORY_VERSIONS,
    ClusterSpec,
    OutcomeExpect,
    ReplicaExpect,
    StateExpect,
    StepSpec,
    StorySpec,
)
from ..table import Table, nearest
from .actions import STEP_ACTIONS, read_action
from .logs import read_pattern
from .state import NO_LEADER

ROLES = ("leader", "follower", "none", "off")


@dataclass(frozen=True, slots=True)
class StoryHeader:
    """What ``[story]`` says: everything the steps refer to."""

    partition: str
    names: Mapping[str, Any]
    groups: Mapping[str, tuple[str, ...]]
    versions: tuple[str, ...]


def read_header(table: Table) -> StoryHeader:
    """``[story]``: the partition, the brokers' names, the versions and their groups."""
    versions = table.items("versions")
    if not versions:
        raise table.error("versions", "is missing; write ['0.10', '3.9']")
    for version in versions:
        if version not in STORY_VERSIONS:
            raise table.error("versions", f"no version {version!r}{nearest('', STORY_VERSIONS)}")
    groups: dict[str, tuple[str, ...]] = {}
    for name, members in table.table("groups").rest().items():
        for version in members if isinstance(members, list) else [members]:
            if version not in versions:
                raise table.error(f"groups.{name}", f"{version!r} is not among the versions")
        groups[name] = tuple(members)
    partition = table.text("partition")
    names = table.table("brokers").rest()
    table.finish()
    return StoryHeader(partition, names, groups, tuple(versions))


def read_story(root: Table, header: StoryHeader, cluster: ClusterSpec) -> StorySpec:
    """The steps of a story, for the version the cluster has."""
    table = root.table("story")
    match = PARTITION_NAME.fullmatch(header.partition)
    if match is None:
        raise table.error("partition", f"{header.partition!r} is none; write it like 'orders-0'")
    check_partition(table, "partition", match[1], int(match[2]), cluster)
    for name, broker_id in header.names.items():
        if broker_id not in cluster.broker_ids:
            raise table.error(f"brokers.{name}", f"no broker {broker_id!r}")
    if not header.names:
        raise table.error("brokers", "is missing; write {A = 1, B = 2}")
    reader = StateReader(header, cluster.kafka_version)
    steps = tuple(_read_step(step, reader, cluster) for step in root.tables("step"))
    if not steps:
        raise root.error("step", "is missing; a story is an array of tables ([[step]])")
    return StorySpec(
        topic=match[1],
        partition=int(match[2]),
        names=dict(header.names),
        versions=header.versions,
        steps=steps,
        outcome=_read_outcome(root.table("outcome"), reader),
    )


class StateReader:
    """Reads expected states: knows the brokers' names, and which overlays hold."""

    def __init__(self, header: StoryHeader, version: str) -> None:
        self.names = header.names
        self._version = version
        self._groups = {**header.groups, **{v: (v,) for v in header.versions}}

    def broker(self, table: Table, name: str, value: Any) -> int:
        """A broker by the name the story gives it, or by its id."""
        if value in self.names.values() and not isinstance(value, bool):
            return int(value)
        if value not in self.names:
            hint = nearest(str(value), self.names)
            raise table.error(name, f"the story has no broker {value!r}{hint}")
        return int(self.names[value])

    def overlays(self, table: Table) -> list[Table]:
        """The table itself and those of the groups this version is in, in the file's order."""
        found = [table]
        for group, versions in self._groups.items():
            if table.has(group):
                inner = table.table(group)
                if self._version in versions:
                    found.append(inner)
        return found

    def state(self, table: Table) -> StateExpect:
        """``{leader = "B", A = {log = "[m0/0]"}}`` with overlays; every part is checked, also
        those of other versions."""
        replicas: dict[int, dict[str, Any]] = {}
        values: dict[str, Any] = {}
        answers: dict[str, str] = {}
        for group in self._groups:
            if table.has(group):
                self._plain_state(table.table(group), {}, {}, {})
        for overlay in self.overlays(table):
            self._plain_state(overlay, replicas, values, answers, finish=overlay is not table)
        table.finish()
        return StateExpect(
            replicas={broker: ReplicaExpect(**keys) for broker, keys in replicas.items()},
            answers=answers,
            **values,
        )

    def _plain_state(
        self,
        table: Table,
        replicas: dict[int, dict[str, Any]],
        values: dict[str, Any],
        answers: dict[str, str],
        finish: bool = True,
    ) -> None:
        for name, broker_id in self.names.items():
            if table.has(name):
                replicas.setdefault(broker_id, {}).update(_read_replica(table.table(name)))
        if table.has("leader"):
            leader = table.raw("leader")
            is_none = leader == NO_LEADER
            values["leader"] = -1 if is_none else self.broker(table, "leader", leader)
        if table.has("leader_epoch"):
            values["leader_epoch"] = table.integer("leader_epoch", 0)
        if table.has("isr"):
            isr = table.items("isr")
            values["isr"] = tuple(self.broker(table, "isr", name) for name in isr)
        for name, text in table.table("answers").rest().items():
            if not isinstance(text, str):
                raise table.error(f"answers.{name}", f"must be a text, not {text!r}")
            answers[name] = text
        if finish:
            table.finish()


def _read_replica(table: Table) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if table.has("role"):
        keys["role"] = table.text("role", choices=ROLES)
    if table.has("log"):
        try:
            keys["log"] = read_pattern(table.text("log"))
        except ValueError as error:
            raise table.error("log", str(error)) from None
    for name in ("log_end_offset", "high_watermark"):
        if table.has(name):
            keys[name] = table.integer(name, 0)
    if table.has("epochs"):
        keys["epochs"] = " ".join(table.text("epochs").split())
    table.finish()
    return keys


def _read_step(table: Table, reader: StateReader, cluster: ClusterSpec) -> StepSpec:
    name = table.text("name")
    if not name:
        raise table.error("name", "is missing; say what happens in this step")
    actions = []
    for action in table.tables("do"):
        if not action.has("action"):
            raise action.error("action", f"is missing; there are {', '.join(STEP_ACTIONS)}")
        actions.append(read_action(action, reader, cluster))
    if not table.has("expect"):
        raise table.error("expect", "is missing; every step says what must hold after it")
    expect = reader.state(table.table("expect"))
    table.finish()
    return StepSpec(name, tuple(actions), expect)


def _read_outcome(table: Table, reader: StateReader) -> OutcomeExpect:
    keys: dict[str, Any] = {}
    tables = reader.overlays(table)
    for overlay in tables:
        for name in ("lost", "duplicated"):
            if overlay.has(name):
                keys[name] = tuple(str(value) for value in overlay.items(name))
        if overlay.has("differ_at"):
            keys["differ_at"] = overlay.integer("differ_at", 0)
        if overlay is not table:
            overlay.finish()
    table.finish()
    return OutcomeExpect(**keys)
