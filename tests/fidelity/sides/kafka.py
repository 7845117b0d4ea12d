"""Brokers of Apache Kafka and their ZooKeeper, a process of Java each."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fakekafka.tests.fidelity.protocol.client import Closed
from fakekafka.tests.fidelity.sides import releases
from fakekafka.tests.fidelity.sides.real_time import RealTimeSide
from fakekafka.tests.fidelity.sides.session_proxy import SessionProxy
from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.support.ports import free_ports

KEEP_VARIABLE = "FAKEKAFKA_FIDELITY_KEEP"
"""Environment variable that, if set, keeps the folders with the brokers' logs."""

_START_S = 120.0
_STOP_S = 60.0
_ZOOKEEPER_OF = "3.9"
"""The release whose ZooKeeper server is used with every release."""

FAST_START = ("-Xms48m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options of Java with which brokers start quickly and use little memory."""
_OLD_JAVA = [
    "-Djava.specification.version=1.8",
    "-Djava.version=1.8.0_300",
    *("--add-opens", "java.base/java.nio=ALL-UNNAMED"),
    *("--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"),
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
    *("--add-exports", "java.base/sun.nio.ch=ALL-UNNAMED"),
]
_LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.org.apache.zookeeper=WARN
log4j.logger.org.apache.kafka=WARN
"""
_ZOOKEEPER = """tickTime=500
dataDir={folder}/zookeeper
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
minSessionTimeout=1000
maxSessionTimeout=60000
4lw.commands.whitelist=*
"""


class BrokerFailed(Exception):
    """A broker ended, or did not start."""


class KafkaSide(RealTimeSide):
    """A cluster of Apache Kafka's own brokers."""

    name = "kafka"

    def __init__(
        self,
        kafka_version: str,
        shape: ClusterShape,
        own: Mapping[str, str] | None = None,
        java_options: Sequence[str] = FAST_START,
    ) -> None:
        """Start the cluster; ``own`` is configuration that only Kafka's brokers get."""
        super().__init__(kafka_version, shape)
        self._own = own or {}
        self._java_options = java_options
        releases.require("java", "Java 17, to run Kafka's brokers")
        self.release = releases.release(kafka_version)
        self._jars = releases.jars(kafka_version)
        self.is_kept = bool(os.environ.get(KEEP_VARIABLE))
        self.folder = Path(tempfile.mkdtemp(prefix=f"kafka-{kafka_version}-"))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        zookeeper_port, *ports = free_ports(shape.brokers + 1)
        self.zookeeper_connect = f"127.0.0.1:{zookeeper_port}"
        self._proxies = {broker: SessionProxy(zookeeper_port) for broker in self.broker_ids}
        self.addresses = {
            broker: ("127.0.0.1", port) for broker, port in zip(self.broker_ids, ports, strict=True)
        }
        (self.folder / "log4j.properties").write_text(_LOG4J)
        try:
            self._zookeeper_process = self._run_zookeeper(zookeeper_port)
            self._classes = releases.home() / f"classes-{self.release.version}.jsa"
            if not self._has_classes():
                self._store_classes()
            for broker in self.broker_ids:
                self.begin_start(broker)
            for broker in self.broker_ids:
                outcome = self.wait_started(broker)
                if outcome != "running":
                    raise BrokerFailed(f"broker {broker} {outcome}:\n{self.last_words(broker)}")
        except BaseException:
            self.close()
            raise

    def _run_zookeeper(self, port: int) -> subprocess.Popen[bytes]:
        config = self.folder / "zookeeper.properties"
        config.write_text(_ZOOKEEPER.format(folder=self.folder, port=port))
        arguments = self._java(releases.jars(_ZOOKEEPER_OF), FAST_START)
        arguments += ["-Dzookeeper.admin.enableServer=false"]
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        process = self._spawn("zookeeper", [*arguments, main, str(config)])
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return process
            time.sleep(0.05)
        raise releases.CannotJudge(f"ZooKeeper did not start: {self.folder}")

    @property
    def all_process_ids(self) -> list[int]:
        """Process ids of ZooKeeper and all brokers."""
        return [one.pid for one in (self._zookeeper_process, *self._processes.values())]

    def _has_classes(self) -> bool:
        """Return True if the archive of classes matches the jars; Java ignores it otherwise."""
        try:
            return self._classes.stat().st_mtime > self._jars.stat().st_mtime
        except FileNotFoundError:
            return False

    def _store_classes(self) -> None:
        """Run a broker once to archive its loaded classes, so that other brokers start faster."""
        self._classes.unlink(missing_ok=True)
        self.begin_start(1, f"-XX:ArchiveClassesAtExit={self._classes}")
        self.wait_started(1)
        self.stop(1)
        self.wait(lambda: not self.children("/brokers/ids"), _STOP_S)

    def _java(self, jars: Path, options: Sequence[str]) -> list[str]:
        start = ["nice", "-n", "2", "java", "-Xshare:auto", *options]
        if self.release.needs_old_java and jars == self._jars:
            start += _OLD_JAVA
        log4j = f"-Dlog4j.configuration=file:{self.folder}/log4j.properties"
        return [*start, log4j, "-cp", f"{jars}/*"]

    def _spawn(self, name: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _properties(self, broker: int) -> Path:
        host, port = self.addresses[broker]
        config = {
            "broker.id": str(broker),
            "listeners": f"PLAINTEXT://{host}:{port}",
            "zookeeper.connect": f"127.0.0.1:{self._proxies[broker].port}",
            **self.shape.configuration(),
            **self._own,
        }
        names = config.get("log.dirs", "logs").split(",")
        config["log.dirs"] = ",".join(str(self.log_folder(broker, name)) for name in names)
        if self.shape.racks:
            config["broker.rack"] = self.shape.racks[broker - 1]
        path = self.folder / f"broker-{broker}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
        return path

    def log_folder(self, broker: int, name: str) -> Path:
        return self.folder / f"broker-{broker}-{name}"

    def begin_start(self, broker: int, option: str | None = None) -> None:
        self.disturbed.add(broker)
        archive = option or f"-XX:SharedArchiveFile={self._classes}"
        arguments = [*self._java(self._jars, self._java_options), archive]
        arguments += ["kafka.Kafka", str(self._properties(broker))]
        self._processes[broker] = self._spawn(f"broker-{broker}", arguments)
        self.up.add(broker)

    def wait_started(self, broker: int) -> str:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            if self._processes[broker].poll() is not None:
                self.up.discard(broker)
                return "ended"
            if self._serves(broker):
                return "running"
            time.sleep(0.05)
        return "does not serve"

    def _serves(self, broker: int) -> bool:
        try:
            client = self.connect(broker)
        except Closed:
            return False
        try:
            told = client.ask("Metadata", 1, {"topics": []}, timeout_s=3)
        except Closed:
            return False
        finally:
            client.close()
        return any(one["nodeId"] == broker for one in told["brokers"])

    def last_words(self, broker: int) -> str:
        """Return the end of a broker's log."""
        log = (self.folder / f"broker-{broker}.log").read_text(errors="replace")
        return "\n".join(log.splitlines()[-12:])

    def start(self, broker: int) -> str:
        self.begin_start(broker)
        return self.wait_started(broker)

    def start_many(self, brokers: Sequence[int]) -> list[str]:
        for broker in brokers:
            self.begin_start(broker)
        return [self.wait_started(broker) for broker in brokers]

    def end_session(self, broker: int) -> None:
        self._proxies[broker].end_session()
        super().end_session(broker)

    def kill(self, broker: int) -> None:
        self._processes[broker].kill()
        self._processes[broker].wait()
        self.up.discard(broker)
        self.frozen.discard(broker)

    def stop(self, broker: int) -> None:
        self._processes[broker].terminate()
        self._processes[broker].wait(_STOP_S)
        self.up.discard(broker)

    def freeze(self, broker: int) -> None:
        self._processes[broker].send_signal(signal.SIGSTOP)
        self.frozen.add(broker)

    def thaw(self, broker: int) -> None:
        self._processes[broker].send_signal(signal.SIGCONT)
        self.frozen.discard(broker)
        self.disturbed.add(broker)

    def fail_directory(self, broker: int, partition: str) -> None:
        for directory in self.folder.glob(f"broker-{broker}-*/{partition}"):
            whole = directory.parent
            whole.rename(whole.with_name(f"kept-{whole.name}"))
            whole.write_bytes(b"a file is in the way")

    def repair_directories(self, broker: int) -> None:
        for kept in self.folder.glob(f"kept-broker-{broker}-*"):
            original = kept.with_name(kept.name.removeprefix("kept-"))
            original.unlink()
            kept.rename(original)

    def close(self) -> None:
        super().close()
        processes = [*self._processes.values()]
        if hasattr(self, "_zookeeper_process"):
            processes.append(self._zookeeper_process)
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for proxy in self._proxies.values():
            proxy.close()
        if not self.is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)
