"""Settings of explorations."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class Explored(Protocol):
    """The settings that every exploration has."""

    @property
    def seed(self) -> int: ...

    @property
    def runs(self) -> int: ...

    def as_dict(self) -> dict[str, Any]:
        """Return the settings that must be unchanged for the exploration to be resumed."""
        ...


class Settings(NamedTuple):
    """The settings of an exploration of clusters."""

    kafka_version: str
    seed: int
    """Seed of the first run; each further run adds one."""
    runs: int
    only: frozenset[str] | None = None
    """Names of the promises to watch; None for all of them."""
    target: str | None = None
    """Name of the only target; None for all targets in turn."""

    def as_dict(self) -> dict[str, Any]:
        """Return the settings that must be unchanged for the exploration to be resumed.

        The number of runs may change.
        """
        return {
            "kafka_version": self.kafka_version,
            "seed": self.seed,
            "only": None if self.only is None else sorted(self.only),
            "target": self.target,
        }
