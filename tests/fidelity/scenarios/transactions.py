"""Transactions: begun, committed, aborted, fenced, timed out, and their coordinators lost."""

from __future__ import annotations

from typing import Any

from fakekafka.tests.fidelity.stage import groups
from fakekafka.tests.fidelity.stage.declaring import SINCE_1_1, SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario
_STATE = "__transaction_state"


class Transactional:
    """A producer with a transactional id, which sends each request only when asked."""

    def __init__(self, stage: Stage, broker: int, transactional_id: str) -> None:
        self._stage = stage
        self.broker = broker
        self.id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self.sequence = 0

    def begin(self, timeout_ms: int = 60_000, **others: Any) -> Any:
        """Send InitProducerId until the coordinator is ready."""
        tree: Any = None

        def has_come() -> bool:
            nonlocal tree
            tree = self._stage.ask(
                self.broker,
                "InitProducerId",
                transactionalId=self.id,
                transactionTimeoutMs=timeout_ms,
                **others,
            )
            told = self._stage.normalised(tree)
            return not isinstance(told, dict) or told["errorCode"] not in (
                "COORDINATOR_NOT_AVAILABLE",
                "COORDINATOR_LOAD_IN_PROGRESS",
                "CONCURRENT_TRANSACTIONS",
                "NOT_COORDINATOR",
            )

        self._stage.wait(f"{self.id} has an id", has_come, 20)
        if isinstance(tree, dict) and not tree["errorCode"]:
            self.producer_id, self.epoch = tree["producerId"], tree["producerEpoch"]
            self.sequence = 0
        return self._stage.normalised(tree)

    def _ask(self, api: str, **fields: Any) -> Any:
        tree = self._stage.ask(
            self.broker,
            api,
            transactionalId=self.id,
            producerId=self.producer_id,
            producerEpoch=self.epoch,
            **fields,
        )
        return self._stage.normalised(tree)

    def add(self, topic: str, *partitions: int) -> Any:
        """Send AddPartitionsToTxn, and repeat it while an earlier transaction ends."""
        found: list[Any] = []

        def is_told() -> bool:
            fields: dict[str, Any] = {
                "v3AndBelowTopics": [{"name": topic, "partitions": list(partitions)}],
                "v3AndBelowTransactionalId": self.id,
                "v3AndBelowProducerId": self.producer_id,
                "v3AndBelowProducerEpoch": self.epoch,
            }
            found[:] = [
                self._stage.normalised(self._stage.ask(self.broker, "AddPartitionsToTxn", **fields))
            ]
            return "CONCURRENT_TRANSACTIONS" not in str(found[0])

        self._stage.wait("partitions are added", is_told, 10)
        return found[0]

    def write(self, topic: str, value: str, sequence: int | None = None) -> Any:
        number = self.sequence if sequence is None else sequence
        answer = self._stage.produce(
            topic, value, producer=(self.producer_id, self.epoch, number), transactional_id=self.id
        )
        if sequence is None:
            self.sequence += 1
        return answer

    def end(self, *, commit: bool) -> Any:
        """Send EndTxn, and wait a second for its markers."""
        found = self._ask("EndTxn", committed=commit)
        self._stage.pass_time(1)
        return found


def have_coordinator(stage: Stage, *replicas: int) -> None:
    """Create the topic of transactions with these replicas, the coordinator first."""
    stage.create(_STATE, (replicas,), {"cleanup.policy": "compact"})
    stage.topics.remove(_STATE)


def consume(stage: Stage, label: str, topic: str) -> None:
    """Record what consumers of both isolation levels read, and the offsets they may read to."""
    stage.write(
        label,
        {
            "uncommitted": stage.fetch(topic),
            "committed": stage.fetch(topic, isolationLevel=1),
            "latest": stage.offset(topic),
        },
    )
    tree = stage.ask(
        stage.leader(topic),
        "ListOffsets",
        replicaId=-1,
        isolationLevel=1,
        topics=[{"name": topic, "partitions": [{"partitionIndex": 0, "timestamp": -1}]}],
    )
    stage.write(f"{label}: stable", stage.normalised(tree))


@scenario(SINCE_1_1)
def transaction_commits(stage: Stage) -> None:
    """A transaction commits, and consumers of committed records see its records."""
    have_coordinator(stage, 1)
    stage.create("t", ((2, 3),))
    producer = Transactional(stage, 1, "commits")
    stage.write("begin", producer.begin())
    stage.write("add", producer.add("t", 0))
    stage.write("write", [producer.write("t", "a"), producer.write("t", "b")])
    consume(stage, "open", "t")
    stage.write("commit", producer.end(commit=True))
    consume(stage, "committed", "t")
    stage.write("commit again", producer.end(commit=True))
    stage.write("abort after", producer.end(commit=False))


@scenario(SINCE_1_1)
def transaction_aborts(stage: Stage) -> None:
    """A transaction aborts, and consumers of committed records skip its records."""
    have_coordinator(stage, 1)
    stage.create("t", ((2, 3),))
    producer = Transactional(stage, 1, "aborts")
    producer.begin()
    stage.write("plain", stage.produce("t", "before"))
    producer.add("t", 0)
    stage.write("write", producer.write("t", "a"))
    stage.write("abort", producer.end(commit=False))
    consume(stage, "aborted", "t")
    producer.add("t", 0)
    stage.write("next", producer.write("t", "b"))
    stage.write("commit", producer.end(commit=True))
    consume(stage, "committed", "t")


@scenario(SINCE_1_1)
def transactional_producer_is_fenced(stage: Stage) -> None:
    """A producer takes over another one's transactional id and aborts its transaction."""
    have_coordinator(stage, 1)
    stage.create("t", ((2, 3),))
    old = Transactional(stage, 1, "fenced")
    stage.write("old begins", old.begin())
    old.add("t", 0)
    stage.write("old writes", old.write("t", "a"))
    new = Transactional(stage, 1, "fenced")
    stage.write("new begins", new.begin())
    stage.pass_time(1)
    stage.write("old writes again", old.write("t", "b"))
    stage.write("old adds", old.add("t", 0))
    stage.write("old ends", old.end(commit=True))
    new.add("t", 0)
    stage.write("new writes", new.write("t", "c"))
    stage.write("new ends", new.end(commit=True))
    consume(stage, "in the end", "t")


@scenario(SINCE_1_1)
def transaction_errors(stage: Stage) -> None:
    """Transactional requests carry unknown ids, wrong epochs, partitions and timeouts."""
    have_coordinator(stage, 1)
    stage.create("t", ((2, 3),))
    producer = Transactional(stage, 1, "errors")
    stage.write("bad timeout", producer.begin(timeout_ms=-1))
    stage.write("long timeout", producer.begin(timeout_ms=10_000_000))
    stage.write("begin", producer.begin())
    stage.write("end without a transaction", producer.end(commit=True))
    stage.write("unknown partition", producer.add("t", 9))
    stage.write("unknown topic", producer.add("nope", 0))
    stranger = Transactional(stage, 1, "stranger")
    stranger.producer_id, stranger.epoch = producer.producer_id, producer.epoch
    stage.write("unknown id adds", stranger.add("t", 0))
    stage.write("unknown id ends", stranger.end(commit=True))
    other = Transactional(stage, 1, "errors")
    other.producer_id, other.epoch = producer.producer_id + 1000, producer.epoch
    stage.write("another producer id", other.add("t", 0))
    other.producer_id, other.epoch = producer.producer_id, producer.epoch + 1
    stage.write("future epoch", other.add("t", 0))
    elsewhere = Transactional(stage, 2, "errors")
    elsewhere.producer_id, elsewhere.epoch = producer.producer_id, producer.epoch
    stage.write("not the coordinator", elsewhere.add("t", 0))
    nameless = Transactional(stage, 1, "")
    stage.write("no name", nameless.begin())


@scenario(SINCE_2_8)
def transactional_records_without_a_transaction(stage: Stage) -> None:
    """Records are sent to a partition that was not added to the transaction (KIP-890)."""
    have_coordinator(stage, 1)
    stage.create("t", ((2, 3),))
    producer = Transactional(stage, 1, "unverified")
    producer.begin()
    stage.write("write", producer.write("t", "a"))
    stage.write("content", stage.fetch("t"))


@scenario(SINCE_1_1)
def transaction_times_out(stage: Stage) -> None:
    """A transaction times out: the coordinator aborts it and fences its producer."""
    have_coordinator(stage, 1)
    stage.create("t", ((2, 3),))
    producer = Transactional(stage, 1, "slow")
    producer.begin(timeout_ms=2000)
    producer.add("t", 0)
    stage.write("write", producer.write("t", "a"))
    stage.pass_time(16)  # the coordinator checks for timeouts every ten seconds
    consume(stage, "timed out", "t")
    stage.write("end", producer.end(commit=True))
    stage.write("begin again", producer.begin())


@scenario(SINCE_1_1)
def coordinator_of_transactions_crashes(stage: Stage) -> None:
    """A transaction's coordinator crashes, and the next one commits the transaction."""
    have_coordinator(stage, 1, 3)
    stage.create("t", ((2,),))
    producer = Transactional(stage, 1, "moved")
    producer.begin()
    producer.add("t", 0)
    stage.write("write", producer.write("t", "a"))
    stage.kill(1, look=False)
    stage.pass_time(1)
    producer.broker = 3
    stage.write("write again", producer.write("t", "b"))
    stage.write("commit", producer.end(commit=True))
    consume(stage, "committed", "t")
    stage.start(1, look=False)


@scenario(SINCE_1_1)
def leader_of_a_transaction_crashes(stage: Stage) -> None:
    """A partition's leader crashes; the next one knows of the open transaction."""
    have_coordinator(stage, 3)
    stage.create("t", ((1, 2),))
    producer = Transactional(stage, 3, "led")
    producer.begin()
    producer.add("t", 0)
    stage.write("write", producer.write("t", "a"))
    stage.kill(1, look=False)
    consume(stage, "open", "t")
    stage.write("write again", producer.write("t", "b"))
    stage.write("abort", producer.end(commit=False))
    consume(stage, "aborted", "t")
    stage.start(1)


@scenario(SINCE_1_1)
def offsets_in_a_transaction(stage: Stage) -> None:
    """Offsets are committed in a transaction, and are pending until it ends."""
    have_coordinator(stage, 1)
    groups.have_coordinator(stage, 1)
    stage.create("t", ((2,),))
    producer = Transactional(stage, 1, "offsets")
    producer.begin()

    def send(label: str, offset: int) -> None:
        named = {"producerId": producer.producer_id, "producerEpoch": producer.epoch}
        answer = stage.ask(1, "AddOffsetsToTxn", transactionalId="offsets", groupId="g", **named)
        stage.write(f"{label}: add", stage.normalised(answer))
        partition = {"partitionIndex": 0, "committedOffset": offset, "committedMetadata": ""}
        answer = stage.ask(
            1,
            "TxnOffsetCommit",
            transactionalId="offsets",
            groupId="g",
            topics=[{"name": "t", "partitions": [partition]}],
            **named,
        )
        stage.write(f"{label}: commit", stage.normalised(answer))

    def fetch(label: str) -> None:
        tree = groups.offsets_of(stage, 1, "g", {"t": [0]})
        stage.write(label, stage.normalised(tree))

    send("first", 5)
    fetch("pending")
    stage.write("commit", producer.end(commit=True))
    fetch("committed")
    send("second", 9)
    stage.write("abort", producer.end(commit=False))
    fetch("aborted")


@scenario(SINCE_2_8)
def transactions_are_described(stage: Stage) -> None:
    """Transactions are listed and described in several states (KIP-664)."""
    have_coordinator(stage, 1)
    stage.create("t", ((2,),))
    producer = Transactional(stage, 1, "described")

    def describe(label: str) -> None:
        ids = ["described", "unknown"]
        stage.request(label, 1, "DescribeTransactions", transactionalIds=ids)
        stage.request(
            f"{label}: list", 1, "ListTransactions", stateFilters=[], producerIdFilters=[]
        )

    describe("before")
    producer.begin()
    describe("empty")
    producer.add("t", 0)
    describe("ongoing")
    producer.write("t", "a")
    producer.end(commit=True)
    describe("complete")
    stage.request(
        "unknown state", 1, "ListTransactions", stateFilters=["Nope"], producerIdFilters=[]
    )


@scenario(SINCE_2_8)
def epoch_is_raised_by_the_producer(stage: Stage) -> None:
    """InitProducerId is sent with a producer id and epoch, right and wrong (KIP-360)."""
    have_coordinator(stage, 1)
    producer = Transactional(stage, 1, "raised")
    stage.write("begin", producer.begin())
    own = {"producerId": producer.producer_id, "producerEpoch": producer.epoch}
    stage.write("raise", producer.begin(**own))
    stage.write("the old epoch", producer.begin(**own))
    wrong = {"producerId": producer.producer_id + 1000, "producerEpoch": 0}
    stage.write("another id", producer.begin(**wrong))
    future = {"producerId": producer.producer_id, "producerEpoch": producer.epoch + 9}
    stage.write("a future epoch", producer.begin(**future))
