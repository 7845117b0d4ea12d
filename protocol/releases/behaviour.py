"""The behaviour of a release where releases differ: one declaration per flag.

A flag is named for what a release does that has it. Other code asks for flags and never compares
versions. Where an issue was mended in a release with bug fixes, that release is given; an emulated
version stands for the last one of its line.
"""

from __future__ import annotations

from typing import Any, Literal

from .release import Release


def _assigned_in(constructor: Any) -> tuple[str, ...]:
    """The attributes that a constructor sets, which would otherwise all be named twice."""
    names = constructor.__code__.co_names
    return tuple([name for name in names if not hasattr(Release, name)])


class Behaviour:
    """The flags of one release."""

    def __init__(self, release: Release) -> None:
        since, before, steps = release.since, release.before, release.steps

        self.kafka_version: str = release.name

        # -- the controller

        self.epoch_created_in_one_transaction: bool = since("2.1", "KAFKA-6082")
        """``/controller`` and its epoch are written in one transaction."""
        self.guard_controller_writes: bool = since("2.1", "KAFKA-6082")
        """Every write of the controller checks the version of ``/controller_epoch``."""
        self.broker_epochs: bool = since("2.2", "KIP-380")
        """A broker is known by the epoch of its registration, too."""
        self.preempt_queued_events: bool = since("2.2", "KAFKA-5692")
        """Whoever waits for a queued event is told when a resigning controller drops it."""
        self.pipelined_zookeeper: bool = since("1.1", "KAFKA-5642")
        """The controller sends ZooKeeper many requests before the first is answered."""
        self.empty_update_metadata_means_all: bool = before("2.2", "KAFKA-7537")
        """An UpdateMetadata for no partition in particular tells of all of them."""
        self.legacy_selectors: bool = before("1.1", "KAFKA-5642")
        """A class selects the leader for each kind of election."""
        self.last_isr_member_always_kept: bool = since("1.1", "KAFKA-5642")
        """The last member stays in the ISR even where an unclean election is allowed."""
        self.startup_moves_dead_replicas_offline: bool = since("2.3", "KAFKA-3143")
        """A new controller makes replicas on dead brokers offline, not ineligible for deletion."""
        self.ineligible_from_offline: bool = since("2.3", "KAFKA-8237")
        """A replica that is offline may become ineligible for deletion."""
        self.nonexistent_at_deletion_start: bool = since("2.1", "KAFKA-6753")
        """Partitions of a topic become nonexistent when its deletion starts, not when it ends."""
        self.preferred_election_blocks_deletion: bool = before("0.11", "KAFKA-5107")
        """A topic is not deleted while it is among those of a preferred election."""
        self.elections_by_znode_checked: bool = since("2.2", "KAFKA-5692")
        """An election by znode leaves out unknown partitions, and leaders that are preferred."""
        self.elect_leaders_api: bool = since("2.2", "KIP-183")
        """Preferred leaders are elected by a request to the controller."""
        self.unclean_elections_api: bool = since("2.4", "KIP-460")
        """A request may ask for an unclean election, too."""
        self.unclean_default_elects_at_once: bool = since("2.0", "KAFKA-6526")
        """Brokers that come to allow unclean elections hold them at once."""
        self.unclean_topic_elects_at_once: bool = since("2.1", "KAFKA-6835")
        """A topic that comes to allow unclean elections holds them at once."""
        self.reassignment_api: bool = since("2.4", "KIP-455")
        """Partitions are reassigned by a request, and each topic's znode tells what is moving."""
        self.alter_isr: bool = since("2.7", "KIP-497")
        """A leader asks the controller to change the ISR; before, it wrote to ZooKeeper."""
        self.alter_isr_strict: bool = since("3.3", "KIP-841", "KAFKA-14140")
        """The controller refuses an ISR with dead brokers, or with an epoch newer than its own."""
        self.log_dir_failure_handling: bool = since("1.0", "KIP-112")
        """A broker lives on without a log directory that failed."""
        self.controller_stands_before_registration: bool = before("1.1", "KAFKA-5642")
        """A broker stands for controller before it has registered."""
        self.new_session_stands_before_registration: bool = before("0.11", "KAFKA-5028")
        """A broker with a new session stands for controller before it registers again."""
        self.new_replica_reads_zookeeper: bool = before("1.1", "KAFKA-5642")
        """The state of a partition is read from ZooKeeper for each new replica."""
        self.controlled_shutdown_tells_leaving_broker: bool = before("1.1", "KAFKA-5642") or since(
            "2.1", "KAFKA-7482"
        )
        """The broker that shuts down is also told of the new leaders of its partitions."""
        self.controlled_shutdown_one_by_one: bool = before("1.1", "KAFKA-5642")
        """Each partition of the broker that shuts down is written and told by itself."""
        self.controlled_shutdown_spares_queued_topics: bool = since("2.1", "KAFKA-6753")
        """A controlled shutdown leaves out topics that are queued for deletion."""
        self.controlled_shutdown_asks_metadata: bool = since("3.0", "KAFKA-9189")
        """A broker that shuts down finds the controller in its metadata, not in ZooKeeper."""
        self.broker_count_metrics: bool = since("3.1", "KIP-748")
        """The controller counts active and fenced brokers."""
        self.topic_watch_by_exists: bool = before("1.1", "KAFKA-5642")
        """A watch on a topic's znode is set by a request of its own."""
        self.stop_replica_one_by_one: bool = before("2.3", "KAFKA-8294")
        """A StopReplica request names one partition."""
        self.stop_replica_empty_request: bool = since("1.1", "KAFKA-5642") and before(
            "2.3", "KAFKA-8294"
        )
        """An empty StopReplica request goes along with those for each partition."""
        self.stop_replica_per_partition_delete: bool = since("2.6", "KIP-570")
        """A StopReplica request says of each partition whether to delete it."""
        self.stop_replica_accepts_equal_epoch: bool = since("3.4.1", "KAFKA-13972")
        """A broker obeys a StopReplica with the leader epoch that it knows already."""
        self.announce_dead_broker_unless_elected: bool = since("3.1", "KAFKA-13225")
        """Brokers are told of a dead one unless an election tells them; before, only if none
        lacks a leader."""
        self.rebalance_during_reassignments: bool = since("3.4", "KAFKA-10149")
        """Leaders move back to preferred replicas although a reassignment is under way."""
        self.rebalance_needs_isr: bool = since("2.6", "KAFKA-9866")
        """Leadership moves back only to a preferred replica in the ISR."""
        self.rebalance_one_by_one: bool = before("2.0.1", "KAFKA-7299")
        """Each leadership that moves back is an election of its own."""
        self.rebalance_fixed_rate: bool = before("0.11", "KAFKA-5028")
        """The next look for leaders to move back does not wait for the last one's end."""
        self.recounts_gauges: bool = before("2.1", "KAFKA-6753")
        """The controller counts offline partitions anew after each event."""
        self.gauges_count_queued_topics: bool = before("0.10.2", "KAFKA-4441")
        """Topics that are being deleted count among the offline partitions."""
        self.failure_concerns_led_partitions: bool = before("1.0", "KIP-112")
        """Only the partitions that a dead broker led become offline."""
        self.update_metadata_names_all_deleted: bool = before("2.0", "KAFKA-6481")
        """Each UpdateMetadata names all topics that are queued for deletion."""
        self.disabled_deletion_drops_requests: bool = since("0.10.2", "KAFKA-3175")
        """Where deletion is disabled, requests to delete topics are removed."""
        self.request_node_changes_heeded: bool = before("1.1", "KAFKA-5642")
        """The controller also obeys a request znode that is changed, not created."""
        self.failover_announces_brokers_first: bool = since("0.10.2", "KAFKA-4443")
        """A new controller tells brokers of each other before it handles partitions."""
        self.failover_drops_notifications: bool = since("1.1", "KAFKA-5642")
        """A new controller removes the notifications of ISR changes that it finds."""
        self.unclean_leaders_recover: bool = since("3.2", "KIP-704")
        """The state znode marks an uncleanly elected leader until the ISR changes."""

        # -- ZooKeeper

        self.zookeeper_config_node: bool = since("2.4", "KAFKA-8634")
        """ZooKeeper is 3.5 or later and has ``/zookeeper/config``."""
        self.zookeeper_tells_ephemerals: bool = since("3.0", "KAFKA-12756")
        """ZooKeeper is 3.6 or later and answers getEphemerals."""
        self.meta_properties_name_cluster: bool = since("2.4", "KAFKA-7335")
        """``meta.properties`` holds the id of the cluster, which is checked at every start."""
        self.meta_properties_before_logs: bool = since("3.7", "PR 14628")
        """``meta.properties`` is written before logs are loaded; before, after registration."""
        self.user_and_broker_config_roots: bool = since("1.1", "PR 4359")
        """``/config/users`` and ``/config/brokers`` are there from the start."""
        self.ip_configs: bool = since("2.8", "KIP-612")
        """``/config/ips`` holds limits of addresses."""
        self.topic_ids: bool = since("2.8", "KIP-516")
        """A topic has an id besides its name."""
        self.topic_id_of_stored_log: bool = since("3.0", "KAFKA-12426")
        """A log that is not open keeps its topic id, too."""
        self.feature_versioning: bool = since("2.7", "KIP-584")
        """The controller keeps ``/feature``."""
        self.feature_update_types: bool = since("3.3", "KIP-778")
        """An update of a feature has a type; before, it could permit a downgrade."""
        self.topic_znode_version: int = steps(1, {"2.4": 2, "2.8": 3}, "KIP-455", "KIP-516")
        """The version of a topic's znode."""
        self.broker_znode_version: int = steps(4, {"2.7": 5}, "KIP-584")
        """The version of a broker's znode."""
        self.controller_znode_version: int = steps(1, {"3.4": 2}, "KIP-866")
        """The version of ``/controller``."""
        self.feature_znode_version: int = steps(1, {"3.3": 2}, "KAFKA-13833")
        """The version of ``/feature``."""

        # -- administration

        self.create_topics_generated: bool = since("2.3", "KAFKA-7832")
        """CreateTopics is read by generated classes, which tell every refusal with a message."""
        self.delete_topics_generated: bool = since("2.3", "KAFKA-8034")
        """DeleteTopics answers a topic as often as it is named."""
        self.alter_configs_generated: bool = since("2.6", "KAFKA-9433")
        """AlterConfigs answers a resource as often as it is named, whatever its type."""
        self.describe_configs_generated: bool = since("2.7", "KAFKA-9432")
        """DescribeConfigs answers a resource as often as it is named, whatever its type."""
        self.creation_waits_for_deletion: bool = since("3.1", "KAFKA-13175")
        """A topic is not created while its name is marked for deletion."""
        self.deletion_is_tried_when_disabled: bool = before("2.1", "KIP-322")
        """Where deletion is disabled, DeleteTopics times out."""
        self.assignments_may_have_gaps: bool = before("2.3", "KAFKA-7864")
        """A topic may be created with the partitions 0 and 2."""
        self.default_counts_for_new_topics: bool = since("2.4", "KIP-464")
        """A count of -1 is what the broker is set to."""
        self.existing_topics_refused_first: bool = since("2.4", "KIP-525")
        """A topic that exists is refused before its configurations are looked at."""
        self.topic_names_called_invalid: bool = since("3.3.2", "PR 12703")
        """A topic's name is "invalid"; before, it was "illegal"."""
        self.topic_configs_may_be_null: bool = since("0.11", "KIP-133")
        """The value of a new topic's configuration can be null on the wire, and is refused."""
        self.null_topic_config_is_invalid_config: bool = since("3.3", "KAFKA-13863")
        """A null for a new topic's configuration is INVALID_CONFIG, not INVALID_REQUEST."""
        self.bad_topic_configs_unexpected: bool = before("2.1", "KAFKA-7409")
        """A new topic's configuration with a wrong value is UNKNOWN_SERVER_ERROR."""
        self.unexpected_errors_told: bool = before("2.6", "PR 9030")
        """UNKNOWN_SERVER_ERROR says what failed."""
        self.maps_shown_as_hash_maps: bool = since("2.6", "KAFKA-9907")
        """Messages show the collections of Scala 2.13."""
        self.broker_configs_api: bool = since("1.1", "KIP-226")
        """The configurations of brokers are changed while they run."""
        self.broker_loggers: bool = since("2.4", "KIP-412")
        """Log levels of a broker are a resource with configurations."""
        self.client_metrics_resources: bool = since("3.7", "KIP-714")
        """Subscriptions to metrics of clients are known, and refused without KRaft."""
        self.config_changes_preprocessed: bool = since("3.2", "KAFKA-13552")
        """Changes of configurations are checked before any is made (``ConfigAdminManager``)."""
        self.configs_of_unknown_topics: bool = before("2.0", "KAFKA-6778")
        """A topic that does not exist is described; altering it is an unexpected error."""
        self.unknown_topic_configs_secret: bool = since("2.5.1", "KAFKA-9718")
        """The value of an unknown configuration of a topic is not shown."""
        self.types_of_dynamic_configs_told: bool = since("2.5.1", "KAFKA-9625")
        """Throttled rates are shown; before, they were secrets."""
        self.deleted_configs_checked: bool = since("2.5.1", "KAFKA-9625")
        """A broker must be able to follow the deletion of a configuration, too."""
        self.synonyms_shown_as_dynamic: bool = before("2.4", "KAFKA-8857")
        """A configuration is shown as dynamic if another name of it is."""
        self.empty_config_names_mean_all: bool = since("2.7.1", "KAFKA-12235")
        """An empty list of names describes all configurations; before, none."""
        self.truststores_change_live: bool = since("2.0", "KAFKA-6810")
        """The truststore of a listener changes while the broker runs."""
        self.network_threads_per_listener: bool = since("3.2", "KAFKA-7589")
        """The number of network threads can be set, and changed, for one listener."""
        self.listener_configs_immutable: bool = since("2.7", "KAFKA-10479")
        """Of a listener in use only keys and limits can be changed."""
        self.log_cleaner_asked_last: bool = since("3.2", "KAFKA-13552")
        """Whether a log cleaner can follow a change is asked after the listeners."""
        self.bounds_said_in_order: bool = since("2.8", "PR 10113")
        """A number must be "greater than or equal to"; before, "equal or greater than"."""
        self.default_throttle_rates: bool = since("3.9", "KAFKA-10190")
        """Throttled rates can be set for all brokers at once."""
        self.resources_called_config_resources: bool = since("2.0", "PR 4845")
        """Messages about configurations speak of a ``ConfigResource``."""
        self.wrong_broker_shown_as_resource: bool = before("2.4", "KIP-412")
        """Who asks the wrong broker reads "received Resource(...).name"."""
        self.appended_values_once: bool = since("3.3", "KAFKA-13862")
        """APPEND leaves out what a configuration has already."""
        self.describe_producers_says_why: bool = since("3.0", "KAFKA-12434")
        """DescribeProducers tells an error with a message."""
        self.log_dirs_name_topics_not_asked: bool = since("2.6", "KAFKA-9435") and before(
            "3.7.1", "KAFKA-16807"
        )
        """DescribeLogDirs also names topics in a directory that were not asked for."""
        self.message_format_config: bool = before("3.0", "KIP-724")
        """``message.format.version`` is heeded."""

        # -- metadata and requests

        self.api_versions_range_told: bool = since("2.4", "KIP-511")
        """UNSUPPORTED_VERSION for ApiVersions tells which of its versions there are."""
        self.leaderless_isr_shown: bool = since("2.4", "KAFKA-8442")
        """Metadata names the ISR of a partition without leader."""
        self.metadata_replicas_are_sets: bool = before("0.11", "KAFKA-5329")
        """Metadata names replicas in no particular order."""
        self.invalid_names_told: bool = since("2.8", "KAFKA-9751")
        """Metadata says of an invalid topic name that it is one."""
        self.foreign_partition_is_known: bool = since("2.0", "KAFKA-6796")
        """A broker without a replica is not the leader; before, it did not know the partition."""
        self.replica_without_log_is_offline: bool = since("1.0", "KIP-112") and before(
            "3.1", "PR 11225"
        )
        """A LeaderAndIsr for a replica without a log leaves it offline."""
        self.produce_checked_while_parsing: bool = before("2.1.1", "KAFKA-7549")
        """Produce with wrong records closes the connection."""
        self.null_records_unanswered: bool = since("3.6", "KIP-890")
        """Produce with null records is not answered; before, the connection was closed."""
        self.fetches_parsed_when_handled: bool = before("0.10.2", "KAFKA-2066")
        """Fetch is parsed late: a broken one gets no answer, and null is empty."""
        self.fetch_generated: bool = since("2.7", "KAFKA-9629")
        """Fetch with a wrong isolation level is answered; before, the connection was closed."""
        self.list_offsets_generated: bool = since("2.7", "KAFKA-9627")
        """ListOffsets answers a partition as often as it is named, whatever its isolation."""
        self.epoch_offsets_generated: bool = since("2.8", "KAFKA-9630")
        """OffsetForLeaderEpoch answers a partition as often as it is named."""
        self.repeated_transaction_partitions_answered_once: bool = before("3.5", "KAFKA-14402")
        """AddPartitionsToTxn answers a partition once, however often it is named."""
        self.repeated_old_commits_answered_once: bool = before("3.5", "KAFKA-14367")
        """OffsetCommit 0 answers a partition once, however often it is named."""
        self.unknown_acl_elements_refused: bool = since("2.0", "KAFKA-7011")
        """Operations and types of ACLs that are none close the connection."""

        # -- replication

        self.truncation: Literal["high_watermark", "leader_epoch", "fetch"] = steps(
            "high_watermark", {"0.11": "leader_epoch", "2.8": "fetch"}, "KIP-101", "KAFKA-10554"
        )
        """A follower cuts its log at its high watermark, where the leader's answer about an epoch
        says, or where a fetch does."""
        self.epoch_cache: bool = since("0.11", "KIP-101")
        """A log knows where each leader epoch starts."""
        self.messages_stand_alone: bool = before("0.11", "KIP-98")
        """Messages are in no batches, so a log may end between any two."""
        self.epoch_registered_at_election: bool = since("2.0", "KIP-279")
        """A leader notes its epoch when it is elected, not when it first appends."""
        self.epoch_truncation_rounds: bool = since("2.0", "KIP-279")
        """The answer about an epoch names one, too, and a follower may ask again."""
        self.fetch_epoch_fencing: bool = since("2.1", "KIP-320")
        """Fetches name the leader epoch, and are refused if it is another."""
        self.caught_up_by_previous_fetch: bool = since("0.10.2", "KAFKA-4485")
        """A follower has caught up that reaches where the leader's log ended at its last fetch."""
        self.caught_up_reset_at_election: bool = since("0.10.2", "KAFKA-4485")
        """A new leader takes only the members of the ISR as caught up."""
        self.high_watermark_waits_for_joiner: bool = since("0.10.2", "KAFKA-4485")
        """The high watermark waits for a follower that is about to join the ISR."""
        self.isr_checked_each_lag_time: bool = before("0.10.2", "KAFKA-4485")
        """Followers that lag are looked for once in ``replica.lag.time.max.ms``, not twice."""
        self.joiner_must_be_eligible: bool = since("3.3", "KIP-841", "KAFKA-14140")
        """Only a live broker can join the ISR."""
        self.high_watermark_frozen_under_min_isr: bool = since("3.7", "KIP-966", "KAFKA-15583")
        """The high watermark stands still while the ISR is below its minimum."""
        self.min_isr_at_most_replicas: bool = since("3.7", "KAFKA-15583")
        """``min.insync.replicas`` counts as the number of replicas if it is larger."""
        self.append_completes_produces_first: bool = since("2.7", "KAFKA-8334")
        """A leader's append first completes waiting produce requests; before, fetches."""
        self.shrink_commit_moves_high_watermark: bool = since("3.1", "KAFKA-13091")
        """The high watermark moves when the controller has agreed to a smaller ISR."""
        self.isr_join_needs_epoch_start: bool = since("2.0.1", "KAFKA-7128")
        """Who joins the ISR must have reached the start of the leader's epoch."""
        self.isr_member_at_end_never_removed: bool = since("2.1", "KAFKA-7152")
        """A follower at the leader's end stays in the ISR, however long it does not fetch."""
        self.isr_check_fails_at_no_replica: bool = steps(
            False, {"2.4": True, "3.0": False}, "KIP-455", "KAFKA-9672"
        )
        """The look for followers that lag ends where an ISR names a broker that is no replica of
        its partition; in other releases that broker leaves the ISR."""
        self.make_follower_restarts: Literal["leader_changed", "epoch_missed", "epoch_changed"] = (
            steps(
                "leader_changed",
                {"2.0.1": "epoch_missed", "2.1": "epoch_changed"},
                "KAFKA-7164",
                "KIP-320",
            )
        )
        """A fetcher starts anew with another leader, also if an epoch was missed, or with any
        other epoch."""
        self.partition_epoch_checked: bool = since("3.3", "KAFKA-13790")
        """A LeaderAndIsr with an older partition epoch is ignored."""
        self.alter_isr_errors_roll_back: bool = since("3.1", "KAFKA-13254")
        """An ISR that the controller could not try to change is as it was."""
        self.out_of_range_halts_broker: bool = before("2.0.1", "KAFKA-7414")
        """A broker ahead of its leader ends, unless an unclean election is allowed."""
        self.foreign_follower_is_error: bool = before("1.0", "KAFKA-5758")
        """A fetch of a broker without replica fails."""
        self.foreign_follower_refused: bool = since("3.3", "KAFKA-13837")
        """A fetch of a broker without replica that names an epoch is UNKNOWN_LEADER_EPOCH."""
        self.follower_failure_stops_fetcher: bool = before("2.3", "KIP-461")
        """A partition that fails takes the fetcher of others with it."""
        self.fetch_sessions: bool = since("1.1", "KIP-227")
        """A fetch names only what changed since the one before."""
        self.fetch_from_follower: bool = since("2.4", "KIP-392")
        """Consumers read from a replica near them."""
        self.preferred_replica_answers_at_once: bool = since("3.2", "KAFKA-13767")
        """A fetch is answered at once if the answer sends the consumer to a replica."""
        self.in_sync_fetch_waits_for_quota: bool = before("1.0.2", "KAFKA-6937")
        """A follower in sync waits if its partition is throttled."""
        self.long_names_fail_deletion: bool = since("0.10.2", "KAFKA-1911") and before(
            "2.2.2", "KAFKA-4893"
        )
        """A topic with a long name cannot be deleted, as no file system takes the new name."""
        self.retention_passes_high_watermark: bool = before("0.11.0.1", "KAFKA-5634")
        """Records expire that are not committed yet."""

        # -- records, producers, transactions

        self.invalid_record_error: bool = since("2.4", "KIP-467")
        """A bad record is INVALID_RECORD; before, CORRUPT_MESSAGE."""
        self.zstd_compression: bool = since("2.1", "KIP-110")
        """Records may be compressed with zstd."""
        self.down_conversion_is_lazy: bool = since("2.0", "KIP-283")
        """As many bytes are converted for old consumers as they read; before, all of them."""
        self.max_timestamp_lookup: bool = since("3.0", "KIP-734")
        """ListOffsets -3 finds the record with the largest timestamp."""
        self.earliest_local_lookup: bool = since("3.5", "KIP-405")
        """ListOffsets -4 finds the first record that is on the broker."""
        self.special_timestamps_versioned: bool = since("3.9", "KAFKA-17331")
        """ListOffsets refuses a special time that its version does not have."""
        self.stable_offset_told_unasked: bool = since("2.1", "KAFKA-7395")
        """Consumers that read uncommitted records are told the last stable offset, too."""
        self.idempotent_producers: bool = since("0.11", "KIP-98")
        """Producers have ids, and their records sequences."""
        self.unknown_producer_id_refused: bool = before("2.5", "KIP-360")
        """A producer that the leader has forgotten must begin with sequence 0."""
        # Before 0.11 only clients of today have producer ids, and those know the later error.
        self.unknown_producer_id_error: bool = before("0.11", "KIP-98") or since(
            "1.0", "KAFKA-5793"
        )
        """A forgotten producer reads UNKNOWN_PRODUCER_ID; before, OUT_OF_ORDER_SEQUENCE_NUMBER."""
        self.producer_ids_expire_by_themselves: bool = since("3.4", "KIP-854")
        """Producers are forgotten at a time of their own, not with transactional ids."""
        self.producers_go_with_their_records: bool = before("2.4", "KAFKA-7190")
        """A producer is forgotten as soon as the log starts after its records."""
        self.producer_ids_prefetched: bool = since("3.6", "KAFKA-14694")
        """A broker asks for the next producer ids before the last ones are gone."""
        self.producer_ids_from_controller: bool = since("3.0", "KIP-730")
        """Brokers ask the controller for producer ids, not ZooKeeper."""
        self.transactions: bool = since("0.11", "KIP-98")
        """Records of many partitions are written all or none."""
        self.transactional_batches_need_id: bool = since("2.1.1", "PR 6172")
        """Records of a transaction need a transactional id, also without an authorizer."""
        self.coordinators_check_epochs: bool = since("2.4.1", "KAFKA-9144")
        """A leader checks the epoch of the coordinator that writes a marker."""
        self.ending_needs_equal_epoch: bool = since("2.6", "KAFKA-9600")
        """EndTxn is fenced by any other epoch, not only by a later one."""
        self.failed_fence_remembered: bool = since("2.6", "KAFKA-9666")
        """An epoch that could not be written is not raised once more."""
        self.producer_fenced_error: bool = since("2.7", "KIP-588")
        """A fenced producer reads PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH."""
        self.transactions_verified: bool = since("3.6", "KIP-890")
        """A leader asks the coordinator before it begins a transaction."""

        # -- security and quotas

        self.sasl_scram: bool = since("0.10.2", "KIP-84")
        """Clients may log in with SCRAM."""
        self.scram_nonce_checked: bool = since("3.7.2", "CVE-2024-56128")
        """The nonce of a client's last SCRAM message is checked."""
        self.sasl_oauthbearer: bool = since("2.0", "KIP-255")
        """Clients may log in with OAUTHBEARER."""
        self.sasl_reauthentication: bool = since("2.2", "KIP-368")
        """A login expires, and clients log in again."""
        self.failed_authentication_delayed: bool = since("2.1", "KIP-306")
        """A client that is refused waits for the answer."""
        self.malformed_plain_tokens_told: bool = since("2.3", "PR 6249")
        """A refused PLAIN token is told what is wrong with it."""
        self.delegation_tokens: bool = since("1.1", "KIP-48")
        """Clients may log in with tokens that brokers gave them."""
        self.acl_authorizer: bool = since("2.4", "KIP-504")
        """The authorizer is ``AclAuthorizer``; before, ``SimpleAclAuthorizer``."""
        self.prefixed_acls: bool = since("2.0", "KIP-290")
        """An ACL may be for all names with a prefix."""
        self.altering_implies_describing: bool = since("0.11", "KIP-140")
        """Who may alter something may describe it."""
        self.missing_authorizer_is_brokers: bool = before("3.0", "PR 10550")
        """Without an authorizer, changes of ACLs are refused with "on the broker"."""
        self.topics_created_by_acl: bool = since("2.0", "KIP-277")
        """Who may create a topic needs no right on the cluster."""
        self.groups_listed_by_acl: bool = since("2.1", "KIP-231")
        """ListGroups shows the groups that one may describe; before, all or none."""
        self.writing_implies_idempotence: bool = since("2.8", "KIP-679")
        """Who may write to a topic may be idempotent."""
        self.throttled_after_answers: bool = since("2.0", "KIP-219")
        """A client over its quota is answered and then muted; before, the answer waited."""
        self.fetches_fit_quotas: bool = since("2.5", "KAFKA-9677")
        """A fetch brings at most as much as a quota allows."""

        # -- groups

        self.find_coordinator_generated: bool = since("2.3", "KAFKA-8056")
        """FindCoordinator tells a message with every error; a wrong type closes no connection."""
        self.describe_groups_generated: bool = since("2.3", "KAFKA-7922")
        """DescribeGroups answers a group as often as it is named."""
        self.loading_told_before_ownership: bool = since("2.0", "PR 4788")
        """A group that is being loaded is not said to be elsewhere."""
        self.dead_group_is_unavailable: bool = since("2.3", "KAFKA-8386")
        """Members of a group that was removed look for it again; before, they were unknown."""
        self.failed_join_has_no_generation: bool = since("2.2", "KIP-394")
        """A refused JoinGroup has generation -1; before, 0."""
        self.member_id_required: bool = since("2.2", "KIP-394")
        """A member joins under an id that it was given."""
        self.new_members_time_out: bool = since("2.1.1", "KAFKA-7610")
        """A new member that waits five minutes is removed."""
        self.initial_rebalance_delay: bool = since("0.11", "KIP-134")
        """The first rebalance of a group waits for more members."""
        self.first_member_needs_protocols: bool = since("1.0", "KAFKA-6005")
        """The first member of a group must name protocols."""
        self.protocols_counted_as_named: bool = since("2.1", "KAFKA-7142")
        """A protocol that a member names twice has its vote twice."""
        self.awaiting_sync_state: bool = before("1.1", "KAFKA-5565")
        """CompletingRebalance is called AwaitingSync."""
        self.empty_group_ids_refused: bool = since("2.0", "PR 4788")
        """The empty group id is refused to members that sync, beat or leave, too."""
        self.offsets_of_unknown_partitions: bool = before("2.0", "KAFKA-6796")
        """Offsets of a partition are committed if there is the topic."""
        self.heartbeats_before_sync: bool = since("2.6.1", "KAFKA-10134")
        """A heartbeat is accepted while the assignment is awaited."""
        self.commits_check_state_first: bool = before("2.4", "KAFKA-8487")
        """Any client that commits during a rebalance is told of it."""
        self.stable_offset_fetch: bool = since("2.5", "KIP-447")
        """Who fetches offsets can wait for commits under way."""
        self.syncs_time_out: bool = since("2.8.1", "KAFKA-12890")
        """A member that does not sync in time is removed."""
        self.instance_id_must_be_known: bool = since("3.0", "PR 9958")
        """An instance id that is not known makes any request of a member unknown."""
        self.assignment_may_be_skipped: bool = since("3.2", "KIP-814")
        """A static leader that comes back may be told to assign nothing."""
        self.consumer_groups: bool = since("3.7", "KIP-848")
        """Brokers can coordinate groups of the new protocol; Kafka's do with KRaft only."""
        self.rejoining_updates_timeouts: bool = since("3.3.2", "KAFKA-14009")
        """A static member that comes back brings its timeouts."""
        self.group_filters_ignore_case: bool = since("3.8", "KAFKA-16095")
        """ListGroups takes states in small letters."""
        self.refused_offsets_stay_pending: bool = before("3.7.1", "KAFKA-16371")
        """An offset whose metadata is too large stays pending until the group is loaded anew."""
        self.offsets_expire_by_group_state: bool = since("2.1", "KIP-211")
        """Offsets expire once a group is empty; before, each at its time."""
        self.offsets_go_with_their_topic: bool = since("0.10.2", "KAFKA-2000")
        """Offsets of a deleted topic are removed."""
        self.offset_fetch_1_tells_errors: bool = before("3.5", "KAFKA-14367")
        """OffsetFetch 1 tells the error of a group at each partition."""
        self.empty_offset_fetch_means_all: bool = before("0.10.2", "KIP-88")
        """OffsetFetch without partitions asks for all."""
        self.offset_value_version: int = steps(1, {"2.1": 3}, "KIP-320")
        """The version of a stored offset."""
        self.group_value_version: int = steps(1, {"2.1": 2, "2.3": 3}, "KIP-211", "KIP-345")
        """The version of a stored group."""

    __slots__ = _assigned_in(__init__)
