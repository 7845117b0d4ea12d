"""The context of a story: names of brokers, groups of versions, and expected states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...testing.parameters.kinds import (
    INDEX,
    OBJECT,
    STRING,
    BadArgument,
    Kind,
    NotOfKind,
    tuple_of,
)
from ...testing.parameters.parameter import inside, nearest, optional, parameters_of, read
from ..context import OTHER_MACHINES, FileContext
from ..spec import ClusterSpec, ReplicaExpect, StateExpect
from .state import NO_LEADER


@dataclass(frozen=True, slots=True)
class StoryHeader:
    """The table ``[story]``, with the names to which steps refer."""

    partition: str
    names: Mapping[str, Any]
    groups: Mapping[str, tuple[str, ...]]
    versions: tuple[str, ...]


class StoryContext(FileContext):
    """Resolves the names of brokers, and the overlays for the version of the cluster."""

    def __init__(self, header: StoryHeader, cluster: ClusterSpec) -> None:
        super().__init__(cluster)
        self.names: Mapping[str, Any] = header.names
        self._version = cluster.kafka_version
        self._groups = {**header.groups, **{version: (version,) for version in header.versions}}

    def broker_id_of(self, broker: Any) -> int:
        """Return the id of a broker, given by its name in the story or by its id."""
        if broker in self.names.values() and not isinstance(broker, bool):
            return int(broker)
        if broker not in self.names:
            hint = nearest(broker, self.names)
            raise BadArgument(f"the story has no broker {broker!r}{hint}")
        return int(self.names[broker])

    def broker(self, broker: int | str) -> int:
        """Return the id of a broker, which may also be an id that the story does not name."""
        return self.broker_id_of(broker) if isinstance(broker, str) else int(super().broker(broker))

    def machine(self, machine: int | str) -> int | str:
        if isinstance(machine, str) and machine not in OTHER_MACHINES and "-" not in machine:
            return self.broker_id_of(machine)
        return super().machine(machine) if isinstance(machine, str) else self.broker(machine)

    def overlays(self, values: Any) -> list[tuple[str, Mapping[str, Any], bool]]:
        """Return the table without its overlays, then the overlays in the order of the header.

        Each comes with its name (empty for the table itself), and whether it applies to this
        version.
        """
        table = OBJECT.read(values, self)
        plain = {name: value for name, value in table.items() if name not in self._groups}
        found: list[tuple[str, Mapping[str, Any], bool]] = [("", plain, True)]
        for group, versions in self._groups.items():
            if group in table:
                overlay = OBJECT.read_at(group, table[group], self)
                found.append((group, overlay, self._version in versions))
        return found

    def state(self, values: Any) -> StateExpect:
        """Read a state such as ``{leader = "B", A = {log = "[m0/0]"}}``, with its overlays.

        All overlays are checked, even those of other versions.
        """
        keys = [*_STATE, *(optional(name, _REPLICA) for name in self.names)]
        replicas: dict[int, dict[str, Any]] = {}
        values_of_keys: dict[str, Any] = {}
        answers: dict[str, str] = {}
        for group, overlay, applies in self.overlays(values):
            with inside(group):
                found = read(keys, overlay, self, other_names=self._groups)
            if not applies:
                continue
            answers |= found.pop("answers", {})
            for name in [name for name in self.names if name in found]:
                replicas.setdefault(self.names[name], {}).update(found.pop(name))
            values_of_keys |= found
        return StateExpect(
            replicas={broker: ReplicaExpect(**expected) for broker, expected in replicas.items()},
            answers=answers,
            **values_of_keys,
        )


# -- kinds of values that only stories have --------------------------------------------------------

_NAME_OR_ID = {"type": ["string", "integer"]}


def _convert_broker(value: Any, context: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise NotOfKind
    found: int = context.broker_id_of(value)
    return found


STORY_BROKER = Kind("the name of a broker of the story", _NAME_OR_ID, _convert_broker, "A")
STATE = Kind(
    "a state of the partition",
    {"type": "object"},
    lambda value, context: context.state(value),  # type: ignore[attr-defined]
    {"leader": "A"},
)
_LEADER = Kind(
    f"{STORY_BROKER.words}, or {NO_LEADER!r}",
    _NAME_OR_ID,
    lambda value, context: -1 if value == NO_LEADER else _convert_broker(value, context),
    "A",
)
_ISR = tuple_of(STORY_BROKER, "names of brokers of the story", ["A", "B"])
_ANSWERS = Kind(
    "answers to the clients",
    {"type": "object"},
    lambda value, context: {
        name: STRING.read_at(name, text, context)
        for name, text in OBJECT.convert(value, context).items()
    },
    {"m1": "acknowledged"},
)
_REPLICA = Kind(
    "the expected state of a replica",
    {"type": "object"},
    lambda value, context: read(parameters_of(ReplicaExpect), value, context),
    {"role": "follower"},
)
_STATE = (
    optional("leader", _LEADER),
    optional("leader_epoch", INDEX),
    optional("isr", _ISR),
    optional("answers", _ANSWERS),
)
