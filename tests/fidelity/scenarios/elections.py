"""Elections by request and by znode, and those that the controller starts by itself."""

from __future__ import annotations

from typing import Any

from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.fidelity.stage import topics
from fakekafka.tests.fidelity.stage.declaring import SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage, as_json

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario
_PREFERRED, _UNCLEAN = 0, 1
_REBALANCING = ClusterShape(
    config=(
        ("auto.leader.rebalance.enable", "true"),
        ("leader.imbalance.check.interval.seconds", "3"),
    )
)
_ZNODE = "/admin/preferred_replica_election"


def elect(
    stage: Stage, label: str, kind: int, partitions: dict[str, list[int]] | None, **others: Any
) -> None:
    asked = None
    if partitions is not None:
        asked = [{"topic": name, "partitions": p} for name, p in partitions.items()]
    broker = others.pop("broker", None)
    stage.request(
        label,
        broker,
        "ElectLeaders",
        electionType=kind,
        topicPartitions=asked,
        **{"timeoutMs": 10_000, **others},
    )


@scenario(SINCE_2_8)
def preferred_election_of_some_and_all(stage: Stage) -> None:
    """After a restart the preferred leaders are elected, of some partitions and of all."""
    stage.create("p", topics.THREE)
    stage.create("q", topics.TWO)
    stage.stop(1)
    stage.start(1)
    elect(stage, "not needed", _PREFERRED, {"p": [1]})
    elect(stage, "some", _PREFERRED, {"p": [0, 1], "q": [0]})
    stage.look("some elected")
    elect(stage, "all", _PREFERRED, None)
    stage.look("all elected")


@scenario(SINCE_2_8)
def preferred_election_errors(stage: Stage) -> None:
    """ElectLeaders names wrong topics and partitions, also at a broker that is no controller."""
    stage.create("p", ((1, 2), (2, 1)))
    elect(stage, "unknown topic", _PREFERRED, {"nope": [0]})
    elect(stage, "unknown partition", _PREFERRED, {"p": [9, -1]})
    elect(stage, "nothing", _PREFERRED, {})
    elect(stage, "no partitions", _PREFERRED, {"p": []})
    elect(stage, "twice", _PREFERRED, {"p": [0, 0]})
    elect(stage, "another broker", _PREFERRED, {"p": [0]}, broker=1)
    elect(stage, "no time", _PREFERRED, {"p": [0]}, timeoutMs=0)
    stage.kill(1)
    elect(stage, "preferred is down", _PREFERRED, {"p": [0, 1]})
    elect(stage, "all", _PREFERRED, None)
    stage.look("after")


@scenario(SINCE_2_8)
def unclean_election_by_request(stage: Stage) -> None:
    """ElectLeaders elects a leader from outside the ISR, which the topic does not allow."""
    stage.create("u", ((1, 2), (2, 1), (1, 3)))
    stage.write("both", stage.produce("u", "a"))
    elect(stage, "not needed", _UNCLEAN, {"u": [0, 1, 2]})
    stage.kill(2, look=False)
    stage.write("alone", stage.produce("u", "b"))
    stage.kill(1)
    elect(stage, "nobody is alive", _UNCLEAN, {"u": [0, 1, 2, 7], "nope": [0]})
    stage.start(2)
    elect(stage, "unclean", _UNCLEAN, {"u": [0, 1]})
    stage.look("elected")
    stage.write("content", stage.fetch("u"))
    stage.start(1)
    stage.write("content in the end", stage.fetch("u"))


@scenario()
def unclean_election_is_switched_on(stage: Stage) -> None:
    """Unclean elections are allowed for a topic while its partition has no leader."""
    stage.create("u", ((1, 2),))
    stage.kill(2, look=False)
    stage.write("alone", stage.produce("u", "a"))
    stage.kill(1, look=False)
    stage.start(2)
    stage.set_config_znode("topics", "u", topics.UNCLEAN)
    stage.look("switched on")
    stage.start(1)


@scenario()
def preferred_election_by_znode(stage: Stage) -> None:
    """Preferred leaders are elected by znode, also for dead leaders and unknown partitions."""
    stage.create("p", ((1, 2, 3), (2, 3), (3,)))

    def ask(label: str, *partitions: tuple[str, int]) -> None:
        asked = [{"topic": name, "partition": number} for name, number in partitions]
        stage.side.create_znode(_ZNODE, as_json({"version": 1, "partitions": asked}))
        stage.side.wait(lambda: stage.side.znode(_ZNODE) is None, 8)  # where it stays, looks say so
        stage.look(label)

    stage.stop(1)
    ask("preferred is down", ("p", 0), ("p", 1), ("p", 2), ("p", 9), ("nope", 0))
    stage.start(1)
    ask("preferred is back", ("p", 0), ("p", 1))


@scenario(shape=_REBALANCING)
def automatic_rebalance(stage: Stage) -> None:
    """The controller moves leaders back by itself when too many are not the preferred ones."""
    stage.create("a", ((1, 2), (2, 1), (1, 2), (2, 1)))
    stage.create("b", ((1, 2, 3),))
    stage.stop(1, look=False)
    stage.start(1, look=False)
    stage.wait("leaders are back", lambda: stage.leader("a") == 1 and stage.leader("b") == 1)
    stage.pass_time(1)
    stage.look("rebalanced")


@scenario(SINCE_2_8)
def only_the_controller_carries_out(stage: Stage) -> None:
    """A broker that is not the controller gets administrative requests, which it refuses."""
    stage.create("c", ((1, 2),))
    elect(stage, "elect", _PREFERRED, {"c": [0]}, broker=1)
    stage.request("delete", 1, "DeleteTopics", topicNames=["nope"], timeoutMs=5000)
    stage.request(
        "grow",
        1,
        "CreatePartitions",
        topics=[{"name": "c", "count": 2, "assignments": None}],
        timeoutMs=5000,
        validateOnly=False,
    )
    stage.request(
        "reassign",
        1,
        "AlterPartitionReassignments",
        timeoutMs=5000,
        topics=[{"name": "c", "partitions": [{"partitionIndex": 0, "replicas": [3]}]}],
    )
    stage.look("after")
    stage.request("reassignments", 1, "ListPartitionReassignments", timeoutMs=5000, topics=None)
