"""The base classes of invariants and validations, and the violations that they find."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ...protocol.values import TopicPartition
from ..watch import ReportedReplica, StoredLeadership, Watch

if TYPE_CHECKING:
    from ..known import DefectTracker
    from ..world import World
    from ..worlds.load import Load

_VIOLATIONS_MAX = 8
"""Maximum number of violations recorded per invariant, as the first ones matter most."""


class Violation(NamedTuple):
    """A broken promise."""

    promise: str
    """Name of the invariant or validation."""
    text: str
    at_ms: float
    known: str = ""
    """Name of Kafka's own defect that explains the violation, such as the issue or KIP that fixed
    it; empty if no known defect explains it."""

    @property
    def signature(self) -> str:
        """The text that violations of the same kind have in common."""
        return f"{self.promise}: {self.known or shape_of(self.text)}"

    def __str__(self) -> str:
        known = f" [{self.known}]" if self.known else ""
        return f"{self.promise}{known}, at {self.at_ms:g} ms: {self.text}"


def shape_of(text: str) -> str:
    """Return the text of a violation with its numbers, names and values replaced."""
    shape = re.sub(r"b'[^']*'|\b(?:main|side|member|t|in|out)-\d+(?:-\d+)?", "*", text)
    return re.sub(r"\d+(?:\.\d+)?", "#", shape).partition("; ")[0][:120]


class ViolationLog:
    """Collects the violations of a run, and names those explained by Kafka's own defects."""

    def __init__(self, now_ms: Callable[[], float], defects: DefectTracker) -> None:
        self._now_ms = now_ms
        self._defects = defects
        self._entries: list[tuple[Violation, TopicPartition | None, int | None]] = []
        self._counts: dict[str, int] = {}

    def add(
        self,
        promise: str,
        text: str,
        where: TopicPartition | None = None,
        offset: int | None = None,
        known: str = "",
    ) -> None:
        """Record a broken promise, with the partition and the offset if known."""
        count = self._counts[promise] = self._counts.get(promise, 0) + 1
        if count <= _VIOLATIONS_MAX:
            self._entries.append((Violation(promise, text, self._now_ms(), known), where, offset))

    def violations(self) -> list[Violation]:
        """Return all violations, with names; an explanation may be found after its violation."""
        named = self._defects.defect_of
        return [
            violation._replace(known=named(violation.promise, where, offset) or violation.known)
            for violation, where, offset in self._entries
        ]


class Scene(NamedTuple):
    """The objects of a run that invariants look at, or report to."""

    world: World
    watch: Watch
    violation_log: ViolationLog
    defects: DefectTracker
    load: Load | None
    """The producers and the consumer of the permanent topics; None if the target has none."""


class Invariant:
    """A promise, whose name is the name of its class.

    To check a promise throughout the run, a subclass overrides methods ``on_...``, which the watch
    calls; to check it at the end, the method ``end``. Both report violations by ``report``.
    """

    is_validation: ClassVar[bool] = False
    """True if the promise is checked at the end only."""

    def __init__(self, scene: Scene) -> None:
        self.scene: Scene = scene
        self.watch: Watch = scene.watch

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    def attach(self) -> None:
        """Register the overridden ``on_...`` methods with the watch."""
        for name in vars(Invariant):
            if name.startswith("on_") and getattr(type(self), name) is not getattr(Invariant, name):
                self.watch.add_listener(name, getattr(self, name))

    def report(
        self,
        text: str,
        where: TopicPartition | None = None,
        offset: int | None = None,
        known: str = "",
    ) -> None:
        self.scene.violation_log.add(self.name(), text, where, offset, known)

    def end(self) -> None:
        """Check the promise on the healed cluster."""

    def on_role(self, replica: ReportedReplica) -> None:
        """Called when the role, leader, epoch or presumed ISR of a replica has changed."""

    def on_offsets(
        self, replica: ReportedReplica, log_end_offset_before: int, high_watermark_before: int
    ) -> None:
        """Called when the end or the high watermark of a log has changed."""

    def on_stored(
        self, where: TopicPartition, stored: StoredLeadership, before: StoredLeadership | None
    ) -> None:
        """Called when ZooKeeper has stored a leadership of a partition."""

    def on_controller_state(
        self, subject: str, old: str | None, new: str | None, event: str | None
    ) -> None:
        """Called when a controller changes the state of a partition or replica during an event."""

    def on_controller_idle(self, broker: int) -> None:
        """Called when a controller has handled all of its events."""

    def on_group_state(self, group: str, old: str | None, new: str | None) -> None:
        """Called when a coordinator changes the state of a group.

        ``old`` is None when it begins to coordinate the group, ``new`` when it ceases to.
        """

    def on_transaction_state(self, name: str, old: str | None, new: str | None) -> None:
        """Called when a coordinator changes the state of a transaction."""


class Validation(Invariant):
    """An invariant that holds after the faults, once the cluster has had time to recover."""

    is_validation: ClassVar[bool] = True

    def unmet_reason(self) -> str | None:
        """Return, in words, why the validation does not hold yet; None if it holds.

        The run continues until all validations hold or the time for recovery is over.
        """
        return None
