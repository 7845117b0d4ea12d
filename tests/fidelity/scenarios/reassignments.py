"""Partitions move: by request, by znode, stuck, overridden, cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fakekafka.tests.fidelity.stage.declaring import SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage, as_json

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario
_ZNODE = "/admin/reassign_partitions"
Moves = Mapping[int, Sequence[int] | None]


def move(
    stage: Stage, label: str, topic: str, moves: Moves, *, look: bool = True, timeout: int = 10_000
) -> None:
    """Request moves; with ``look``, wait until the cluster has settled."""
    partitions = [{"partitionIndex": n, "replicas": to} for n, to in moves.items()]
    stage.request(
        label,
        None,
        "AlterPartitionReassignments",
        timeoutMs=timeout,
        topics=[{"name": topic, "partitions": partitions}],
    )
    if look:
        stage.look(f"after: {label}")


def begin_move_to_a_frozen_broker(stage: Stage, moves: Moves) -> None:
    """Freeze broker 2, and then request moves of topic r."""
    stage.side.freeze(2)
    move(stage, "start", "r", moves, look=False)
    stage.wait_gone(2)


def ongoing(stage: Stage, label: str, topics: Sequence[str] | None = None) -> None:
    asked = None
    if topics is not None:
        asked = [{"name": name, "partitionIndexes": [0, 1, 2, 9]} for name in topics]
    stage.request(label, None, "ListPartitionReassignments", timeoutMs=10_000, topics=asked)


@scenario(SINCE_2_8)
def reassign_by_request(stage: Stage) -> None:
    """Partitions are moved, replaced, grown, shrunk and reordered by request."""
    stage.create("r", ((1,), (1, 2), (1, 2, 3), (1, 2), (2, 3)))
    stage.write("produce", stage.produce("r", "a", "b", "c"))
    stage.look("created")
    move(stage, "move", "r", {0: [2]})
    stage.write("content", stage.fetch("r"))
    move(stage, "replace one", "r", {1: [1, 3]})
    move(stage, "replace the leader", "r", {1: [2, 3]})
    move(stage, "shrink", "r", {2: [3]})
    move(stage, "grow", "r", {0: [2, 1, 3]})
    move(stage, "reorder", "r", {3: [2, 1]})
    move(stage, "same", "r", {4: [2, 3]})
    ongoing(stage, "ongoing")


@scenario(SINCE_2_8)
def reassign_many_at_once(stage: Stage) -> None:
    """One request reassigns many partitions."""
    stage.create("r", ((1, 2), (2, 3), (3, 1), (1, 2)))
    move(stage, "all", "r", {0: [2, 3], 1: [3, 1], 2: [1, 2], 3: [3, 2]})


@scenario(SINCE_2_8)
def reassign_errors(stage: Stage) -> None:
    """Reassignments are requested with invalid targets, and cancelled where there are none."""
    stage.create("r", ((1, 2), (2, 3)))
    errors: dict[str, Moves] = {
        "empty": {0: []},
        "duplicate": {0: [1, 1]},
        "negative": {0: [-1]},
        "unknown broker": {0: [1, 9]},
        "unknown partition": {9: [1]},
        "negative partition": {-1: [1]},
        "cancel nothing": {0: None},
        "cancel unknown": {9: None},
        "mixed": {0: [1, 3], 9: [1], 1: None},
    }
    for label, moves in errors.items():
        move(stage, label, "r", moves, look=False)
    move(stage, "unknown topic", "nope", {0: [1]}, look=False)
    move(stage, "no partitions", "r", {}, look=False)
    stage.look("after the errors")
    ongoing(stage, "ongoing of some", ["r", "nope"])
    ongoing(stage, "ongoing of none", [])


@scenario(SINCE_2_8)
def reassign_with_a_dead_broker(stage: Stage) -> None:
    """Partitions with a replica on a dead broker are reassigned."""
    stage.create("r", ((1, 2), (2, 1), (2,)))
    stage.kill(2)
    move(stage, "to a dead one", "r", {0: [1, 2, 3]})
    move(stage, "away from it", "r", {1: [1, 3]})
    move(stage, "away from a dead leader", "r", {2: [3]})
    ongoing(stage, "ongoing")
    stage.start(2)


@scenario(SINCE_2_8)
def reassign_to_a_broker_that_dies(stage: Stage) -> None:
    """The target of two moves loses its session; one is overridden, the other cancelled."""
    stage.create("r", ((1, 3), (1,), (3, 1)))
    stage.write("produce", stage.produce("r", "a"))
    begin_move_to_a_frozen_broker(stage, {0: [1, 2], 1: [2]})
    stage.look("target is gone")
    ongoing(stage, "ongoing")
    move(stage, "override", "r", {0: [3]})
    move(stage, "cancel", "r", {1: None})
    ongoing(stage, "ongoing in the end")
    stage.thaw(2)


@scenario(SINCE_2_8)
def reassign_goes_on_after_the_target_is_back(stage: Stage) -> None:
    """The target of a move loses its session, and the move ends when it has caught up."""
    stage.create("r", ((1, 3),))
    stage.write("produce", stage.produce("r", "a"))
    begin_move_to_a_frozen_broker(stage, {0: [2, 3]})
    stage.look("target is gone")
    stage.thaw(2)
    stage.write("content", stage.fetch("r"))


@scenario(SINCE_2_8, controller=3)
def reassign_survives_the_controller(stage: Stage) -> None:
    """The controller changes during a move."""
    stage.create("r", ((1,),))
    begin_move_to_a_frozen_broker(stage, {0: [2]})
    epoch = stage.observer.controller_epoch()
    stage.side.delete_znode("/controller")
    stage.wait("another controller", lambda: stage.observer.controller_epoch() > epoch)
    stage.look("another controller")
    stage.thaw(2)


@scenario(SINCE_2_8)
def partitions_are_added_during_a_move(stage: Stage) -> None:
    """Partitions are added to a topic while another of its partitions moves."""
    stage.create("r", ((1, 3),))
    begin_move_to_a_frozen_broker(stage, {0: [1, 2]})
    stage.request(
        "grow",
        None,
        "CreatePartitions",
        topics=[{"name": "r", "count": 2, "assignments": [{"brokerIds": [1, 3]}]}],
        timeoutMs=5000,
        validateOnly=False,
    )
    stage.look("grown")
    stage.thaw(2)


@scenario(SINCE_2_8)
def topic_is_deleted_during_a_move(stage: Stage) -> None:
    """A topic is deleted while its partition moves to a dead broker."""
    stage.create("r", ((1, 3),))
    begin_move_to_a_frozen_broker(stage, {0: [1, 2]})
    stage.write("delete", stage.normalised(stage.delete("r")))
    stage.look("deletion asked for")
    ongoing(stage, "ongoing")
    stage.thaw(2, look=False)
    stage.wait("it is gone", lambda: stage.side.znode("/brokers/topics/r") is None)
    stage.look("deleted")


def by_znode(stage: Stage, label: str, topic: str, moves: Mapping[int, Sequence[int]]) -> None:
    partitions = [
        {"topic": topic, "partition": number, "replicas": list(to)} for number, to in moves.items()
    ]
    stage.side.create_znode(_ZNODE, as_json({"version": 1, "partitions": partitions}))
    stage.wait("the moves have ended", lambda: stage.side.znode(_ZNODE) is None)
    stage.look(label)


@scenario()
def reassign_by_znode(stage: Stage) -> None:
    """Partitions are moved, replaced and shrunk by the znode of Kafka's tools."""
    stage.create("z", ((1,), (1, 2), (1, 2, 3)))
    stage.write("produce", stage.produce("z", "a", "b"))
    by_znode(stage, "moved", "z", {0: [2], 1: [1, 3], 2: [3, 2]})
    by_znode(stage, "same again", "z", {0: [2], 1: [1, 3]})
    stage.write("content", stage.fetch("z"))


@scenario()
def reassign_by_znode_what_is_not_there(stage: Stage) -> None:
    """The znode of reassignments names an unknown topic and an unknown partition."""
    stage.create("z", ((1, 2),))
    by_znode(stage, "unknown topic", "nope", {0: [1]})
    by_znode(stage, "unknown partition", "z", {9: [1]})


@scenario()
def reassign_by_znode_to_a_dead_broker(stage: Stage) -> None:
    """The znode of reassignments moves a partition to a dead broker, which then starts."""
    stage.create("z", ((1, 3), (3,)))
    stage.kill(2)
    partitions = [{"topic": "z", "partition": 0, "replicas": [1, 2]}]
    stage.side.create_znode(_ZNODE, as_json({"version": 1, "partitions": partitions}))
    stage.look("asked for")
    stage.start(2)
    stage.wait("the move has ended", lambda: stage.side.znode(_ZNODE) is None)
    stage.look("in the end")
