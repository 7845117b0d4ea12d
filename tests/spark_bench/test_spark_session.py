"""Spark sessions that cannot start are refused in one line, and waits are reported."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fakekafka import UsageError
from fakekafka.spark_bench.engines import spark as spark_module
from fakekafka.spark_bench.engines.spark import SparkEngine
from fakekafka.spark_bench.engines.spark_session import (
    first_line,
    reporting_start_errors,
    require_master,
)
from fakekafka.spark_bench.engines.spark_worker import freeze_modules
from fakekafka.tests.spark_bench.suites_for_tests import SMALL, written
from fakekafka.tests.support.spark_marks import ON_SPARK

SUBMIT = """WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" org.apache.spark.SparkException: Master must start with spark
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)"""
CALLED = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'
\tat org.apache.spark.SparkContext.<init>(SparkContext.scala:603)"""
CAUSED = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: External scheduler cannot be instantiated
\tat org.apache.spark.SparkContext.<init>(SparkContext.scala:603)
Caused by: io.fabric8.kubernetes.client.KubernetesClientException: Operation: [get] failed.
\t... 13 more
Caused by: java.net.ConnectException: Connection refused
\t... 20 more"""
HEAP = """Invalid maximum heap size: -Xmxxx
Error: Could not create the Java Virtual Machine."""
IN_PYTHON = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
Traceback (most recent call last):
  File "worker.py", line 1, in main
    import pyarrow
ModuleNotFoundError: No module named 'pyarrow'

\tat org.apache.spark.api.python.BasePythonRunner"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SUBMIT, "Master must start with spark"),
        (CALLED, "Could not parse Master URL: 'local[x]'"),
        (CAUSED, "External scheduler cannot be instantiated (Connection refused)"),
        (HEAP, "Invalid maximum heap size: -Xmxxx"),
        (IN_PYTHON, "ModuleNotFoundError: No module named 'pyarrow'"),
        ("its own words", "its own words"),
        ("", "ValueError"),
    ],
)
def test_the_reason_is_one_line_without_java_s_stack(text: str, line: str) -> None:
    assert first_line(ValueError(text)) == line


def test_an_application_that_no_master_accepts_is_reported() -> None:
    """An application that no master accepts is reported as such, unlike by Spark itself."""
    with (
        pytest.raises(
            UsageError, match=r"spark://h:1 did not accept this .* does it run Spark \d+\.\d+"
        ),
        reporting_start_errors("spark://h:1"),
    ):
        raise RuntimeError("Cannot call methods on a stopped SparkContext.\nThis stopped ...")
    with pytest.raises(UsageError, match="stays as it is"), reporting_start_errors(None):
        raise UsageError("stays as it is")


def closed_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_master_that_nothing_listens_for_is_refused_with_every_address() -> None:
    one, two = closed_port(), closed_port()
    with pytest.raises(UsageError) as caught:
        require_master(f"spark://127.0.0.1:{one},127.0.0.1:{two}")
    assert str(caught.value) == (
        "the spark engine cannot start: no master accepts a connection "
        f"(127.0.0.1:{one}: Connection refused; 127.0.0.1:{two}: Connection refused)"
    )
    with pytest.raises(UsageError, match="h:70000: "):
        require_master("spark://h:70000")


def test_one_master_of_several_that_accepts_a_connection_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        require_master(f"spark://127.0.0.1:{closed_port()},127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("master", ["yarn", "local[2]", "k8s://https://h:6443", "spark://h"])
def test_a_master_without_host_and_port_is_left_to_spark(
    master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_arguments: object) -> None:
        raise AssertionError("it asked the network")

    monkeypatch.setattr(socket, "create_connection", connect)
    require_master(master)


def test_a_full_cluster_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for executors on a full cluster is reported once."""
    monkeypatch.setattr(spark_module, "_SLOW_START_S", 0.0)
    monkeypatch.setattr(spark_module, "_POLL_S", 0.001)
    told: list[str] = []
    context = SimpleNamespace(master="local[1]")
    engine = SparkEngine(SimpleNamespace(sparkContext=context))

    def warm_up() -> None:
        while not told:
            pass

    monkeypatch.setattr(engine, "_warm_up", warm_up)
    engine._prepare(told.append)
    assert told == ["waiting for Spark to start a worker; its master lists available workers"]


class TestOnSpark:
    pytestmark = ON_SPARK

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (
                ["--master", "foo://bar"],
                "small: connecting to Spark's master foo://bar\n"
                "error: the spark engine cannot start: Master must either be yarn or start with "
                "spark, k8s, or local\n",
            ),
            (
                ["--conf", "spark.driver.memory=xx"],
                "error: the spark engine cannot start: Invalid maximum heap size: -Xmxxx\n",
            ),
        ],
    )
    def test_a_jvm_that_does_not_start_gives_a_line_and_status_2(
        self, tmp_path: Path, options: list[str], told: str
    ) -> None:
        suite = written(tmp_path, SMALL, "small.py")
        command = [sys.executable, "-m", "fakekafka", "bench", "run", suite, "--engine", "spark"]
        done = subprocess.run(
            [*command, *options],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stderr.replace(suite, "small") == told


def test_objects_that_a_worker_imports_late_are_frozen_by_its_next_task() -> None:
    """Objects imported late are frozen by the worker's next task. Spark collects garbage after each
    task, which took 13 ms for 34,000 objects.
    """
    tasks: list[list[list[int]]] = []
    try:
        for _ in range(2):
            before = gc.get_freeze_count()
            tasks.append([[number] for number in range(20_000)])
            freeze_modules()
            assert len(gc.get_objects()) < 5_000
            assert gc.get_freeze_count() > before + 19_000
        frozen = gc.get_freeze_count()
        tasks.append([[number] for number in range(100)])
        freeze_modules()
        assert gc.get_freeze_count() <= frozen  # a few are not worth it
    finally:
        gc.unfreeze()
