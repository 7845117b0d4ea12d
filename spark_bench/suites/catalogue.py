"""The suites there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .failover import FailoverParameters, run_failover


class Suite(NamedTuple):
    """A kind of run that can be repeated over many seeds."""

    parameters: type[Any]
    """A dataclass with ``checked``; its fields are columns of the run rows."""
    run: Callable[[int, Any], dict[str, Any]]
    """Function of seed and parameters; gives the run row and the histograms."""
    about: str


SUITES: dict[str, Suite] = {
    "failover": Suite(
        FailoverParameters,
        run_failover,
        "the leader of a partition crashes under load; how long that is felt",
    ),
}
"""Name to suite."""
