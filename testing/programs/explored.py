"""Tests that faults come to from outside: ``fakekafka explore``, and the tests that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from ..simulation import Simulation

MARK = "kafka_faults"
"""Of a test with faults; its argument brings them."""
EXPLORED: pytest.StashKey[bool] = pytest.StashKey()
"""Set in the configuration of a session of pytest that explores: it decides on the seeds."""


class Director(Protocol):
    """Brings faults to the simulation of a test."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the simulation that win over those of the test."""
        ...

    def begin(self, simulation: Simulation) -> None:
        """The simulation has been started; the test comes next."""
        ...


def director_of(node: Any) -> Director | None:
    """Return what brings faults to a test; None for most tests."""
    mark = node.get_closest_marker(MARK)
    return None if mark is None else mark.args[0]


def decides_seeds(metafunc: pytest.Metafunc) -> bool:
    """Return whether the seeds of a test come from outside, too."""
    if metafunc.config.stash.get(EXPLORED, False):
        return True
    return metafunc.definition.get_closest_marker(MARK) is not None


def leave_out_other_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that was written for one case of a parametrized one is run for that one alone."""
    others = [item for item in items if _is_other_case(item)]
    if others:
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)


def _is_other_case(item: Any) -> bool:
    mark = item.get_closest_marker(MARK)
    case = None if mark is None else mark.kwargs.get("case")
    return case is not None and getattr(getattr(item, "callspec", None), "id", None) != case
