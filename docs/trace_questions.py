"""Questions "why did this (not) happen", and the page that answers them from recorded runs.

The page of the gallery and tests/tracing/test_why_questions.py share the table of questions here.
A question about something that did not happen is asked at the event at which it finally happened,
as the causes of that event had been missing until then.
"""

from __future__ import annotations

import functools
import shlex
from dataclasses import dataclass

from fakekafka import Event, Simulation, Trace
from fakekafka.docs.cause_pictures import words_of
from fakekafka.docs.recorded import record
from fakekafka.tracing.text import format_time

_LINE_LENGTH = 118


@dataclass(frozen=True)
class Question:
    """A question, its place in a run, and texts that the answer must contain, the latest first."""

    text: str
    run: str
    at: str
    names: tuple[str, ...]
    answer: str
    rule: str
    """The page and the section that describe the rule."""


RUNS: dict[str, tuple[str, str]] = {
    "leader_crash_acks_all": ("leader_crash_acks_all", "3.9"),
    "leader_crash_acks_all, 0.10": ("leader_crash_acks_all", "0.10"),
    "leader_crash_acks_1": ("leader_crash_acks_1", "3.9"),
    "unclean_election": ("unclean_election", "3.9"),
    "unclean_election_refused": ("unclean_election_refused", "3.9"),
    "kip_101_loss, 0.10": ("kip_101_loss", "0.10"),
    "min_isr": ("min_isr", "3.9"),
    "controlled_shutdown": ("controlled_shutdown", "3.9"),
    "split_controller": ("split_controller", "3.9"),
    "paused_follower": ("paused_follower", "3.9"),
    "dead_member": ("dead_member", "3.9"),
    "transaction_timeout": ("transaction_timeout", "3.9"),
    "waiting_for_a_broker": ("waiting_for_a_broker", "3.9"),
}
"""Scenario and version of each run. The run ``open transaction`` is made in Python."""

OPEN_TRANSACTION = "open transaction"

QUESTIONS: tuple[Question, ...] = (
    Question(
        "Why did the high watermark not move for four seconds?",
        "paused_follower",
        "change broker-1/orders-0/high_watermark if t > 4",
        ("AlterIsrResponse", "replica 3 of orders-0 has been behind", "paused"),
        "Broker 3 was paused and still in the ISR. The high watermark moved when it had left.",
        "isr.md#shrinking",
    ),
    Question(
        "Why did the ISR shrink?",
        "paused_follower",
        "change broker-1/orders-0/isr if new == [1, 2]",
        ("replica 3 of orders-0 has been behind", "paused"),
        "Broker 3 was paused for longer than `replica.lag.time.max.ms`.",
        "isr.md#shrinking",
    ),
    Question(
        "Why is the follower back in the ISR?",
        "paused_follower",
        "change broker-1/orders-0/isr if old == [1, 2] and new == [1, 2, 3]",
        ("FetchRequest", "FetchResponse", "release", "resumed"),
        "It was resumed, took the answer that had waited for it, and fetched up to the end.",
        "isr.md#expanding",
    ),
    Question(
        "Why was this record lost?",
        "kip_101_loss, 0.10",
        "change broker-3/orders-0/log_end_offset if old != None and new < old",
        ("LeaderAndIsrRequest", "resign_controller: A restarts without a controller"),
        "A was told to follow, and a follower of 0.10 cuts its log at its own high watermark.",
        "replica-fetchers.md#truncation-to-the-high-watermark",
    ),
    Question(
        "Why did the old leader cut off an acknowledged record?",
        "kip_101_loss, 0.10",
        "change broker-4/orders-0/log_end_offset if old != None and new < old",
        ("ListOffsetsResponse", "leader=3 leader_epoch=1", "broker-4 starts again"),
        "The leader elected meanwhile, A, has a shorter log, and the follower must match it.",
        "replica-fetchers.md#truncation-to-the-high-watermark",
    ),
    Question(
        "Why did this follower truncate?",
        "leader_crash_acks_1",
        "change broker-*/orders-0/log_end_offset if old != None and new < old",
        ("diverging_epoch", "leader=3 leader_epoch=1", "broker-2 starts again"),
        "Its fetch named epoch 0, and the new leader answered where its log of epoch 0 ends.",
        "replica-fetchers.md#truncation-on-fetch",
    ),
    Question(
        "Why was this produce request refused?",
        "min_isr",
        "kind == deliver and type == ProduceResponse and actor == 'admin' and "
        "partitions[0].error == 'NOT_ENOUGH_REPLICAS'",
        ("NOT_ENOUGH_REPLICAS", "isr=[2]", "expires", "broker-3 is killed"),
        "The ISR had only the leader left, fewer than `min.insync.replicas`: broker 3 was killed.",
        "produce.md#minimum-isr",
    ),
    Question(
        "Why did this client wait eight seconds?",
        "leader_crash_acks_all",
        "kind == client_ok and why == 'offset 10'",
        ("client_ok", "ProduceRequest", "leader=3", "expires", "broker-2 is killed"),
        "The leader was killed. Another one was elected only when its session had expired.",
        "zookeeper.md#sessions",
    ),
    Question(
        "Why was this replica elected?",
        "leader_crash_acks_all",
        "change broker-3/orders-0/role if new == 'leader'",
        ("leader=3", "NodeChildrenChanged", "expires", "broker-2 is killed"),
        "Of the assignment [2, 3] it was the first that was alive and in the ISR.",
        "election.md#strategies",
    ),
    Question(
        "Why does a replica lead that was not in the ISR?",
        "unclean_election",
        "change broker-3/orders-0/role if new == 'leader'",
        ("leader=3", "expires", "broker-2 is killed"),
        "The last member of the ISR was killed, and unclean election is on.",
        "election.md#unclean-election",
    ),
    Question(
        "Why was no leader elected?",
        "unclean_election_refused",
        "change controller-*/orders-0/state if new == 'OfflinePartition'",
        ("expires", "broker-2 is killed"),
        "The only member of the ISR was killed, and unclean election is off.",
        "election.md#unclean-election",
    ),
    Question(
        "Why did the leader move although no broker failed?",
        "controlled_shutdown",
        "change broker-3/orders-0/role if new == 'leader'",
        ("LeaderAndIsrRequest", "ControlledShutdownRequest", "shutdown: A is told to stop"),
        "The leader was told to stop, and asked the controller to move its leaderships first.",
        "brokers.md#controlled-shutdown",
    ),
    Question(
        "Why was the preferred leader not elected?",
        "waiting_for_a_broker",
        "type == ElectLeadersResponse and kind == deliver",
        ("PREFERRED_LEADER_NOT_AVAILABLE", "expires", "broker-4 is killed"),
        "The preferred replica is on broker 4, which was dead.",
        "election.md#strategies",
    ),
    Question(
        "Why did the deletion of this topic hang?",
        "waiting_for_a_broker",
        "last change controller-*/gone-0/replica-*/state",
        ("TopicDeletionStopReplicaResponseReceived", "broker-4 starts again"),
        "Broker 4 has a replica and was dead. The deletion waited until broker 4 returned.",
        "topics.md#deletion",
    ),
    Question(
        "Why did the reassignment hang?",
        "waiting_for_a_broker",
        "last change broker-3/moved-0/isr",
        ("isr=[3,4]", "fetcher-4-from-2", "LeaderAndIsrRequest", "broker-4 starts again"),
        "Its new replica is on broker 4, which was dead, so it could not join the ISR.",
        "reassignment.md",
    ),
    Question(
        "Why did this session expire?",
        "split_controller",
        "kind == expire and peer == 'controller-1'",
        ("session", "controller-1 expires", "partition [['broker-1'], ['zk-1']]"),
        "Broker 1 was cut off from ZooKeeper.",
        "zookeeper.md#sessions",
    ),
    Question(
        "Why is another broker the controller?",
        "split_controller",
        "change zk-1/znodes/controller if old == None and t > 5",
        ("NodeDeleted path=/controller", "expires", "partition [['broker-1'], ['zk-1']]"),
        "The session of broker 1 expired, and with it went the znode `/controller`.",
        "controller-failover.md#session-expiry",
    ),
    Question(
        "Why was the old controller refused?",
        "split_controller",
        "kind == deliver and error == 'STALE_CONTROLLER_EPOCH'",
        ("STALE_CONTROLLER_EPOCH", "controller_epoch=1", "controller_epoch=2", "expires",
         "partition [['broker-1'], ['zk-1']]"),
        "Broker 4 had heard from controller 2, whose epoch is greater.",
        "control-requests.md#what-a-broker-accepts",
    ),
    Question(
        "Why did the group rebalance?",
        "dead_member",
        "change broker-*/groups/group-1/state if new == 'PreparingRebalance' and t > 10",
        ("of group group-1 has not been heard of for 10000 ms", "partition [['group-1-member-2']"),
        "One member was cut off, and the coordinator did not hear its heartbeats.",
        "groups-and-transactions.md#joining",
    ),
    Question(
        "Why must this member join again?",
        "dead_member",
        "kind == deliver and error == 'UNKNOWN_MEMBER_ID'",
        ("UNKNOWN_MEMBER_ID", "has not been heard of", "partition [['group-1-member-2']"),
        "The coordinator had removed it while it was cut off.",
        "groups-and-transactions.md#joining",
    ),
    Question(
        "Why was this transaction aborted?",
        "transaction_timeout",
        "change broker-*/transaction/transformer-1 if new == 'PrepareAbort'",
        ("has been open for more than 5000 ms", "partition [['transformer-1']"),
        "Its producer was cut off for longer than the timeout of its transaction.",
        "transactions.md#states",
    ),
    Question(
        "Why was this producer fenced?",
        "transaction_timeout",
        "kind == deliver and error == 'PRODUCER_FENCED'",
        ("PRODUCER_FENCED", "EndTxnRequest", "has been open for more than 5000 ms",
         "partition [['transformer-1']"),
        "The coordinator had aborted its transaction under a new producer epoch.",
        "transactions.md#states",
    ),
    Question(
        "Why did a consumer that reads committed records see nothing?",
        OPEN_TRANSACTION,
        "change reader/orders-0/position if new > 1",
        ("FetchResponse", "WriteTxnMarkersRequest", "has been open for more than 8000 ms",
         "partition [['app']"),
        "A transaction was open: nothing after its first record is stable until it has ended.",
        "transactions.md#states",
    ),
    Question(
        "Why is this record in the log twice?",
        "leader_crash_acks_all, 0.10",
        "last kind == client_ok",
        ("base_offset=12", "ProduceRequest", "expires", "broker-3 is killed"),
        "The producer got no answer from the killed leader and sent again. In 0.10 a batch has no "
        "number, so the new leader, which had it, appended it once more.",
        "producer-state.md#checks",
    ),
    Question(
        "Why did sending it again not append it twice?",
        "leader_crash_acks_all",
        "last kind == client_ok",
        ("base_offset=11", "ProduceRequest", "expires", "broker-3 is killed"),
        "The new leader knew the sequence number of the batch. It answered with the offset of the "
        "first, and the event has no change of state.",
        "producer-state.md#checks",
    ),
)  # fmt: skip


@functools.cache
def trace_of(run: str) -> Trace:
    """Return the recorded trace of a run."""
    if run == OPEN_TRANSACTION:
        return _open_transaction()
    return record(*RUNS[run])


def _open_transaction() -> Trace:
    """Record a run in which an application is isolated during a transaction, and another producer
    goes on."""
    topics = {"orders": {"assignment": {0: [1, 2, 3]}}}
    with Simulation(3, seed=1, topics=topics, kafka_version="3.9") as simulation:
        application = simulation.transactional_producer(
            "app", name="app", transaction_timeout_ms=8000
        )
        simulation.consumer([("orders", 0)], name="reader", isolation_level=1)

        async def begin() -> None:
            await application.init_transactions()
            application.begin()
            await application.write(("orders", 0), [b"a"])

        application.start_task(begin())
        simulation.run_for(2_000)
        simulation.network.isolate("app")
        simulation.producer(name="shop").produce(("orders", 0), b"b")
        simulation.run_for(30_000)
        return simulation.trace()


def answer_to(question: Question) -> list[Event]:
    """Return the answer of ``trace why``: the chain of causes."""
    return trace_of(question.run).why(question.at)


def quoted(place: str) -> str:
    """Quote a place for a shell."""
    return f'"{place}"' if "'" in place else shlex.quote(place)


def line_of(event: Event) -> str:
    """Return an event as one short line."""
    peer = (
        "" if event.peer is None else f" {'<-' if event.kind == 'deliver' else '->'} {event.peer}"
    )
    said = words_of(event)
    if event.type is None:
        said = f"({said})"
    elif not said.startswith((event.type, "ZooKeeper", "Node")):
        said = f"{event.type}: {said}"
    line = f"{format_time(event.time_us)} {event.kind} {event.actor}{peer} {said}"
    return line if len(line) <= _LINE_LENGTH else line[: _LINE_LENGTH - 2] + ".."


_HEAD = """\
# Questions and answers

Why did something happen, and why did it not? `fakekafka trace why` answers with the chain of
causes in a recorded run, the latest event first. Every line happened before the one above it, and
led to it. To find out why something did *not* happen earlier, ask about the event at which it
finally happened: its cause had been missing.

An error in an answer leads to the change of state that made the broker refuse the request. A
message that was held back leads to the event that released it. The wait of a client leads to the
event that made its broker the leader.

Record a run with the first command of a question, and ask with the second. In Python,
`trace.why(POSITION)` of [a trace](../guides/traces.md#from-python) returns the events. The lines
are shortened here: instead of a message's fields they show the leader, role or ISR that it changed.
"""


def page() -> str:
    """Return the page with all questions and their answers in Markdown."""
    parts = [_HEAD]
    for question in QUESTIONS:
        file = f"{question.run.partition(',')[0].replace(' ', '_')}.fktrace"
        ask = f"fakekafka trace why {file} {quoted(question.at)}"
        if question.run == OPEN_TRANSACTION:
            record = "# recorded from Python: `_open_transaction` in docs/trace_questions.py"
        else:
            scenario, version = RUNS[question.run]
            record = f"fakekafka run {scenario} --kafka-version {version} -o {file}"
        chain = [line_of(event) for event in answer_to(question)]
        parts += [
            f"## {question.text}\n",
            f"{question.answer} [The rule](../kafka/{question.rule}).\n",
            f"```sh\n{record}\n{ask}\n```\n",
            "```text\n" + "\nbecause ".join(chain) + "\n```\n",
        ]
    return "\n".join(parts)
