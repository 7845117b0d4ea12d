"""Golden transcripts: a small command language over ``ControllerCluster``.

A scenario file has an opening comment, then commands, each followed by its output, which is
indented by two spaces. ``run_transcript`` runs the commands again and returns the text with the
current output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fakekafka.protocol.admin import PREFERRED, UNCLEAN
from fakekafka.protocol.control import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fakekafka.protocol.values import PartitionReplica, TopicPartition
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now


def run_transcript(text: str) -> str:
    """Return the text of a scenario with the current output of every command."""
    runner = Transcript()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"  {output}" for output in runner.run(line)]
    return "\n".join(lines) + "\n"


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _list(ids: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, ids)) + "]"


class Transcript:
    """Runs commands: one method ``do_<command>`` each, which may yield lines of output.

    The control requests sent by a command are printed first.
    """

    def __init__(self) -> None:
        self.cluster = ControllerCluster()
        self._printed = 0

    def run(self, line: str) -> list[str]:
        name, *arguments = line.split()
        command: Callable[..., Iterator[str] | None] | None
        command = getattr(self, "do_" + name.replace("-", "_"), None)
        if command is None:
            raise ValueError(f"unknown command {name!r} in {line!r}")
        output = list(command(*arguments) or ())
        return [*self._requests(), *output]

    # --- the cluster

    def do_version(self, kafka_version: str, *config: str) -> None:
        """Start anew: ``version 1.1 delete.topic.enable=true``."""
        values = dict(pair.split("=") for pair in config)
        self.cluster = ControllerCluster(
            (), kafka_version, **{k.replace(".", "_"): v for k, v in values.items()}
        )
        self._printed = 0

    def do_brokers(self, count: str) -> None:
        """Start brokers 1 to 3 without output: ``brokers 3``."""
        for broker_id in range(1, int(count) + 1):
            self.cluster.start(broker_id)
        self._printed = len(self.cluster.sent)

    def do_start(self, broker_id: str) -> None:
        self.cluster.start(int(broker_id))

    def do_kill(self, *broker_ids: str) -> None:
        """Kill processes and then expire their sessions, in the given order: ``kill 1 2``."""
        for broker_id in broker_ids[1:]:
            self.cluster.freeze(int(broker_id))
        self.cluster.kill(int(broker_ids[0]))
        for broker_id in broker_ids[1:]:
            process = self.cluster.processes.pop(int(broker_id))
            self.cluster.zookeeper.close_session(process.client.session_id)
        self.cluster.settle()

    def do_bounce(self, broker_id: str) -> None:
        self.cluster.bounce(int(broker_id))

    def do_expire(self, broker_id: str) -> None:
        """Expire the ZooKeeper session of a live process, which opens another."""
        self.cluster.expire(int(broker_id))

    def do_controlled_shutdown(self, broker_id: str) -> Iterator[str]:
        remaining = self.cluster.controlled_shutdown(int(broker_id))
        if isinstance(remaining, Exception):
            yield f"failed: {type(remaining).__name__}: {remaining}"
        else:
            yield "remaining: " + (" ".join(map(str, remaining)) or "none")

    def do_resign(self) -> None:
        """Delete ``/controller``."""
        run_now(self.cluster.zk.requests.delete_path("/controller"))
        self.cluster.settle()

    def do_advance(self, delay_ms: str) -> None:
        self.cluster.host.advance(int(delay_ms))

    def do_fail_dir(self, broker_id: str, *partitions: str) -> None:
        """Fail the log directory with the given partitions, and have the broker announce it."""
        self.cluster.brokers[int(broker_id)].failed |= {_partition(p) for p in partitions}
        run_now(self.cluster.zk.admin.propagate_log_dir_event(int(broker_id)))
        self.cluster.settle()

    def do_refuse_deletion(self, broker_id: str, *partitions: str) -> None:
        """Let a broker answer deletions of the given partitions, or of none, with an error."""
        refused = {_partition(p) for p in partitions}
        self.cluster.brokers[int(broker_id)].refuses_deletion = refused

    # --- topics

    def do_create_topic(self, topic: str, *partitions: str) -> None:
        """Create a topic: ``create-topic t p0=1,2,3 unclean.leader.election.enable=true``."""
        settings = dict(argument.split("=") for argument in partitions)
        replicas = [
            _ids(settings.pop(f"p{n}")) for n in range(len(settings)) if f"p{n}" in settings
        ]
        self.cluster.create_topic(topic, *replicas, config=settings)

    def do_add_partitions(self, topic: str, *replicas: str) -> None:
        self.cluster.add_partitions(topic, *map(_ids, replicas))

    def do_delete_topic(self, topic: str) -> None:
        self.cluster.delete_topic(topic)

    def do_catch_up(self, *partitions: str) -> None:
        """Add every live replica to the ISR."""
        for partition in partitions:
            self.cluster.catch_up(*_partition(partition))

    def do_isr(self, partition: str, isr: str) -> None:
        """Let the leader change its ISR: ``isr t-0 1,2``."""
        self.cluster.set_isr(*_partition(partition), _ids(isr))

    def do_propagate_isr(self, *partitions: str) -> None:
        """Let the leader announce ISR changes by znode."""
        run_now(self.cluster.zk.admin.propagate_isr_changes(map(_partition, partitions)))
        self.cluster.settle()

    # --- elections and reassignments

    def do_elect_preferred(self, *partitions: str) -> Iterator[str]:
        yield from self._elect(PREFERRED, partitions)

    def do_elect_unclean(self, *partitions: str) -> Iterator[str]:
        yield from self._elect(UNCLEAN, partitions)

    def _elect(self, election_type: int, partitions: tuple[str, ...]) -> Iterator[str]:
        outcomes = self.cluster.elect(election_type, *map(_partition, partitions))
        for partition, (error, detail) in sorted(outcomes.items()):
            yield f"{partition}: {error.name}" + (f" {detail}" if detail is not None else "")

    def do_elect_by_znode(self, *partitions: str) -> None:
        run_now(
            self.cluster.zk.admin.create_preferred_replica_election(map(_partition, partitions))
        )
        self.cluster.settle()

    def do_reassign(self, *moves: str) -> Iterator[str]:
        """Reassign or cancel, also several: ``reassign t-0 4,5`` or ``reassign t-0 cancel``."""
        outcome = self.cluster.reassign(dict(self._moves(moves)))
        for partition, (error, text) in sorted(outcome.items()):
            yield f"{partition}: {error.name}" + (f" {text}" if text else "")

    def do_reassign_by_znode(self, *moves: str) -> None:
        wanted = {tp: target or () for tp, target in self._moves(moves)}
        run_now(self.cluster.zk.admin.create_partition_reassignment(wanted))
        self.cluster.settle()

    @staticmethod
    def _moves(moves: tuple[str, ...]) -> Iterator[tuple[TopicPartition, tuple[int, ...] | None]]:
        for partition, target in zip(moves[::2], moves[1::2], strict=True):
            yield _partition(partition), None if target == "cancel" else _ids(target)

    def do_reassigning(self) -> Iterator[str]:
        for ongoing in self.cluster.reassigning():
            yield (
                f"{ongoing.topic_partition}: {_list(ongoing.replicas)} "
                f"adding {_list(ongoing.adding)} removing {_list(ongoing.removing)}"
            )

    # --- looking

    def do_show(self, *partitions: str) -> Iterator[str]:
        """Print the controller's state of partitions, which must agree with ZooKeeper's."""
        context = self.cluster.active.context
        for partition in map(_partition, partitions):
            known = context.topics.partition_leadership_info(partition)
            line = f"{partition} {context.states.partition_state(partition)}"
            replicas = context.topics.partition_full_replica_assignment(partition)
            line += f" replicas={_list(replicas.replicas)}"
            if replicas.is_being_reassigned:
                line += f" adding={_list(replicas.adding)} removing={_list(replicas.removing)}"
            if known is not None:
                value = known.leader_and_isr
                assert value == self.cluster.state(*partition), "cache and ZooKeeper disagree"
                line += f" leader={value.leader} epoch={value.leader_epoch} isr={_list(value.isr)}"
            yield line
            for broker_id in replicas.replicas:
                state = context.states.replica_state(PartitionReplica(*partition, broker_id))
                yield f"  {broker_id} {state}"

    def do_controller(self) -> Iterator[str]:
        yield f"broker {self.cluster.active.broker_id} epoch {self.cluster.active.epoch}"

    def do_topics(self) -> Iterator[str]:
        yield " ".join(self.cluster.topics()) or "none"

    def do_znode(self, path: str) -> Iterator[str]:
        """Print the data of a znode, or its absence."""
        nodes = self.cluster.zookeeper.tree.nodes
        if path not in nodes:
            yield "(none)"
        else:
            data = nodes[path].data
            yield data.decode() if data else "(empty)"

    def do_deleting(self) -> Iterator[str]:
        """Print the topics queued for deletion and the state of their deletion."""
        context = self.cluster.active.context
        for topic in context.topics.topics_queued_for_deletion():
            started = " started" if topic in context.topics.topics_with_deletion_started else ""
            halted = " ineligible" if topic in context.topics.topics_ineligible_for_deletion else ""
            yield f"{topic}{started}{halted}"

    def do_metric(self, *names: str) -> Iterator[str]:
        snapshot = self.cluster.active.metrics.snapshot()
        for name in names:
            yield f"{name}={snapshot[name]}"

    # --- requests

    def _requests(self) -> Iterator[str]:
        """Return the control requests sent since the last command, one line each."""
        sent = self.cluster.sent
        fresh, self._printed = sent[self._printed :], len(sent)
        for broker_id, request in fresh:
            yield f"-> {broker_id} {_describe(request)}"


def _describe(request: Any) -> str:
    if isinstance(request, LeaderAndIsrRequest):
        return "LeaderAndIsr " + "; ".join(
            f"{s.topic_partition} leader={s.leader} epoch={s.leader_epoch} isr={_list(s.isr)}"
            + (f" adding={_list(s.adding_replicas)}" if s.adding_replicas else "")
            + (f" removing={_list(s.removing_replicas)}" if s.removing_replicas else "")
            + (" new" if s.is_new else "")
            for s in request.partition_states
        )
    if isinstance(request, UpdateMetadataRequest):
        live = _list(tuple(broker.id for broker in request.live_brokers))
        return "; ".join(
            [f"UpdateMetadata live={live}"]
            + [
                f"{s.topic_partition} leader={s.leader} epoch={s.leader_epoch} isr={_list(s.isr)}"
                + (f" offline={_list(s.offline_replicas)}" if s.offline_replicas else "")
                for s in request.partition_states
            ]
        )
    assert isinstance(request, StopReplicaRequest)
    stopped = "; ".join(
        f"{s.topic_partition} epoch={s.leader_epoch}" + (" delete" if s.delete_partition else "")
        for s in request.partition_states
    )
    return f"StopReplica {stopped or 'of nothing'}"
