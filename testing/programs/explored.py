"""Tests with faults from outside: under ``fakekafka explore``, or written by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from ..simulation import Simulation

MARK = "kafka_faults"
"""Mark of a test with faults; its argument is the ``Director``."""
EXPLORED: pytest.StashKey[bool] = pytest.StashKey()
"""Set in the configuration of a pytest session that explores, and so decides on the seeds."""


class Director(Protocol):
    """Injects faults into the simulation of a test."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the simulation, which override those of the test."""
        ...

    def begin(self, simulation: Simulation) -> None:
        """Begin to act; called when the simulation has started, before the test."""
        ...


def director_of(node: Any) -> Director | None:
    """Return the director of a test; None for most tests."""
    mark = node.get_closest_marker(MARK)
    return None if mark is None else mark.args[0]


def decides_seeds(metafunc: pytest.Metafunc) -> bool:
    """Return whether the seeds of a test come from outside, as its faults do."""
    if metafunc.config.stash.get(EXPLORED, False):
        return True
    return metafunc.definition.get_closest_marker(MARK) is not None


def leave_out_other_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the other cases of parametrized tests that were written for one case."""
    others = [item for item in items if _is_other_case(item)]
    if others:
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)


def _is_other_case(item: Any) -> bool:
    mark = item.get_closest_marker(MARK)
    case = None if mark is None else mark.kwargs.get("case")
    return case is not None and getattr(getattr(item, "callspec", None), "id", None) != case
