"""Settings of explorations."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class Explored(Protocol):
    """Settings that every exploration has."""

    @property
    def seed(self) -> int: ...

    @property
    def runs(self) -> int: ...

    def as_dict(self) -> dict[str, Any]:
        """Return what has to be the same for an exploration to go on."""
        ...


class Settings(NamedTuple):
    """The release, the seeds and the promises."""

    kafka_version: str
    seed: int
    """Of the first run; the others count up."""
    runs: int
    only: frozenset[str] | None = None
    """Promises that are watched; None: all."""
    target: str | None = None
    """The only one that is attacked; None: all in turn."""

    def as_dict(self) -> dict[str, Any]:
        """Return what has to be the same for an exploration to go on; the number of runs may
        grow."""
        return {
            "kafka_version": self.kafka_version,
            "seed": self.seed,
            "only": None if self.only is None else sorted(self.only),
            "target": self.target,
        }
