"""The report on a failed test, with the answers to the first questions of a person.

It shows the leaders of partitions, the faults in force, the last errors of clients, and the last
events. The first two come from the cluster, the others from its recording.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...protocol.internal_topics import INTERNAL_TOPICS
from ...protocol.names import ADMIN
from ...tracing.events import Event, jsonable
from ...tracing.text import format_event, format_time
from ..handles.partitions import Partitions
from ..views import PartitionView

if TYPE_CHECKING:
    from ...tracing.trace import StoredTrace
    from ..emulated_cluster import EmulatedCluster

_PARTITIONS_SHOWN = 12
_CLIENTS_SHOWN = 8
_EVENTS_SHOWN = 20
_EVENTS_READ = 50_000
"""Maximum number of events read from the end of the recording."""
_KINDS = frozenset({"crash", "restart", "fault", "expire", "client_fail"})
_CHANGES = frozenset({"leader", "isr", "role", "state", "generation"})
"""Last parts of the state paths whose changes are reported."""
_CHANGES_SHOWN = 4
"""Maximum number of changes shown of one event."""
_ERRORS_WITHOUT_ANSWER = ("Disconnected", "RequestTimeout")
_SERVER_LANES = ("broker-", "controller-", "fetcher-", "zk-")
_OTHER_LANES = frozenset({"scenario", "network", ADMIN})


def failure_report(cluster: EmulatedCluster, trace: StoredTrace | None) -> str:
    """Return the report, with a title for each part."""
    parts: list[tuple[str, Callable[[], list[str]]]] = [
        ("partitions", lambda: _partitions(cluster)),
        ("active faults", lambda: _faults(cluster)),
    ]
    if trace is not None:
        recorded = trace
        parts.append(("last errors of clients", lambda: _client_errors(recorded)))
        parts.append(("last events", lambda: _last_events(recorded)))
    told: list[str] = []
    for title, part in parts:
        try:
            lines = part()
        except Exception as error:  # a broken cluster must not hide the failure of the test
            lines = [f"could not be determined: {error!r}"]
        told += [f"{title}:", *(f"    {line}" for line in lines or ["none"])]
    return "\n".join(told)


def _partitions(cluster: EmulatedCluster) -> list[str]:
    """Describe partitions, first those that lack a leader or in-sync replicas; partitions of
    internal topics are described only if they lack these."""
    alive = {n for n, process in cluster.running.processes.items() if process.is_alive}
    degraded, healthy = [], []
    for topic in cluster.topics():
        for number in range(Partitions(cluster.running).partition_count(topic)):
            view = cluster.partition(topic, number)
            if view.leader is None or set(view.isr) != set(view.replicas):
                degraded.append(view)
            elif topic not in INTERNAL_TOPICS:
                healthy.append(view)
    views = [*degraded, *healthy]
    lines = [_partition_line(view, alive) for view in views[:_PARTITIONS_SHOWN]]
    if len(views) > _PARTITIONS_SHOWN:
        lines.append(f"... and {len(views) - _PARTITIONS_SHOWN} more")
    return lines


def _partition_line(view: PartitionView, alive: set[int]) -> str:
    leader = "no leader" if view.leader is None else f"leader {view.leader}"
    mark = view.high_watermark
    ends = []
    for broker_id in view.replicas:
        replica = view.replica(broker_id)
        if replica.role != "none":
            ends.append(f"{broker_id}: {replica.log_end_offset}")
        else:
            ends.append(f"{broker_id}: {'no log' if broker_id in alive else 'down'}")
    return (
        f"{view.topic}-{view.partition}  {leader}, epoch {view.leader_epoch}, "
        f"ISR {list(view.isr)} of {list(view.replicas)}, "
        f"high watermark {'unknown' if mark < 0 else mark}, log ends {{{', '.join(ends)}}}"
    )


def _faults(cluster: EmulatedCluster) -> list[str]:
    running = cluster.running
    lines = []
    for process in running.processes.values():
        if not process.is_alive:
            lines.append(f"{process.name} is not running")
        elif process.process.paused:
            lines.append(f"{process.name} is paused")
        offline = process.spec.disk.offline_dirs
        if offline:
            lines.append(f"{process.name} has offline log directories: {', '.join(offline)}")
    lines += [f"{zk.name} is down" for zk in running.zookeepers.values() if not zk.is_alive]
    network = running.runtime.network
    told = network.describe()
    if told != "no faults":
        lines.append(f"network: {told}")
    rules = network.rules()
    if rules.latency != cluster.usual_latency:
        lines.append(f"network: {rules.latency} on every link")
    slow = rules.link_latencies
    lines += [f"network: {latency} from {a} to {b}" for (a, b), latency in slow.items()]
    if rules.bandwidth_mb_per_s is not None:
        lines.append(f"network: {rules.bandwidth_mb_per_s:g} MB/s on every link")
    narrow = {link: rate for link, rate in rules.link_bandwidths.items() if rate is not None}
    lines += [f"network: {rate:g} MB/s from {a} to {b}" for (a, b), rate in narrow.items()]
    lines += [repr(one) for one in network.interceptors if getattr(one, "remaining", 1) != 0]
    return lines


# -- the recording ---------------------------------------------------------------------------------


def _recent(trace: StoredTrace) -> Iterator[Event]:
    """Iterate over the last events, newest first."""
    return islice(trace.backwards(trace.last_seq), _EVENTS_READ)


def _client_errors(trace: StoredTrace) -> list[str]:
    """Describe the last error of each client, newest first."""
    found: dict[str, str] = {}
    for event in _recent(trace):
        actor = event.actor
        if actor in found or actor in _OTHER_LANES or actor.startswith(_SERVER_LANES):
            continue
        error = _error_text(event)
        if error:
            found[actor] = f"{actor}  {format_time(event.time_us)} s, #{event.seq}: {error}"
            if len(found) == _CLIENTS_SHOWN:
                break
    return list(found.values())


def _error_text(event: Event) -> str:
    """Describe the error that a client got at an event; empty if it got none."""
    if event.kind == "client_fail":
        return f"{event.type} failed: {event.why or ''}".rstrip(": ")
    if event.kind != "deliver" or event.type is None:
        return ""
    if event.type in _ERRORS_WITHOUT_ANSWER:
        return f"{event.type} from {event.peer}"
    if not event.type.endswith("Response"):
        return ""
    errors = ", ".join(dict.fromkeys(_errors(jsonable(event.fields), "")))
    return f"{event.type} from {event.peer}: {errors}" if errors else ""


def _errors(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        where = str(value.get("topic_partition") or value.get("name") or where)
        error = value.get("error")
        if error not in (None, "", 0, "NONE"):
            yield f"{where} {error}".strip()
        for item in value.values():
            yield from _errors(item, where)
    elif isinstance(value, list):
        for item in value:
            yield from _errors(item, where)


def _last_events(trace: StoredTrace) -> list[str]:
    """Describe the last faults, failed operations and changes of leadership, oldest first."""
    lines: deque[str] = deque()
    for event in _recent(trace):
        changes = _changes(event)
        if event.kind in _KINDS or _is_failure(event):
            lines.appendleft(format_event(event))
        elif changes:
            time = format_time(event.time_us)
            lines.appendleft(f"#{event.seq:<7d} {time:>13} changes    {'; '.join(changes)}")
        if len(lines) == _EVENTS_SHOWN:
            break
    return list(lines)


def _changes(event: Event) -> list[str]:
    """Describe the changes of partitions and groups at an event; a halting actor changes none."""
    if event.kind == "stop":
        return []
    told = []
    for path, old, new in event.delta:
        parts = path.split("/")
        is_reported = parts[-1] in _CHANGES and parts[1] != "znodes" and "replica-" not in parts[-2]
        if is_reported and old != new:
            told.append(f"{path}: {old} -> {new}")
    if len(told) > _CHANGES_SHOWN:
        told[_CHANGES_SHOWN:] = [f"{len(told) - _CHANGES_SHOWN} more"]
    return told


def _is_failure(event: Event) -> bool:
    return event.kind == "note" and (event.why or "").startswith("error")
