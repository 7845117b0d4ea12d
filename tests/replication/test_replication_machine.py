"""Three replica managers against a dumb model: what acks=all promised is kept.

The model is a list of acknowledged records. Whatever happens in between (lost answers, crashes,
power loss of a replica that others are in sync with, fast restarts, elections inside the ISR,
held ISR changes, passing time), after every step:

* ``AcknowledgedSurvives``: the live leader holds every acknowledged record at its offset;
* ``MonotonicHighWatermark``: it does not go down within one leadership;
* ``LogsAgree``: two replicas agree on every offset below both their high watermarks;
* ``MonotonicEpoch``: epochs grow along each log, and in each epoch history;
* ``OrderedMarks``: log start <= last stable offset <= high watermark <= log end;
* ``LeaderInIsr``: the controller's leader is in its ISR.

At the end everything is healed, and then all logs must become equal and the ISR full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.replication.log.log import Log
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.present import present
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

BROKERS = (0, 1, 2)
broker_ids = st.sampled_from(BROKERS)


class Replication(RuleBasedStateMachine):
    version: ClassVar[str] = "2.8"
    flags: ClassVar[dict[str, object]] = {}

    @initialize()
    def create(self) -> None:
        self.cluster = ReplicaCluster(
            self.version, len(BROKERS), topic={"min.insync.replicas": "2"}, flags=dict(self.flags)
        )
        self.cluster.create(BROKERS)
        self.count = 0
        self.waiting: list[tuple[str, list[Any]]] = []
        self.acknowledged: list[tuple[int, str]] = []
        self.high_watermarks: dict[int, int] = {}

    # -- the controller ---------------------------------------------------------------------

    @property
    def state(self) -> Any:
        return self.cluster.state[TP]

    def alive(self, broker_id: int) -> bool:
        return self.cluster[broker_id].is_alive

    def remove_from_isr(self, broker_id: int) -> None:
        """Remove a dead broker from the ISR, unless it is the last member, and elect a leader."""
        isr = tuple(b for b in self.state.isr if b != broker_id) or self.state.isr
        leader = self.state.leader
        if leader == broker_id:
            leader = next((b for b in isr if self.alive(b)), -1)
        self.cluster.elect(leader, isr=isr)

    # -- rules ------------------------------------------------------------------------------

    @rule(acks=st.sampled_from([-1, -1, -1, 1]))
    def produce(self, acks: int) -> None:
        leader = self.state.leader
        if leader < 0:
            return
        self.count += 1
        value = f"v{self.count}"
        answers = self.cluster.produce_async(leader, value, acks=acks)
        if acks == -1:
            self.waiting.append((value, answers))

    @rule(broker_id=broker_ids, answered=st.booleans(), rounds=st.integers(1, 3))
    def fetch(self, broker_id: int, answered: bool, rounds: int) -> None:
        if self.alive(broker_id):
            for _ in range(rounds):
                self.cluster.round(broker_id, answered)

    @rule(answered=st.booleans())
    def fetch_all(self, answered: bool) -> None:
        for broker_id in BROKERS:
            self.fetch(broker_id, answered, 1)

    @rule(ms=st.sampled_from([100, 1100, 6000, 46000]))
    def wait(self, ms: int) -> None:
        self.cluster.clock.advance(ms)

    @rule()
    def hold_isr_changes(self) -> None:
        if self.cluster.held is None:
            self.cluster.hold_isr_changes()

    @rule()
    def release_isr_changes(self) -> None:
        self.cluster.release_isr_changes()

    @rule(broker_id=broker_ids)
    def kill(self, broker_id: int) -> None:
        if self.alive(broker_id):
            self.cluster[broker_id].kill()
            self.remove_from_isr(broker_id)

    @rule(broker_id=broker_ids)
    def lose_power(self, broker_id: int) -> None:
        """Cut the power only while another live replica is in sync: fewer losses than
        min.insync.replicas."""
        others = [b for b in self.state.isr if b != broker_id and self.alive(b)]
        if self.alive(broker_id) and others:
            self.cluster[broker_id].power_off()
            self.remove_from_isr(broker_id)

    @rule(broker_id=broker_ids)
    def start(self, broker_id: int) -> None:
        if not self.alive(broker_id):
            self.cluster[broker_id].start()
            if self.state.leader < 0 and broker_id in self.state.isr:
                self.cluster.elect(broker_id)
            else:
                self.cluster.update_metadata()
                self.cluster.leader_and_isr(broker_id)

    @rule(broker_id=broker_ids)
    def bounce(self, broker_id: int) -> None:
        """Restart a broker so fast that the controller does not notice, unless the broker was the
        leader."""
        if self.alive(broker_id):
            self.cluster[broker_id].kill()
            self.cluster[broker_id].start()
            self.cluster.update_metadata()
            if self.state.leader == broker_id:
                self.cluster.elect(broker_id)
            else:
                self.cluster.leader_and_isr(broker_id)

    @rule(broker_id=broker_ids)
    def elect(self, broker_id: int) -> None:
        if self.alive(broker_id) and broker_id in self.state.isr:
            self.cluster.elect(broker_id)

    @rule(broker_id=broker_ids, count=st.integers(1, 3))
    def write_and_elect(self, broker_id: int, count: int) -> None:
        """Write records that no follower fetches, then elect another leader at once: KIP-279's fast
        fail-over."""
        for _ in range(count):
            self.produce(1)
        self.elect(broker_id)

    @precondition(lambda self: len(self.acknowledged) > 3)
    @rule()
    def flush_and_checkpoint(self) -> None:
        for node in self.cluster.nodes.values():
            if node.is_alive and node.log() is not None:
                node.log().flush()
                node.manager.upkeep.checkpoint_high_watermarks()

    # -- invariants -------------------------------------------------------------------------

    def logs(self) -> Any:
        for broker_id in BROKERS:
            if self.alive(broker_id):
                log = self.cluster[broker_id].log()
                if log is not None:
                    yield broker_id, log

    @invariant()
    def acknowledged_survives(self) -> None:
        for value, answers in self.waiting:
            if answers and answers[0].error is ErrorCode.NONE:
                self.acknowledged.append((answers[0].base_offset, value))
        self.waiting = [entry for entry in self.waiting if not entry[1]]
        leader = self.state.leader
        if leader < 0 or not self.alive(leader):
            return
        held = values_of(self.cluster[leader].log())
        for offset, value in self.acknowledged:
            assert held.get(offset) == value, f"{value} at {offset} is lost at leader {leader}"

    @invariant()
    def monotonic_high_watermark(self) -> None:
        if self.state.leader >= 0:
            mark = self.cluster[self.state.leader].high_watermark()
            epoch = self.state.leader_epoch
            assert mark >= self.high_watermarks.get(epoch, 0)
            self.high_watermarks[epoch] = mark

    @invariant()
    def logs_agree(self) -> None:
        logs = [(log, values_of(log)) for _, log in self.logs()]
        for i, (log, held) in enumerate(logs):
            for other, other_held in logs[:i]:
                for offset in range(min(log.high_watermark, other.high_watermark)):
                    assert held[offset] == other_held[offset], f"offset {offset} differs"

    @invariant()
    def monotonic_epoch(self) -> None:
        for _, log in self.logs():
            epochs = [batch.partition_leader_epoch for batch in log.batches()]
            assert epochs == sorted(epochs)
            history = list(log.epochs)
            assert history == sorted(set(history))
            starts = [start for _, start in history]
            assert starts == sorted(starts)

    @invariant()
    def ordered_marks(self) -> None:
        for _, log in self.logs():
            assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark
            assert log.high_watermark <= log.log_end_offset

    @invariant()
    def leader_in_isr(self) -> None:
        assert self.state.leader < 0 or self.state.leader in self.state.isr
        for _, log in self.logs():
            assert log is not None
        for broker_id in BROKERS:
            partition = self.cluster[broker_id].manager.hosted.partition(TP)
            if self.alive(broker_id) and partition is not None and partition.is_leader:
                assert broker_id in partition.isr
                assert set(partition.isr) <= set(partition.maximal_isr)

    def teardown(self) -> None:
        if not hasattr(self, "cluster"):
            return
        for broker_id in sorted(BROKERS, key=lambda b: b not in self.state.isr):
            self.start(broker_id)
        self.cluster.release_isr_changes()
        self.cluster.elect(self.state.leader)
        self.cluster.clock.advance(1000)  # the back-off after a lost answer
        # A fetch cuts back by one epoch, and there may be one for each election.
        self.cluster.replicate(*BROKERS, rounds=12 + self.state.leader_epoch)
        self.acknowledged_survives()
        contents = {self.cluster[b].content() for b in BROKERS}
        assert len(contents) == 1
        assert sorted(self.state.isr) == list(BROKERS)
        assert len({self.cluster[b].high_watermark() for b in BROKERS}) == 1


def values_of(log: Log) -> dict[int, str]:
    return {record.offset: present(record.value).decode() for record in log.records()}


class OnFetch(Replication):
    pass


class Newest(Replication):
    version = "3.9"


class Rounds(Replication):
    flags: ClassVar = {"truncation": "leader_epoch"}


class ToHighWatermark(Replication):
    version = "0.10"


class OneRound(Replication):
    version = "1.1"


@pytest.mark.hypothesis
@pytest.mark.parametrize("machine", [OnFetch, Newest, Rounds])
def test_acknowledged_records_survive(machine: Any) -> None:
    """acks=all with min.insync.replicas=2 survives the loss of fewer replicas, whatever else."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(25),
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


Step = Callable[[Replication], object]
CRASH_AFTER_FETCH: tuple[Step, ...] = (
    lambda machine: machine.kill(2),
    lambda machine: machine.produce(-1),
    lambda machine: machine.fetch(1, answered=True, rounds=2),
    lambda machine: machine.bounce(1),
    lambda machine: machine.kill(0),
)
"""The follower truncates to a high watermark older than the leader's, and is elected (KIP-101)."""
FAST_ELECTIONS: tuple[Step, ...] = (
    lambda machine: machine.write_and_elect(1, 1),
    lambda machine: machine.write_and_elect(0, 1),
    lambda machine: machine.write_and_elect(0, 1),
)
"""Two leaders in turn wrote records that were not fetched; one epoch request does not find the
divergence (KIP-279)."""


def replay(machine: Replication, history: Sequence[Step]) -> None:
    """Perform the steps, each followed by all invariants, as Hypothesis does."""
    machine.create()
    for step in history:
        step(machine)
        machine.acknowledged_survives()
        machine.monotonic_high_watermark()
        machine.logs_agree()
        machine.monotonic_epoch()
        machine.ordered_marks()
        machine.leader_in_isr()
    machine.teardown()


@pytest.mark.parametrize(
    ("machine", "history"), [(ToHighWatermark, CRASH_AFTER_FETCH), (OneRound, FAST_ELECTIONS)]
)
def test_the_losses_of_the_old_protocols_are_found(machine: Any, history: tuple[Step, ...]) -> None:
    """The invariants find the losses that KIP-101 and KIP-279 fixed, so that they are effective.

    Hypothesis found and reduced both histories. It needs hundreds of examples for that, which can
    take minutes.
    """
    with pytest.raises(AssertionError):
        replay(machine(), history)


@pytest.mark.parametrize("history", [CRASH_AFTER_FETCH, FAST_ELECTIONS])
@pytest.mark.parametrize("machine", [OnFetch, Newest, Rounds])
def test_the_present_protocols_survive_the_histories_that_broke_the_old_ones(
    machine: Any, history: tuple[Step, ...]
) -> None:
    """Under the present protocols the two histories lose no record, and all logs end equal."""
    replay(machine(), history)
