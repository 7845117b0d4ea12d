"""Topics are created and grown, rightly and wrongly."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.versions import behaviour
from fakekafka.tests.fidelity.stage.declaring import SINCE_1_1, SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage, as_json, creation

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario


def create(
    stage: Stage, label: str, name: str, *arguments: Any, stays: bool = False, **others: Any
) -> None:
    """Create a topic, record the response, and delete the topic if it was created."""
    tree = stage.request(label, None, "CreateTopics", **creation(name, *arguments, **others))
    if isinstance(tree, dict) and not tree["topics"][0]["errorCode"] and not stays:
        remove(stage, name)


def remove(stage: Stage, *names: str) -> None:
    stage.delete(*names)
    for name in names:
        _wait_without(stage, f"/brokers/topics/{name}")
        _wait_without(stage, f"/admin/delete_topics/{name}")


def _wait_without(stage: Stage, path: str) -> None:
    stage.wait(f"no {path}", lambda: stage.side.znode(path) is None)


@scenario()
def names_of_topics(stage: Stage) -> None:
    """Topics are created with valid and invalid names."""
    for name in ("a", "_x", "a.b", "a-b", "A9", "x" * 249):
        ends_brokers = len(name) > 200 and behaviour(stage.kafka_version).long_names_fail_deletion
        label = f"good {len(name)} {name[:4]}"
        create(stage, label, name, stays=ends_brokers, partitions=1, replicas=1)
    for name in ("", ".", "..", "a b", "a/b", "x" * 250, "a:b", "ä", "a\nb", "*"):
        create(stage, f"bad {len(name)} {name[:4]!a}", name, partitions=1, replicas=1)


@scenario()
def names_that_collide(stage: Stage) -> None:
    """A topic's name differs from another one's only by an underscore for a dot."""
    stage.create("a.b", ((1,),))
    create(stage, "underscore", "a_b", partitions=1, replicas=1)
    create(stage, "the same", "a.b", partitions=1, replicas=1)


@scenario()
def numbers_of_partitions_and_replicas(stage: Stage) -> None:
    """Topics are created with possible and impossible counts of partitions and replicas."""
    for partitions, replicas in ((1, 1), (3, 3), (2, 2)):
        label = f"{partitions} with {replicas}"
        create(stage, label, "n", partitions=partitions, replicas=replicas)
    for partitions, replicas in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 4), (0, 0), (1, 9)):
        label = f"{partitions} with {replicas}"
        create(stage, label, "n", partitions=partitions, replicas=replicas)


@scenario(SINCE_2_8)
def default_partitions_and_replicas(stage: Stage) -> None:
    """Counts of -1 take the broker's defaults for partitions and replicas (KIP-464)."""
    create(stage, "both", "n")
    create(stage, "partitions", "n", partitions=-1, replicas=2)
    create(stage, "replicas", "n", partitions=2, replicas=-1)


@scenario()
def assignments_of_new_topics(stage: Stage) -> None:
    """Topics are created with valid and invalid replica assignments."""
    for number, (label, assignment) in enumerate(
        {
            "good": ((1, 2), (2, 3)),
            "uneven": ((1,), (1, 2)),
            "duplicate": ((1, 1),),
            "unknown broker": ((9,),),
            "negative": ((-1,),),
        }.items()
    ):
        create(stage, label, f"a{number}", assignment)
    create(stage, "counts, too", "b", ((1,),), partitions=1, replicas=1)
    for label, numbers in (("gap", (0, 2)), ("from one", (1, 2)), ("twice", (0, 0))):
        fields = creation(f"c{numbers[0]}{numbers[1]}", ((1,), (1,)))
        for number, assigned in zip(numbers, fields["topics"][0]["assignments"], strict=True):
            assigned["partitionIndex"] = number
        stage.request(label, None, "CreateTopics", **fields)


@scenario(SINCE_2_8)
def topic_without_replicas(stage: Stage) -> None:
    """A topic is created with a partition without replicas, and never has a leader."""
    stage.request("create", None, "CreateTopics", **creation("e", ((),), timeout_ms=500))
    stage.topics.append("e")
    stage.look("after")


_CONFIGS = (
    *(("nope", "1"), ("retention.ms", "x"), ("retention.ms", "-2"), ("retention.ms", "")),
    *(("retention.ms", "-1"), ("cleanup.policy", "x"), ("cleanup.policy", "compact")),
    *(("cleanup.policy", "compact,delete"), ("cleanup.policy", ""), ("min.insync.replicas", "0")),
    *(("min.insync.replicas", "4"), ("segment.bytes", "1"), ("segment.bytes", "14")),
    *(("max.message.bytes", "-1"), ("compression.type", "x"), ("compression.type", "lz4")),
    *(("unclean.leader.election.enable", "maybe"), ("message.timestamp.type", "x")),
    *(("flush.messages", "0"), ("segment.ms", "0"), ("segment.jitter.ms", "-1")),
    *(("min.cleanable.dirty.ratio", "1.5"), ("min.cleanable.dirty.ratio", "0.1")),
    *(("index.interval.bytes", "-1"), ("segment.index.bytes", "3"), ("preallocate", "yes")),
    *(("file.delete.delay.ms", "-1"), ("delete.retention.ms", "-1"), ("flush.ms", "-1")),
)


@scenario()
def configurations_of_new_topics(stage: Stage) -> None:
    """Topics are created with valid and invalid configurations."""
    for name, value in _CONFIGS:
        label = f"{name}={value}"
        # The controller of 0.10 that deletes the topic reads its configuration, which throws.
        stays = stage.kafka_version == "0.10" and label == "message.timestamp.type=x"
        topic = "stays" if stays else "c"
        create(stage, label, topic, None, {name: value}, stays=stays, partitions=1, replicas=1)


@scenario(SINCE_2_8)
def throttled_replicas_of_new_topics(stage: Stage) -> None:
    """Topics are created with valid and invalid lists of throttled replicas."""
    for value in ("0:1", "*", "x", "0:1,1:2", "0", "0:", ":1", "a:b", ""):
        config = {"leader.replication.throttled.replicas": value}
        create(stage, f"throttled {value!r}", "c", None, config, partitions=1, replicas=1)


@scenario(SINCE_1_1)
def creation_is_only_validated(stage: Stage) -> None:
    """CreateTopics with validateOnly reports errors and creates nothing."""
    for label, fields in {
        "good": creation("v", partitions=1, replicas=1),
        "too many replicas": creation("v", partitions=1, replicas=9),
        "config": creation("v", None, {"nope": "x"}, partitions=1, replicas=1),
        "assignment": creation("v", ((1, 9),)),
    }.items():
        stage.request(label, None, "CreateTopics", **fields, validateOnly=True)
    stage.topics.append("v")
    stage.look("after")


@scenario(SINCE_2_8)
def several_topics_in_a_request(stage: Stage) -> None:
    """One request names a good topic, a bad one and one twice; only the good one is created."""
    fields = creation("g", ((1, 2),))
    bad = creation("b", partitions=1, replicas=9)["topics"]
    twice = creation("t", partitions=1, replicas=1)["topics"]
    stage.request(
        "mixed", None, "CreateTopics", topics=fields["topics"] + bad + twice * 2, timeoutMs=10_000
    )
    stage.topics += ["g", "b", "t"]
    stage.look("after")


@scenario(SINCE_2_8)
def created_topic_is_described(stage: Stage) -> None:
    """CreateTopics returns a topic's partitions, replicas and configuration (KIP-525)."""
    fields = creation("e", None, {"retention.ms": "5000"}, partitions=2, replicas=2)
    stage.request("create", None, "CreateTopics", 6, **fields)


@scenario()
def existing_topic_is_created_again(stage: Stage) -> None:
    """A topic is created that exists already, with and without other errors."""
    stage.create("e", ((1, 2),))
    create(stage, "again", "e", partitions=1, replicas=1)
    create(stage, "with too many replicas", "e", partitions=1, replicas=9)
    create(stage, "with a bad configuration", "e", None, {"nope": "x"}, partitions=1, replicas=1)
    create(stage, "with an unknown broker", "e", ((9,),))


@scenario()
def creation_without_time(stage: Stage) -> None:
    """CreateTopics with no time to wait reports a timeout, and the topic is created."""
    fields = creation("t", ((1, 2),), timeout_ms=0)
    stage.request("no time", None, "CreateTopics", **fields)
    stage.topics.append("t")
    stage.look("after")


def grow(stage: Stage, label: str, topic: str, count: int, *replicas: Any, **others: Any) -> None:
    assignments = [{"brokerIds": list(r)} for r in replicas] if replicas else None
    stage.request(
        label,
        None,
        "CreatePartitions",
        topics=[{"name": topic, "count": count, "assignments": assignments}],
        **{"timeoutMs": 10_000, "validateOnly": False, **others},
    )


@scenario(SINCE_1_1)
def topic_grows(stage: Stage) -> None:
    """Partitions with given replicas are added to a topic."""
    stage.create("g", ((1, 2),))
    grow(stage, "validated", "g", 3, (2, 3), (3, 1), validateOnly=True)
    stage.look("validated")
    grow(stage, "by two", "g", 3, (2, 3), (3, 1))
    stage.look("grown")
    stage.write("produce", stage.produce("g", "a", partition=2))


@scenario(SINCE_1_1)
def growth_errors(stage: Stage) -> None:
    """CreatePartitions is sent invalid counts and replicas."""
    stage.create("g", ((1, 2), (2, 1)))
    grow(stage, "same", "g", 2)
    grow(stage, "fewer", "g", 1)
    grow(stage, "none", "g", 0)
    grow(stage, "negative", "g", -1)
    grow(stage, "too few assignments", "g", 5, (2, 3))
    grow(stage, "too many assignments", "g", 3, (2, 3), (3, 1))
    grow(stage, "another number of replicas", "g", 3, (1, 2, 3))
    grow(stage, "unknown broker", "g", 3, (1, 9))
    grow(stage, "duplicate", "g", 3, (1, 1))
    grow(stage, "empty", "g", 3, ())
    grow(stage, "unknown topic", "nope", 3)
    grow(stage, "bad name", "a b", 3)
    stage.look("after")


@scenario(SINCE_1_1)
def topic_grows_with_a_broker_down(stage: Stage) -> None:
    """CreatePartitions is asked for a replica on a dead broker, and for live ones."""
    stage.create("g", ((1, 3),))
    stage.kill(2)
    grow(stage, "on the dead one", "g", 2, (2, 1))
    grow(stage, "on the living", "g", 2, (3, 1))
    stage.look("after")
    stage.start(2)


@scenario()
def topic_grows_by_znode(stage: Stage) -> None:
    """Partitions are added to a topic's znode, one of them on a dead broker."""
    stage.create("g", ((1, 2),))
    stage.kill(2)
    node = stage.observer.json_of("/brokers/topics/g")
    node["partitions"]["1"] = [2, 1]
    node["partitions"]["2"] = [3]
    stage.side.set_znode("/brokers/topics/g", as_json(node))
    stage.look("grown")
    stage.start(2)


@scenario()
def replicas_are_spread_over_racks(stage: Stage) -> None:
    """A topic's replicas are spread over two racks, from a broker drawn at random."""
    stage.request("create", None, "CreateTopics", **creation("r", partitions=6, replicas=2))
    stage.wait("it is there", lambda: stage.observer.state("r", 5) is not None)
    assignment = stage.observer.assignment("r")
    racks = {1: "a", 2: "b", 3: "a"}
    spread = all(len({racks[b] for b in replicas}) == 2 for replicas in assignment.values())
    firsts = sorted(replicas[0] for replicas in assignment.values())
    stage.write("spread", {"over both racks": spread, "leaders": firsts})
