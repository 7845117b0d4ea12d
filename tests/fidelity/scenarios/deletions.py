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
    """A topic is deleted by request, created again and deleted by znode."""
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
    """A topic with a name of 249 characters is deleted, which ends brokers of 1.1 (KAFKA-4893)."""
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
    """DeleteTopics names unknown and invalid topics, and none."""
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
    """A deletion waits for a replica on a dead broker, and ends when the broker starts."""
    stage.create("d", ((1, 2), (3, 1)))
    stage.kill(2)
    stage.request("delete", None, "DeleteTopics", topicNames=["d"], timeoutMs=1000)
    stage.look("asked for")
    stage.start(2, look=False)
    _wait_until_gone(stage)
    stage.look("deleted")


@scenario()
def deletion_survives_the_controller(stage: Stage) -> None:
    """A new controller resumes a deletion that waits for a dead broker."""
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
    """A topic that is deleted and created again on other brokers has no old records."""
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
    """With delete.topic.enable=false a topic survives deletion by request and by znode."""
    stage.create("keep", ((1, 2),))
    stage.request("delete", None, "DeleteTopics", topicNames=["keep", "nope"], timeoutMs=3000)
    stage.side.create_znode("/admin/delete_topics/keep", b"")
    stage.side.wait(lambda: stage.side.znode("/admin/delete_topics/keep") is None, 3)
    stage.look("kept")  # 0.10 leaves the znode there


@scenario(SINCE_2_8)
def deletion_by_id(stage: Stage) -> None:
    """Topics are deleted by id, by id and name, or by neither, at two brokers (KIP-516)."""
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
    """With delete.topic.enable=false DeleteTopics names topics by id and name, at two brokers."""
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
