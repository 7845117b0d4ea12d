"""Topics are deleted, rightly and wrongly, with brokers that are down, and where it is disabled."""

from __future__ import annotations

import base64
from typing import Any

from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.fidelity.stage.declaring import SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario
_NO_DELETION = ClusterShape(config=(("delete.topic.enable", "false"),))


def _wait_until_gone(stage: Stage) -> None:
    stage.wait("it is gone", lambda: stage.side.znode("/brokers/topics/d") is None)


@scenario()
def topic_is_deleted(stage: Stage) -> None:
    """With all brokers up, by request and by znode, and created again."""
    stage.create("d", ((1, 2, 3), (2, 3, 1)))
    stage.write("produce", stage.produce("d", "a"))
    stage.write("delete", stage.normalised(stage.delete("d")))
    _wait_until_gone(stage)
    stage.look("deleted")
    stage.topics.remove("d")
    stage.create("d", ((2, 1),))
    stage.write("content", stage.fetch("d"))
    stage.side.create_znode("/admin/delete_topics/d", b"")
    _wait_until_gone(stage)
    stage.look("deleted by znode")


@scenario()
def deletion_of_a_long_name(stage: Stage) -> None:
    """Brokers of 1.1 end, as no file system takes the name that its log would get (KAFKA-4893)."""
    name = "x" * 249
    stage.create(name, ((1,),))
    stage.write("delete", stage.normalised(stage.delete(name)))

    def is_over() -> bool:
        is_there = stage.side.znode(f"/brokers/topics/{name}") is not None
        return not is_there or 1 not in stage.observer.registered()

    stage.side.wait(is_over, 10)
    stage.side.up.intersection_update(stage.observer.registered())
    stage.look("deleted")


@scenario()
def deletion_errors(stage: Stage) -> None:
    """Topics that are not there, named twice, or with names that cannot be."""
    stage.create("d", ((1, 2),))
    stage.write("unknown", stage.normalised(stage.delete("nope")))
    stage.write("bad names", stage.normalised(stage.delete("a b", "")))
    stage.write("none", stage.normalised(stage.delete()))
    stage.side.create_znode("/admin/delete_topics/never", b"")
    stage.look("an unknown topic by znode")
    stage.write("known and unknown", stage.normalised(stage.delete("nope", "d")))
    _wait_until_gone(stage)
    stage.look("after")


@scenario()
def deletion_with_a_dead_replica(stage: Stage) -> None:
    """The deletion waits for the dead broker, and ends when it starts."""
    stage.create("d", ((1, 2), (3, 1)))
    stage.kill(2)
    stage.request("delete", None, "DeleteTopics", topicNames=["d"], timeoutMs=1000)
    stage.look("asked for")
    stage.start(2, look=False)
    _wait_until_gone(stage)
    stage.look("deleted")


@scenario()
def deletion_survives_the_controller(stage: Stage) -> None:
    """Another controller goes on with a deletion that waits."""
    stage.create("d", ((1, 2),))
    stage.kill(2, look=False)
    stage.request("delete", None, "DeleteTopics", topicNames=["d"], timeoutMs=1000)
    epoch = stage.observer.controller_epoch()
    stage.side.delete_znode("/controller")
    stage.wait("another controller", lambda: stage.observer.controller_epoch() > epoch)
    stage.look("another controller")
    stage.start(2, look=False)
    _wait_until_gone(stage)
    stage.look("deleted")


@scenario()
def broker_dies_after_a_deletion(stage: Stage) -> None:
    """A topic that is deleted and created again with other replicas has nothing of the old one."""
    stage.create("d", ((1, 2),))
    stage.write("old", stage.produce("d", "old"))
    stage.delete("d")
    _wait_until_gone(stage)
    stage.topics.remove("d")
    stage.create("d", ((2, 3),))
    stage.write("new", [stage.produce("d", "new"), stage.fetch("d")])
    stage.kill(2)
    stage.write("content", stage.fetch("d"))
    stage.start(2)


@scenario(shape=_NO_DELETION)
def deletion_is_disabled(stage: Stage) -> None:
    """By request it is refused, a znode is thrown away."""
    stage.create("keep", ((1, 2),))
    stage.request("delete", None, "DeleteTopics", topicNames=["keep", "nope"], timeoutMs=3000)
    stage.side.create_znode("/admin/delete_topics/keep", b"")
    stage.side.wait(lambda: stage.side.znode("/admin/delete_topics/keep") is None, 3)
    stage.look("kept")  # 0.10 leaves the znode there


@scenario(SINCE_2_8)
def deletion_by_id(stage: Stage) -> None:
    """By id, by id and name, by neither (KIP-516), at the controller and at another broker."""
    stage.create("d", ((1, 2),))
    asked = _asked_for(stage, "d")
    for where, broker in (("another broker", 1), ("the controller", 3)):
        for label, topics in asked.items():
            if (label, broker) != ("id", 3):
                _delete_by_id(stage, f"{label} at {where}", broker, topics)
    _delete_by_id(stage, "id at the controller", 3, asked["id"])
    _wait_until_gone(stage)
    stage.look("deleted")


@scenario(SINCE_2_8, shape=_NO_DELETION)
def deletion_by_id_is_disabled(stage: Stage) -> None:
    """Topics are told as they were asked for, at the controller and at another broker."""
    stage.create("keep", ((1, 2),))
    for where, broker in (("another broker", 1), ("the controller", 3)):
        for label, topics in _asked_for(stage, "keep").items():
            _delete_by_id(stage, f"{label} at {where}", broker, topics)


def _asked_for(stage: Stage, topic: str) -> dict[str, list[dict[str, Any]]]:
    node = stage.observer.json_of(f"/brokers/topics/{topic}")
    topic_id = base64.urlsafe_b64decode(node["topic_id"] + "==").hex()
    neither = {"name": None, "topicId": "0" * 32}
    unknown = {"name": None, "topicId": "7" * 32}
    stranger = {"name": "nope", "topicId": "0" * 32}
    both = {"name": topic, "topicId": topic_id}
    return {
        "neither": [neither],
        "unknown id": [unknown],
        "several": [stranger, unknown],
        "both": [both],
        "both beside another": [both, stranger],
        "id": [{"name": None, "topicId": topic_id}],
    }


def _delete_by_id(stage: Stage, label: str, broker: int, topics: list[dict[str, Any]]) -> None:
    stage.request(label, broker, "DeleteTopics", 6, topics=topics, timeoutMs=3000)
