"""``fakekafka serve``: a cluster for clients in any language."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import typer

from ..protocol.errors import FakeKafkaError, UsageError
from ..version import __version__

app: typer.Typer = typer.Typer(add_completion=False)
_PORT_MAX = 65535
_PARENT_CHECK_S = 0.2


def _topic(text: str) -> tuple[str, dict[str, int]]:
    """Parse a topic: ``orders:3:2`` has three partitions and two replicas."""
    name, *counts = text.split(":")
    if not name or len(counts) > 2 or not all(count.isdigit() for count in counts):
        raise UsageError(f"--topic takes NAME[:PARTITIONS[:REPLICAS]], not {text!r}")
    shape = dict(zip(("partitions", "replication_factor"), map(int, counts), strict=False))
    return name, shape


def _topics(texts: list[str]) -> dict[str, dict[str, int]]:
    topics: dict[str, dict[str, int]] = {}
    for text in texts:
        name, shape = _topic(text)
        if name in topics:
            raise UsageError(f"--topic {text}: the topic {name!r} is given twice")
        topics[name] = shape
    return topics


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise UsageError(f"--config takes name=value, not {text!r}")
    return name, value


def _config(file: Path | None, settings: list[str], kafka_version: str) -> dict[str, str]:
    """Return the settings in the file, overridden by those in options."""
    from .properties_file import read_config_file

    config: dict[str, str] = {}
    if file is not None:
        config, remarks = read_config_file(file, kafka_version)
        for remark in remarks:
            typer.echo(f"warning: {remark}", err=True)
    return {**config, **dict(map(_setting, settings))}


def _ports(option: str, text: str | None, count: int) -> list[int] | None:
    """Return the ports of all servers: those listed, or the only one given and its successors."""
    if not text:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.removeprefix("-").isdigit() for word in words):
        raise UsageError(f"{option} takes a port, or ports such as 9092,9093, not {text!r}")
    ports = [int(word) for word in words]
    if len(ports) == 1 and ports[0]:
        ports = [ports[0] + number for number in range(count)]
    elif len(ports) == 1:
        ports *= count
    for port in ports:
        if not 0 <= port <= _PORT_MAX:
            raise UsageError(f"{option}: port {port} is not between 1 and {_PORT_MAX}")
    if len(ports) != count:
        raise UsageError(f"{option} {text} names {len(ports)} ports for {count} servers")
    return ports


def _ids(first: int, brokers: int) -> int | list[int]:
    if first < 0:
        raise UsageError(f"--first-broker-id must be 0 or more, not {first}")
    return list(range(first, first + brokers)) if brokers > 0 else brokers


def _racks(text: str | None, count: int) -> list[str | None] | None:
    """Parse the racks of all brokers; in ``a,b,,a`` the third broker has none."""
    if text is None:
        return None
    racks = [word.strip() or None for word in text.split(",")]
    if len(racks) != count:
        raise UsageError(
            f"--racks {text} names {len(racks)} racks for {count} brokers; write one for each, as "
            "in a,b,a, and nothing between two commas for a broker without a rack"
        )
    return racks


def _security(listeners: list[str], users: list[str], brokers: int) -> Any:
    """Return the listeners and users; None for a single listener without security."""
    from ..protocol.security.configuration import ListenerSpec, SecurityConfig

    if not listeners:
        if users:
            raise UsageError("--user needs a --listener with SASL, such as CLIENTS:SASL_PLAINTEXT")
        return None
    specs = []
    for text in listeners:
        spec = ListenerSpec.parse(text)
        listed = ",".join(map(str, spec.ports))
        ports = _ports(f"--listener {text}", listed, brokers) or ()
        specs.append(ListenerSpec(spec.name, spec.protocol, tuple(ports)))
    passwords = {}
    for text in users:
        name, separator, password = text.partition(":")
        if not (name and separator and password):
            raise UsageError(f"--user takes NAME:PASSWORD, not {text!r}")
        passwords[name] = password
    return SecurityConfig(tuple(specs), passwords)


def _warn_of_open_doors(host: str, security: Any) -> None:
    """Print a warning if anyone who can reach the host can use the cluster."""
    protocols = ["PLAINTEXT"]
    if security is not None:
        protocols = [listener.protocol for listener in security.listeners]
    if "PLAINTEXT" not in protocols or _is_loopback(host):
        return
    typer.echo(
        f"warning: anybody who can reach {host} may use this cluster: a listener is PLAINTEXT",
        err=True,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _write_ready(path: Path, facts: dict[str, Any]) -> None:
    """Write the file atomically, so that a reader never sees a part of it."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        try:
            temporary.write_text(json.dumps(facts) + "\n")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"--ready-file {path} cannot be written: {error.strerror}") from None


def _check_ready_file(path: Path) -> None:
    """Raise ``UsageError`` for an impossible path, before anything is started."""
    if path.is_dir():
        raise UsageError(f"--ready-file {path} is a directory; name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"--ready-file {path}: there is no directory {path.parent}; create it")


def _facts(cluster: Any, security: Any, with_zookeeper: bool) -> dict[str, Any]:
    """Return the facts for the starter of the process: addresses, paths, the process id."""
    from ..protocol.security.configuration import SecurityConfig

    listeners = (security or SecurityConfig()).listeners
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "listeners": {spec.name: cluster.bootstrap_servers_of(spec.name) for spec in listeners},
        "zookeeper_connect": cluster.zookeeper_connect if with_zookeeper else None,
        "ca_path": (
            str(cluster.security.ca_path) if any(spec.uses_tls for spec in listeners) else None
        ),
        "control_url": None,
        "pid": os.getpid(),
    }


def _wait(stopping: threading.Event, with_parent: bool) -> None:
    """Wait until a signal arrives, or the process that started this one is gone."""
    if not with_parent:
        stopping.wait()
        return
    parent = os.getppid()
    while not stopping.wait(_PARENT_CHECK_S) and os.getppid() == parent:
        pass


@app.command()
def command(
    brokers: int = typer.Option(3, help="number of brokers"),
    first_broker_id: int = typer.Option(1, help="id of the first broker; the others follow"),
    racks: str | None = typer.Option(None, help="rack of each broker: a,b,a"),
    host: str = typer.Option("127.0.0.1", help="address to listen on"),
    advertised_host: str | None = typer.Option(None, help="host advertised to clients"),
    port: str | None = typer.Option(None, help="port of the first broker, or of each: 9092,9094"),
    listener: list[str] = typer.Option([], help="NAME:PROTOCOL[:PORTS], repeatable"),
    user: list[str] = typer.Option([], help="NAME:PASSWORD of a SASL user, repeatable"),
    topic: list[str] = typer.Option([], help="NAME[:PARTITIONS[:REPLICAS]], repeatable"),
    config: list[str] = typer.Option([], help="name=value, Kafka's names, repeatable"),
    config_file: Path | None = typer.Option(None, help="configuration as in server.properties"),
    kafka_version: str = typer.Option("3.9", help="0.10.1 to 3.9, such as 2.4"),
    zookeepers: int = typer.Option(1, help="number of ZooKeeper servers"),
    zookeeper_port: str | None = typer.Option(None, help="serve ZooKeeper clients; 0 picks a port"),
    data_dir: Path | None = typer.Option(None, help="directory for logs and ZooKeeper's state"),
    trace: Path | None = typer.Option(None, help="record the run to this file"),
    ready_file: Path | None = typer.Option(None, help="JSON written once the cluster serves"),
    control_port: int | None = typer.Option(None, help="serve the control API; 0 picks a port"),
    control_host: str = typer.Option("127.0.0.1", help="address of the control API"),
    memory: str | None = typer.Option(
        None, help="memory limit for records, as 1G; beyond it the oldest are deleted"
    ),
    log: str = typer.Option("info", help="level of the log on standard error: info, debug or off"),
    log_format: str = typer.Option("auto", help="rich, plain or json; auto: rich on a terminal"),
    exit_with_parent: bool = typer.Option(
        False, "--exit-with-parent", help="exit when the process that started this one has ended"
    ),
) -> None:
    """Serve a cluster until interrupted, on 127.0.0.1 by default."""
    from ..control.watching.events import EventFeed
    from ..testing.cluster import Cluster
    from .server_log import FORMATS, LEVELS, check_choice, open_log

    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    with contextlib.ExitStack() as stack:
        try:
            if ready_file is not None:
                _check_ready_file(ready_file)
            check_choice("--log", log, LEVELS)
            check_choice("--log-format", log_format, FORMATS)
            security = _security(listener, user, brokers)
            cluster = stack.enter_context(
                Cluster(
                    _ids(first_broker_id, brokers),
                    kafka_version=kafka_version,
                    config=_config(config_file, config, kafka_version),
                    topics=_topics(topic),
                    racks=_racks(racks, brokers),
                    zookeepers=zookeepers,
                    host=host,
                    advertised_host=advertised_host,
                    ports=_ports("--port", port, brokers),
                    zookeeper_ports=_ports("--zookeeper-port", zookeeper_port, zookeepers),
                    data_dir=data_dir,
                    memory=memory,
                    trace=trace,
                    security=security,
                )
            )
            _warn_of_open_doors(host, security)
            facts = _facts(cluster, security, with_zookeeper=zookeeper_port is not None)
            feed = EventFeed(cluster, with_details=log == "debug") if log != "off" else None
            server_log = None
            if feed is not None:
                feed.start()
                stack.callback(feed.close)
                server_log = open_log(feed, log, log_format)
                stack.callback(server_log.close)
                server_log.tell(_beginning(cluster))
            if control_port is not None:
                from ..control.server import ControlServer

                server = ControlServer(cluster, control_port, control_host, feed)
                stack.callback(server.close)
                facts["control_url"] = server.url
            if ready_file is not None:
                _write_ready(ready_file, facts)
                stack.callback(ready_file.unlink, missing_ok=True)
            if feed is not None and server_log is not None:
                # These run first: once the ready file is gone, the brokers are about to stop.
                stack.callback(server_log.close)
                stack.callback(server_log.tell, "the cluster stops")
                stack.callback(feed.close)
        except (FakeKafkaError, OSError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from None
        _print_facts(facts)
        _wait(stopping, exit_with_parent)


def _beginning(cluster: Any) -> str:
    """Return the first line of the log."""
    topics = cluster.topics()
    told = [
        f"brokers {', '.join(map(str, cluster.broker_ids))}",
        f"controller {cluster.running.require_controller().broker_id}",
        f"topics {', '.join(topics)}" if topics else "no topics",
    ]
    return f"fakekafka {__version__} serves Kafka {cluster.kafka_version}: {'; '.join(told)}"


def _print_facts(facts: dict[str, Any]) -> None:
    """Print the facts in unwrapped lines, which scripts can read."""
    if facts["control_url"]:
        print(f"control API at {facts['control_url']}", flush=True)
    if facts["zookeeper_connect"]:
        print(f"zookeeper.connect={facts['zookeeper_connect']}", flush=True)
    if facts["ca_path"]:
        print(f"CA certificate at {facts['ca_path']}", flush=True)
    for name, servers in facts["listeners"].items():
        if servers != facts["bootstrap_servers"]:
            print(f"{name}: {servers}", flush=True)
    print(f"bootstrap.servers={facts['bootstrap_servers']}", flush=True)
