"""Coverage of a run: states and transitions of state machines, faults, messages, errors, flags.

The names of reachable items come from the emulation's own tables, so that items that were never
reached can be listed. Inspecting every message slows a run down, so only one run in
``RUNS_PER_SAMPLE`` does so.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..actors.delivery import Delivery
from ..coordinators.groups.group import PREVIOUS_STATES
from ..coordinators.transactions.states import VALID_PREVIOUS_STATES
from ..protocol.api_versions import API_NAMES, release_ranges
from ..protocol.errors import ErrorCode
from ..protocol.releases.behaviour import Behaviour
from ..protocol.versions import behaviour
from ..statemachines.machines.transitions import PARTITION_PREDECESSORS, replica_predecessors
from ..tracing.message_types import message_type_names
from .step import Step
from .targets.target import Target
from .watch import ReportedReplica

RUNS_PER_SAMPLE = 8
"""Average number of runs of which one is sampled."""
_MESSAGE_NAMES = {"AlterPartition": "AlterIsr", "IncrementalAlterConfigs": "AlterConfigs"}
"""Names of APIs -> names of their messages, where this package names the message differently."""

KINDS: tuple[str, ...] = ("state", "transition", "fault", "faults", "message", "error", "flag")
"""The kinds of items. An item is a kind, a colon and a name."""
SAMPLED_KINDS: tuple[str, ...] = ("message", "error", "flag")
"""The kinds that are recorded in sampled runs only."""


def is_sampled(seed: int) -> bool:
    """Return True if messages and flags are recorded in the run of a seed.

    Sampling by the run's number would favour some targets, as they follow from that number.
    """
    return random.Random(f"sampled {seed}").randrange(RUNS_PER_SAMPLE) == 0


class Coverage:
    """Records the items that a run reaches."""

    def __init__(self, target: Target, is_sampled: bool) -> None:
        self.items: set[str] = set()
        self._is_sampled = is_sampled
        self._target = target
        self._roles: dict[tuple[Any, int], str | None] = {}
        self._previous_verb = ""
        watch = target.watch
        watch.add_listener("on_controller_state", self._controller_state)
        watch.add_listener("on_group_state", self._group_state)
        watch.add_listener("on_transaction_state", self._transaction_state)
        watch.add_listener("on_role", self._record_role)

    def record_step(self, step: Step[Any]) -> None:
        """Record that a step was done."""
        if step.verb == "wait":
            return
        self.items.add(f"fault: {step.verb}")
        if self._previous_verb:
            self.items.add(f"faults: {self._previous_verb}, {step.verb}")
        self._previous_verb = step.verb

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record messages and flags within this context, if the run is sampled."""
        if not self._is_sampled:
            yield
            return
        self._target.world.simulation.runtime.network.observe(self._delivered)
        with recording_flags(self.items):
            yield

    def _controller_state(self, subject: str, old: str | None, new: str | None, *_: object) -> None:
        self._add_transition("replica" if "/" in subject else "partition", old, new)

    def _group_state(self, _group: str, old: str | None, new: str | None) -> None:
        if not self._target.world.has_consumer_protocol:
            self._add_transition("group", old, new)

    def _transaction_state(self, _name: str, old: str | None, new: str | None) -> None:
        self._add_transition("transaction", old, new)

    def _record_role(self, replica: ReportedReplica) -> None:
        key = replica.where, replica.broker
        before = self._roles.get(key)
        self._roles[key] = replica.role
        if before != replica.role:
            self._add_transition("role", before, replica.role)

    def _add_transition(self, machine: str, old: str | None, new: str | None) -> None:
        if new is not None:
            self.items.add(f"state: {machine} {new}")
        if new is not None and old is not None:
            self.items.add(f"transition: {machine} {old} to {new}")

    def _delivered(self, delivery: Delivery) -> None:
        message = delivery.message
        name = type(message).__name__
        self.items.add(f"message: {name}")
        if name.endswith("Response"):
            self.items.update(f"error: {error.name}" for error in _errors_in(message))


def _errors_in(value: Any) -> Iterator[ErrorCode]:
    """Yield the error codes anywhere in a message."""
    if isinstance(value, ErrorCode):
        if value is not ErrorCode.NONE:
            yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _errors_in(one)
    elif getattr(type(value), "__module__", "").startswith(__package__.partition(".")[0]):
        for name in getattr(type(value), "__annotations__", ()):
            yield from _errors_in(getattr(value, name, None))


@contextlib.contextmanager
def recording_flags(items: set[str]) -> Iterator[None]:
    """Record which flags of a release are read; only one run of the process at a time may do so."""
    names = frozenset(Behaviour.__slots__)
    get_attribute = object.__getattribute__

    def noting(flags: Behaviour, name: str) -> Any:
        value = get_attribute(flags, name)
        if name in names:
            items.add(f"flag: {name} is {value}")
        return value

    Behaviour.__getattribute__ = noting  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        del Behaviour.__getattribute__


def reachable(kafka_version: str) -> dict[str, frozenset[str]]:
    """Return the items that can be reached in a release, for each kind with a complete table."""
    flags = behaviour(kafka_version)
    tables: tuple[tuple[str, Mapping[Any, Any], str], ...] = (
        ("partition", PARTITION_PREDECESSORS, "kafka_name"),
        ("replica", replica_predecessors(flags), "kafka_name"),
        ("group", PREVIOUS_STATES, "value"),
        ("transaction", VALID_PREVIOUS_STATES, "title"),
    )
    states: set[str] = set()
    transitions: set[str] = set()
    for machine, table, name in tables:
        if machine == "transaction" and not flags.transactions:
            continue
        for after, predecessors in table.items():
            to = getattr(after, name)
            states.add(f"{machine} {to}")
            transitions.update(
                f"{machine} {getattr(one, name)} to {to}" for one in predecessors if one != after
            )
    named = {
        _MESSAGE_NAMES.get(API_NAMES[key], API_NAMES[key]) for key in release_ranges(kafka_version)
    }
    messages = {f"{name}Request" for name in named}.intersection(message_type_names())
    flag_values = {f"{name} is {getattr(flags, name)}" for name in Behaviour.__slots__}
    return {
        "state": frozenset(states),
        "transition": frozenset(transitions),
        "message": frozenset(messages),
        "error": frozenset(error.name for error in ErrorCode if error is not ErrorCode.NONE),
        "flag": frozenset(flag_values - {f"kafka_version is {kafka_version}"}),
    }


class Reached(NamedTuple):
    """The number of items of a kind that were reached."""

    kind: str
    reached: int
    total: int | None
    """Number of items that can be reached; None if no table lists them all."""
    unreached: tuple[str, ...]
    """Names of the items that were not reached."""


def summarize(items: Iterable[str], kafka_version: str) -> list[Reached]:
    """Return for each kind which items were reached and which were not."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for item in items:
        kind, _, name = item.partition(": ")
        found[kind].add(name)
    possible = reachable(kafka_version)
    summary = []
    for kind in KINDS:
        if kind in possible:
            reached = found[kind] & possible[kind]
            unreached = tuple(sorted(possible[kind] - found[kind]))
            summary.append(Reached(kind, len(reached), len(possible[kind]), unreached))
        else:
            summary.append(Reached(kind, len(found[kind]), None, ()))
    return summary
