"""Configuration changes reach every broker."""

from __future__ import annotations

from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.messages import GetDataRequest, ZkCode


def change(cluster: ControllerCluster, entity_type: str, entity: str, **values: str) -> None:
    config = {name.replace("_", "."): value for name, value in values.items()}
    run_now(cluster.zk.admin.set_or_create_entity_configs(entity_type, entity, config))
    run_now(cluster.zk.admin.create_config_change_notification(f"{entity_type}/{entity}"))
    cluster.settle()


def test_a_change_of_a_topics_configuration_reaches_every_broker() -> None:
    """CP-201, CP-202: the override applies everywhere, and deleting it restores the default."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    heard: dict[int, list[str]] = {1: [], 2: []}
    followers = [cluster.dynamic_config(broker_id, heard[broker_id]) for broker_id in (1, 2)]
    for names in heard.values():
        names.clear()
    change(cluster, "topics", "t", retention_ms="7")
    assert heard == {1: ["t"], 2: ["t"]}
    assert [f.topic_config("t")["retention.ms"] for f in followers] == [7, 7]
    change(cluster, "topics", "t")
    assert [f.topic_config("t")["retention.ms"] for f in followers] == [604_800_000] * 2


def test_existing_configurations_are_loaded_at_start_without_notification() -> None:
    """CP-202: the notification may have been deleted long ago."""
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,), config={"retention.ms": "5"})
    heard: list[str] = []
    follower = cluster.dynamic_config(1, heard)
    assert heard == ["t"]
    assert follower.topic_config("t")["retention.ms"] == 5


def test_notifications_are_replayed_at_start_and_never_twice() -> None:
    """Notifications newer than the last applied one are applied; at start that is -1
    (docs/kafka/zookeeper.md#dynamic-configuration)."""
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,))
    change(cluster, "topics", "t", retention_ms="1")
    change(cluster, "topics", "t", retention_ms="2")
    heard: list[str] = []
    cluster.dynamic_config(1, heard)
    assert heard == ["t", "t", "t"]  # two notifications, then every entity
    change(cluster, "topics", "t", retention_ms="3")
    assert heard == ["t"] * 4


def test_a_new_topics_configuration_is_read_when_it_is_first_hosted() -> None:
    """CP-202: the creation of a topic has no notification."""
    cluster = ControllerCluster([1])
    follower = cluster.dynamic_config(1, [])
    cluster.create_topic("t", (1,), config={"min.insync.replicas": "2"})
    assert not follower.knows("t")
    run_now(follower.fetch(["t", "t"]))
    assert follower.topic_config("t")["min.insync.replicas"] == 2
    follower.forget("t")
    assert not follower.knows("t")


def test_a_topics_configuration_replaces_the_brokers_values_once_it_is_read() -> None:
    """CP-202: the broker's values apply until the topics' are read, in one batch for all topics."""
    cluster = ControllerCluster([1])
    heard: list[str] = []
    follower = cluster.dynamic_config(1, heard)
    cluster.create_topic("t", (1,), config={"min.insync.replicas": "2"})
    cluster.create_topic("plain", (1,))
    for topic in ("t", "plain", "t"):
        assert follower.topic_config(topic)["min.insync.replicas"] == 1
    cluster.settle()
    assert heard == ["t"]
    assert follower.topic_config("t")["min.insync.replicas"] == 2
    assert follower.knows("plain")


def test_old_notifications_are_removed() -> None:
    """Any broker deletes those older than 15 minutes
    (docs/kafka/zookeeper.md#dynamic-configuration)."""
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,))
    cluster.dynamic_config(1, [])
    change(cluster, "topics", "t", retention_ms="1")
    cluster.host.advance(15 * 60_000)
    change(cluster, "topics", "t", retention_ms="2")
    assert len(cluster.zookeeper.children("/config/changes")) == 2
    cluster.host.advance(1)
    change(cluster, "topics", "t", retention_ms="3")
    assert cluster.zookeeper.children("/config/changes") == [
        "config_change_0000000001",
        "config_change_0000000002",
    ]


def test_a_bad_entry_is_skipped() -> None:
    """Failures are logged, and the next entries are applied
    (docs/kafka/zookeeper.md#dynamic-configuration)."""
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,))
    heard: list[str] = []
    follower = cluster.dynamic_config(1, heard)
    run_now(cluster.zk.requests.create_sequential("/config/changes/config_change_", b"nonsense"))
    change(cluster, "topics", "u", retention_ms="not a number")
    change(cluster, "topics", "t", retention_ms="9")
    assert follower.topic_config("t")["retention.ms"] == 9
    assert len([text for _, level, text in cluster.log if level == "error"]) == 2


def test_a_notification_removed_meanwhile_hides_no_later_one() -> None:
    """The entry is listed, but can no longer be read."""
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,))
    follower = cluster.dynamic_config(1, [])
    first = "/config/changes/config_change_0000000000"
    cluster.processes[1].client.fail_next(
        lambda request: isinstance(request, GetDataRequest) and request.path == first, ZkCode.NONODE
    )
    admin = cluster.zk.admin
    run_now(admin.set_or_create_entity_configs("topics", "t", {"retention.ms": "9"}))
    for _ in range(2):
        run_now(admin.create_config_change_notification("topics/t"))
    cluster.settle()
    assert follower.topic_config("t")["retention.ms"] == 9


def test_broker_values_follow_the_cluster_default_and_the_brokers_own() -> None:
    """KIP-226: own values override defaults; other brokers' and invalid values are ignored."""
    cluster = ControllerCluster([1, 2])
    follower = cluster.dynamic_config(1, [])
    config = cluster.processes[1].config
    told: list[int] = []
    follower.on_broker_config = lambda: told.append(config["message.max.bytes"])
    change(cluster, "brokers", "<default>", message_max_bytes="7")
    change(cluster, "brokers", "1", message_max_bytes="8", nonsense="1")
    change(cluster, "brokers", "2", message_max_bytes="9")
    assert told == [7, 8]
    change(cluster, "brokers", "1")
    assert config["message.max.bytes"] == 7


def test_topics_without_overrides_share_one_configuration() -> None:
    """When the broker's values change, the shared object is replaced, so that values derived from
    the old one are not reused."""
    cluster = ControllerCluster([1])
    for topic in ("t", "u"):
        cluster.create_topic(topic, (1,))
    follower = cluster.dynamic_config(1, [])
    shared = follower.topic_config("t")
    assert follower.topic_config("u") is shared
    change(cluster, "topics", "u", retention_ms="7")
    change(cluster, "brokers", "1", log_retention_ms="8")
    assert follower.topic_config("t") is not shared
    assert [follower.topic_config(t)["retention.ms"] for t in ("t", "u")] == [8, 7]


def test_dynamic_values_are_there_before_the_broker_starts() -> None:
    """They are read from ZooKeeper first of all (docs/kafka/brokers.md#start-of-a-broker)."""
    cluster = ControllerCluster([1])
    change(cluster, "brokers", "1", message_max_bytes="8")
    cluster.dynamic_config(1, [])
    assert cluster.processes[1].config["message.max.bytes"] == 8


def test_turning_unclean_election_on_elects_without_failover() -> None:
    """CP-119: a topic's override or the broker's default is turned on; only the controller acts."""
    for entity_type, entity in (("topics", "t"), ("brokers", "<default>")):
        cluster = ControllerCluster([1, 2, 3])
        cluster.create_topic("t", (2, 3))
        cluster.set_isr("t", 0, (2,))
        cluster.kill(2)
        for broker_id in (1, 3):
            cluster.dynamic_config(broker_id, [])
        assert cluster.state("t").leader == -1
        change(cluster, entity_type, entity, unclean_leader_election_enable="true")
        assert cluster.state("t").leader == 3
        assert cluster.active.epoch == 1
        assert cluster.active.context.unclean_leader_elections == 1


def test_turning_unclean_election_on_needs_a_failover_before_2_0() -> None:
    """Up to 1.1 the controller does not try the partition again
    (docs/kafka/election.md#unclean-election)."""
    cluster = ControllerCluster([1, 2, 3], "1.1")
    cluster.create_topic("t", (2, 3))
    cluster.set_isr("t", 0, (2,))
    cluster.kill(2)
    cluster.dynamic_config(1, [])
    change(cluster, "topics", "t", unclean_leader_election_enable="true")
    assert cluster.state("t").leader == -1
    run_now(cluster.zk.requests.delete_path("/controller"))
    cluster.settle()
    assert cluster.state("t").leader == 3


def test_changes_missed_during_a_session_change_are_caught_up() -> None:
    """A new session lists the notifications again."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1,))
    follower = cluster.dynamic_config(1, [])
    cluster.expire(1)
    change(cluster, "topics", "t", retention_ms="3")
    assert follower.topic_config("t")["retention.ms"] == 3
    follower.shutdown()
    change(cluster, "topics", "t", retention_ms="4")
    assert follower.topic_config("t")["retention.ms"] == 3


def test_a_change_that_a_broker_cannot_apply_is_rejected_as_a_whole() -> None:
    """A change that a tool writes to ZooKeeper is applied as a whole or not at all; a broker that
    starts accepts it (``DynamicBrokerConfig.updateBrokerConfig``)."""
    cluster = ControllerCluster([1, 2])
    cluster.dynamic_config(1, [])
    change(cluster, "brokers", "1", num_io_threads="100", min_insync_replicas="2")
    config = cluster.processes[1].config
    assert config["min.insync.replicas"] == 1
    assert cluster.log[-1][:2] == (1, "error")
    assert "should not be greater than double the current value 8" in cluster.log[-1][2]
    change(cluster, "brokers", "1", num_io_threads="16", min_insync_replicas="2")
    assert config["min.insync.replicas"] == 2
    change(cluster, "brokers", "2", num_io_threads="100", min_insync_replicas="2")
    cluster.dynamic_config(2, [])
    assert cluster.processes[2].config["min.insync.replicas"] == 2


def test_a_broker_stores_defaults_that_it_cannot_apply() -> None:
    """Kafka's ``updateDefaultConfig`` stores the values before it checks whether they can be
    applied."""
    cluster = ControllerCluster([1])
    cluster.dynamic_config(1, [])
    config = cluster.processes[1].config
    change(cluster, "brokers", "<default>", background_threads="40", min_insync_replicas="2")
    assert config.dynamic_default == {"background.threads": "40", "min.insync.replicas": "2"}
    assert config.applied == ({}, {})
    change(cluster, "brokers", "1", message_max_bytes="7")
    assert (config["min.insync.replicas"], config["message.max.bytes"]) == (1, 1048588)
    change(cluster, "brokers", "1", message_max_bytes="7", background_threads="11")
    assert (config["min.insync.replicas"], config["message.max.bytes"]) == (2, 7)
    assert config.applied == (config.dynamic_default, config.dynamic_of_broker)


def test_a_starting_broker_rejects_values_that_contradict_each_other() -> None:
    """Kafka: ``KafkaConfig.validateValues``. The number of threads may change by any factor, as no
    thread pool runs yet."""
    cluster = ControllerCluster([1])
    change(cluster, "brokers", "1", log_cleaner_dedupe_buffer_size="5", min_insync_replicas="2")
    cluster.dynamic_config(1, [])
    config = cluster.processes[1].config
    assert config["min.insync.replicas"] == 1
    assert "at least 1MB per cleaner thread" in cluster.log[-1][2]


def test_stored_values_that_may_not_change_are_ignored() -> None:
    """The other stored values are applied (``DynamicBrokerConfig.fromPersistentProps``)."""
    cluster = ControllerCluster([1])
    cluster.dynamic_config(1, [])
    change(cluster, "brokers", "1", num_partitions="7", min_insync_replicas="2", my_custom="1")
    config = cluster.processes[1].config
    assert (config["num.partitions"], config["min.insync.replicas"]) == (1, 2)
    assert config.dynamic_of_broker == {"min.insync.replicas": "2", "my.custom": "1"}
    assert "Cannot update these configs dynamically: Set(num.partitions)" in cluster.log[-1][2]


def test_all_dynamic_values_can_be_removed_at_once() -> None:
    """A client could only halve a thread pool."""
    cluster = ControllerCluster([1])
    follower = cluster.dynamic_config(1, [])
    for threads in ("16", "32"):
        change(cluster, "brokers", "1", num_io_threads=threads, min_insync_replicas="2")
    change(cluster, "brokers", "<default>", num_io_threads="100")
    config = cluster.processes[1].config
    cluster.ask(follower.forget_all())
    cluster.settle()
    assert (dict(config.dynamic_of_broker), dict(config.dynamic_default)) == ({}, {})
    assert config["min.insync.replicas"] == 1
    for entity in ("1", "<default>"):
        assert run_now(cluster.zk.admin.get_entity_configs("brokers", entity)) == {}
