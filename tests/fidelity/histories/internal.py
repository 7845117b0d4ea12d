"""The topics of coordinators, which are kept between histories and led as each history asks.

They are not deleted, because a broker remembers the epoch in which it coordinated groups after the
deletion of their topic, and takes the lower epochs of the next topic for old ones
(maybeUpdateCoordinatorEpoch of GroupMetadataManager).
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekafka.tests.fidelity.stage.stage import Stage, as_json

_MOVES = "/admin/reassign_partitions"
_ELECTION = "/admin/preferred_replica_election"


def provide(stage: Stage, topic: str, replicas: Sequence[int]) -> None:
    """Create or move the topic so that its one partition has these replicas, led by the first.

    An existing topic is moved by znodes, which all releases support.
    """
    observer, side = stage.observer, stage.side
    assigned = observer.assignment(topic).get(0)
    if assigned is None:
        stage.create(topic, (replicas,), {"cleanup.policy": "compact"})
        stage.topics.remove(topic)
        return

    def is_led(by: int) -> bool:
        state = observer.state(topic, 0)
        return state is not None and state["leader"] == by and state["isr"] == sorted(replicas)

    if assigned != list(replicas):
        move = {"topic": topic, "partition": 0, "replicas": list(replicas)}
        side.create_znode(_MOVES, as_json({"version": 1, "partitions": [move]}))
        stage.wait(f"{topic} is moved", lambda: side.znode(_MOVES) is None)
    if not is_led(replicas[0]):
        led = {"topic": topic, "partition": 0}
        side.create_znode(_ELECTION, as_json({"version": 1, "partitions": [led]}))
        stage.wait(f"{topic} has its leader", lambda: is_led(replicas[0]))
        stage.wait("the election is over", lambda: side.znode(_ELECTION) is None)
