"""Steps of transactions, which are begun, written, ended, fenced and timed out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakekafka.tests.fidelity.histories import internal
from fakekafka.tests.fidelity.histories.account import Account
from fakekafka.tests.fidelity.histories.world import TRANSACTIONAL_IDS
from fakekafka.tests.fidelity.stage import groups
from fakekafka.tests.fidelity.stage.groups import NOT_YET

STATE = "__transaction_state"
_TIMEOUT_MS = 600_000
"""Transaction timeout in milliseconds, longer than any history."""
_PRODUCE_MS = 15_000
_SHORT_MS = 2_000
_SHORT_S = 2.5
_SERVING_S = 20.0
_IN_BETWEEN = (*NOT_YET, "CONCURRENT_TRANSACTIONS")


@dataclass
class _Producer:
    """A producer's id, epoch and sequence numbers."""

    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)


class Transactions:
    """Carries out the steps of transactional producers, of which two may share an id."""

    def __init__(self, account: Account, see_offset: Callable[[str, int], None]) -> None:
        self._account = account
        self._stage = account.stage
        self._see_offset = see_offset
        self._producers: dict[tuple[str, str], _Producer] = {}
        self._touched: dict[str, set[tuple[str, int]]] = {}

    def transaction_log(self, replicas: tuple[int, ...]) -> None:
        """Create the topic of transactions, with one partition."""
        self._account.internal.append(STATE)
        internal.provide(self._stage, STATE, replicas)
        self._stage.wait(f"{replicas[0]} coordinates transactions", self._serves, _SERVING_S)
        self._account.look()

    def _serves(self) -> bool:
        return is_initialised(self._stage, self._account.own("nobody"))

    # -- one transaction -----------------------------------------------------------------------

    def init(self, name: str, who: str, how: str) -> None:
        """Initialise a producer; ``bump`` asks for a higher epoch of its producer id."""
        known = self._producer(name, who)
        fields = {}
        if how == "bump" and known.producer_id >= 0:
            fields = {"producerId": known.producer_id, "producerEpoch": known.epoch}
        told = self._init(name, who, _TIMEOUT_MS, fields)
        self._account.answer(told)
        self._see_touched(name)

    def _init(self, name: str, who: str, timeout_ms: int, fields: dict[str, int]) -> Any:
        self._stage.side.left_open.add(self._account.own(name))
        told = self._ask(
            "InitProducerId",
            transactionalId=self._account.own(name),
            transactionTimeoutMs=timeout_ms,
            **fields,
        )
        if isinstance(told, dict) and not told["errorCode"]:
            self._producers[name, who] = _Producer(told["producerId"], told["producerEpoch"])
        return told

    def add(self, name: str, who: str, topic: str, partition: int) -> None:
        self._account.answer(self._add(name, who, topic, partition))

    def _add(self, name: str, who: str, topic: str, partition: int) -> Any:
        producer = self._producer(name, who)
        self._touched.setdefault(name, set()).add((topic, partition))
        return self._ask(
            "AddPartitionsToTxn",
            v3AndBelowTransactionalId=self._account.own(name),
            v3AndBelowProducerId=producer.producer_id,
            v3AndBelowProducerEpoch=producer.epoch,
            v3AndBelowTopics=[{"name": topic, "partitions": [partition]}],
        )

    def put(self, name: str, who: str, topic: str, partition: int) -> None:
        """Send a batch of a transaction, whether its partition was added or not."""
        self._account.answer(self._put(name, who, topic, partition))
        self._see_offset(topic, partition)

    def _put(self, name: str, who: str, topic: str, partition: int) -> Any:
        producer = self._producer(name, who)
        place = topic, partition
        sequence = producer.sequences.get(place, 0)

        def ask() -> Any:
            return self._stage.produce(
                topic,
                f"{self._account.number + 1}",
                partition=partition,
                producer=(producer.producer_id, producer.epoch, sequence),
                transactional_id=self._account.own(name),
                timeout_ms=_PRODUCE_MS,
            )

        told = self._account.ask_again(ask, _IN_BETWEEN)
        if isinstance(told, list) and told[0] == "NONE":
            producer.sequences[place] = sequence + 1
        return told

    def include(self, name: str, who: str, group: str) -> None:
        """Add the offsets of a group to the transaction."""
        producer = self._producer(name, who)
        told = self._ask(
            "AddOffsetsToTxn",
            transactionalId=self._account.own(name),
            groupId=self._account.own(group),
            producerId=producer.producer_id,
            producerEpoch=producer.epoch,
        )
        self._account.answer(told)

    def put_offset(
        self, name: str, who: str, group: str, topic: str, partition: int, offset: int
    ) -> None:
        producer = self._producer(name, who)
        asked = {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": ""}

        def ask() -> Any:
            broker = self._account.coordinator(groups.OFFSETS)
            if broker < 0:
                return "no leader"
            return self._stage.ask(
                broker,
                "TxnOffsetCommit",
                transactionalId=self._account.own(name),
                groupId=self._account.own(group),
                producerId=producer.producer_id,
                producerEpoch=producer.epoch,
                topics=[{"name": topic, "partitions": [asked]}],
            )

        self._account.answer(self._account.ask_again(ask, NOT_YET))

    def end(self, name: str, who: str, is_commit: bool) -> None:
        """Commit or abort, and repeat the request until the markers are written."""
        self._account.answer(self._end(name, who, is_commit))
        self._account.observe("complete", lambda: self._end(name, who, is_commit))
        self._see_touched(name)

    def _end(self, name: str, who: str, is_commit: bool) -> Any:
        producer = self._producer(name, who)
        return self._ask(
            "EndTxn",
            transactionalId=self._account.own(name),
            producerId=producer.producer_id,
            producerEpoch=producer.epoch,
            committed=is_commit,
        )

    def outlast(self, name: str, who: str, topic: str, partition: int) -> None:
        """Let a transaction time out: the coordinator aborts it and fences its producer."""
        self._account.answer(self._init(name, who, _SHORT_MS, {}))
        self._account.answer(self._add(name, who, topic, partition))
        self._account.answer(self._put(name, who, topic, partition))
        self._stage.pass_time(_SHORT_S)
        self._see_offset(topic, partition)
        self._account.observe("late", lambda: self._end(name, who, True))

    def _see_touched(self, name: str) -> None:
        """Wait until all partitions of the transaction have their markers."""
        for topic, partition in sorted(self._touched.pop(name, ())):
            self._see_offset(topic, partition)

    # -- what is told of them ------------------------------------------------------------------

    def transactions(self) -> None:
        """Describe and list the transactions (KIP-664)."""
        names = [self._account.own(name) for name in TRANSACTIONAL_IDS]

        def everything() -> dict[str, Any]:
            described = self._ask_once("DescribeTransactions", transactionalIds=names)
            for one in described["transactionStates"] if isinstance(described, dict) else ():
                for topic in one["topics"]:
                    topic["partitions"].sort()
            listed = self._ask_once("ListTransactions", stateFilters=[], producerIdFilters=[])
            if isinstance(listed, dict):
                told = listed["transactionStates"]
                listed["transactionStates"] = [
                    one for one in told if one["transactionalId"] in names
                ]
            return {"described": described, "listed": listed}

        self._account.observe("told", everything)

    def producers(self, topic: str, partition: int) -> None:
        """Describe the producers of a partition."""

        def everything() -> Any:
            leader = self._stage.leader(topic, partition)
            if leader < 0:
                return "no leader"
            asked = [{"name": topic, "partitionIndexes": [partition]}]
            tree = self._stage.ask(leader, "DescribeProducers", topics=asked)
            for one in tree["topics"][0]["partitions"] if isinstance(tree, dict) else ():
                for producer in one["activeProducers"]:
                    del producer["coordinatorEpoch"]  # its topic is shared with other histories
            return tree

        self._account.observe("told", everything)

    # -- requests ------------------------------------------------------------------------------

    def _producer(self, name: str, who: str) -> _Producer:
        return self._producers.setdefault((name, who), _Producer(1_000_000, 0))

    def _ask_once(self, api: str, **fields: Any) -> Any:
        broker = self._account.coordinator(STATE)
        return self._stage.ask(broker, api, **fields) if broker >= 0 else "no leader"

    def _ask(self, api: str, **fields: Any) -> Any:
        """Ask the coordinator, again while it loads, or while an earlier transaction ends."""
        return self._account.ask_again(lambda: self._ask_once(api, **fields), _IN_BETWEEN)


def is_initialised(stage: Any, transactional_id: str) -> bool:
    """Initialise a producer of a transactional id, which ends its open transaction."""
    broker = stage.leader(STATE)
    if broker < 0:
        return False
    told = stage.ask(
        broker, "InitProducerId", transactionalId=transactional_id, transactionTimeoutMs=_TIMEOUT_MS
    )
    return isinstance(told, dict) and not told["errorCode"]
