"""Invariants, and what they find."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ...protocol.values import TopicPartition
from ..watch import SeenReplica, Stored, Watch

if TYPE_CHECKING:
    from ..known import Known
    from ..world import World
    from ..worlds.load import Load

_MOST = 8
"""Violations that one invariant tells of; the first ones matter."""


class Violation(NamedTuple):
    """A promise that was broken."""

    promise: str
    """Name of the invariant or validation."""
    text: str
    at_ms: float
    known: str = ""
    """Where Kafka itself breaks it: the issue or the KIP that mended this, or where it is
    described. Empty: nothing known explains it."""

    @property
    def signature(self) -> str:
        """The words that it shares with others of its kind."""
        return f"{self.promise}: {self.known or shape_of(self.text)}"

    def __str__(self) -> str:
        known = f" [{self.known}]" if self.known else ""
        return f"{self.promise}{known}, at {self.at_ms:g} ms: {self.text}"


def shape_of(text: str) -> str:
    """A text without its numbers, names and values."""
    shape = re.sub(r"b'[^']*'|\b(?:main|side|member|t|in|out)-\d+(?:-\d+)?", "*", text)
    return re.sub(r"\d+(?:\.\d+)?", "#", shape).partition("; ")[0][:120]


class Found:
    """Violations found while the run goes on; Kafka's own are named."""

    def __init__(self, now_ms: Callable[[], float], known: Known) -> None:
        self._now_ms = now_ms
        self._known = known
        self._told: list[tuple[Violation, TopicPartition | None, int | None]] = []
        self._counts: dict[str, int] = {}

    def tell(
        self,
        promise: str,
        text: str,
        where: TopicPartition | None = None,
        offset: int | None = None,
        known: str = "",
    ) -> None:
        """Note that a promise is broken, at an offset of a partition where that is known."""
        count = self._counts[promise] = self._counts.get(promise, 0) + 1
        if count <= _MOST:
            self._told.append((Violation(promise, text, self._now_ms(), known), where, offset))

    def violations(self) -> list[Violation]:
        """All, each with the name that it has; what explains one may come after it."""
        named = self._known.name_of
        return [
            violation._replace(known=named(violation.promise, where, offset) or violation.known)
            for violation, where, offset in self._told
        ]


class Scene(NamedTuple):
    """The scene that invariants look at."""

    world: World
    watch: Watch
    found: Found
    known: Known
    load: Load | None
    """The producers and the consumer of the topics that are never deleted, where there are any."""


class Invariant:
    """A promise with a name, which is the name of its class.

    One that watches the run has methods ``on_...``, which the watch calls. One that is asked at the
    end has ``end``. Both call ``tell``.
    """

    is_validation: ClassVar[bool] = False
    """Whether it is asked at the end only."""

    def __init__(self, scene: Scene) -> None:
        self.scene: Scene = scene
        self.watch: Watch = scene.watch

    @classmethod
    def name(cls) -> str:
        return cls.__name__

    def attach(self) -> None:
        """Hear of what it has methods for."""
        for name in vars(Invariant):
            if name.startswith("on_") and getattr(type(self), name) is not getattr(Invariant, name):
                self.watch.hear(name, getattr(self, name))

    def tell(
        self,
        text: str,
        where: TopicPartition | None = None,
        offset: int | None = None,
        known: str = "",
    ) -> None:
        self.scene.found.tell(self.name(), text, where, offset, known)

    def end(self) -> None:
        """Look at the healed cluster."""

    def on_role(self, replica: SeenReplica) -> None:
        """A replica has another role, leader, epoch or presumed ISR."""

    def on_offsets(self, replica: SeenReplica, end_before: int, mark_before: int) -> None:
        """The end or the high watermark of a log has moved."""

    def on_stored(self, where: TopicPartition, stored: Stored, before: Stored | None) -> None:
        """ZooKeeper has another leadership of a partition."""

    def on_controller_state(
        self, subject: str, old: str | None, new: str | None, event: str | None
    ) -> None:
        """A controller has another state of a partition or a replica, while it handles an event."""

    def on_controller_idle(self, broker: int) -> None:
        """A controller has nothing left to do."""

    def on_group_state(self, group: str, old: str | None, new: str | None) -> None:
        """A coordinator has another state of a group; None: it begins or ends to coordinate it."""

    def on_transaction_state(self, name: str, old: str | None, new: str | None) -> None:
        """A coordinator has another state of a transaction."""


class Validation(Invariant):
    """Invariant that holds once the faults have ended and the cluster has had time to recover."""

    is_validation: ClassVar[bool] = True

    def lacking(self) -> str | None:
        """Return what keeps it from holding now, in words. The run goes on until all lack nothing,
        or the time for that is over."""
        return None
