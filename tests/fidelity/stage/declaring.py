"""The declaration of scenarios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.fidelity.stage.stage import Stage

EVERY = ("3.9", "2.8", "1.1", "0.10")
SINCE_1_1 = ("3.9", "2.8", "1.1")
SINCE_2_8 = ("3.9", "2.8")
THREE_BROKERS = ClusterShape()


@dataclass(frozen=True)
class Scenario:
    """A function that runs on every side, with the releases and cluster that it runs on."""

    name: str
    run: Callable[[Stage], None]
    versions: Sequence[str] = EVERY
    shape: ClusterShape = THREE_BROKERS
    controller: int | None = 3
    """Id of the broker that is the controller at the start; None for any broker."""
    needs_sockets: bool = False
    """True if the scenario is not run on a simulation."""

    @property
    def about(self) -> str:
        """First line of the function's docstring."""
        return (self.run.__doc__ or self.name).strip().splitlines()[0]


class Catalogue(list[Scenario]):
    """The scenarios of one module, in order."""

    def scenario(
        self,
        versions: Sequence[str] = EVERY,
        shape: ClusterShape = THREE_BROKERS,
        controller: int | None = 3,
        *,
        needs_sockets: bool = False,
    ) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
        """Return a decorator that declares a function as a scenario of the same name."""

        def declare(run: Callable[[Stage], None]) -> Callable[[Stage], None]:
            self.append(Scenario(run.__name__, run, versions, shape, controller, needs_sockets))
            return run

        return declare
