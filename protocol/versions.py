"""Behaviour flags per emulated version: the one table in which versions are compared.

Every flag is named for what it does. docs/kafka/releases.md puts the releases side by side; those
in comments are the ones in which the behaviour changed.
"""

from __future__ import annotations

from typing import Literal

from .declaring.methods import field_names
from .errors import UsageError
from .values import frozen

KAFKA_VERSIONS = ("0.10", "1.1", "2.8", "3.9")
DEFAULT_KAFKA_VERSION = "3.9"


@frozen
class Behaviour:
    """What the emulated release does where releases differ."""

    kafka_version: str

    # controller
    epoch_created_in_one_transaction: bool  # >= 2.1: /controller and its epoch in one multi
    guard_controller_writes: bool  # >= 2.1: every write checks /controller_epoch
    broker_epochs: bool  # >= 2.2, KIP-380
    preempt_queued_events: bool  # >= 2.2
    pipelined_zookeeper: bool  # >= 1.1: asynchronous client, KAFKA-5642
    zookeeper_config_node: bool  # >= 2.4, KAFKA-8634: /zookeeper/config, since ZooKeeper 3.5
    zookeeper_tells_ephemerals: bool  # >= 3.0: getEphemerals, since ZooKeeper 3.6
    empty_update_metadata_means_all: bool  # < 2.2
    legacy_selectors: bool  # <= 1.0: one selector class per strategy
    last_isr_member_always_kept: bool  # >= 1.1; before only with unclean election off
    startup_moves_dead_replicas_offline: bool  # >= 2.3
    ineligible_from_offline: bool  # >= 2.3
    nonexistent_at_deletion_start: bool  # >= 2.1
    preferred_election_blocks_deletion: bool  # 0.10
    elections_by_znode_checked: bool  # >= 2.2: unknown partitions, and leaders that are preferred
    elect_leaders_api: bool  # >= 2.4
    unclean_toggle_without_failover: bool  # >= 2.0 broker, >= 2.1 topic
    reassignment_api: bool  # >= 2.4, KIP-455
    alter_isr: bool  # >= 2.7, KIP-497
    alter_isr_strict: bool  # >= 3.3: newer epochs refused, ineligible replicas refused
    log_dir_failure_handling: bool  # >= 1.0
    log_dirs_name_topics_not_asked: bool  # 2.8, KAFKA-16807: those in a directory
    meta_properties_name_cluster: bool  # >= 2.4, KAFKA-7335; checked at every start
    meta_properties_before_logs: bool  # >= 3.7: written before logs load; before, once registered
    new_replica_reads_zookeeper: bool  # <= 1.0
    controller_stands_before_registration: bool  # <= 1.0, KAFKA-5642: elected, then registered
    controlled_shutdown_tells_leaving_broker: bool  # not in 1.1 and 2.0, KAFKA-7482
    controlled_shutdown_one_by_one: bool  # <= 1.0: each partition written and told by itself
    controlled_shutdown_asks_metadata: bool  # >= 3.0, KAFKA-9189: before, ZooKeeper
    controlled_shutdown_spares_queued_topics: bool  # >= 2.1: topics queued for deletion are left
    broker_count_metrics: bool  # >= 3.1, KIP-748
    topic_watch_by_exists: bool  # <= 1.0: ZkClient arms a topic's watch by a request of its own
    stop_replica_per_partition_delete: bool  # >= 2.6: one request with mixed delete flags
    stop_replica_accepts_equal_epoch: bool  # >= 3.4.1, KAFKA-13972
    announce_dead_broker_unless_elected: bool  # >= 3.1: not only if no leader is missing
    rebalance_during_reassignments: bool  # >= 3.4, KAFKA-10149; before: any of them stops all
    rebalance_needs_isr: bool  # >= 2.6: the preferred replica must be in the ISR
    rebalance_one_by_one: bool  # < 2.0
    rebalance_fixed_rate: bool  # 0.10
    creation_waits_for_deletion: bool  # >= 3.1, KAFKA-13175: refused while marked for deletion
    leaderless_isr_shown: bool  # >= 2.1: Metadata of a leaderless partition names the ISR
    metadata_replicas_are_sets: bool  # < 0.11: Metadata tells replicas in no order of theirs
    invalid_names_told: bool  # >= 2.8: Metadata of an invalid topic name says so
    foreign_partition_is_known: bool  # >= 2.0: NOT_LEADER at a broker without replica
    invalid_record_error: bool  # >= 2.4, KIP-467; before: CORRUPT_MESSAGE
    recounts_gauges: bool  # < 2.1, KAFKA-6753: offline partitions are counted, not kept count of
    gauges_count_queued_topics: bool  # < 0.10.2, KAFKA-4441: topics being deleted count as well
    failure_concerns_led_partitions: bool  # < 1.0, KIP-112: only what a dead broker led is offline
    retention_passes_high_watermark: bool  # < 1.0, KAFKA-5634: uncommitted records expire, too
    isr_checked_each_lag_time: bool  # < 0.10.2, KAFKA-4485: afterwards every half of it
    stop_replica_one_by_one: bool  # <= 2.2: one request per partition
    stop_replica_empty_request: bool  # 1.1 to 2.2: KAFKA-5642 left KAFKA-4420's group empty
    update_metadata_names_all_deleted: bool  # < 2.0, KAFKA-6481: every queued topic, each time
    disabled_deletion_drops_requests: bool  # >= 0.11, KAFKA-3175: the request znode is emptied
    request_node_changes_heeded: bool  # <= 1.0; from 1.1, KAFKA-5642, only their creation
    failover_announces_brokers_first: bool  # >= 0.10.2, KAFKA-4443: before the state machines
    failover_drops_notifications: bool  # >= 1.1, KAFKA-5642: /isr_change_notification is emptied
    user_and_broker_config_roots: bool  # >= 1.1: /config/users, /config/brokers from the start
    ip_configs: bool  # >= 2.8, KIP-612: /config/ips
    topic_ids: bool  # >= 2.8, KIP-516
    topic_id_of_stored_log: bool  # >= 3.0, KAFKA-12426: before, that of an opened log only
    replica_without_log_is_offline: bool  # 1.0 to 3.0, after a LeaderAndIsr; 3.1: PR 11225
    api_versions_range_told: bool  # >= 2.4, KIP-511: with error 35, the range of ApiVersions
    feature_update_types: bool  # >= 3.3, KIP-778: of an update, instead of a permitted downgrade
    feature_versioning: bool  # >= 2.7: the /feature znode
    unset_messages_are_empty: bool  # >= 2.4: generated answers; before: null
    config_changes_preprocessed: bool  # >= 3.2: ``ConfigAdminManager``
    truststores_change_live: bool  # >= 2.0, KAFKA-6810: dynamic configurations of a listener
    types_of_dynamic_configs_told: bool  # >= 2.6: of throttled rates; before, they are secrets
    unknown_topic_configs_secret: bool  # >= 2.6: their values are not shown
    synonyms_shown_as_dynamic: bool  # < 2.4: where another name of it may change
    network_threads_per_listener: bool  # >= 3.2: dynamic
    unexpected_errors_told: bool  # < 2.6: administration says what failed; later, it is secret
    deleted_configs_checked: bool  # >= 2.6: that a broker can follow them, too
    listener_configs_immutable: bool  # >= 2.7: other than its keys and limits
    bounds_said_in_order: bool  # >= 2.8: "greater than or equal to", not "equal or greater than"
    default_throttle_rates: bool  # >= 3.9, KAFKA-10190: dynamic rates of all brokers; before, own
    client_metrics_resources: bool  # >= 3.7, KIP-714: known, and refused without KRaft
    deletion_is_tried_when_disabled: bool  # < 2.1: DeleteTopics times out
    assignments_may_have_gaps: bool  # < 2.3, KAFKA-7864: a topic of the partitions 0 and 2
    maps_shown_as_hash_maps: bool  # built with Scala 2.13: in messages
    bad_topic_configs_unexpected: bool  # < 2.1: creation answers UNKNOWN_SERVER_ERROR
    default_counts_for_new_topics: bool  # >= 2.4, KIP-464: -1 takes what the broker is set to
    existing_topics_refused_first: bool  # >= 2.4, KIP-525; before: configurations
    configs_of_unknown_topics: bool  # < 2.0, KAFKA-6778: described; altering is an unexpected error
    resources_called_config_resources: bool  # >= 2.0, PR 4845: in messages about configurations
    wrong_broker_shown_as_resource: bool  # < 2.5: "received Resource(...).name", not the name
    empty_config_names_mean_all: bool  # >= 2.8, KAFKA-12235; before: no configuration
    topic_names_called_invalid: bool  # >= 3.4; before: "illegal"
    appended_values_once: bool  # >= 3.3: APPEND leaves out what a configuration has already
    describe_producers_says_why: bool  # >= 3.0: an error of a topic has a message
    unclean_leaders_recover: bool  # >= 3.2, KIP-704: the state znode says so until an ISR change
    topic_znode_version: int
    controller_znode_version: int  # 2 >= 3.4, KIP-866
    feature_znode_version: int  # 2 >= 3.3, KAFKA-13833
    broker_znode_version: int

    # data plane
    long_names_fail_deletion: bool  # 0.10.2 to 2.2.1, KAFKA-4893: no file system takes the new name
    truncation: Literal["high_watermark", "leader_epoch", "fetch"]
    epoch_cache: bool  # >= 0.11, KIP-101
    messages_stand_alone: bool  # < 0.11, KIP-98: no batches, so a log may end between any two
    epoch_registered_at_election: bool  # >= 2.0, KIP-279
    epoch_truncation_rounds: bool  # >= 2.0: the answer names an epoch, several rounds
    fetch_epoch_fencing: bool  # >= 2.1, KIP-320
    caught_up_by_previous_fetch: bool  # >= 0.10.2
    caught_up_reset_at_election: bool  # >= 0.10.2
    high_watermark_waits_for_joiner: bool  # >= 0.10.2
    joiner_must_be_eligible: bool  # >= 3.3
    high_watermark_frozen_under_min_isr: bool  # >= 3.7
    min_isr_at_most_replicas: bool  # >= 3.7, KAFKA-15583: a larger min.insync.replicas counts so
    append_completes_produces_first: bool  # >= 2.7, KAFKA-8334; before: fetches, as elsewhere
    shrink_commit_moves_high_watermark: bool  # >= 3.0
    isr_join_needs_epoch_start: bool  # >= 2.0.1, KAFKA-7128
    isr_member_at_end_never_removed: bool  # >= 2.1
    make_follower_restarts: Literal["leader_changed", "epoch_changed"]  # >= 2.1: at a new epoch
    partition_epoch_checked: bool  # >= 3.0
    alter_isr_errors_roll_back: bool  # >= 3.1
    out_of_range_halts_broker: bool  # <= 2.0.0: unless unclean election is allowed
    foreign_follower_is_error: bool  # <= 0.11
    foreign_follower_refused: bool  # >= 3.3, KAFKA-13837: with an epoch UNKNOWN_LEADER_EPOCH
    follower_failure_stops_fetcher: bool  # < 2.3, KIP-461: a bad partition kills the thread
    fetch_sessions: bool  # >= 1.1, KIP-227
    fetch_from_follower: bool  # >= 2.4, KIP-392
    in_sync_fetch_waits_for_quota: bool  # < 1.1.1, KAFKA-6937: if its partition is throttled
    preferred_replica_answers_at_once: bool  # >= 3.2, KAFKA-13767
    unknown_producer_id_refused: bool  # < 2.5
    producer_ids_expire_by_themselves: bool  # >= 3.4, KIP-854: not with transactional ids
    producers_go_with_their_records: bool  # < 2.4, KAFKA-7190: as soon as the log starts later
    repeated_names_answered_once: bool  # < 2.3 to 2.7, API by API: the last counts
    repeated_partitions_answered_once: bool  # < 2.8: ListOffsets, OffsetForLeaderEpoch
    repeated_transaction_partitions_answered_once: bool  # < 3.5, KAFKA-14402
    repeated_old_commits_answered_once: bool  # < 3.5: version 0 of OffsetCommit
    fetches_parsed_when_handled: bool  # < 0.11: broken ones get no answer, null is empty
    topic_configs_may_be_null: bool  # >= 0.11: a new topic's, which is then refused
    null_records_unanswered: bool  # >= 3.6, KIP-890: before, the connection is closed
    coordinators_check_epochs: bool  # >= 2.5, KAFKA-9144: of what they write for a transaction
    values_checked_while_parsing: bool  # < 2.2, KAFKA-7549, and later: wrong ones close connections
    unknown_acl_elements_refused: bool  # >= 2.0, KAFKA-7011: they close the connection
    stable_offset_told_unasked: bool  # >= 2.1, KAFKA-7395: also to READ_UNCOMMITTED consumers
    idempotent_producers: bool  # >= 0.11
    producer_ids_prefetched: bool  # >= 3.6, KAFKA-14694: producers need not wait for a block
    producer_ids_from_controller: bool  # >= 3.0, KIP-730: brokers ask it for blocks, else ZooKeeper
    transactions: bool  # >= 0.11, KIP-98
    transactional_batches_need_id: bool  # >= 2.2, PR 6172: also without an authorizer
    ending_needs_equal_epoch: bool  # >= 2.6, KAFKA-9600: EndTxn with a later epoch is fenced, too
    failed_fence_remembered: bool  # >= 2.6, KAFKA-9666: the epoch is not raised once more
    producer_fenced_error: bool  # >= 2.7, KIP-588: before, INVALID_PRODUCER_EPOCH
    null_topic_config_is_invalid_config: bool  # >= 3.4: before, INVALID_REQUEST
    transactions_verified: bool  # >= 3.6, KIP-890: a leader asks before it begins one
    max_timestamp_lookup: bool  # >= 3.0, ListOffsets -3
    special_timestamps_versioned: bool  # 3.9: any other time below -2 is refused
    zstd_compression: bool  # >= 2.1, KIP-110
    message_format_config: bool  # < 3.0: message.format.version is heeded, KIP-724
    down_conversion_is_lazy: bool  # >= 2.0, KIP-283: as many bytes as were read; before, all of it

    # security
    sasl_scram: bool  # >= 0.10.2, KIP-84
    scram_nonce_checked: bool  # >= 3.7.2, CVE-2024-56128: the one of the client's final message
    sasl_oauthbearer: bool  # >= 2.0, KIP-255
    sasl_reauthentication: bool  # >= 2.2, KIP-368: sessions expire, clients authenticate again
    failed_authentication_delayed: bool  # >= 2.1, KIP-306: the answer to a refused client waits
    malformed_plain_tokens_told: bool  # >= 2.3, PR 6249: what is wrong with a PLAIN token
    delegation_tokens: bool  # >= 1.1, KIP-48
    acl_authorizer: bool  # >= 2.4, KIP-504: AclAuthorizer; before, SimpleAclAuthorizer
    # consumer groups
    loading_told_before_ownership: bool  # >= 2.0: a group that is being loaded is not elsewhere
    dead_group_is_unavailable: bool  # >= 2.3, KAFKA-8386; before: its members are unknown
    failed_join_has_no_generation: bool  # >= 2.2: -1; before: 0
    member_id_required: bool  # >= 2.2, KIP-394: a member joins under an id it was given
    new_members_time_out: bool  # >= 2.2, KAFKA-7610: after five minutes of waiting
    initial_rebalance_delay: bool  # >= 0.11, KIP-134
    first_member_needs_protocols: bool  # >= 1.0, KAFKA-6005; before, an empty group takes anyone
    protocols_counted_as_named: bool  # >= 2.1, KAFKA-7142: one that is named twice is twice common
    awaiting_sync_state: bool  # < 1.1, KAFKA-5565: what CompletingRebalance was called
    coordinator_errors_told: bool  # >= 2.3: FindCoordinator names its error; before, null
    empty_group_ids_refused: bool  # >= 2.0: also to members that sync, beat and leave
    offsets_of_unknown_partitions: bool  # < 2.0: also transactions look whether there is the topic
    heartbeats_before_sync: bool  # >= 2.7, KAFKA-10134: accepted while the assignment is awaited
    commits_check_state_first: bool  # < 2.4, KAFKA-8487: any client learns of a rebalance
    syncs_time_out: bool  # >= 2.8.1, KAFKA-12890
    instance_id_must_be_known: bool  # >= 3.0: not only when a static member joins
    assignment_may_be_skipped: bool  # >= 3.2, KIP-814
    throttled_after_answers: bool  # >= 2.0, KIP-219; before, the answer waits
    fetches_fit_quotas: bool  # >= 2.5, KAFKA-9677
    consumer_groups: bool  # >= 3.7, KIP-848; Kafka has them with KRaft only
    rejoining_updates_timeouts: bool  # >= 3.4, KAFKA-14009
    group_filters_ignore_case: bool  # >= 3.8, KAFKA-16095
    refused_offsets_stay_pending: bool  # < 3.8, KAFKA-16371: until the group is loaded anew
    offsets_expire_by_group_state: bool  # >= 2.1, KIP-211; before: each at its time
    offsets_go_with_their_topic: bool  # >= 0.10.2, KAFKA-2000
    offset_fetch_1_tells_errors: bool  # < 3.5: of a group, at each partition; since then, nothing
    empty_offset_fetch_means_all: bool  # < 0.10.2, KIP-88
    offset_value_version: int  # 3 >= 2.1, KIP-320
    group_value_version: int  # 3 >= 2.3, KIP-345
    prefixed_acls: bool  # >= 2.0, KIP-290
    altering_implies_describing: bool  # >= 0.11, KIP-140
    missing_authorizer_is_brokers: bool  # < 3.0: CreateAcls says where there is none
    topics_created_by_acl: bool  # >= 2.0, KIP-277: CREATE of the topic; before, of the cluster
    groups_listed_by_acl: bool  # >= 2.1, KIP-231: those that may be described; before, all or none
    writing_implies_idempotence: bool  # >= 2.8, KIP-679: no IDEMPOTENT_WRITE is asked for

    # Each release has one object, so nothing is to be compared field by field.
    __eq__ = object.__eq__
    __hash__ = object.__hash__


_V28 = Behaviour(
    kafka_version="2.8",
    epoch_created_in_one_transaction=True,
    guard_controller_writes=True,
    broker_epochs=True,
    preempt_queued_events=True,
    pipelined_zookeeper=True,
    zookeeper_config_node=True,
    zookeeper_tells_ephemerals=False,
    empty_update_metadata_means_all=False,
    legacy_selectors=False,
    last_isr_member_always_kept=True,
    startup_moves_dead_replicas_offline=True,
    ineligible_from_offline=True,
    nonexistent_at_deletion_start=True,
    preferred_election_blocks_deletion=False,
    elections_by_znode_checked=True,
    elect_leaders_api=True,
    unclean_toggle_without_failover=True,
    reassignment_api=True,
    alter_isr=True,
    alter_isr_strict=False,
    log_dir_failure_handling=True,
    log_dirs_name_topics_not_asked=True,
    meta_properties_name_cluster=True,
    meta_properties_before_logs=False,
    new_replica_reads_zookeeper=False,
    controller_stands_before_registration=False,
    controlled_shutdown_tells_leaving_broker=True,
    controlled_shutdown_one_by_one=False,
    controlled_shutdown_asks_metadata=False,
    controlled_shutdown_spares_queued_topics=True,
    broker_count_metrics=False,
    topic_watch_by_exists=False,
    stop_replica_per_partition_delete=True,
    stop_replica_accepts_equal_epoch=False,
    announce_dead_broker_unless_elected=False,
    rebalance_during_reassignments=False,
    rebalance_needs_isr=True,
    rebalance_one_by_one=False,
    rebalance_fixed_rate=False,
    creation_waits_for_deletion=False,
    leaderless_isr_shown=True,
    metadata_replicas_are_sets=False,
    invalid_names_told=True,
    foreign_partition_is_known=True,
    invalid_record_error=True,
    recounts_gauges=False,
    gauges_count_queued_topics=False,
    failure_concerns_led_partitions=False,
    retention_passes_high_watermark=False,
    isr_checked_each_lag_time=False,
    stop_replica_one_by_one=False,
    stop_replica_empty_request=False,
    update_metadata_names_all_deleted=False,
    disabled_deletion_drops_requests=True,
    request_node_changes_heeded=False,
    failover_announces_brokers_first=True,
    failover_drops_notifications=True,
    user_and_broker_config_roots=True,
    ip_configs=True,
    topic_ids=True,
    topic_id_of_stored_log=False,
    replica_without_log_is_offline=True,
    api_versions_range_told=True,
    feature_update_types=False,
    feature_versioning=True,
    unset_messages_are_empty=True,
    config_changes_preprocessed=False,
    truststores_change_live=True,
    types_of_dynamic_configs_told=True,
    unknown_topic_configs_secret=True,
    synonyms_shown_as_dynamic=False,
    network_threads_per_listener=False,
    unexpected_errors_told=False,
    deleted_configs_checked=True,
    listener_configs_immutable=True,
    bounds_said_in_order=True,
    default_throttle_rates=False,
    client_metrics_resources=False,
    deletion_is_tried_when_disabled=False,
    assignments_may_have_gaps=False,
    maps_shown_as_hash_maps=True,
    bad_topic_configs_unexpected=False,
    default_counts_for_new_topics=True,
    existing_topics_refused_first=True,
    configs_of_unknown_topics=False,
    resources_called_config_resources=True,
    wrong_broker_shown_as_resource=False,
    empty_config_names_mean_all=True,
    topic_names_called_invalid=False,
    appended_values_once=False,
    describe_producers_says_why=False,
    unclean_leaders_recover=False,
    topic_znode_version=3,
    controller_znode_version=1,
    feature_znode_version=1,
    broker_znode_version=5,
    long_names_fail_deletion=False,
    truncation="fetch",
    epoch_cache=True,
    messages_stand_alone=False,
    epoch_registered_at_election=True,
    epoch_truncation_rounds=True,
    fetch_epoch_fencing=True,
    caught_up_by_previous_fetch=True,
    caught_up_reset_at_election=True,
    high_watermark_waits_for_joiner=True,
    joiner_must_be_eligible=False,
    high_watermark_frozen_under_min_isr=False,
    min_isr_at_most_replicas=False,
    append_completes_produces_first=True,
    shrink_commit_moves_high_watermark=False,
    isr_join_needs_epoch_start=True,
    isr_member_at_end_never_removed=True,
    make_follower_restarts="epoch_changed",
    partition_epoch_checked=False,
    alter_isr_errors_roll_back=False,
    out_of_range_halts_broker=False,
    foreign_follower_is_error=False,
    foreign_follower_refused=False,
    follower_failure_stops_fetcher=False,
    fetch_sessions=True,
    fetch_from_follower=True,
    in_sync_fetch_waits_for_quota=False,
    preferred_replica_answers_at_once=False,
    unknown_producer_id_refused=False,
    producer_ids_expire_by_themselves=False,
    producers_go_with_their_records=False,
    repeated_names_answered_once=False,
    repeated_partitions_answered_once=False,
    repeated_transaction_partitions_answered_once=True,
    repeated_old_commits_answered_once=True,
    fetches_parsed_when_handled=False,
    topic_configs_may_be_null=True,
    null_records_unanswered=False,
    coordinators_check_epochs=True,
    values_checked_while_parsing=False,
    unknown_acl_elements_refused=True,
    stable_offset_told_unasked=True,
    idempotent_producers=True,
    producer_ids_prefetched=False,
    producer_ids_from_controller=False,
    transactions=True,
    transactional_batches_need_id=True,
    ending_needs_equal_epoch=True,
    failed_fence_remembered=True,
    producer_fenced_error=True,
    null_topic_config_is_invalid_config=False,
    transactions_verified=False,
    max_timestamp_lookup=False,
    special_timestamps_versioned=False,
    zstd_compression=True,
    message_format_config=True,
    down_conversion_is_lazy=True,
    sasl_scram=True,
    scram_nonce_checked=False,
    sasl_oauthbearer=True,
    sasl_reauthentication=True,
    failed_authentication_delayed=True,
    malformed_plain_tokens_told=True,
    delegation_tokens=True,
    acl_authorizer=True,
    loading_told_before_ownership=True,
    dead_group_is_unavailable=True,
    failed_join_has_no_generation=True,
    member_id_required=True,
    new_members_time_out=True,
    initial_rebalance_delay=True,
    first_member_needs_protocols=True,
    protocols_counted_as_named=True,
    awaiting_sync_state=False,
    coordinator_errors_told=True,
    empty_group_ids_refused=True,
    offsets_of_unknown_partitions=False,
    heartbeats_before_sync=True,
    commits_check_state_first=False,
    syncs_time_out=True,
    instance_id_must_be_known=False,
    assignment_may_be_skipped=False,
    throttled_after_answers=True,
    fetches_fit_quotas=True,
    consumer_groups=False,
    rejoining_updates_timeouts=False,
    group_filters_ignore_case=False,
    refused_offsets_stay_pending=True,
    offsets_expire_by_group_state=True,
    offsets_go_with_their_topic=True,
    offset_fetch_1_tells_errors=True,
    empty_offset_fetch_means_all=False,
    offset_value_version=3,
    group_value_version=3,
    prefixed_acls=True,
    altering_implies_describing=True,
    missing_authorizer_is_brokers=True,
    topics_created_by_acl=True,
    groups_listed_by_acl=True,
    writing_implies_idempotence=True,
)


def _derive(base: Behaviour, **flags: object) -> Behaviour:
    values = {name: getattr(base, name) for name in field_names(Behaviour)}
    return Behaviour(**{**values, **flags})


_V39 = _derive(
    _V28,
    kafka_version="3.9",
    scram_nonce_checked=True,
    zookeeper_tells_ephemerals=True,
    offset_fetch_1_tells_errors=False,
    network_threads_per_listener=True,
    default_throttle_rates=True,
    client_metrics_resources=True,
    repeated_transaction_partitions_answered_once=False,
    repeated_old_commits_answered_once=False,
    null_records_unanswered=True,
    log_dirs_name_topics_not_asked=False,
    producer_ids_expire_by_themselves=True,
    alter_isr_strict=True,
    stop_replica_accepts_equal_epoch=True,
    announce_dead_broker_unless_elected=True,
    topic_id_of_stored_log=True,
    replica_without_log_is_offline=False,
    rebalance_during_reassignments=True,
    controlled_shutdown_asks_metadata=True,
    broker_count_metrics=True,
    unclean_leaders_recover=True,
    controller_znode_version=2,
    feature_update_types=True,
    feature_znode_version=2,
    creation_waits_for_deletion=True,
    config_changes_preprocessed=True,
    topic_names_called_invalid=True,
    appended_values_once=True,
    describe_producers_says_why=True,
    joiner_must_be_eligible=True,
    high_watermark_frozen_under_min_isr=True,
    min_isr_at_most_replicas=True,
    shrink_commit_moves_high_watermark=True,
    partition_epoch_checked=True,
    alter_isr_errors_roll_back=True,
    preferred_replica_answers_at_once=True,
    missing_authorizer_is_brokers=False,
    producer_ids_prefetched=True,
    producer_ids_from_controller=True,
    meta_properties_before_logs=True,
    null_topic_config_is_invalid_config=True,
    foreign_follower_refused=True,
    transactions_verified=True,
    max_timestamp_lookup=True,
    special_timestamps_versioned=True,
    message_format_config=False,
    instance_id_must_be_known=True,
    assignment_may_be_skipped=True,
    consumer_groups=True,
    rejoining_updates_timeouts=True,
    group_filters_ignore_case=True,
    refused_offsets_stay_pending=False,
)
_V11 = _derive(
    _V28,
    log_dirs_name_topics_not_asked=False,
    sasl_oauthbearer=False,
    sasl_reauthentication=False,
    failed_authentication_delayed=False,
    malformed_plain_tokens_told=False,
    acl_authorizer=False,
    prefixed_acls=False,
    topics_created_by_acl=False,
    groups_listed_by_acl=False,
    writing_implies_idempotence=False,
    down_conversion_is_lazy=False,
    kafka_version="1.1",
    zookeeper_config_node=False,
    truststores_change_live=False,
    types_of_dynamic_configs_told=False,
    unknown_topic_configs_secret=False,
    synonyms_shown_as_dynamic=True,
    unexpected_errors_told=True,
    deleted_configs_checked=False,
    listener_configs_immutable=False,
    bounds_said_in_order=False,
    epoch_created_in_one_transaction=False,
    guard_controller_writes=False,
    broker_epochs=False,
    meta_properties_name_cluster=False,
    preempt_queued_events=False,
    empty_update_metadata_means_all=True,
    startup_moves_dead_replicas_offline=False,
    ineligible_from_offline=False,
    nonexistent_at_deletion_start=False,
    elections_by_znode_checked=False,
    elect_leaders_api=False,
    unclean_toggle_without_failover=False,
    reassignment_api=False,
    alter_isr=False,
    controlled_shutdown_tells_leaving_broker=False,
    controlled_shutdown_spares_queued_topics=False,
    stop_replica_per_partition_delete=False,
    rebalance_needs_isr=False,
    rebalance_one_by_one=True,
    leaderless_isr_shown=False,
    invalid_names_told=False,
    foreign_partition_is_known=False,
    invalid_record_error=False,
    deletion_is_tried_when_disabled=True,
    assignments_may_have_gaps=True,
    maps_shown_as_hash_maps=False,
    bad_topic_configs_unexpected=True,
    default_counts_for_new_topics=False,
    existing_topics_refused_first=False,
    configs_of_unknown_topics=True,
    resources_called_config_resources=False,
    wrong_broker_shown_as_resource=True,
    empty_config_names_mean_all=False,
    recounts_gauges=True,
    stop_replica_one_by_one=True,
    stop_replica_empty_request=True,
    update_metadata_names_all_deleted=True,
    ip_configs=False,
    topic_ids=False,
    unset_messages_are_empty=False,
    api_versions_range_told=False,
    feature_versioning=False,
    topic_znode_version=1,
    broker_znode_version=4,
    long_names_fail_deletion=True,
    truncation="leader_epoch",
    epoch_registered_at_election=False,
    epoch_truncation_rounds=False,
    fetch_epoch_fencing=False,
    append_completes_produces_first=False,
    isr_join_needs_epoch_start=False,
    isr_member_at_end_never_removed=False,
    make_follower_restarts="leader_changed",
    out_of_range_halts_broker=True,
    follower_failure_stops_fetcher=True,
    fetch_from_follower=False,
    repeated_names_answered_once=True,
    repeated_partitions_answered_once=True,
    coordinators_check_epochs=False,
    protocols_counted_as_named=False,
    values_checked_while_parsing=True,
    unknown_acl_elements_refused=False,
    stable_offset_told_unasked=False,
    unknown_producer_id_refused=True,
    producers_go_with_their_records=True,
    transactional_batches_need_id=False,
    ending_needs_equal_epoch=False,
    failed_fence_remembered=False,
    producer_fenced_error=False,
    zstd_compression=False,
    loading_told_before_ownership=False,
    dead_group_is_unavailable=False,
    failed_join_has_no_generation=False,
    member_id_required=False,
    new_members_time_out=False,
    coordinator_errors_told=False,
    empty_group_ids_refused=False,
    offsets_of_unknown_partitions=True,
    heartbeats_before_sync=False,
    commits_check_state_first=True,
    syncs_time_out=False,
    offsets_expire_by_group_state=False,
    offset_value_version=1,
    group_value_version=1,
    throttled_after_answers=False,
    fetches_fit_quotas=False,
)
_V010 = _derive(
    _V11,
    sasl_scram=False,
    altering_implies_describing=False,
    delegation_tokens=False,
    kafka_version="0.10",
    in_sync_fetch_waits_for_quota=True,
    metadata_replicas_are_sets=True,
    pipelined_zookeeper=False,
    legacy_selectors=True,
    last_isr_member_always_kept=False,
    preferred_election_blocks_deletion=True,
    log_dir_failure_handling=False,
    new_replica_reads_zookeeper=True,
    controller_stands_before_registration=True,
    controlled_shutdown_tells_leaving_broker=True,
    controlled_shutdown_one_by_one=True,
    topic_watch_by_exists=True,
    rebalance_fixed_rate=True,
    replica_without_log_is_offline=False,
    gauges_count_queued_topics=True,
    failure_concerns_led_partitions=True,
    retention_passes_high_watermark=True,
    isr_checked_each_lag_time=True,
    stop_replica_empty_request=False,
    disabled_deletion_drops_requests=False,
    request_node_changes_heeded=True,
    failover_announces_brokers_first=False,
    failover_drops_notifications=False,
    user_and_broker_config_roots=False,
    long_names_fail_deletion=False,
    truncation="high_watermark",
    epoch_cache=False,
    messages_stand_alone=True,
    caught_up_by_previous_fetch=False,
    caught_up_reset_at_election=False,
    high_watermark_waits_for_joiner=False,
    foreign_follower_is_error=True,
    fetch_sessions=False,
    idempotent_producers=False,
    transactions=False,
    initial_rebalance_delay=False,
    first_member_needs_protocols=False,
    fetches_parsed_when_handled=True,
    topic_configs_may_be_null=False,
    awaiting_sync_state=True,
    offsets_go_with_their_topic=False,
    empty_offset_fetch_means_all=True,
)

_BEHAVIOURS = {b.kafka_version: b for b in (_V010, _V11, _V28, _V39)}


def behaviour(kafka_version: str) -> Behaviour:
    """The flags of an emulated version.

    Raises ``UsageError`` for a version that is not emulated.
    """
    try:
        return _BEHAVIOURS[kafka_version]
    except KeyError:
        raise UsageError(
            f"kafka_version {kafka_version!r} is not emulated; use one of "
            + ", ".join(repr(v) for v in KAFKA_VERSIONS)
        ) from None
