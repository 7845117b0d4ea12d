"""``fakekafka serve`` as a process that prints its addresses and ends on a signal."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakekafka.tests.support.ports import free_ports

SERVE = [sys.executable, "-m", "fakekafka.cli.main", "serve"]
WAIT_S = 30


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*SERVE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def ready(path: Path, process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the content of the ready file once it exists."""
    deadline = time.monotonic() + WAIT_S
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no ready file"
        time.sleep(0.02)
    facts: dict[str, Any] = json.loads(path.read_text())
    return facts


def control(facts: dict[str, Any], path: str) -> Any:
    with urllib.request.urlopen(facts["control_url"] + path, timeout=10) as answer:
        return json.loads(answer.read())


def order(facts: dict[str, Any], path: str, **body: Any) -> Any:
    request = urllib.request.Request(
        facts["control_url"] + path, json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_writes_its_ready_file_serves_and_ends_cleanly(
    number: signal.Signals, tmp_path: Path
) -> None:
    """The ready file exists while the cluster serves; a signal ends it with status 0."""
    path = tmp_path / "ready.json"
    options = ["--ready-file", str(path), "--control-port", "0", "--brokers", "5"]
    topics = ["--topic", "orders:3:2", "--topic", "audit", "--config", "log.retention.ms=5000"]
    with serving(*options, *topics) as process:
        facts = ready(path, process)
        assert facts["pid"] == process.pid
        assert control(facts, "/topics") == ["audit", "orders"]
        assert len(control(facts, "/topics/orders/2")["replicas"]) == 2
        assert len(control(facts, "/brokers")) == 5
        servers = facts["bootstrap_servers"].split(",")
        assert len(servers) == 5
        host, _, port = servers[0].partition(":")
        socket.create_connection((host, int(port)), timeout=5).close()
        process.send_signal(number)
        output, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    lines = [line[24:] for line in errors.splitlines()]
    assert lines[0].endswith(
        "serves Kafka 3.9: brokers 1, 2, 3, 4, 5; controller 1; topics audit, orders"
    )
    assert lines[-1] == "INFO    the cluster stops"
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []
    assert output.splitlines() == [
        f"control API at {facts['control_url']}",
        f"bootstrap.servers={facts['bootstrap_servers']}",
    ]
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as the system likes
        socket.create_connection((host, int(port)), timeout=5)


def test_a_client_reaches_a_topic_of_the_command_line(tmp_path: Path) -> None:
    """A client reaches a topic and brokers with the ids of the command line."""
    from confluent_kafka.admin import AdminClient

    path = tmp_path / "ready.json"
    options = ["--brokers", "2", "--first-broker-id", "0", "--topic", "orders:2:2"]
    with serving("--ready-file", str(path), *options) as process:
        facts = ready(path, process)
        assert facts["control_url"] is None
        admin = AdminClient({"bootstrap.servers": facts["bootstrap_servers"]})
        found = admin.list_topics(timeout=10)
        assert sorted(found.brokers) == [0, 1]
        partitions = found.topics["orders"].partitions
        assert [sorted(partitions[number].replicas) for number in (0, 1)] == [[0, 1], [0, 1]]
        process.terminate()
        assert process.wait(WAIT_S) == 0


def test_every_broker_has_the_rack_that_the_command_line_gives_it(tmp_path: Path) -> None:
    """An empty entry of ``--racks`` is a broker without rack."""
    from confluent_kafka.admin import AdminClient

    path = tmp_path / "ready.json"
    with serving("--ready-file", str(path), "--brokers", "3", "--racks", "a,,b") as process:
        facts = ready(path, process)
        admin = AdminClient({"bootstrap.servers": facts["bootstrap_servers"]})
        nodes = admin.describe_cluster(request_timeout=10).result().nodes
        assert {node.id: node.rack for node in nodes} == {1: "a", 2: None, 3: "b"}
        process.terminate()
        assert process.wait(WAIT_S) == 0


@pytest.mark.slow
def test_everything_stays_in_the_data_directory(tmp_path: Path) -> None:
    """The same command line works again on its data directory and finds its topics."""
    path, data = tmp_path / "ready.json", tmp_path / "data"
    options = ["--ready-file", str(path), "--brokers", "1", "--data-dir", str(data)]
    for topics in (["orders:2"], ["orders:9", "audit"], []):
        arguments = [argument for topic in topics for argument in ("--topic", topic)]
        with serving(*options, *arguments, "--control-port", "0") as process:
            facts = ready(path, process)
            expected = ["orders"] if topics == ["orders:2"] else ["audit", "orders"]
            assert control(facts, "/topics") == expected
            assert control(facts, "/topics/orders/1")["leader"] == 1
            process.terminate()
            assert process.wait(WAIT_S) == 0
    assert [found.name for found in data.rglob("orders-0")] == ["orders-0"]


def test_ports_follow_the_first(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serving("--ready-file", str(path), "--brokers", "1", "--port", str(port)) as process:
        assert ready(path, process)["bootstrap_servers"] == f"127.0.0.1:{port}"
        process.terminate()
        assert process.wait(WAIT_S) == 0


def refused(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return standard error of a command line that ends with status 2 before it serves."""
    from fakekafka.cli.main import main

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(SystemExit) as ended:
            main(["serve", *arguments])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--brokers", "0"], "a cluster needs at least one broker, not 0"),
        (["--brokers", "many"], "--brokers"),
        (["--first-broker-id", "-1"], "--first-broker-id must be 0 or more, not -1"),
        (["--first-broker-id", "999"], "broker id 1001 is above reserved.broker.max.id, 1000"),
        (["--zookeepers", "0"], "at least one ZooKeeper server"),
        (["--kafka-version", "4.0"], "kafka_version '4.0' is not emulated"),
        (["--config", "log.retention.ms"], "--config takes name=value, not 'log.retention.ms'"),
        (["--config", "no.such.name=1"], "no.such.name"),
        (["--config", "log.retention.ms=soon"], "log.retention.ms"),
        (["--topic", ":3"], "--topic takes NAME[:PARTITIONS[:REPLICAS]], not ':3'"),
        (["--topic", "a:b"], "not 'a:b'"),
        (["--topic", "a", "--topic", "a:3"], "--topic a:3: the topic 'a' is given twice"),
        (["--topic", "a:1:1:1"], "not 'a:1:1:1'"),
        (["--brokers", "1", "--topic", "a:1:2"], "INVALID_REPLICATION_FACTOR"),
        (["--ready-file", "/nonexistent/x/ready"], "there is no directory /nonexistent/x; create"),
        (["--ready-file", "/proc/ready"], "--ready-file /proc/ready cannot be written: "),
        (["--data-dir", "/proc/x/y"], "data_dir /proc/x/y cannot be used: No such file"),
        (["--data-dir", "/dev/null"], "data_dir /dev/null cannot be used: it is a file; give a"),
        (["--data-dir", "/dev/null/x"], "data_dir /dev/null/x cannot be used: Not a directory"),
        (["--brokers", "2", "--port", "65535"], "65536"),
        (["--port", "-5"], "port -5 is not between 1 and 65535"),
        (["--port", "9092,9093"], "--port 9092,9093 names 2 ports for 3 servers"),
        (["--port", "first"], "--port takes a port, or ports such as 9092,9093, not 'first'"),
        (["--zookeeper-port", "70000"], "port 70000 is not between 1 and 65535"),
        (["--listener", "A:TLS"], "the protocol of listener A must be one of PLAINTEXT, SSL"),
        (["--listener", "A:SSL:x"], "NAME[:PROTOCOL[:PORT,...]], not 'A:SSL:x'"),
        (["--user", "alice:secret"], "--user needs a --listener with SASL"),
        (["--listener", "SASL_PLAINTEXT", "--user", "alice"], "NAME:PASSWORD, not 'alice'"),
        (["--host", "0.0.0.0"], "0.0.0.0 cannot be advertised to clients"),
        (["--host", "::"], ":: cannot be advertised to clients"),
        (["--host", "203.0.113.7"], "cannot listen on 203.0.113.7"),
        (["--config-file", "/nonexistent/x"], "--config-file /nonexistent/x cannot be read"),
        (["--brokers", "1", "--control-port", "70000"], "70000"),
        (["--racks", "a,b"], "--racks a,b names 2 racks for 3 brokers"),
        (["--memory", "much"], "memory takes bytes, or a text such as 512M or 1G, not 'much'"),
        (["--memory", "1K"], "memory must be at least 1M, not '1K'"),
        (["--log", "loud"], "--log takes info, debug or off, not 'loud'"),
        (["--log-format", "xml"], "--log-format takes auto, rich, plain or json, not 'xml'"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_bad_options_end_with_status_2_and_a_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(*arguments, capsys=capsys)


def test_a_ready_file_that_is_a_directory_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ready file that is a directory is refused before the cluster starts."""
    taken = tmp_path / "taken"
    taken.mkdir()
    assert f"{taken} is a directory" in refused("--ready-file", str(taken), capsys=capsys)
    assert list(tmp_path.iterdir()) == [taken]


def test_a_port_in_use_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert port in refused("--brokers", "1", "--port", port, capsys=capsys)
        assert port in refused("--brokers", "1", "--control-port", port, capsys=capsys)


def test_options_set_listeners_ports_zookeeper_and_trace(tmp_path: Path) -> None:
    """Ports, listeners, users, the ZooKeeper port and the trace are used as given."""
    first, second, third, zookeeper = free_ports(4)
    path, trace = tmp_path / "ready.json", tmp_path / "run.fktrace"
    options = ["--brokers", "2", "--zookeeper-port", str(zookeeper), "--trace", str(trace)]
    options += ["--listener", f"INSIDE:PLAINTEXT:{first},{second}"]
    options += ["--listener", "OUTSIDE:SASL_PLAINTEXT", "--user", "alice:secret"]
    options += ["--advertised-host", "localhost", "--port", str(third)]
    with serving("--ready-file", str(path), *options) as process:
        facts = ready(path, process)
        assert facts["bootstrap_servers"] == f"localhost:{first},localhost:{second}"
        assert list(facts["listeners"]) == ["INSIDE", "OUTSIDE"]
        assert facts["zookeeper_connect"] == f"127.0.0.1:{zookeeper}"
        socket.create_connection(("127.0.0.1", zookeeper), timeout=5).close()
        host, _, port = facts["listeners"]["OUTSIDE"].split(",")[0].rpartition(":")
        socket.create_connection((host, int(port)), timeout=5).close()
        process.terminate()
        output, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, errors
    assert f"OUTSIDE: {facts['listeners']['OUTSIDE']}" in output.splitlines()
    assert trace.stat().st_size > 0


def test_events_of_the_cluster_are_logged_on_standard_error(tmp_path: Path) -> None:
    """The log on standard error has JSON lines for an auto-created topic, a refusal, a killed
    broker, the election, a fault's begin and end, and a new group.
    """
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    path = tmp_path / "ready.json"
    options = ["--control-port", "0", "--log-format", "json", "--config"]
    options.append("default.replication.factor=3")
    with serving("--ready-file", str(path), *options) as process:
        facts = ready(path, process)
        servers = {"bootstrap.servers": facts["bootstrap_servers"]}
        producer = Producer({**servers, "client.id": "till"})
        producer.produce("receipts", b"x")
        assert producer.flush(10) == 0
        admin = AdminClient({**servers, "client.id": "clerk"})
        with pytest.raises(KafkaException, match="already exists"):
            admin.create_topics([NewTopic("receipts", 1)])["receipts"].result()
        consumer = Consumer({**servers, "group.id": "audit", "auto.offset.reset": "earliest"})
        with contextlib.closing(consumer):
            consumer.subscribe(["receipts"])
            assert consumer.poll(10) is not None
            with urllib.request.urlopen(facts["control_url"] + "/events", timeout=10) as stream:
                order(facts, "/network/latency", constant_ms=3)
                assert any(line == b"event: fault\n" for line in stream)
            order(facts, "/network/latency", constant_ms=0)
            leader = control(facts, "/topics/receipts/0")["leader"]
            order(facts, f"/brokers/{leader}/kill")
            order(facts, "/wait", condition=f'leader("receipts", 0) != {leader}')
        process.terminate()
        _, errors = process.communicate(timeout=WAIT_S)
    told = [json.loads(line) for line in errors.splitlines()]
    assert all(event["level"] in ("info", "warning") and event["text"] for event in told)

    def find(kind: str, **fields: Any) -> dict[str, Any]:
        found: list[dict[str, Any]] = [
            e for e in told if e["type"] == kind and fields.items() <= e.items()
        ]
        assert found, (kind, fields, errors)
        return found[0]

    made = find("topic", change="created", topic="receipts")
    assert (made["client_id"], made["is_automatic"]) == ("till", True)
    refused = find("refused", client_id="clerk", api="CreateTopics")
    assert refused["errors"] == ["TOPIC_ALREADY_EXISTS"]
    assert find("group", group="audit", state="Stable")["members"] == 1
    find("fault", change="begins", fault="every message takes 3 ms")
    find("fault", change="ends", fault="every message takes 3 ms")
    find("broker", broker=leader, state="not_running")
    election = find("election", topic="receipts", was=leader)
    assert election["reason"] == f"broker {leader} is down"


@pytest.mark.slow
def test_the_memory_of_records_is_bounded_and_the_log_says_so(tmp_path: Path) -> None:
    """Writing ten times the bound deletes old records, and the log and control API report it."""
    from confluent_kafka import Producer

    path = tmp_path / "ready.json"
    options = ["--topic", "large:1:3", "--control-port", "0", "--memory", "4M"]
    with serving("--ready-file", str(path), *options) as process:
        facts = ready(path, process)
        producer = Producer({"bootstrap.servers": facts["bootstrap_servers"]})
        for _ in range(40):
            producer.produce("large", b"x" * 900_000)
            assert producer.flush(20) == 0
        with urllib.request.urlopen(facts["control_url"] + "/events?since=0", timeout=10) as stream:
            assert any(line == b"event: memory\n" for line in stream)
        deadline = time.monotonic() + WAIT_S
        while (memory := control(facts, "/cluster")["memory"])["deleted_bytes"] < 30_000_000:
            assert time.monotonic() < deadline, memory
            time.sleep(0.02)
        assert memory["kept_bytes"] <= memory["bytes_max"] == 4 << 20
        process.terminate()
        _, errors = process.communicate(timeout=WAIT_S)
    (line, *_) = [line for line in errors.splitlines() if "memory" in line]
    assert "WARNING memory:" in line
    assert "of 4.0 MB are in use; log start offsets: large-0" in line


@pytest.mark.slow
def test_two_servers_at_once_share_nothing(tmp_path: Path) -> None:
    """Two served clusters have ports and topics of their own."""
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    with contextlib.ExitStack() as stack:
        found = []
        for path, topic in zip(paths, ("left", "right"), strict=True):
            options = ["--brokers", "1", "--topic", topic, "--control-port", "0"]
            process = stack.enter_context(serving("--ready-file", str(path), *options))
            found.append((process, ready(path, process)))
        assert [control(facts, "/topics") for _, facts in found] == [["left"], ["right"]]
        assert found[0][1]["bootstrap_servers"] != found[1][1]["bootstrap_servers"]
        for process, _ in found:
            process.terminate()
        assert [process.wait(WAIT_S) for process, _ in found] == [0, 0]


def test_a_server_ends_when_its_parent_process_was_killed(tmp_path: Path) -> None:
    """With ``--exit-with-parent`` the server ends even after its parent died of ``kill -9``."""
    path = tmp_path / "ready.json"
    command = [*SERVE, "--ready-file", str(path), "--brokers", "1", "--exit-with-parent"]
    script = f"import subprocess; subprocess.run({command!r})"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.DEVNULL, text=True
    ) as parent:
        try:
            facts = ready(path, parent)
        finally:
            parent.kill()
    host, _, port = facts["bootstrap_servers"].partition(":")
    deadline = time.monotonic() + WAIT_S
    while path.exists():
        assert time.monotonic() < deadline, "it still serves"
        time.sleep(0.02)
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as the system likes
        socket.create_connection((host, int(port)), timeout=5)


def test_a_configuration_file_counts_and_options_count_more(tmp_path: Path) -> None:
    """Options override a configuration file, and its ineffective entries cause warnings."""
    path, file = tmp_path / "ready.json", tmp_path / "server.properties"
    file.write_text("num.partitions=4\nnum.io.threads=8\nmin.insync.replicas=2\n")
    options = ["--config-file", str(file), "--config", "num.partitions=5", "--brokers", "1"]
    with serving("--ready-file", str(path), "--log", "off", *options) as process:
        facts = ready(path, process)
        assert facts["zookeeper_connect"] is None
        process.terminate()
        _, errors = process.communicate(timeout=WAIT_S)
    assert errors == f"warning: {file}: num.io.threads has no effect here\n"
