"""The behaviour that differs between releases, with one flag for each difference.

A flag is named for the behaviour of the releases that have it. Other code checks flags and never
compares versions. A change that came with a bug-fix release is declared with that release; an
emulated version stands for the last bug-fix release of its line.
"""

from __future__ import annotations

from typing import Any, Literal

from .release import Release


def _assigned_in(constructor: Any) -> tuple[str, ...]:
    """Return the names of the attributes that a constructor sets, for ``__slots__``."""
    names = constructor.__code__.co_names
    return tuple([name for name in names if not hasattr(Release, name)])


class Behaviour:
    """The flags of one release."""

    def __init__(self, release: Release) -> None:
        since, before, steps = release.since, release.before, release.steps

        self.kafka_version: str = release.name

        # -- the controller

        self.epoch_created_in_one_transaction: bool = since("2.1", "KAFKA-6082")
        """``/controller`` and ``/controller_epoch`` are written in one transaction."""
        self.guard_controller_writes: bool = since("2.1", "KAFKA-6082")
        """Every write of the controller checks the version of ``/controller_epoch``."""
        self.broker_epochs: bool = since("2.2", "KIP-380")
        """A broker is identified by its id and by the epoch of its registration."""
        self.preempt_queued_events: bool = since("2.2", "KAFKA-5692")
        """A resigning controller reports discarded queued events to the callers that wait for
        them."""
        self.pipelined_zookeeper: bool = since("1.1", "KAFKA-5642")
        """The controller sends ZooKeeper many requests before the first one is answered."""
        self.empty_update_metadata_means_all: bool = before("2.2", "KAFKA-7537")
        """An UpdateMetadata that would name no partitions names all partitions instead."""
        self.legacy_selectors: bool = before("1.1", "KAFKA-5642")
        """A separate class selects the leader for each kind of election."""
        self.last_isr_member_always_kept: bool = since("1.1", "KAFKA-5642")
        """The last member of the ISR is kept even if unclean elections are enabled."""
        self.startup_moves_dead_replicas_offline: bool = since("2.3", "KAFKA-3143")
        """A new controller moves replicas on dead brokers to offline, not to ineligible for
        deletion."""
        self.ineligible_from_offline: bool = since("2.3", "KAFKA-8237")
        """An offline replica may become ineligible for deletion."""
        self.nonexistent_at_deletion_start: bool = since("2.1", "KAFKA-6753")
        """Partitions of a topic become nonexistent when its deletion starts, not when it ends."""
        self.preferred_election_blocks_deletion: bool = before("0.11", "KAFKA-5107")
        """A topic is not deleted during a preferred election of its partitions."""
        self.elections_by_znode_checked: bool = since("2.2", "KAFKA-5692")
        """An election requested by a znode skips unknown partitions, and partitions already led by
        their preferred replica."""
        self.elect_leaders_api: bool = since("2.2", "KIP-183")
        """A request to the controller can start an election of preferred leaders."""
        self.election_not_needed_error: bool = since("2.4", "KIP-460")
        """ElectLeaders answers ELECTION_NOT_NEEDED where the preferred replica leads already;
        before, success."""
        self.unclean_elections_api: bool = since("2.4", "KIP-460")
        """A request to the controller can start an unclean election."""
        self.unclean_default_elects_at_once: bool = since("2.0", "KAFKA-6526")
        """Enabling unclean elections in the configuration of brokers triggers them immediately."""
        self.unclean_topic_elects_at_once: bool = since("2.1", "KAFKA-6835")
        """Enabling unclean elections for a topic triggers them immediately."""
        self.reassignment_api: bool = since("2.4", "KIP-455")
        """Partitions are reassigned by requests, and topic znodes hold the ongoing
        reassignments."""
        self.alter_isr: bool = since("2.7", "KIP-497")
        """A leader asks the controller to change the ISR; before, it wrote to ZooKeeper."""
        self.alter_isr_strict: bool = since("3.3", "KIP-841", "KAFKA-14140")
        """The controller refuses an ISR with dead brokers, or with an epoch newer than its own."""
        self.log_dir_failure_handling: bool = since("1.0", "KIP-112")
        """A broker continues to run when one of its log directories fails."""
        self.controller_stands_before_registration: bool = before("1.1", "KAFKA-5642")
        """A broker tries to become the controller before it registers."""
        self.new_session_stands_before_registration: bool = before("0.11", "KAFKA-5028")
        """After a new session, a broker tries to become the controller before it registers
        again."""
        self.new_replica_reads_zookeeper: bool = before("1.1", "KAFKA-5642")
        """For each new replica, the controller reads the partition's state from ZooKeeper."""
        self.controlled_shutdown_tells_leaving_broker: bool = before("1.1", "KAFKA-5642") or since(
            "2.1", "KAFKA-7482"
        )
        """A broker in controlled shutdown is also sent the new leaders of its partitions."""
        self.controlled_shutdown_one_by_one: bool = before("1.1", "KAFKA-5642")
        """A controlled shutdown writes and announces each partition separately."""
        self.controlled_shutdown_spares_queued_topics: bool = since("2.1", "KAFKA-6753")
        """A controlled shutdown skips topics that are queued for deletion."""
        self.controlled_shutdown_asks_metadata: bool = since("3.0", "KAFKA-9189")
        """A broker that shuts down looks up the controller in its metadata, not in ZooKeeper."""
        self.broker_count_metrics: bool = since("3.1", "KIP-748")
        """The controller has metrics for the numbers of active and fenced brokers."""
        self.topic_watch_by_exists: bool = before("1.1", "KAFKA-5642")
        """A separate request sets the watch on a topic's znode."""
        self.stop_replica_one_by_one: bool = before("2.3", "KAFKA-8294")
        """Each StopReplica request names a single partition."""
        self.stop_replica_empty_request: bool = since("1.1", "KAFKA-5642") and before(
            "2.3", "KAFKA-8294"
        )
        """An empty StopReplica request is sent in addition to the requests for single
        partitions."""
        self.stop_replica_per_partition_delete: bool = since("2.6", "KIP-570")
        """A StopReplica request has a delete flag for each partition."""
        self.stop_replica_accepts_equal_epoch: bool = since("3.4.1", "KAFKA-13972")
        """A broker accepts a StopReplica request whose leader epoch equals its own."""
        self.announce_dead_broker_unless_elected: bool = since("3.1", "KAFKA-13225")
        """A dead broker is announced unless an election announces it; before, unless any partition
        lacked a leader."""
        self.rebalance_during_reassignments: bool = since("3.4", "KAFKA-10149")
        """Leadership moves back to preferred replicas even during reassignments."""
        self.rebalance_needs_isr: bool = since("2.6", "KAFKA-9866")
        """Leadership moves back to a preferred replica only if it is in the ISR."""
        self.rebalance_one_by_one: bool = before("2.0.1", "KAFKA-7299")
        """Each leadership that moves back to a preferred replica is a separate election."""
        self.rebalance_fixed_rate: bool = before("0.11", "KAFKA-5028")
        """The check for leaders to move back runs at a fixed rate, even if the previous check has
        not ended."""
        self.recounts_gauges: bool = before("2.1", "KAFKA-6753")
        """The controller recounts offline partitions after each event."""
        self.gauges_count_queued_topics: bool = before("0.10.2", "KAFKA-4441")
        """Topics that are queued for deletion count towards the metric of offline partitions."""
        self.failure_concerns_led_partitions: bool = before("1.0", "KIP-112")
        """When a broker dies, only the partitions that it led become offline."""
        self.update_metadata_names_all_deleted: bool = before("2.0", "KAFKA-6481")
        """Each UpdateMetadata request names all topics that are queued for deletion."""
        self.disabled_deletion_drops_requests: bool = since("0.10.2", "KAFKA-3175")
        """While topic deletion is disabled, the controller removes requests for it."""
        self.request_node_changes_heeded: bool = before("1.1", "KAFKA-5642")
        """The controller also processes request znodes that are changed, not only created ones."""
        self.failover_announces_brokers_first: bool = since("0.10.2", "KAFKA-4443")
        """A new controller announces the live brokers before it processes partitions."""
        self.failover_drops_notifications: bool = since("1.1", "KAFKA-5642")
        """A new controller deletes the ISR change notifications that it finds."""
        self.unclean_leaders_recover: bool = since("3.2", "KIP-704")
        """The state znode marks an uncleanly elected leader until the ISR changes."""

        # -- ZooKeeper

        self.zookeeper_config_node: bool = since("2.4", "KAFKA-8634")
        """ZooKeeper is version 3.5 or later and has ``/zookeeper/config``."""
        self.zookeeper_tells_ephemerals: bool = since("3.0", "KAFKA-12756")
        """ZooKeeper is version 3.6 or later and supports getEphemerals."""
        self.meta_properties_name_cluster: bool = since("2.4", "KAFKA-7335")
        """``meta.properties`` holds the cluster id, which is checked at every start."""
        self.clean_shutdown_file_has_epoch: bool = since("3.7", "KAFKA-15582")
        """The file that marks a clean shutdown contains a broker epoch, as JSON."""
        self.meta_properties_before_logs: bool = since("3.7", "PR 14628")
        """``meta.properties`` is written before logs are loaded; before, after registration."""
        self.user_and_broker_config_roots: bool = since("1.1", "PR 4359")
        """``/config/users`` and ``/config/brokers`` are created by starting brokers."""
        self.ip_configs: bool = since("2.8", "KIP-612")
        """``/config/ips`` holds the quotas of IP addresses."""
        self.topic_ids: bool = since("2.8", "KIP-516")
        """A topic has an id in addition to its name."""
        self.topic_id_of_stored_log: bool = since("3.0", "KAFKA-12426")
        """The topic id is also known for a stored log that is not open."""
        self.feature_versioning: bool = since("2.7", "KIP-584")
        """The controller maintains ``/feature``."""
        self.feature_update_types: bool = since("3.3", "KIP-778")
        """A feature update has a type; before, it had a flag that permitted a downgrade."""
        self.topic_znode_version: int = steps(1, {"2.4": 2, "2.8": 3}, "KIP-455", "KIP-516")
        """Payload version of topic znodes."""
        self.broker_znode_version: int = steps(3, {"0.10.2": 4, "2.7": 5}, "KIP-103", "KIP-584")
        """Payload version of broker znodes."""
        self.controller_znode_version: int = steps(1, {"3.4": 2}, "KIP-866")
        """Payload version of ``/controller``."""
        self.feature_znode_version: int = steps(1, {"3.3": 2}, "KAFKA-13833")
        """Payload version of ``/feature``."""

        # -- administration

        self.create_topics_generated: bool = since("2.3", "KAFKA-7832")
        """CreateTopics uses generated classes, which always answer a refusal with a message."""
        self.delete_topics_generated: bool = since("2.3", "KAFKA-8034")
        """DeleteTopics returns a result for each mention of a topic."""
        self.alter_configs_generated: bool = since("2.6", "KAFKA-9433")
        """AlterConfigs returns a result for each mention of a resource, even of an invalid type."""
        self.describe_configs_generated: bool = since("2.7", "KAFKA-9432")
        """DescribeConfigs returns a result for each mention of a resource, even of an invalid
        type."""
        self.creation_waits_for_deletion: bool = since("3.1", "KAFKA-13175")
        """A topic cannot be created while a topic of its name is queued for deletion."""
        self.deletion_is_tried_when_disabled: bool = before("2.1", "KIP-322")
        """While topic deletion is disabled, DeleteTopics times out."""
        self.assignments_may_have_gaps: bool = before("2.3", "KAFKA-7864")
        """A topic may be created with partitions 0 and 2 only."""
        self.default_counts_for_new_topics: bool = since("2.4", "KIP-464")
        """-1 as number of partitions or replicas stands for the broker's default."""
        self.existing_topics_refused_first: bool = since("2.4", "KIP-525")
        """An existing topic is refused before its configurations are validated."""
        self.topic_names_called_invalid: bool = since("3.3.2", "PR 12703")
        """Error messages call a topic name "invalid"; before, "illegal"."""
        self.topic_configs_may_be_null: bool = since("0.11", "KIP-133")
        """A new topic's configuration with a null value can be parsed, and is refused."""
        self.null_topic_config_is_invalid_config: bool = since("3.3", "KAFKA-13863")
        """A null value of a new topic's configuration is refused with INVALID_CONFIG, not
        INVALID_REQUEST."""
        self.bad_topic_configs_unexpected: bool = before("2.1", "KAFKA-7409")
        """An invalid value of a new topic's configuration is refused with UNKNOWN_SERVER_ERROR."""
        self.unexpected_errors_told: bool = before("2.6", "PR 9030")
        """UNKNOWN_SERVER_ERROR has a message that describes the failure."""
        self.maps_shown_as_hash_maps: bool = since("2.6", "KAFKA-9907")
        """Error messages print collections as Scala 2.13 does."""
        self.broker_configs_api: bool = since("1.1", "KIP-226")
        """Broker configurations can be changed at run time."""
        self.broker_loggers: bool = since("2.4", "KIP-412")
        """The log levels of a broker are configurations of a resource of their own."""
        self.client_metrics_resources: bool = since("3.7", "KIP-714")
        """Client metrics subscriptions are a known resource type, refused without KRaft."""
        self.config_changes_preprocessed: bool = since("3.2", "KAFKA-13552")
        """All changes of configurations are validated before any is made
        (``ConfigAdminManager``)."""
        self.configs_of_unknown_topics: bool = before("2.0", "KAFKA-6778")
        """DescribeConfigs answers for unknown topics; altering them is an unexpected error."""
        self.unknown_topic_configs_secret: bool = since("2.5.1", "KAFKA-9718")
        """The values of unknown topic configurations are hidden as sensitive."""
        self.types_of_dynamic_configs_told: bool = since("2.5.1", "KAFKA-9625")
        """Throttled rates are shown; before, they were hidden as sensitive."""
        self.deleted_configs_checked: bool = since("2.5.1", "KAFKA-9625")
        """The deletion of a dynamic broker configuration is validated like a change."""
        self.synonyms_shown_as_dynamic: bool = before("2.4", "KAFKA-8857")
        """A configuration is shown as dynamic if one of its synonyms is dynamic."""
        self.empty_config_names_mean_all: bool = since("2.7.1", "KAFKA-12235")
        """An empty list of names stands for all configurations; before, for none."""
        self.truststores_change_live: bool = since("2.0", "KAFKA-6810")
        """The truststore of a listener can be changed at run time."""
        self.network_threads_per_listener: bool = since("3.2", "KAFKA-7589")
        """The number of network threads can be set, and changed, for a single listener."""
        self.listener_configs_immutable: bool = since("2.7", "KAFKA-10479")
        """Of a listener in use, only key stores, trust stores and connection limits can be
        changed."""
        self.log_cleaner_asked_last: bool = since("3.2", "KAFKA-13552")
        """The log cleaner validates a change of configurations after the listeners do."""
        self.bounds_said_in_order: bool = since("2.8", "PR 10113")
        """Error messages say "greater than or equal to"; before, "equal or greater than"."""
        self.default_throttle_rates: bool = since("3.9", "KAFKA-10190")
        """Throttled rates can be set as a default for all brokers."""
        self.resources_called_config_resources: bool = since("2.0", "PR 4845")
        """Error messages about configurations print a resource as ``ConfigResource``."""
        self.wrong_broker_shown_as_resource: bool = before("2.4", "KIP-412")
        """The error for a request to the wrong broker reads "received Resource(...).name"."""
        self.appended_values_once: bool = since("3.3", "KAFKA-13862")
        """APPEND skips values that the configuration already contains."""
        self.describe_producers_says_why: bool = since("3.0", "KAFKA-12434")
        """DescribeProducers returns a message with an error."""
        self.log_dirs_name_topics_not_asked: bool = since("2.6", "KAFKA-9435") and before(
            "3.7.1", "KAFKA-16807"
        )
        """DescribeLogDirs also names the other topics in each directory, without partitions."""
        self.message_format_config: bool = before("3.0", "KIP-724")
        """``message.format.version`` has an effect."""

        # -- metadata and requests

        self.api_versions_range_told: bool = since("2.4", "KIP-511")
        """UNSUPPORTED_VERSION for ApiVersions includes the supported versions of ApiVersions."""
        self.leaderless_isr_shown: bool = since("2.4", "KAFKA-8442")
        """Metadata includes the ISR of a partition without a leader."""
        self.metadata_replicas_are_sets: bool = before("0.11", "KAFKA-5329")
        """Metadata lists replicas in no particular order."""
        self.invalid_names_told: bool = since("2.8", "KAFKA-9751")
        """Metadata answers an invalid topic name with INVALID_TOPIC_EXCEPTION."""
        self.foreign_partition_is_known: bool = since("2.0", "KAFKA-6796")
        """A broker without a replica answers NOT_LEADER_OR_FOLLOWER; before,
        UNKNOWN_TOPIC_OR_PARTITION."""
        self.replica_without_log_is_offline: bool = since("1.0", "KIP-112") and before(
            "3.1", "PR 11225"
        )
        """A replica that has no log after a LeaderAndIsr request becomes offline."""
        self.produce_checked_while_parsing: bool = before("2.1.1", "KAFKA-7549")
        """Produce with invalid records closes the connection."""
        self.null_records_unanswered: bool = since("3.6", "KIP-890")
        """Produce with null records is never answered; before, the connection was closed."""
        self.fetches_parsed_when_handled: bool = before("0.10.2", "KAFKA-2066")
        """Fetch is parsed when it is handled: a malformed one gets no answer, and null means
        empty."""
        self.fetch_generated: bool = since("2.7", "KAFKA-9629")
        """Fetch with an invalid isolation level is answered; before, the connection was closed."""
        self.list_offsets_generated: bool = since("2.7", "KAFKA-9627")
        """ListOffsets returns a result for each mention of a partition, even with an invalid
        isolation level."""
        self.epoch_offsets_generated: bool = since("2.8", "KAFKA-9630")
        """OffsetForLeaderEpoch returns a result for each mention of a partition."""
        self.repeated_transaction_partitions_answered_once: bool = before("3.5", "KAFKA-14402")
        """AddPartitionsToTxn returns a single result for a partition, however often it is named."""
        self.repeated_old_commits_answered_once: bool = before("3.5", "KAFKA-14367")
        """OffsetCommit 0 returns a single result for a partition, however often it is named."""
        self.unknown_acl_elements_refused: bool = since("2.0", "KAFKA-7011")
        """ACL requests with an unknown operation or type close the connection."""

        # -- replication

        self.truncation: Literal["high_watermark", "leader_epoch", "fetch"] = steps(
            "high_watermark", {"0.11": "leader_epoch", "2.8": "fetch"}, "KIP-101", "KAFKA-10554"
        )
        """A follower truncates its log to its high watermark, as the leader's answer about an epoch
        says, or as a fetch response says."""
        self.epoch_cache: bool = since("0.11", "KIP-101")
        """A log stores the start offset of each leader epoch."""
        self.messages_stand_alone: bool = before("0.11", "KIP-98")
        """Messages do not form batches, so a log may end between any two of them."""
        self.epoch_registered_at_election: bool = since("2.0", "KIP-279")
        """A leader records its epoch when it is elected, not when it first appends."""
        self.epoch_truncation_rounds: bool = since("2.0", "KIP-279")
        """The response about an epoch's end also names an epoch, and a follower may ask again."""
        self.fetch_epoch_fencing: bool = since("2.1", "KIP-320")
        """Fetches carry the leader epoch, and are refused if it differs."""
        self.consumer_sends_leader_epoch: bool = since("2.3", "KAFKA-7747")
        """A consumer of this release sends the leader epoch in its fetches."""
        self.caught_up_by_previous_fetch: bool = since("0.10.2", "KAFKA-4485")
        """A follower is caught up if it reaches the leader's log end offset as of its previous
        fetch."""
        self.caught_up_reset_at_election: bool = since("0.10.2", "KAFKA-4485")
        """A new leader considers only the members of the ISR to be caught up."""
        self.high_watermark_waits_for_joiner: bool = since("0.10.2", "KAFKA-4485")
        """The high watermark also waits for a follower that is about to join the ISR."""
        self.isr_checked_each_lag_time: bool = before("0.10.2", "KAFKA-4485")
        """The check for lagging followers runs once per ``replica.lag.time.max.ms``, not twice."""
        self.joiner_must_be_eligible: bool = since("3.3", "KIP-841", "KAFKA-14140")
        """Only a replica on a live broker can join the ISR."""
        self.high_watermark_frozen_under_min_isr: bool = since("3.7", "KIP-966", "KAFKA-15583")
        """The high watermark does not advance while the ISR is smaller than
        ``min.insync.replicas``."""
        self.min_isr_at_most_replicas: bool = since("3.7", "KAFKA-15583")
        """``min.insync.replicas`` is limited to the number of replicas."""
        self.append_completes_produces_first: bool = since("2.7", "KAFKA-8334")
        """A leader's append completes waiting produce requests first; before, fetch requests."""
        self.shrink_commit_moves_high_watermark: bool = since("3.1", "KAFKA-13091")
        """The high watermark may advance as soon as the controller accepts a smaller ISR."""
        self.isr_join_needs_epoch_start: bool = since("2.0.1", "KAFKA-7128")
        """A follower must reach the start offset of the leader's epoch to join the ISR."""
        self.isr_member_at_end_never_removed: bool = since("2.1", "KAFKA-7152")
        """A follower at the leader's log end stays in the ISR even if it does not fetch."""
        self.isr_check_fails_at_no_replica: bool = steps(
            False, {"2.4": True, "3.0": False}, "KIP-455", "KAFKA-9672"
        )
        """The check for lagging followers fails if an ISR contains a broker that is not a replica;
        in other releases that broker is removed from the ISR."""
        self.make_follower_restarts: Literal["leader_changed", "epoch_missed", "epoch_changed"] = (
            steps(
                "leader_changed",
                {"2.0.1": "epoch_missed", "2.1": "epoch_changed"},
                "KAFKA-7164",
                "KIP-320",
            )
        )
        """A fetcher restarts only if the leader changes, also if an epoch was missed, or whenever
        the epoch changes."""
        self.partition_epoch_checked: bool = since("3.3", "KAFKA-13790")
        """A LeaderAndIsr request with an older partition epoch is ignored."""
        self.alter_isr_errors_roll_back: bool = since("3.1", "KAFKA-13254")
        """OPERATION_NOT_ATTEMPTED and INELIGIBLE_REPLICA from the controller make a leader revert
        to the old ISR."""
        self.out_of_range_halts_broker: bool = before("2.0.1", "KAFKA-7414")
        """A broker halts if its log is ahead of the leader's, unless unclean elections are
        enabled."""
        self.foreign_follower_is_error: bool = before("1.0", "KAFKA-5758")
        """A fetch by a broker without a replica fails with UNKNOWN_SERVER_ERROR."""
        self.foreign_follower_refused: bool = since("3.3", "KAFKA-13837")
        """A fetch by a broker without a replica fails with UNKNOWN_LEADER_EPOCH if it names an
        epoch."""
        self.follower_failure_stops_fetcher: bool = before("2.3", "KIP-461")
        """A partition that fails stops its fetcher, and with it the fetcher's other partitions."""
        self.fetch_sessions: bool = since("1.1", "KIP-227")
        """Fetch requests name only the partitions that changed since the previous request."""
        self.fetch_from_follower: bool = since("2.4", "KIP-392")
        """Consumers can fetch from a nearby replica."""
        self.preferred_replica_answers_at_once: bool = since("3.2", "KAFKA-13767")
        """A fetch that redirects the consumer to another replica is answered immediately."""
        self.in_sync_fetch_waits_for_quota: bool = before("1.0.2", "KAFKA-6937")
        """The replication quota also delays the waiting fetches of in-sync followers."""
        self.long_names_fail_deletion: bool = since("0.10.2", "KAFKA-1911") and before(
            "2.2.2", "KAFKA-4893"
        )
        """A topic with a long name cannot be deleted, as the name of its renamed directory is too
        long."""
        self.retention_passes_high_watermark: bool = before("0.11.0.1", "KAFKA-5634")
        """Retention may delete records that are not committed yet."""

        # -- records, producers, transactions

        self.invalid_record_error: bool = since("2.4", "KIP-467")
        """An invalid record is refused with INVALID_RECORD; before, with CORRUPT_MESSAGE."""
        self.all_record_errors: bool = since("2.5", "PR 7612")
        """A refused batch names all of its invalid records, with a reason each; before, the first
        one decides the error, and is named without a reason."""
        self.invalid_timestamp_has_log_start: bool = since("2.4", "PR 7167")
        """The response with INVALID_TIMESTAMP has the log start offset; before, -1."""
        self.zstd_compression: bool = since("2.1", "KIP-110")
        """Records may be compressed with zstd."""
        self.down_conversion_is_lazy: bool = since("2.0", "KIP-283")
        """Records for old consumers are converted only as far as they are read; before, all at
        once."""
        self.max_timestamp_lookup: bool = since("3.0", "KIP-734")
        """ListOffsets -3 finds the record with the largest timestamp."""
        self.earliest_local_lookup: bool = since("3.5", "KIP-405")
        """ListOffsets -4 finds the first record that is stored on the broker."""
        self.special_timestamps_versioned: bool = since("3.9", "KAFKA-17331")
        """ListOffsets refuses special timestamps that the request's version does not have."""
        self.stable_offset_told_unasked: bool = since("2.1", "KAFKA-7395")
        """Fetch responses to read_uncommitted consumers include the last stable offset, too."""
        self.idempotent_producers: bool = since("0.11", "KIP-98")
        """Producers have ids, and their batches have sequence numbers."""
        self.unknown_producer_id_refused: bool = before("2.5", "KIP-360")
        """A producer that is unknown to the leader must begin with sequence number 0."""
        # Before 0.11, only today's clients have producer ids, and they know the newer error.
        self.unknown_producer_id_error: bool = before("0.11", "KIP-98") or since(
            "1.0", "KAFKA-5793"
        )
        """The error for an unknown producer is UNKNOWN_PRODUCER_ID; before,
        OUT_OF_ORDER_SEQUENCE_NUMBER."""
        self.producer_ids_expire_by_themselves: bool = since("3.4", "KIP-854")
        """Producer ids have an expiry time of their own; before, that of transactional ids."""
        self.producers_go_with_their_records: bool = before("2.4", "KAFKA-7190")
        """A producer is forgotten when all of its records are below the log start offset."""
        self.producer_ids_prefetched: bool = since("3.6", "KAFKA-14694")
        """A broker requests the next producer ids before it has used up its block."""
        self.producer_ids_from_controller: bool = since("3.0", "KIP-730")
        """Brokers get producer ids from the controller, not from ZooKeeper."""
        self.transactions: bool = since("0.11", "KIP-98")
        """Records can be written to many partitions atomically."""
        self.transactional_batches_need_id: bool = since("2.1.1", "PR 6172")
        """Transactional batches require a transactional id, even without an authorizer."""
        self.coordinators_check_epochs: bool = since("2.4.1", "KAFKA-9144")
        """A leader checks the coordinator epoch of transaction markers."""
        self.ending_needs_equal_epoch: bool = since("2.6", "KAFKA-9600")
        """EndTxn is fenced by any other epoch, not only by a later one."""
        self.failed_fence_remembered: bool = since("2.6", "KAFKA-9666")
        """If a raised producer epoch could not be written, it is not raised again."""
        self.producer_fenced_error: bool = since("2.7", "KIP-588")
        """The error for a fenced producer is PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH."""
        self.transactions_verified: bool = since("3.6", "KIP-890")
        """A leader verifies a transaction with its coordinator before the first append."""

        # -- security and quotas

        self.sasl_scram: bool = since("0.10.2", "KIP-84")
        """Clients can authenticate with SCRAM."""
        self.scram_nonce_checked: bool = since("3.7.2", "CVE-2024-56128")
        """The nonce in the client's final SCRAM message is checked."""
        self.sasl_oauthbearer: bool = since("2.0", "KIP-255")
        """Clients can authenticate with OAUTHBEARER."""
        self.sasl_reauthentication: bool = since("2.2", "KIP-368")
        """SASL sessions expire, and clients authenticate again."""
        self.failed_authentication_delayed: bool = since("2.1", "KIP-306")
        """The response to a failed authentication is delayed."""
        self.malformed_plain_tokens_told: bool = since("2.3", "PR 6249")
        """The error for a malformed PLAIN token says what is wrong with it."""
        self.delegation_tokens: bool = since("1.1", "KIP-48")
        """Clients can authenticate with delegation tokens."""
        self.acl_authorizer: bool = since("2.4", "KIP-504")
        """The authorizer is ``AclAuthorizer``; before, ``SimpleAclAuthorizer``."""
        self.prefixed_acls: bool = since("2.0", "KIP-290")
        """An ACL can apply to all names with a prefix."""
        self.altering_implies_describing: bool = since("0.11", "KIP-140")
        """Permission to alter a resource implies permission to describe it."""
        self.missing_authorizer_is_brokers: bool = before("3.0", "PR 10550")
        """Without an authorizer, the error for changes of ACLs includes "on the broker"."""
        self.topics_created_by_acl: bool = since("2.0", "KIP-277")
        """CREATE on a topic is enough to create it; before, CREATE on the cluster was required."""
        self.groups_listed_by_acl: bool = since("2.1", "KIP-231")
        """ListGroups lists the groups that the client may describe; before, all or none."""
        self.writing_implies_idempotence: bool = since("2.8", "KIP-679")
        """Permission to write to any topic implies permission for idempotent writes."""
        self.throttled_after_answers: bool = since("2.0", "KIP-219")
        """A client over its quota is answered first and then muted; before, the answer was
        delayed."""
        self.fetches_fit_quotas: bool = since("2.5", "KAFKA-9677")
        """The size of a fetch response is limited by the client's quota."""

        # -- groups

        self.find_coordinator_generated: bool = since("2.3", "KAFKA-8056")
        """FindCoordinator returns a message with every error, and answers invalid key types."""
        self.describe_groups_generated: bool = since("2.3", "KAFKA-7922")
        """DescribeGroups returns a result for each mention of a group."""
        self.loading_told_before_ownership: bool = since("2.0", "PR 4788")
        """For a group being loaded, COORDINATOR_LOAD_IN_PROGRESS takes precedence over
        NOT_COORDINATOR."""
        self.dead_group_is_unavailable: bool = since("2.3", "KAFKA-8386")
        """Requests to a removed group fail with COORDINATOR_NOT_AVAILABLE; before,
        UNKNOWN_MEMBER_ID."""
        self.failed_join_has_no_generation: bool = since("2.2", "KIP-394")
        """The generation in the response to a failed JoinGroup is -1; before, 0."""
        self.member_id_required: bool = since("2.2", "KIP-394")
        """A new member is given an id, and has to join again with it."""
        self.new_members_time_out: bool = since("2.1.1", "KAFKA-7610")
        """A new member is removed if its JoinGroup waits for five minutes."""
        self.initial_rebalance_delay: bool = since("0.11", "KIP-134")
        """The first rebalance of a group is delayed to wait for more members."""
        self.first_member_needs_protocols: bool = since("1.0", "KAFKA-6005")
        """The first member of a group must name protocols."""
        self.protocols_counted_as_named: bool = since("2.1", "KAFKA-7142")
        """A protocol that a member names twice counts as two votes."""
        self.awaiting_sync_state: bool = before("1.1", "KAFKA-5565")
        """The state CompletingRebalance is called AwaitingSync."""
        self.empty_group_ids_refused: bool = since("2.0", "PR 4788")
        """The empty group id is also refused in SyncGroup, Heartbeat and LeaveGroup."""
        self.offsets_of_unknown_partitions: bool = before("2.0", "KAFKA-6796")
        """Offsets can be committed for unknown partitions of existing topics."""
        self.heartbeats_before_sync: bool = since("2.6.1", "KAFKA-10134")
        """A heartbeat is accepted while the group waits for the leader's assignment."""
        self.commits_check_state_first: bool = before("2.4", "KAFKA-8487")
        """During a rebalance, the state of the group is checked before the member of a commit."""
        self.stable_offset_fetch: bool = since("2.5", "KIP-447")
        """OffsetFetch can wait for pending transactional commits."""
        self.syncs_time_out: bool = since("2.8.1", "KAFKA-12890")
        """A member that does not send SyncGroup in time is removed."""
        self.instance_id_must_be_known: bool = since("3.0", "PR 9958")
        """A request with an unknown instance id is refused with UNKNOWN_MEMBER_ID."""
        self.assignment_may_be_skipped: bool = since("3.2", "KIP-814")
        """A static leader that rejoins may be told to skip the assignment."""
        self.consumer_groups: bool = since("3.7", "KIP-848")
        """Brokers can coordinate groups of the new protocol; Kafka's brokers do so with KRaft
        only."""
        self.rejoining_updates_timeouts: bool = since("3.3.2", "KAFKA-14009")
        """A static member that rejoins updates its timeouts."""
        self.group_filters_ignore_case: bool = since("3.8", "KAFKA-16095")
        """ListGroups matches group states regardless of case."""
        self.refused_offsets_stay_pending: bool = before("3.7.1", "KAFKA-16371")
        """An offset with too large metadata remains pending until the group is loaded again."""
        self.offsets_expire_by_group_state: bool = since("2.1", "KIP-211")
        """Offsets expire once their group is empty; before, each at a time of its own."""
        self.offsets_go_with_their_topic: bool = since("0.10.2", "KAFKA-2000")
        """Offsets of a deleted topic are deleted."""
        self.offset_fetch_1_tells_errors: bool = before("3.5", "KAFKA-14367")
        """OffsetFetch 1 returns the error of a group with each partition."""
        self.empty_offset_fetch_means_all: bool = before("0.10.2", "KIP-88")
        """OffsetFetch without partitions returns the offsets of all partitions."""
        self.offset_value_version: int = steps(1, {"2.1": 3}, "KIP-320")
        """Format version of stored offsets."""
        self.group_value_version: int = steps(1, {"2.1": 2, "2.3": 3}, "KIP-211", "KIP-345")
        """Format version of stored groups."""

    __slots__ = _assigned_in(__init__)
