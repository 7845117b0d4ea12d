"""The leader dies in mid-stream and returns: no acknowledged record is lost or duplicated."""

from __future__ import annotations

import gc
import os
import threading
import warnings

import pytest
from fakekafka import Cluster
from fakekafka.testing.checks import acknowledged_exactly_once, fully_replicated, replicas_identical
from fakekafka.tests.support import client_drivers as drivers
from fakekafka.tests.support.present import present

TOPIC = "orders"
PARTITIONS = 3
RECORDS = int(os.environ.get("FAKEKAFKA_KILL_RECORDS", "10000"))
ROUNDS = int(os.environ.get("FAKEKAFKA_KILL_ROUNDS", "1"))


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.timeout(180)
# kafka-python leaves sockets of broken connections to the garbage collector.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("round_number", range(ROUNDS))
@pytest.mark.parametrize("client", list(drivers.DRIVERS))
def test_nothing_acknowledged_is_lost_when_the_leader_dies(
    client: str, runtime_name: str, round_number: int
) -> None:
    """``FAKEKAFKA_KILL_ROUNDS`` sets the number of rounds."""
    with Cluster(brokers=3, runtime=runtime_name) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, 3, {"min.insync.replicas": "2"})
        driver = drivers.DRIVERS[client](cluster.bootstrap_servers, TOPIC, PARTITIONS)
        values = [b"%06d" % number for number in range(RECORDS)]
        go_on = threading.Event()
        thread = threading.Thread(target=driver.produce, args=(values, go_on))
        thread.start()
        cluster.wait_until(lambda: cluster.partition(TOPIC, 0).log_end_offset > 0, 30)
        victim = present(cluster.partition(TOPIC, 0).leader)
        cluster.broker(victim).kill()
        go_on.set()
        cluster.wait_until(lambda: cluster.partition(TOPIC, 0).leader not in (None, victim), 30)
        cluster.broker(victim).start()
        thread.join(120)
        assert not thread.is_alive(), "the producer did not finish"
        cluster.wait_until(lambda: fully_replicated(cluster, [TOPIC]), 30)
        read = driver.read(len(driver.acknowledged))
        assert driver.failed == []
        assert len(driver.acknowledged) == RECORDS
        verdict = acknowledged_exactly_once(driver.acknowledged, read)
        assert verdict, verdict.problems
        verdict = replicas_identical(cluster, [TOPIC])
        assert verdict, verdict.problems
        assert cluster.failures == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # kafka-python leaves sockets to gc
        del driver
        gc.collect()
