"""Brokers describe their versions, metadata, cluster, log directories and znodes."""

from __future__ import annotations

from typing import Any

from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.fidelity.stage.declaring import (
    EVERY,
    SINCE_1_1,
    SINCE_2_8,
    THREE_BROKERS,
    Catalogue,
)
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario
_TWO_DIRECTORIES = ClusterShape(brokers=2, config=(("log.dirs", "first,second"),))
_UNTIL_1_1 = ("1.1", "0.10")


@scenario(SINCE_1_1, controller=None)
def offered_versions(stage: Stage) -> None:
    """ApiVersions is asked in each of its versions."""
    for version in range(stage.version("ApiVersions") + 1):
        tree = stage.ask(
            1, "ApiVersions", version, clientSoftwareName="judge", clientSoftwareVersion="1.0"
        )
        stage.write(f"version {version}", stage.normalised(tree))


@scenario(SINCE_2_8, controller=None)
def offered_versions_to_a_client_with_a_bad_name(stage: Stage) -> None:
    """ApiVersions checks the name and version of the client's software (KIP-511)."""
    for name, version in (("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a.b-c", "1.2-x")):
        tree = stage.ask(
            1, "ApiVersions", 3, clientSoftwareName=name, clientSoftwareVersion=version
        )
        if isinstance(tree, dict):
            tree = {"errorCode": tree["errorCode"], "count": len(tree["apiKeys"])}
        stage.write(f"{name!r} {version!r}", stage.normalised(tree))


def metadata(stage: Stage, label: str, names: list[str] | None, **others: Any) -> None:
    broker = others.pop("broker", 1)
    topics = None if names is None else [{"name": name} for name in names]
    fields = {"topics": topics, "allowAutoTopicCreation": False, **others}
    stage.request(label, broker, "Metadata", **fields)


@scenario(EVERY)
def metadata_of_topics(stage: Stage) -> None:
    """Metadata is asked for some, no, all, unknown and invalid topics, with a broker down."""
    stage.create("m", ((1, 2, 3), (3, 2), (3,)))
    metadata(stage, "some", ["m"])
    metadata(stage, "none", [])
    stage.kill(3, look=False)
    stage.pass_time(1)
    for broker in (1, 2):
        metadata(stage, f"by {broker}", ["m"], broker=broker)
    if stage.kafka_version != "0.10":
        metadata(stage, "unknown", ["nope", "m"])
        metadata(stage, "cannot be", ["a b", "..", ""])
    metadata(stage, "all", None)
    if stage.kafka_version in SINCE_2_8:
        metadata(stage, "with operations", ["m"], includeTopicAuthorizedOperations=True)
    stage.start(3, look=False)


@scenario(SINCE_1_1)
def metadata_creates_topics(stage: Stage) -> None:
    """Metadata creates a missing topic if both broker and client allow it."""
    metadata(stage, "not wanted", ["made"])
    metadata(stage, "wanted", ["made"], allowAutoTopicCreation=True)
    stage.wait("it is there", lambda: stage.observer.state("made", 0) is not None)
    stage.pass_time(1)
    tree = stage.ask(1, "Metadata", topics=[{"name": "made"}], allowAutoTopicCreation=True)
    if isinstance(tree, dict):
        topic = stage.normalised(tree["topics"][0])
        found = [(p["errorCode"], len(p["replicaNodes"])) for p in topic["partitions"]]
        stage.write("made", {"errorCode": topic["errorCode"], "partitions": found})
    metadata(stage, "bad name", ["a b"], allowAutoTopicCreation=True)


@scenario(SINCE_2_8)
def cluster_is_described(stage: Stage) -> None:
    """DescribeCluster is asked with all brokers up and with one down."""
    stage.request("all", 1, "DescribeCluster", includeClusterAuthorizedOperations=False)
    stage.request("operations", 1, "DescribeCluster", includeClusterAuthorizedOperations=True)
    stage.kill(2)
    stage.request("without 2", 1, "DescribeCluster", includeClusterAuthorizedOperations=False)
    stage.start(2, look=False)


@scenario(SINCE_1_1, shape=_TWO_DIRECTORIES, controller=None)
def log_directories_are_described(stage: Stage) -> None:
    """DescribeLogDirs is asked for one partition, for none and for unknown ones."""
    stage.create("l", ((1, 2),))
    stage.write("produce", stage.produce("l", "a"))
    for label, topics in {
        "one": [{"topic": "l", "partitions": [0]}],
        "unknown": [{"topic": "nope", "partitions": [0]}, {"topic": "l", "partitions": [9]}],
        "none": [],
    }.items():
        tree = stage.ask(1, "DescribeLogDirs", topics=topics)
        stage.write(label, _without_paths(stage.normalised(tree)))


def _without_paths(tree: Any) -> Any:
    """Return errors and replicas of all directories; the directory of a partition varies."""
    if isinstance(tree, str):
        return tree
    replicas = []
    for directory in tree["results"]:
        for topic in directory["topics"]:
            for partition in topic["partitions"]:
                kept = {k: v for k, v in partition.items() if k != "partitionSize"}
                replicas.append({"name": topic["name"], **kept})
    errors = sorted(str(directory["errorCode"]) for directory in tree["results"])
    return {"errors": errors, "replicas": replicas}


@scenario(SINCE_1_1, shape=_TWO_DIRECTORIES, controller=None)
def replica_moves_to_another_directory(stage: Stage) -> None:
    """AlterReplicaLogDirs is asked for unknown directories and partitions (KIP-113)."""
    stage.create("l", ((1, 2),))
    for label, path, topic, partition in (
        ("unknown directory", "/nowhere", "l", 0),
        ("unknown topic", "/nowhere", "nope", 0),
        ("unknown partition", "/nowhere", "l", 9),
    ):
        asked = [{"path": path, "topics": [{"name": topic, "partitions": [partition]}]}]
        stage.request(label, 1, "AlterReplicaLogDirs", dirs=asked)


@scenario(EVERY, shape=THREE_BROKERS)
def znodes_of_a_cluster(stage: Stage) -> None:
    """All znodes are listed, and those of a broker, a topic and a partition are read."""
    stage.create("z", ((1, 2),), {"retention.ms": "1000"})
    seen: list[str] = []

    def walk(path: str) -> None:
        if path.startswith(("/zookeeper", "/config/brokers/")):
            return
        seen.append(path)
        for name in stage.side.children(path) or []:
            walk(f"{path.rstrip('/')}/{name}")

    walk("/")
    passing = ("config_change_", "isr_change_", "/latest_producer_id_block", "log_dir_event_")
    stage.write("tree", {path: "" for path in seen if not any(word in path for word in passing)})
    for path, drawn in (
        ("/brokers/ids/1", ("timestamp", "port", "endpoints", "jmx_port", "host")),
        ("/controller", ("timestamp", "brokerid")),
        ("/brokers/topics/z", ("topic_id",)),
        ("/brokers/topics/z/partitions/0/state", ("controller_epoch",)),
        ("/config/topics/z", ()),
        ("/cluster/id", ("id",)),
        ("/feature", ()),
    ):
        node = stage.observer.json_of(path)
        if isinstance(node, dict):
            node = {k: type(v).__name__ if k in drawn else v for k, v in node.items()}
        stage.write(path, node)


@scenario(_UNTIL_1_1)
def other_brokers_refuse_administrators(stage: Stage) -> None:
    """A broker that is not the controller refuses to create and delete topics."""
    stage.create("o", ((1, 2),))
    stage.request("delete", 1, "DeleteTopics", topicNames=["o"], timeoutMs=3000)
    assigned = [{"partitionIndex": 0, "brokerIds": [1]}]
    topic = {
        "name": "p",
        "numPartitions": -1,
        "replicationFactor": -1,
        "assignments": assigned,
        "configs": [],
    }
    stage.request("create", 1, "CreateTopics", topics=[topic], timeoutMs=3000)
