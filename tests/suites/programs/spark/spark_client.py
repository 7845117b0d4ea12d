"""Steps of Spark's source and sink; prints ``ok NAME`` or ``failed NAME: reason`` for each."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as column

BOOTSTRAP, JARS = sys.argv[1:]
_COUNT = 1000
_TIMEOUT_S = 60


def topic(name: str) -> str:
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    admin.create_topics([NewTopic(name, 3, 3)])[name].result(_TIMEOUT_S)
    return name


def write(name: str, numbers: range, **options: Any) -> None:
    producer = Producer({"bootstrap.servers": BOOTSTRAP, **options})
    for number in numbers:
        producer.produce(name, str(number), str(number))
    producer.flush(_TIMEOUT_S)


def values(name: str) -> list[int]:
    """Return what a reader of committed records finds in a topic, in order of numbers."""
    consumer = Consumer(
        {"bootstrap.servers": BOOTSTRAP, "group.id": "nobody", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(name, number, OFFSET_BEGINNING) for number in range(3)])
    found: list[int] = []
    ended: set[int | None] = set()
    while len(ended) < 3:
        for record in consumer.consume(500, 1.0):
            error = record.error()
            if error is None:
                found.append(int(record.value() or b"-1"))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(record.partition())
    consumer.close()
    return sorted(found)


def source(spark: Any, name: str, *, streaming: bool = False, **options: Any) -> Any:
    reader = (spark.readStream if streaming else spark.read).format("kafka")
    reader = reader.option("kafka.bootstrap.servers", BOOTSTRAP).option("subscribe", name)
    return reader.option("startingOffsets", "earliest").options(**options).load()


def sink(writer: Any, name: str) -> Any:
    return writer.format("kafka").option("kafka.bootstrap.servers", BOOTSTRAP).option("topic", name)


def drain(stream: Any, checkpoint: Path) -> None:
    query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(_TIMEOUT_S), "the stream does not end"


def batch(spark: Any, _: Path) -> None:
    name = topic("batch")
    numbers = spark.range(_COUNT).select(column.col("id").cast("string").alias("value"))
    sink(numbers.write, name).save()
    found = source(spark, name).select(column.col("value").cast("string").cast("long")).collect()
    assert sorted(row[0] for row in found) == list(range(_COUNT))
    assert values(name) == list(range(_COUNT))


def ranges(spark: Any, _: Path) -> None:
    name = topic("ranges")
    write(name, range(_COUNT))
    asked = '{"ranges": {"0": 1, "1": 2, "2": 3}}'
    found = source(spark, name, startingOffsets=asked)
    assert found.count() == _COUNT - 6
    assert found.where("partition = 2").agg(column.min("offset")).collect()[0][0] == 3


def committed(spark: Any, _: Path) -> None:
    name = topic("committed")
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": "spark"})
    producer.init_transactions(_TIMEOUT_S)
    for value in ("aborted", "committed"):
        producer.begin_transaction()
        producer.produce(name, value)
        (producer.commit_transaction if value == "committed" else producer.abort_transaction)()
    options: dict[str, Any] = {"kafka.isolation.level": "read_committed"}
    assert [bytes(row.value) for row in source(spark, name, **options).collect()] == [b"committed"]


def checkpoint(spark: Any, folder: Path) -> None:
    name = topic("checkpoint")
    output = str(folder / "output")
    for first in (0, _COUNT):
        write(name, range(first, first + _COUNT))
        stream = source(spark, name, streaming=True, maxOffsetsPerTrigger=300)
        numbers = stream.select(column.col("value").cast("string").cast("long").alias("n"))
        drain(numbers.writeStream.format("parquet").option("path", output), folder / "checkpoint")
    found = sorted(row.n for row in spark.read.parquet(output).collect())
    assert found == list(range(2 * _COUNT)), f"{len(found)} records"


def topic_to_topic(spark: Any, folder: Path) -> None:
    read, written = topic("read"), topic("written")
    for first in (0, _COUNT):
        write(read, range(first, first + _COUNT))
        stream = source(spark, read, streaming=True).select("key", "value")
        drain(sink(stream.writeStream, written), folder / "checkpoint")
    assert values(written) == list(range(2 * _COUNT))


def exactly_once(spark: Any, folder: Path) -> None:
    """A batch is one transaction whose producer skips what an earlier attempt has written."""
    read, written = topic("once-read"), topic("once-written")
    write(read, range(_COUNT))
    failing = [True]

    def write_batch(rows: Any, number: int) -> None:
        done = {value // _COUNT for value in values(written)}
        producer = Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": "sink"})
        producer.init_transactions(_TIMEOUT_S)
        if number in done:
            return
        producer.begin_transaction()
        for at, _ in enumerate(rows.collect()):
            producer.produce(written, str(number * _COUNT + at))
        if failing and number == 1:
            producer.flush(_TIMEOUT_S)
            failing.clear()
            raise RuntimeError("the writer fails within its transaction")
        producer.commit_transaction(_TIMEOUT_S)
        if number == 2 and len(failing) == 0:
            failing.append(False)
            raise RuntimeError("the writer fails after its transaction")

    for _ in range(3):
        stream = source(spark, read, streaming=True, maxOffsetsPerTrigger=300)
        try:
            drain(stream.writeStream.foreachBatch(write_batch), folder / "checkpoint")
        except Exception as error:
            if "the writer fails" not in str(error):
                raise
    found = values(written)
    assert len(found) == len(set(found)) == _COUNT, f"{len(found)} records"


STEPS: dict[str, Callable[[Any, Path], None]] = {
    "a batch is written and read": batch,
    "offsets are chosen": ranges,
    "only committed records are read": committed,
    "a stream goes on at its checkpoint": checkpoint,
    "a stream from topic to topic": topic_to_topic,
    "a transactional sink writes each record once": exactly_once,
}


def main() -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.jars", JARS)
    builder = builder.config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for name, step in STEPS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                step(spark, Path(folder))
            except Exception as error:
                print(f"failed {name}: {str(error) or repr(error)}".replace("\n", " "), flush=True)
            else:
                print(f"ok {name}", flush=True)
    print("end", flush=True)
    spark.stop()


main()
