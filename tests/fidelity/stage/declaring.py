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
    """A story that runs on every side, and where."""

    name: str
    run: Callable[[Stage], None]
    versions: Sequence[str] = EVERY
    shape: ClusterShape = THREE_BROKERS
    controller: int | None = 3
    """Who shall be the controller at the begin; None: whoever is."""
    needs_sockets: bool = False
    """It says nothing on a simulation."""

    @property
    def about(self) -> str:
        """The first line of what its function says of itself."""
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
        """Declares the decorated function; its name is the scenario's."""

        def declare(run: Callable[[Stage], None]) -> Callable[[Stage], None]:
            self.append(Scenario(run.__name__, run, versions, shape, controller, needs_sockets))
            return run

        return declare
