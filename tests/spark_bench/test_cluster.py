"""A standalone Spark cluster whose processes do not have this package installed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
import zipimport
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pyarrow
import pytest
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.engines.engine import java_problem
from fakekafka.spark_bench.engines.spark_worker import package_zip
from fakekafka.spark_bench.planning.carry_out import carry_out
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.spark_bench.planning.schedule import ProgressReport
from fakekafka.spark_bench.tables.reader import BatchTables
from fakekafka.tests.spark_bench.suites_for_tests import written
from fakekafka.tests.support.ports import free_port
from fakekafka.tests.support.terminal import kill, press_ctrl_c, run_at_terminal

SUITE = '''
"""A small cluster; some runs are longer than others"""

def cost(records):
    return 4.0  # so that the first jobs are short, and a driver can be ended between two

def scenario(run, records: int = 20):
    simulation = run.simulation(1)
    simulation.create_topic("t")
    load = run.load("t", rate_per_s=100)
    simulation.run_until(lambda: len(load.acknowledged) >= records)
    run.settle()
'''
MATRIX = {"records": [20, 200, 600]}
RUNS = 8
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the cluster's JVMs, which do not live long enough for a second compiler."""
WITHOUT = ("fakekafka", "__editable__")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.serial,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(java_problem() is not None, reason=f"Spark cannot start: {java_problem()}"),
]


def python_without_the_package(folder: Path) -> Path:
    """Return an interpreter with all installed packages except this one."""
    site = Path(pyarrow.__file__).parents[1]
    packages = folder / "packages"
    packages.mkdir()
    for path in site.iterdir():
        if not path.name.startswith(WITHOUT) and path.suffix not in (".pth", ".egg-link"):
            (packages / path.name).symlink_to(path)
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    script = folder / "python"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {base} -S "$@"\n', encoding="utf-8"
    )
    script.chmod(0o755)
    missing = [str(script), "-c", "import fakekafka"]
    assert subprocess.run(missing, capture_output=True, check=False).returncode == 1
    return script


class SparkCluster:
    """A master and two workers of one core each, as processes."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.folder = folder
        self.home = Path(pyspark.__file__).parent
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        where = ["--host", "127.0.0.1"]
        self._run("master.Master", *where, "--port", str(self.port), "--webui-port", "0")
        self._await("master.Master", r"Starting Spark master")
        for number in (1, 2):
            work = self.folder / f"work-{number}"
            work.mkdir()
            self._run("worker.Worker", *where, "--cores", "1", "--memory", "1g", "--webui-port",
                      "0", "--work-dir", str(work), self.url)  # fmt: skip
        self._await("worker.Worker", r"Successfully registered with master")

    def _run(self, name: str, *arguments: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        environment = {**os.environ, "SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1",
                       "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA}  # fmt: skip
        command = [str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}",
                   *arguments]  # fmt: skip
        self.processes.append(
            subprocess.Popen(command, stdout=log, stderr=log, env=environment,
                             start_new_session=True)
        )  # fmt: skip
        log.close()

    def _await(self, name: str, text: str) -> None:
        log = self.folder / f"{name}.log"
        until = time.monotonic() + 120
        while not re.search(text, log.read_text(errors="replace")):
            assert time.monotonic() < until, log.read_text(errors="replace")[-3000:]
            threading.Event().wait(0.2)

    def kill_an_executor(self) -> None:
        """Kill a worker's executor, which the worker replaces."""
        own = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes()
                is_mine = (process / "cwd").readlink().is_relative_to(self.folder)
                if is_mine and b"CoarseGrainedExecutorBackend" in words:
                    own.append(int(process.name))
        logs = "\n".join(path.read_text()[-1500:] for path in self.folder.glob("*.log"))
        assert own, logs
        os.kill(own[0], signal.SIGKILL)

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    found = SparkCluster(tmp_path)
    try:
        found.start()
        yield found
    finally:
        found.stop()


def test_the_package_ships_itself_as_a_zip_without_tests(tmp_path: Path) -> None:
    """The package's zip has all files that a simulation reads, and less than 6 MB."""
    names = zipfile.ZipFile(io.BytesIO(package_zip())).namelist()
    assert "fakekafka/testing/simulation.py" in names
    assert "fakekafka/spark_bench/suites/failover.py" in names
    assert any(name.endswith(".tsv") for name in names)
    assert not [name for name in names if name.startswith(("fakekafka/tests", "fakekafka/."))]
    assert len(package_zip()) < 6_000_000


def test_only_folders_of_the_package_are_walked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zip is built without walking through folders that are not of the package."""
    shipped = ["__init__.py", "wire/__init__.py", "wire/kafka/apis.py", "wire/tables/a.tsv"]
    others = [".venv/lib/python/a.py", ".git/b.py", "env/lib/c.py", "out/d.py", "docs/e.py",
              "wire/.hidden/f.py", "wire/__pycache__/g.py", "notes.txt"]  # fmt: skip
    for name in shipped + others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    seen: list[str] = []
    scan = os.scandir

    def scandir(path: str | Path) -> object:
        seen.append(str(Path(path).relative_to(tmp_path)))
        return scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", scandir)
        content = package_zip(tmp_path)
    names = zipfile.ZipFile(io.BytesIO(content)).namelist()
    sources = [name for name in names if not name.endswith(".pyc")]
    assert sorted(sources) == sorted(f"fakekafka/{name}" for name in shipped)
    assert sorted(seen) == [".", "wire", "wire/kafka", "wire/tables"]


def test_a_worker_with_another_python_compiles_the_source(tmp_path: Path) -> None:
    """Bytecode of another version of Python in the zip is ignored."""
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(io.BytesIO(package_zip())) as shipped, zipfile.ZipFile(other, "w") as out:
        for name in ("fakekafka/version.py", "fakekafka/version.pyc"):
            content = shipped.read(name)
            is_bytecode = content.startswith(importlib.util.MAGIC_NUMBER)
            assert is_bytecode is name.endswith(".pyc")
            out.writestr(name, b"\0\0\r\n" + content[4:] if is_bytecode else content)
    importer = zipimport.zipimporter(f"{other}/fakekafka")
    assert importer.get_filename("version") == f"{other}/fakekafka/version.py"
    assert isinstance(importer.get_code("version"), CodeType)


def test_code_from_the_zip_is_not_taken_for_code_of_the_user(tmp_path: Path) -> None:
    """The zip's bytecode names files of the driver, and still counts as the package's own code."""
    (tmp_path / "fakekafka.zip").write_bytes(package_zip())
    code = (
        "from pathlib import Path\n"
        "import fakekafka\n"
        "from fakekafka.exploration.programs import explored_test\n"
        "from fakekafka.programs import calls, places\n"
        "try:\n"
        "    fakekafka.Simulation(0)\n"
        "except fakekafka.UsageError as error:\n"
        "    frame = error.__traceback__.tb_next.tb_frame\n"
        "path = Path(frame.f_code.co_filename)\n"
        "print(path.name, places.is_own_code(frame), explored_test._is_user_code(path))\n"
        "print(calls.ReadyCall.run.__code__.co_filename == places._CALLS)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "fakekafka.zip")}
    done = subprocess.run(
        [str(python_without_the_package(tmp_path)), "-c", code], capture_output=True, text=True,
        env=environment, check=False,
    )  # fmt: skip
    assert done.stdout == "simulation.py False False\nTrue\n", done.stderr


def test_the_data_source_is_imported_from_a_zip_with_a_relative_path(tmp_path: Path) -> None:
    """The data source can be imported from ``./fakekafka.zip``, the path in Spark's workers."""
    (tmp_path / "fakekafka.zip").write_bytes(package_zip())
    python = python_without_the_package(tmp_path)
    code = (
        "import sys; sys.path.insert(0, './fakekafka.zip')\n"
        "import fakekafka.spark_bench.data_source as found; print(found.__file__)"
    )
    done = subprocess.run(
        [str(python), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert "fakekafka.zip/fakekafka/spark_bench" in done.stdout, done.stderr


def test_a_run_from_the_zip_is_the_run_from_the_files(tmp_path: Path) -> None:
    """A run from the zip finds all its data files and has the fingerprint of a run from source."""
    (tmp_path / "fakekafka.zip").write_bytes(package_zip())
    code = (
        "import fakekafka\n"
        "from fakekafka.spark_bench.planning.carry_out import carry_out\n"
        "from fakekafka.spark_bench.planning.plan import make_plan\n"
        "plan = make_plan('old-vs-new', 1, matrix={})\n"
        "row = carry_out(plan, plan.specs[0]).row\n"
        "print(fakekafka.__file__, row['status'], row['problems'], row['fingerprint'])\n"
    )
    python = python_without_the_package(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "fakekafka.zip")}
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True,
                          env=environment, check=False)  # fmt: skip
    plan = make_plan("old-vs-new", 1, matrix={})
    fingerprint = carry_out(plan, plan.specs[0]).row["fingerprint"]
    where = tmp_path / "fakekafka.zip" / "fakekafka" / "__init__.pyc"  # nothing is compiled anew
    assert done.stdout.strip() == f"{where} ok  {fingerprint}", done.stderr


def test_a_cluster_without_the_package_gives_the_same_batch_and_survives_a_kill(
    cluster: SparkCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch on two executors, one of which is killed, has each run once and the same tables."""
    suite = written(tmp_path, SUITE, "long.py")
    monkeypatch.setenv("PYSPARK_PYTHON", str(python_without_the_package(tmp_path)))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    run_suite(suite, runs=RUNS, engine="serial", out=tmp_path / "serial", matrix=MATRIX)
    killed: list[int] = []

    def kill(report: ProgressReport) -> None:
        if not killed and report.done < report.total:
            killed.append(report.done)
            cluster.kill_an_executor()

    conf = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.extraJavaOptions": QUICK_JAVA}  # fmt: skip
    batch = run_suite(suite, runs=RUNS, engine="spark", out=tmp_path / "spark", matrix=MATRIX,
                      master=cluster.url, conf=conf, progress=kill)  # fmt: skip
    assert (batch.runs, batch.broken) == (3 * RUNS, [])
    assert killed
    mine, theirs = BatchTables(tmp_path / "spark"), BatchTables(tmp_path / "serial")
    for name in ("runs", "hist", "series"):
        assert mine.table(name).equals(theirs.table(name)), name
    workers: Any = set(mine.cost()["worker"])
    assert len(workers) >= 2
    end_and_resume(suite, cluster, conf, tmp_path)


def end_and_resume(suite: str, cluster: SparkCluster, conf: dict[str, str], folder: Path) -> None:
    """Interrupt one driver, kill the next, and complete the batch with local processes."""
    out = folder / "resumed"
    matrix = ",".join(map(str, MATRIX["records"]))
    program = [sys.executable, "-m", "fakekafka.cli.main", "bench", "run", suite, "--runs",
               str(RUNS), "--matrix", f"records={matrix}", "--master", cluster.url, "--out",
               str(out)]  # fmt: skip
    for name, value in conf.items():
        program += ["--conf", f"{name}={value}"]
    sees = f" of {3 * RUNS} runs".encode()
    status, shown = run_at_terminal(program, sees, press_ctrl_c)
    assert status == 130, shown
    status, shown = run_at_terminal([*program, "--resume"], sees, kill)
    assert status == -9, shown
    assert 0 < len(BatchTables(out).runs()) < 3 * RUNS
    batch = run_suite(suite, runs=RUNS, engine="process", out=out, matrix=MATRIX, resume=True,
                      workers=2)  # fmt: skip
    assert (batch.runs, batch.broken) == (3 * RUNS, [])
    mine, theirs = BatchTables(out), BatchTables(folder / "serial")
    for name in ("runs", "hist", "series"):
        assert mine.table(name).equals(theirs.table(name)), name
