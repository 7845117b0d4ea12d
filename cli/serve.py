"""``fakekafka serve``: a cluster for clients in any language."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import typer

app = typer.Typer(add_completion=False)
_PORT_MAX = 65535


def _topic(text: str) -> tuple[str, dict[str, int]]:
    """``orders:3:2`` is a topic of three partitions and two replicas."""
    from ..protocol.errors import UsageError

    name, *counts = text.split(":")
    if not name or len(counts) > 2 or not all(count.isdigit() for count in counts):
        raise UsageError(f"--topic takes NAME[:PARTITIONS[:REPLICAS]], not {text!r}")
    shape = dict(zip(("partitions", "replication_factor"), map(int, counts), strict=False))
    return name, shape


def _topics(texts: list[str]) -> dict[str, dict[str, int]]:
    from ..protocol.errors import UsageError

    topics: dict[str, dict[str, int]] = {}
    for text in texts:
        name, shape = _topic(text)
        if name in topics:
            raise UsageError(f"--topic {text}: the topic {name!r} is given twice")
        topics[name] = shape
    return topics


def _setting(text: str) -> tuple[str, str]:
    from ..protocol.errors import UsageError

    name, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"--config takes name=value, not {text!r}")
    return name, value


def _ports(first: int | None, brokers: int) -> list[int] | None:
    from ..protocol.errors import UsageError

    if not first:
        return None
    ports = [first + number for number in range(brokers)]
    for port in ports:
        if not 0 < port <= _PORT_MAX:
            raise UsageError(f"port {port} is not between 1 and {_PORT_MAX}")
    return ports


def _ids(first: int, brokers: int) -> int | list[int]:
    from ..protocol.errors import UsageError

    if first < 0:
        raise UsageError(f"--first-broker-id must be 0 or more, not {first}")
    return list(range(first, first + brokers)) if brokers > 0 else brokers


def _write_ready(path: Path, facts: dict[str, Any]) -> None:
    """Write the file in one step: whoever sees the file can read all of it."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_text(json.dumps(facts) + "\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@app.command()
def command(
    brokers: int = typer.Option(3, help="number of brokers"),
    first_broker_id: int = typer.Option(1, help="id of the first broker; the others follow"),
    port: int | None = typer.Option(None, help="port of the first broker; the others follow"),
    topic: list[str] = typer.Option([], help="NAME[:PARTITIONS[:REPLICAS]], repeatable"),
    config: list[str] = typer.Option([], help="name=value, Kafka's names, repeatable"),
    kafka_version: str = typer.Option("3.9", help="0.10, 1.1, 2.8 or 3.9"),
    zookeepers: int = typer.Option(1, help="number of ZooKeeper servers"),
    data_dir: Path | None = typer.Option(
        None, help="directory that keeps logs and ZooKeeper's state"
    ),
    ready_file: Path | None = typer.Option(None, help="JSON written once the cluster serves"),
    control_port: int | None = typer.Option(None, help="serve the control API; 0 picks a port"),
) -> None:
    """Serve a cluster on 127.0.0.1 until interrupted."""
    from ..protocol.errors import FakeKafkaError, UsageError
    from ..testing.cluster import Cluster
    from ..testing.control_api.server import ControlServer

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    with contextlib.ExitStack() as stack:
        try:
            if ready_file is not None and ready_file.is_dir():
                raise UsageError(f"--ready-file {ready_file} is a directory; name a file in it")
            cluster = stack.enter_context(
                Cluster(
                    _ids(first_broker_id, brokers),
                    kafka_version=kafka_version,
                    config=dict(map(_setting, config)),
                    topics=_topics(topic),
                    zookeepers=zookeepers,
                    ports=_ports(port, brokers),
                    data_dir=data_dir,
                )
            )
            facts: dict[str, Any] = {
                "bootstrap_servers": cluster.bootstrap_servers,
                "control_url": None,
                "pid": os.getpid(),
            }
            if control_port is not None:
                server = ControlServer(cluster, control_port)
                stack.callback(server.close)
                facts["control_url"] = server.url
            if ready_file is not None:
                _write_ready(ready_file, facts)
                stack.callback(ready_file.unlink, missing_ok=True)
        except (FakeKafkaError, OSError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None
        if facts["control_url"]:
            print(f"control API at {facts['control_url']}", flush=True)
        # Whole lines, whatever the width of the terminal: scripts read them.
        print(f"bootstrap.servers={facts['bootstrap_servers']}", flush=True)
        stopping.wait()
