"""Producing and fetching: errors, offsets by time, idempotent producers, deleted records."""

from __future__ import annotations

from typing import Any

from fakekafka.tests.fidelity.protocol import records
from fakekafka.tests.fidelity.stage.declaring import EVERY, SINCE_1_1, SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario


@scenario(EVERY)
def produce_errors(stage: Stage) -> None:
    """Produce goes to wrong brokers, and names wrong partitions, acks and records."""
    stage.create("p", ((1, 2), (2, 1)), {"max.message.bytes": "1000"})
    stage.create("compacted", ((1, 2),), {"cleanup.policy": "compact"})
    version = stage.version("Produce")
    good = records.record_set(["a"], version, stage.side.now_ms())
    broken = good[:-2] + bytes([good[-2] ^ 0x55]) + good[-1:]
    answers: dict[str, Any] = {
        "good": stage.produce("p", "a"),
        "not the leader": stage.produce("p", "a", broker=2),
        "no replica": stage.produce("p", "a", broker=3),
        "unknown partition": stage.produce("p", "a", partition=9, broker=1),
        "negative partition": stage.produce("p", "a", partition=-1, broker=1),
        "unknown topic": stage.produce("nope", "a", broker=1),
        "bad topic": stage.produce("a b", "a", broker=1),
        "too large": stage.produce("p", "a" * 2000),
        "acks 2": stage.produce("p", "a", acks=2),
        "acks -2": stage.produce("p", "a", acks=-2),
        "no key": stage.produce("compacted", "a"),
        "with a key": stage.produce("compacted", "a", key="k"),
        "broken checksum": stage.produce("p", raw=broken),
        "cut off": stage.produce("p", raw=good[:-3]),
        "many": stage.produce("p", "b", "c", "d"),
    }
    stage.write("answers", answers)
    stage.write("content", stage.fetch("p"))


@scenario(SINCE_2_8)
def record_errors(stage: Stage) -> None:
    """Produce reports which records of a batch were refused, and why (KIP-467)."""
    stage.create("r", ((1, 2),), {"cleanup.policy": "compact"})
    data = records.record_set(["a", "b"], 3, stage.side.now_ms())
    entry = [{"name": "r", "partitionData": [{"index": 0, "records": data}]}]
    stage.request("no keys", 1, "Produce", acks=-1, timeoutMs=3000, topicData=entry)
    stage.create("t", ((1, 2),), {"message.timestamp.difference.max.ms": "1000"})
    old = records.record_set(["a"], 3, stage.side.now_ms() - 3_600_000)
    entry = [{"name": "t", "partitionData": [{"index": 0, "records": old}]}]
    tree = stage.ask(1, "Produce", acks=-1, timeoutMs=3000, topicData=entry)
    partition = tree["responses"][0]["partitionResponses"][0] if isinstance(tree, dict) else {}
    stage.write("too old", [stage.normalised({"errorCode": partition.get("errorCode")})])


@scenario(EVERY)
def fetch_errors(stage: Stage) -> None:
    """Fetch goes to wrong brokers, and names wrong partitions, offsets and sizes."""
    stage.create("f", ((1, 2), (2, 1)))
    stage.write("produce", stage.produce("f", "a", "b"))
    for label, answer in {
        "all": stage.fetch("f"),
        "the second": stage.fetch("f", offset=1),
        "at the end": stage.fetch("f", offset=2),
        "beyond": stage.fetch("f", offset=99),
        "negative": stage.fetch("f", offset=-5),
        "not the leader": stage.fetch("f", broker=2),
        "no replica": stage.fetch("f", broker=3),
        "unknown partition": stage.fetch("f", 9, broker=1),
        "unknown topic": stage.fetch("nope", broker=1),
        "no bytes": stage.fetch("f", of_partition={"partitionMaxBytes": 0}),
        "negative bytes": stage.fetch("f", of_partition={"partitionMaxBytes": -1}),
        "little": stage.fetch("f", maxBytes=1),
    }.items():
        stage.write(label, answer)


@scenario(SINCE_2_8)
def fetch_with_epochs(stage: Stage) -> None:
    """Fetch carries fenced, unknown and diverging leader epochs (KIP-320, KIP-595)."""
    stage.create("f", ((1, 2),))
    stage.write("produce", stage.produce("f", "a"))
    stage.stop(1, look=False)
    stage.write("produce again", stage.produce("f", "b"))
    stage.start(1)
    for label, others in {
        "right": {"currentLeaderEpoch": 1},
        "old": {"currentLeaderEpoch": 0},
        "future": {"currentLeaderEpoch": 9},
        "last fetched right": {"lastFetchedEpoch": 0},
        "last fetched future": {"lastFetchedEpoch": 9},
    }.items():
        stage.write(label, stage.fetch("f", offset=1, of_partition=others))
    stage.write("the leader's rack", stage.fetch("f", rackId="b"))
    stage.write("the follower", stage.fetch("f", broker=1))


@scenario(EVERY)
def offsets_by_time(stage: Stage) -> None:
    """ListOffsets names special timestamps and wrong partitions, and goes to wrong brokers."""
    stage.create("o", ((1, 2), (2, 1)))
    stage.write("empty", {str(t): stage.offset("o", timestamp=t) for t in (-1, -2, 0)})
    stage.write("produce", stage.produce("o", "a", "b"))
    answers = {str(t): stage.offset("o", timestamp=t) for t in (-1, -2, 0, 1 << 45, -9)}
    answers["not the leader"] = stage.offset("o", broker=2)
    answers["no replica"] = stage.offset("o", broker=3)
    answers["unknown partition"] = stage.offset("o", 9, broker=1)
    answers["unknown topic"] = stage.offset("nope", broker=1)
    stage.write("with records", answers)


@scenario(SINCE_2_8)
def offsets_by_time_of_later_releases(stage: Stage) -> None:
    """ListOffsets finds the largest timestamp (KIP-734), and checks leader epochs."""
    stage.create("o", ((1, 2),))
    stage.write("produce", stage.produce("o", "a", "b"))
    stage.write("answers", {str(t): stage.offset("o", timestamp=t) for t in (-3, -4, -5)})
    stage.write("future epoch", stage.offset("o", currentLeaderEpoch=7))
    stage.write("right epoch", stage.offset("o", currentLeaderEpoch=0))


@scenario(SINCE_1_1)
def ends_of_epochs(stage: Stage) -> None:
    """OffsetForLeaderEpoch names various epochs and partitions, and goes to wrong brokers."""
    stage.create("e", ((1, 2), (2, 1)))
    stage.write("empty", {str(e): stage.epoch_end("e", e) for e in (-1, 0, 1)})
    stage.write("produce", stage.produce("e", "a"))
    answers = {str(e): stage.epoch_end("e", e) for e in (-1, 0, 1, 7)}
    answers["not the leader"] = stage.epoch_end("e", 0, broker=2)
    answers["no replica"] = stage.epoch_end("e", 0, broker=3)
    answers["unknown partition"] = stage.epoch_end("e", 0, 9, broker=1)
    answers["unknown topic"] = stage.epoch_end("nope", 0, broker=1)
    answers["fenced"] = stage.epoch_end("e", 0, current=7)
    stage.write("with records", answers)


def delete_records(
    stage: Stage, topic: str, offset: int, partition: int = 0, broker: int = 1
) -> Any:
    asked = [{"partitionIndex": partition, "offset": offset}]
    tree = stage.ask(
        broker, "DeleteRecords", topics=[{"name": topic, "partitions": asked}], timeoutMs=3000
    )
    found = stage.normalised(tree)
    return found if isinstance(found, str) else found["topics"][0]["partitions"][0]


@scenario(SINCE_1_1)
def records_are_deleted(stage: Stage) -> None:
    """Records are deleted up to an offset (KIP-107), and consumers cannot fetch below it."""
    stage.create("d", ((1, 2), (2, 1)))
    stage.create("compacted", ((1, 2),), {"cleanup.policy": "compact"})
    stage.write("produce", stage.produce("d", "a", "b", "c"))
    stage.write(
        "answers",
        {
            "one": delete_records(stage, "d", 1),
            "less than is gone": delete_records(stage, "d", 0),
            "beyond": delete_records(stage, "d", 99),
            "negative": delete_records(stage, "d", -5),
            "not the leader": delete_records(stage, "d", 1, broker=2),
            "no replica": delete_records(stage, "d", 1, broker=3),
            "unknown partition": delete_records(stage, "d", 1, 9),
            "unknown topic": delete_records(stage, "nope", 1),
            "compacted": delete_records(stage, "compacted", 0),
        },
    )
    stage.write("deleted", stage.fetch("d"))
    stage.write("what is left", stage.fetch("d", offset=1))
    stage.write("earliest", stage.offset("d", timestamp=-2))
    stage.write("everything", delete_records(stage, "d", -1))
    stage.write("earliest in the end", stage.offset("d", timestamp=-2))
    stage.pass_time(1)
    stage.kill(1)
    stage.write("at the new leader", stage.offset("d", timestamp=-2))


def producer_id(stage: Stage, broker: int = 1) -> tuple[int, int]:
    """Return a new producer's id and epoch; a broker without ids first allocates a block."""
    found: list[dict[str, Any]] = []

    def has_id() -> bool:
        tree = stage.ask(
            broker, "InitProducerId", transactionalId=None, transactionTimeoutMs=60_000
        )
        if isinstance(tree, dict) and not tree["errorCode"]:
            found.append(tree)
        return bool(found)

    stage.wait("a producer id", has_id, 10)
    return found[0]["producerId"], found[0]["producerEpoch"]


@scenario(SINCE_1_1)
def idempotent_producer(stage: Stage) -> None:
    """An idempotent producer sends duplicates, gaps and old epochs (KIP-98)."""
    stage.create("i", ((1, 2),))
    own, epoch = producer_id(stage)
    other, _ = producer_id(stage)

    def put(sequence: int, of_epoch: int = 0, who: int | None = None, *values: str) -> Any:
        producer = (own if who is None else who, of_epoch, sequence)
        return stage.produce("i", *(values or ("a",)), producer=producer)

    stage.write(
        "answers",
        {
            "epoch": epoch,
            "first": put(0),
            "again": put(0),
            "gap": put(5),
            "second": put(1),
            "two at once": put(2, 0, None, "b", "c"),
            "those again": put(2, 0, None, "b", "c"),
            "half of those": put(3),
            "the first once more": put(0),
            "another producer's gap": put(7, who=other),
            "another producer": put(0, who=other),
            "higher epoch with a gap": put(4, 1),
            "higher epoch": put(0, 1),
            "old epoch": put(4, 0),
            "negative sequence": put(-1, 1),
        },
    )
    stage.write("content", stage.fetch("i"))


@scenario(SINCE_1_1)
def many_duplicates(stage: Stage) -> None:
    """A producer repeats seven batches, of which the leader remembers the last five."""
    stage.create("i", ((1, 2),))
    own, _ = producer_id(stage)

    def put(sequence: int) -> Any:
        return stage.produce("i", f"{sequence}", producer=(own, 0, sequence))

    stage.write("seven", {str(n): put(n) for n in range(7)})
    stage.write("again", {str(n): put(n) for n in range(7)})


@scenario(SINCE_1_1)
def idempotent_producer_and_failovers(stage: Stage) -> None:
    """New leaders know the sequence numbers of producers, also after a restart."""
    stage.create("i", ((1, 2, 3),))
    own, _ = producer_id(stage, broker=3)

    def put(sequence: int) -> Any:
        return stage.produce("i", f"{sequence}", producer=(own, 0, sequence))

    stage.write("before", {"0": put(0), "1": put(1)})
    stage.kill(1, look=False)
    stage.write("new leader", {"1 again": put(1), "0 again": put(0), "3": put(3), "2": put(2)})
    stage.start(1, look=False)
    stage.wait("1 has caught up", lambda: 1 in (stage.observer.state("i", 0) or {})["isr"])
    stage.stop(2)
    stage.write("third leader", {"2 again": put(2), "4": put(4), "3": put(3)})
    stage.start(2)
    stage.write("content", stage.fetch("i"))


@scenario(SINCE_1_1)
def sequences_after_records_are_deleted(stage: Stage) -> None:
    """A producer sends duplicates and new records after all its records were deleted."""
    stage.create("i", ((1, 2),))
    own, _ = producer_id(stage)

    def put(sequence: int) -> Any:
        return stage.produce("i", f"{sequence}", producer=(own, 0, sequence))

    stage.write("before", {"0": put(0), "1": put(1)})
    stage.write("delete", delete_records(stage, "i", -1))
    stage.write("after", {"1 again": put(1), "5": put(5), "2": put(2)})


@scenario(SINCE_2_8)
def producers_are_described(stage: Stage) -> None:
    """DescribeProducers is asked at the leader, at a follower and elsewhere (KIP-664)."""
    stage.create("i", ((1, 2),))
    own, _ = producer_id(stage)
    stage.produce("i", "a", producer=(own, 0, 0))
    asked = [{"name": "i", "partitionIndexes": [0, 9]}, {"name": "nope", "partitionIndexes": [0]}]
    stage.request("at the leader", 1, "DescribeProducers", topics=asked)
    stage.request("elsewhere", 3, "DescribeProducers", topics=asked)
    stage.request("at a follower", 2, "DescribeProducers", topics=asked)
