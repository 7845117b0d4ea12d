"""Every order in which three brokers crash or stop, and start again.

Topics place their leaders in every order, so the order in which brokers go makes no difference:
here it is 1, 2, 3. What matters is how each broker goes, and the order in which they restart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from fakekafka.tests.fidelity.stage import topics
from fakekafka.tests.fidelity.stage.declaring import Catalogue, Scenario
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()


def go_and_come(stage: Stage, ways: Sequence[str], order: Sequence[int]) -> None:
    """Crash or stop brokers 1, 2, 3 as ``ways`` says, restart them in order, and write records."""
    topics.create_all(stage)
    topics.write(stage, "with all")
    for broker, way in zip((1, 2, 3), ways, strict=True):
        if way == "crash":
            stage.kill(broker)
        else:
            stage.stop(broker)
        if broker < 3:
            topics.write(stage, f"after {broker} went")
    for broker in order:
        stage.start(broker)
        topics.write(stage, f"after {broker} came")
    topics.read(stage)


def _declare(ways: Sequence[str], order: Sequence[int]) -> None:
    def run(stage: Stage) -> None:
        go_and_come(stage, ways, order)

    gone = "_".join(ways)
    back = "".join(map(str, order))
    restarts = ", ".join(map(str, order))
    run.__doc__ = f"Brokers 1, 2, 3 {', '.join(ways)}, and restart in the order {restarts}."
    SCENARIOS.append(Scenario(f"{gone}_start_{back}", run))


for _ways in itertools.product(("crash", "stop"), repeat=3):
    for _order in itertools.permutations((1, 2, 3)):
        _declare(_ways, _order)
