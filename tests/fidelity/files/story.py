"""Writes records before a log directory is carried over, and reads them afterwards."""

from __future__ import annotations

from typing import Any

from fakekafka.tests.fidelity.protocol.records import Producer
from fakekafka.tests.fidelity.scenarios import transactions
from fakekafka.tests.fidelity.scenarios.transactions import Transactional
from fakekafka.tests.fidelity.stage import groups
from fakekafka.tests.fidelity.stage.stage import Stage

TOPICS = ("plain", "compacted", "txn")
_SEGMENT = {"segment.bytes": "600"}
_COMPACTED = {
    **_SEGMENT,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
_KEYED_RECORDS = 30
_BATCHES = 12
_OFFSETS = {"plain": [0], "txn": [0]}
_HOUR_MS = 900_000


class Story:
    """Records of every kind, on a cluster of one broker."""

    def __init__(self, stage: Stage) -> None:
        self.producer_id = -1
        self.next_sequence = 0
        self.open: Transactional | None = None
        self._write(stage)

    def _write(self, stage: Stage) -> None:
        groups.have_coordinator(stage, 1)
        transactions.have_coordinator(stage, 1)
        stage.create("plain", ((1,),), _SEGMENT)
        stage.create("compacted", ((1,),), _COMPACTED)
        stage.create("txn", ((1,),), _SEGMENT)
        stage.wait("there is a producer id", lambda: self._has_id(stage), 20)
        for number in range(_BATCHES):
            self.produce(stage, number)
        for number in range(_KEYED_RECORDS):
            stage.produce("compacted", f"value {number}", key=f"key {number % 3}")
        self._write_transactions(stage)
        groups.commit(stage, 1, "g", {("plain", 0): 7}, text="seven")
        stage.wait("the log is compacted", lambda: self._is_compacted(stage), 60)

    def _has_id(self, stage: Stage) -> bool:
        """Take a producer id; return False while the broker has no block of ids yet."""
        told = stage.ask(1, "InitProducerId", transactionalId=None, transactionTimeoutMs=1000)
        if not isinstance(told, dict) or told["errorCode"]:
            return False
        self.producer_id = told["producerId"]
        return True

    def _write_transactions(self, stage: Stage) -> None:
        for number, ending in enumerate((True, False, True)):
            producer = Transactional(stage, 1, f"t{number}")
            producer.begin()
            producer.add("txn", 0)
            for value in ("a", "b"):
                producer.write("txn", f"{number} {value}")
            producer.end(commit=ending)
        self.open = Transactional(stage, 1, "open")
        self.open.begin(timeout_ms=_HOUR_MS)
        self.open.add("txn", 0)
        self.open.write("txn", "open")

    @staticmethod
    def _is_compacted(stage: Stage) -> bool:
        return len(read(stage, "compacted")) < _KEYED_RECORDS - 10

    def produce(self, stage: Stage, number: int) -> Any:
        """Produce the next two records of the idempotent producer."""
        producer: Producer = (self.producer_id, 0, self.next_sequence)
        self.next_sequence += 2
        return stage.produce("plain", f"{number} a", f"{number} b", producer=producer)

    def repeat(self, stage: Stage) -> Any:
        """Produce the last two records again, which a broker that knows them does not append."""
        producer: Producer = (self.producer_id, 0, self.next_sequence - 2)
        return stage.produce("plain", "again a", "again b", producer=producer)

    def go_on(self, stage: Stage) -> dict[str, Any]:
        """Continue the producer and the open transaction on the other cluster."""
        assert self.open is not None
        before = stage.offset("plain")
        repeated = self.repeat(stage)
        found = {
            "repeated": repeated,
            "nothing was written": stage.offset("plain") == before,
            "next": self.produce(stage, 99),
        }
        successor = Transactional(stage, 1, self.open.id)
        successor.producer_id, successor.epoch = self.open.producer_id, self.open.epoch
        successor.sequence = self.open.sequence
        found["in the open transaction"] = successor.write("txn", "more")
        found["commit"] = successor.end(commit=True)
        found["committed"] = read(stage, "txn", isolation=1)
        return found


def read(stage: Stage, topic: str, isolation: int = 0) -> list[Any]:
    """Return all records of the topic's partition, read with one fetch after another."""
    found: list[Any] = []
    offset = 0
    while True:
        told = stage.fetch(topic, offset=offset, isolationLevel=isolation)
        assert isinstance(told, dict), told
        assert told["errorCode"] == "NONE", told
        if not told["records"]:
            return found
        found += [record for record in told["records"] if record[0] >= offset]
        offset = told["records"][-1][0] + 1


def observe(stage: Stage) -> dict[str, Any]:
    """Return the records, offsets, epochs, transactions and commits of the log directory."""
    found: dict[str, Any] = {}
    for topic in TOPICS:
        found[f"{topic} records"] = read(stage, topic)
        found[f"{topic} committed"] = read(stage, topic, isolation=1)
        found[f"{topic} offsets"] = [stage.offset(topic, timestamp=at) for at in (-2, -1)]
        found[f"{topic} end of the first epoch"] = stage.epoch_end(topic, 0)
        aborted = stage.fetch(topic, isolationLevel=1)
        found[f"{topic} stable"] = aborted["lastStableOffset"]
        found[f"{topic} aborted"] = len(aborted["abortedTransactions"] or ())
    found["group"] = stage.normalised(groups.offsets_of(stage, 1, "g", _OFFSETS))
    return found
