"""One hosted partition: its role, its ISR and its high watermark (docs/kafka/isr.md,
docs/kafka/partitions.md).

Theory of operation. A partition is leader, follower, or neither yet; only LeaderAndIsr changes
that, through ``make_leader`` and ``make_follower``. Leader epochs fence: the caller drops stale
and repeated epochs, so a partition trusts its arguments. The high watermark of a leader never
goes down; it rises when an append, a follower's fetch, an election or an ISR commit raises the
smallest end offset of the *maximal* ISR. Once the state is consistent, operations that waited for
the move are completed through ``PartitionContext.high_watermark_moved``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...protocol.control import LeaderAndIsrPartitionState
from ...protocol.errors import ErrorCode, KafkaError, invariant
from ...protocol.names import broker_name
from ...protocol.values import LeaderAndIsr, TopicPartition
from ..log.follower_append import append_as_follower, append_next
from .context import FetchEntry, PartitionContext, TopicSettings
from .isr_proposals import PendingIsr
from .replica import Replica
from .state_report import StateReport

if TYPE_CHECKING:
    from ...protocol.records.batch import RecordBatch
    from ..log.log import Log

_NONE = ErrorCode.NONE
_GIVE_UP_ERRORS = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
)
_ROLL_BACK_ERRORS = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)


class Partition:
    """A partition that this broker hosts."""

    __slots__ = (
        "adding_replicas",
        "context",
        "controller_epoch",
        "fetch_entries",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "log",
        "maximal_isr",
        "partition_epoch",
        "pending_isr",
        "remote_replicas",
        "removing_replicas",
        "replicas",
        "report",
        "settings",
        "topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, context: PartitionContext, settings: TopicSettings
    ) -> None:
        self.topic_partition: TopicPartition = topic_partition
        self.context: PartitionContext = context
        self.settings: TopicSettings = settings
        self.log: Log | None = None
        self.leader_id: int | None = None
        self.is_leader: bool = False
        """True if ``leader_id`` is this broker; stored because every request checks it."""
        self.leader_epoch: int = -1
        self.leader_epoch_start_offset: int | None = None
        """Log end offset when this broker became leader in ``leader_epoch``; None on followers."""
        self.partition_epoch: int = 0
        """Version of the stored leadership (zkVersion) on which ISR proposals are based."""
        self.controller_epoch: int = 0
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        """The committed ISR; empty on followers."""
        self.maximal_isr: tuple[int, ...] = ()
        """``isr`` plus the replica that is being added; always a superset of ``isr``."""
        self.pending_isr: PendingIsr | None = None
        self.remote_replicas: tuple[Replica, ...] = ()
        """The other assigned replicas, in assignment order; followers keep none since 0.10.2."""
        self.fetch_entries: list[FetchEntry] | None = None
        """Entries of followers' fetch sessions for this partition; leaders only."""
        self.report: StateReport | None = StateReport.if_recorded(context.host, topic_partition)
        """Reports every change of state to the recorder of the run; None without a recorder."""

    def report_state(self) -> None:
        """Report the changes of state since the last report, if the run is recorded."""
        if self.report is None:
            return
        log, pending = self.log, self.pending_isr
        if self.leader_id is None and log is None:
            self.report.report_absence()
            return
        self.report.report_values(
            [
                "leader" if self.is_leader else "follower",
                self.leader_id,
                self.leader_epoch,
                self.isr,
                None if pending is None else pending.proposal.isr,
            ],
            log,
        )

    # -- role changes -----------------------------------------------------------------------

    def make_leader(self, state: LeaderAndIsrPartitionState) -> bool:
        """Become or stay leader; return True if this broker did not lead before
        (docs/kafka/partitions.md#becoming-leader).

        Raises ``KafkaError`` KAFKA_STORAGE_ERROR if the log cannot be opened; by then assignment
        and ISR have been replaced, but not the epoch.
        """
        context = self.context
        behaviour = context.behaviour
        if behaviour.partition_epoch_checked and state.zk_version < self.partition_epoch:
            return False
        self.release_fetchers()
        now_ms = context.host.now_ms()
        self.controller_epoch = state.controller_epoch
        self._take_assignment(state, now_ms)
        self.isr = self.maximal_isr = state.isr
        self.pending_isr = None
        log = self._open_log(state.is_new)
        is_new_leader = not self.is_leader
        if not behaviour.partition_epoch_checked or state.leader_epoch > self.leader_epoch:
            self._start_leader_epoch(log, state, now_ms, is_new_leader)
        self.partition_epoch = state.zk_version
        self.leader_id = context.broker_id
        self.is_leader = True
        context.isr_updater.clear_pending(self.topic_partition)
        if self.maybe_increment_high_watermark(now_ms):
            context.high_watermark_moved(self)
        self.report_state()
        return is_new_leader

    def _start_leader_epoch(
        self, log: Log, state: LeaderAndIsrPartitionState, now_ms: int, is_new_leader: bool
    ) -> None:
        start_offset = log.log_end_offset
        self.leader_epoch_start_offset = start_offset
        self.leader_epoch = state.leader_epoch
        behaviour = self.context.behaviour
        if behaviour.epoch_registered_at_election:
            log.assign_epoch_start_offset(state.leader_epoch, start_offset)
        for replica in self.remote_replicas:
            if behaviour.caught_up_reset_at_election:
                caught_up_ms = now_ms if replica.broker_id in state.isr else 0
                replica.reset_caught_up_time(start_offset, now_ms, caught_up_ms)
            if is_new_leader:
                replica.forget_offsets()

    def make_follower(self, state: LeaderAndIsrPartitionState) -> bool:
        """Become or stay follower; return True if the fetcher must be restarted
        (docs/kafka/partitions.md#becoming-follower).

        Raises ``KafkaError`` KAFKA_STORAGE_ERROR if the log cannot be opened.
        """
        context = self.context
        behaviour = context.behaviour
        if behaviour.partition_epoch_checked and state.zk_version < self.partition_epoch:
            return False
        self.release_fetchers()
        self.controller_epoch = state.controller_epoch
        if behaviour.caught_up_reset_at_election:
            # The state of remote replicas does not outlive the next election: keep no objects.
            self.replicas = state.replicas
            self.adding_replicas = state.adding_replicas
            self.removing_replicas = state.removing_replicas
            self.remote_replicas = ()
        else:
            self._take_assignment(state, context.host.now_ms())
        self.isr = self.maximal_isr = ()
        self.pending_isr = None
        self._open_log(state.is_new)
        restart = self._restarts_fetcher(state)
        self.leader_epoch = state.leader_epoch
        self.leader_epoch_start_offset = None
        self.partition_epoch = state.zk_version
        self.leader_id = state.leader
        self.is_leader = False
        context.isr_updater.clear_pending(self.topic_partition)
        self.report_state()
        return restart

    def _restarts_fetcher(self, state: LeaderAndIsrPartitionState) -> bool:
        if self.leader_id != state.leader:
            return True
        restarts = self.context.behaviour.make_follower_restarts
        if restarts == "leader_changed":
            return False
        if restarts == "epoch_missed":
            return state.leader_epoch not in (self.leader_epoch, self.leader_epoch + 1)
        return state.leader_epoch != self.leader_epoch

    def _take_assignment(self, state: LeaderAndIsrPartitionState, now_ms: int) -> None:
        """Replace the assignment, keeping the ``Replica`` objects of replicas that stay."""
        self.adding_replicas = state.adding_replicas
        self.removing_replicas = state.removing_replicas
        self.replicas = state.replicas
        own_id = self.context.broker_id
        known = {replica.broker_id: replica for replica in self.remote_replicas}
        # In releases that do not reset caught-up times at elections, they start at creation.
        caught_up_ms = 0 if self.context.behaviour.caught_up_reset_at_election else now_ms
        self.remote_replicas = tuple(
            known[broker_id] if broker_id in known else Replica(broker_id, caught_up_ms)
            for broker_id in state.replicas
            if broker_id != own_id
        )

    def _open_log(self, is_new: bool) -> Log:
        log = self.log
        if log is None:
            log = self.log = self.context.open_log(self.topic_partition, is_new)
        return log

    def delete(self) -> None:
        """Clear all state; the partition must not be used afterwards."""
        self.context.isr_updater.clear_pending(self.topic_partition)
        self.release_fetchers()
        self.remote_replicas = ()
        self.replicas = self.adding_replicas = self.removing_replicas = ()
        self.isr = self.maximal_isr = ()
        self.pending_isr = None
        self.log = None
        self.leader_id = None
        self.is_leader = False
        self.leader_epoch_start_offset = None
        self.report_state()

    # -- high watermark ---------------------------------------------------------------------

    def maybe_increment_high_watermark(self, now_ms: int) -> bool:
        """Advance the leader's high watermark as far as the replicas allow
        (docs/kafka/partitions.md#high-watermark-of-a-leader).

        ``now_ms`` is the time of the fetch when a fetch triggers it. Return True if it moved.
        """
        log = self.log
        if log is None:
            return False
        new = log.log_end_offset
        high_watermark = log.high_watermark
        if new <= high_watermark:
            return False
        maximal_isr = self.maximal_isr
        for replica in self.remote_replicas:
            end_offset = replica.log_end_offset
            if end_offset < new and (
                replica.broker_id in maximal_isr or self._may_join_soon(replica, now_ms)
            ):
                if end_offset <= high_watermark:
                    return False
                new = end_offset
        if (
            self.context.frozen_under_min_isr
            and len(self.isr) < self.settings.min_insync_replicas
            and self.is_under_min_isr
        ):
            return False
        log.update_high_watermark(new)
        if self.report is not None:
            self.report.log_moved(log)
        return True

    def _may_join_soon(self, replica: Replica, now_ms: int) -> bool:
        """Return whether the high watermark waits for a replica that is about to join the ISR."""
        context = self.context
        return (
            context.waits_for_joiner
            and now_ms - replica.last_caught_up_time_ms <= context.lag_ms_max
            and self._is_eligible(replica.broker_id)
        )

    def _is_eligible(self, broker_id: int) -> bool:
        """Return whether a replica may join the ISR: since 3.3 its broker must be alive."""
        context = self.context
        return not context.joiner_must_be_eligible or context.metadata_cache.is_alive(broker_id)

    # -- follower fetches -------------------------------------------------------------------

    def update_follower(
        self,
        replica: Replica,
        fetch_offset: int,
        log_start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
    ) -> bool:
        """Update replica, ISR and high watermark, in this order, for a follower's successful fetch.

        Return True if the high watermark moved; the caller then completes delayed operations.
        """
        previous_end_offset = replica.log_end_offset
        if fetch_offset == leader_end_offset:
            # ``update_fetch_state``, inlined because most fetches are at the log end.
            if fetch_time_ms > replica.last_caught_up_time_ms:
                replica.last_caught_up_time_ms = fetch_time_ms
            replica.log_start_offset = log_start_offset
            replica.log_end_offset = fetch_offset
            replica.last_fetch_leader_log_end_offset = fetch_offset
            replica.last_fetch_time_ms = fetch_time_ms
        else:
            replica.update_fetch_state(
                fetch_offset,
                log_start_offset,
                fetch_time_ms,
                leader_end_offset,
                self.context.by_previous_fetch,
            )
        if self.pending_isr is None and replica.broker_id not in self.isr:
            self._maybe_expand_isr(replica)
        return previous_end_offset != fetch_offset and self.maybe_increment_high_watermark(
            fetch_time_ms
        )

    # -- ISR --------------------------------------------------------------------------------

    def _maybe_expand_isr(self, replica: Replica) -> None:
        """Propose to add a follower that has reached the high watermark and the epoch's start
        (docs/kafka/isr.md#expanding)."""
        log = self.log
        if log is None or not self.is_leader:
            return
        end_offset = replica.log_end_offset
        if end_offset < log.high_watermark:
            return
        if self.context.join_needs_epoch_start:
            start_offset = self.leader_epoch_start_offset
            if start_offset is None or end_offset < start_offset:
                return
        if not self._is_eligible(replica.broker_id):
            return
        self.maximal_isr = (*self.isr, replica.broker_id)
        self._propose(self.maximal_isr, is_expansion=True)

    def out_of_sync_replicas(self, now_ms: int) -> tuple[int, ...]:
        """Return the ISR members that have lagged for longer than the maximum, and members that are
        no replicas (docs/kafka/isr.md#shrinking).

        Raises ``KafkaError`` for a member that is no replica, in releases whose check fails then.
        """
        log = self.log
        if log is None or not self.is_leader:
            return ()
        self.settle_fetchers()
        context = self.context
        end_offset = log.log_end_offset
        keeps_member_at_end = context.behaviour.isr_member_at_end_never_removed
        own_id = context.broker_id
        known = [replica.broker_id for replica in self.remote_replicas]
        unassigned = tuple(
            [broker_id for broker_id in self.isr if broker_id != own_id and broker_id not in known]
        )
        if unassigned and context.behaviour.isr_check_fails_at_no_replica:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Replica with id {unassigned[0]} is not available on broker {own_id}",
            )
        return unassigned + tuple(
            replica.broker_id
            for replica in self.remote_replicas
            if now_ms - replica.last_caught_up_time_ms > context.lag_ms_max
            and replica.broker_id in self.isr
            and not (keeps_member_at_end and replica.log_end_offset == end_offset)
        )

    def maybe_shrink_isr(self, now_ms: int) -> None:
        """Propose an ISR without the lagging members, unless a change is pending."""
        if self.pending_isr is not None or len(self.isr) < 2:
            return
        lagging = self.out_of_sync_replicas(now_ms)
        if not lagging:
            return
        self.context.report_lag(self.topic_partition, lagging)
        self._propose(
            tuple(broker_id for broker_id in self.isr if broker_id not in lagging),
            is_expansion=False,
        )
        # The change is committed by now only if the updater answered synchronously; otherwise the
        # maximal ISR still holds back the high watermark.
        if self.maybe_increment_high_watermark(now_ms):
            self.context.high_watermark_moved(self)

    def _propose(self, isr: tuple[int, ...], is_expansion: bool) -> None:
        proposal = LeaderAndIsr(
            self.context.broker_id, self.leader_epoch, isr, self.partition_epoch
        )
        self._submit(PendingIsr(proposal, is_expansion))

    def _submit(self, pending: PendingIsr) -> None:
        self.pending_isr = pending  # before submitting: the answer may come synchronously
        self.report_state()
        accepted = self.context.isr_updater.submit(
            self.topic_partition,
            pending.proposal,
            self.controller_epoch,
            lambda error, stored: self._on_isr_answer(pending, error, stored),
        )
        if not accepted:
            self._roll_back_isr()

    def _roll_back_isr(self) -> None:
        self.maximal_isr = self.isr
        self.pending_isr = None
        self.report_state()

    def _on_isr_answer(
        self, pending: PendingIsr, error: ErrorCode, stored: LeaderAndIsr | None
    ) -> None:
        """Handle the decision on a proposal."""
        if self.pending_isr is not pending:
            return  # discarded by a LeaderAndIsr or a deletion
        behaviour = self.context.behaviour
        if error is _NONE and stored is not None:
            self._commit_isr(pending, stored)
            return
        self.context.isr_failed_updates += 1
        if error in _GIVE_UP_ERRORS:
            # With AlterIsr, the change stays pending until the next LeaderAndIsr. Without it, the
            # old ISR stays in force and the next trigger tries again.
            if not behaviour.alter_isr:
                self._roll_back_isr()
        elif behaviour.alter_isr_errors_roll_back and error in _ROLL_BACK_ERRORS:
            self._roll_back_isr()
        else:
            self._submit(pending)

    def _commit_isr(self, pending: PendingIsr, stored: LeaderAndIsr) -> None:
        if stored.leader_epoch != self.leader_epoch or stored.zk_version < self.partition_epoch:
            return  # of another leadership: pending until its LeaderAndIsr arrives
        context = self.context
        self.isr = self.maximal_isr = stored.isr
        self.partition_epoch = stored.zk_version
        self.pending_isr = None
        self.report_state()
        self.wake_fetchers()  # an idle follower that left the ISR may rejoin with its next fetch
        if pending.is_expansion:
            context.isr_expands += 1
        else:
            context.isr_shrinks += 1
        behaviour = context.behaviour
        if (
            behaviour.shrink_commit_moves_high_watermark or not behaviour.alter_isr
        ) and self.maybe_increment_high_watermark(context.host.now_ms()):
            context.high_watermark_moved(self)

    # -- following --------------------------------------------------------------------------

    def append_as_follower(
        self,
        batches: Sequence[RecordBatch],
        leader_high_watermark: int,
        leader_log_start: int,
        verify: bool = False,
    ) -> bool:
        """Append the leader's batches and adopt its high watermark and log start offset
        (docs/kafka/partitions.md#high-watermark-of-a-follower,
        docs/kafka/replica-fetchers.md#answers-to-a-fetch).

        ``verify`` checks the checksums, which the leader checked before it appended. Return True
        if the high watermark rose. Raises ``KafkaError`` from the log for an offset that does not
        fit, corrupt data or a failed disk; NOT_LEADER_OR_FOLLOWER without a log.
        """
        log = self.log
        if log is None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic_partition} has no log here"
            )
        if batches:
            first = batches[0]
            wall_ms = self.context.host.wall_ms()
            if verify or len(batches) != 1 or not append_next(log, first, wall_ms):
                start = log.log_start_offset
                if first.base_offset < start and log.log_end_offset == start <= first.last_offset:
                    # An empty log whose start lies inside the batch begins with the whole batch.
                    log.truncate_fully_and_start_at(first.base_offset)
                append_as_follower(log, batches, wall_ms, verify)
        previous = log.high_watermark
        if leader_log_start > log.log_start_offset:
            log.update_high_watermark(leader_high_watermark)
            log.maybe_increment_log_start_offset(leader_log_start, "leader")
            return log.high_watermark > previous
        if leader_high_watermark == previous:
            return False
        return log.update_high_watermark(leader_high_watermark) > previous

    # -- access -----------------------------------------------------------------------------

    def access_error(self, current_leader_epoch: int, require_leader: bool) -> ErrorCode:
        """Return the error of the epoch check, or else of the leader check; NONE if both pass
        (docs/kafka/partitions.md#access)."""
        if current_leader_epoch != -1 and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if require_leader:
            if not self.is_leader:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif self.log is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _NONE

    def replica(self, broker_id: int) -> Replica | None:
        """Return the remote replica on a broker; None if this leader does not know it."""
        self.settle_fetchers()
        return self.find_replica(broker_id)

    def find_replica(self, broker_id: int) -> Replica | None:
        """Do the same as ``replica``, except that the times of an idle follower may be outdated."""
        for replica in self.remote_replicas:
            if replica.broker_id == broker_id:
                return replica
        return None

    @property
    def min_isr(self) -> int:
        """Number of in-sync replicas that this leader requires for acks=all.

        Since 3.7 at most the number of replicas (Kafka: ``Partition.effectiveMinIsr``). It never
        exceeds the setting, so frequent checks compare with the setting first.
        """
        wanted = self.settings.min_insync_replicas
        if wanted > 1 and self.context.min_isr_at_most_replicas:
            return min(wanted, len(self.remote_replicas) + 1)
        return wanted

    @property
    def low_watermark(self) -> int:
        """Smallest log start offset of this leader and the replicas on live brokers."""
        log = self.log
        invariant(log is not None and self.is_leader, "only a leader has a low watermark")
        assert log is not None
        low = log.log_start_offset
        is_alive = self.context.metadata_cache.is_alive
        for replica in self.remote_replicas:
            if replica.log_start_offset < low and is_alive(replica.broker_id):
                low = replica.log_start_offset
        return low

    def brokers_not_caught_up(self, end_offset: int) -> list[str]:
        """Return the brokers in the maximal ISR whose replicas have not copied up to an offset."""
        return [
            broker_name(replica.broker_id)
            for replica in self.remote_replicas
            if replica.broker_id in self.maximal_isr and replica.log_end_offset < end_offset
        ]

    def brokers_below_log_start(self, start_offset: int) -> list[str]:
        """Return the live brokers whose replicas have records below an offset."""
        is_alive = self.context.metadata_cache.is_alive
        return [
            broker_name(replica.broker_id)
            for replica in self.remote_replicas
            if replica.log_start_offset < start_offset and is_alive(replica.broker_id)
        ]

    # -- fetch sessions of followers ----------------------------------------------------------

    def wake_fetchers(self) -> None:
        """Make idle fetch sessions read the partition again, as its offsets or ISR changed."""
        if self.fetch_entries is not None:
            for entry in self.fetch_entries:
                if entry.is_idle:
                    entry.wake()

    def settle_fetchers(self) -> None:
        """Bring the times of idle followers up to date before they are read."""
        if self.fetch_entries is not None:
            for entry in self.fetch_entries:
                entry.settle()

    def release_fetchers(self) -> None:
        """Detach the fetch sessions from the partition, as its role changes."""
        entries, self.fetch_entries = self.fetch_entries, None
        for entry in entries or ():
            entry.unlink()
            if entry.session is not None:
                self.context.released_sessions.append(entry.session)

    # -- gauges of leaders (docs/kafka/partitions.md#predicates) ------------------------------

    @property
    def is_under_replicated(self) -> bool:
        """True if the ISR has fewer members than the replicas, not counting those being added."""
        if not self.is_leader:
            return False
        expected = len(self.replicas) - len(self.adding_replicas)
        return expected > len(self.isr)

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_leader and len(self.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        return self.is_leader and len(self.isr) == self.min_isr

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else f"follower of {self.leader_id}"
        return (
            f"Partition({self.topic_partition}, {role}, leader_epoch={self.leader_epoch}, "
            f"isr={self.isr})"
        )
