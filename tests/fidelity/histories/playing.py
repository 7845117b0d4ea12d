"""Carries out the steps of a history on a stage, and records their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fakekafka.exploration.step import Step
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.fidelity import running
from fakekafka.tests.fidelity.histories.account import READY_S, Account
from fakekafka.tests.fidelity.histories.administering import Administration
from fakekafka.tests.fidelity.histories.members import Members
from fakekafka.tests.fidelity.histories.transacting import STATE, Transactions, is_initialised
from fakekafka.tests.fidelity.histories.verbs import Assignment, History
from fakekafka.tests.fidelity.histories.world import FIRST_CONTROLLER
from fakekafka.tests.fidelity.protocol import records
from fakekafka.tests.fidelity.protocol.client import Client, Closed
from fakekafka.tests.fidelity.recording import Steps
from fakekafka.tests.fidelity.stage import groups
from fakekafka.tests.fidelity.stage.stage import Stage, creation

_SPREAD_S = 0.4
"""Time in seconds in which a configuration reaches all brokers; no request shows whether it has."""
_ANSWERED_S = 0.5
"""Time in seconds in which brokers answer the requests of a controller."""
_TIMEOUT_MS = 4000
_PRODUCE_MS = 15_000
"""Timeout of Produce in milliseconds, which no history reaches even if it runs slowly."""
_DEBUGGER = -2
"""Replica id that may fetch from a follower; consumers may since 2.4 (KIP-392)."""
_ELECTIONS = {"preferred": 0, "unclean": 1}
_ASKING = "asking"
"""A topic whose changes make brokers send requests to the controller."""


def play(stage: Stage, history: History, expected: Steps | None = None) -> None:
    """Carry out a history on a prepared stage; raise ``Parted`` where it differs from expected."""
    player = _Player(Account(stage, expected))
    try:
        for number, step in enumerate(history):
            player.carry_out(number, step)
        player.look_at_the_end(len(history))
    finally:
        player.close()


def prepare(stage: Stage) -> None:
    """Start all brokers, delete all topics, and move the controller to the one of ``World``."""
    side = stage.side
    side.expected = None
    for broker in sorted(side.frozen):
        side.thaw(broker)
    side.start_many([broker for broker in side.broker_ids if broker not in side.up])
    side.runs += 1
    are_kept = stage.observer.assignment(STATE)  # a scenario deletes their topic
    for name in sorted(side.left_open if are_kept else ()):
        stage.wait(f"{name} is at rest", partial(is_initialised, stage, name))
    side.left_open.clear()
    running.prepare(stage, None, keeps=(groups.OFFSETS, STATE))
    if stage.observer.controller() != FIRST_CONTROLLER:
        hand_over(stage, FIRST_CONTROLLER, lambda: side.delete_znode("/controller"))
    stage.wait("brokers know each other", lambda: running.know_each_other(stage))
    if behaviour(stage.kafka_version).alter_isr:
        _let_leaders_ask(stage)
    stage.observer.first_controller_epoch = stage.observer.controller_epoch()


def _let_leaders_ask(stage: Stage) -> None:
    """Make each broker send the controller a request, so that it finds the current controller.

    A broker keeps sending requests to the controller that it first knew, which is random.
    """
    brokers = stage.side.broker_ids
    stage.create(_ASKING, [[broker] for broker in brokers])
    moves = [
        {"partitionIndex": number, "replicas": [broker, brokers[number - 1]]}
        for number, broker in enumerate(brokers)
    ]
    topic = {"name": _ASKING, "partitions": moves}
    stage.ask(None, "AlterPartitionReassignments", timeoutMs=_TIMEOUT_MS, topics=[topic])

    def have_followers() -> bool:
        states = [stage.observer.state(_ASKING, number) for number in range(len(brokers))]
        return all(state is not None and len(state["isr"]) > 1 for state in states)

    stage.wait("followers join", have_followers)
    stage.delete(_ASKING)
    stage.wait("the topic is deleted", lambda: not stage.side.children("/admin/delete_topics"))
    stage.topics.remove(_ASKING)


def hand_over(stage: Stage, heir: int | None, lose: Callable[[], object]) -> None:
    """Remove the controller while all brokers but the heir are frozen, so that the heir wins."""
    side, observer = stage.side, stage.observer
    # The controller resigns once its requests are answered, which frozen brokers would not do
    # (ControllerChannelManager.removeExistingBroker).
    stage.pass_time(_ANSWERED_S)
    held = [broker for broker in sorted(side.up - side.frozen) if broker != heir]
    epoch = observer.controller_epoch()
    for broker in held:
        side.freeze(broker)
    lose()
    if heir is not None:
        stage.wait(
            f"{heir} is the controller",
            lambda: observer.controller() == heir and observer.controller_epoch() > epoch,
        )
    for broker in held:
        if broker in side.frozen:
            side.thaw(broker)
    _let_take_over(stage, heir)


def _let_take_over(stage: Stage, heir: int | None) -> None:
    """Wait until the brokers know the controller, which then knows the topics to delete.

    It is active and takes requests before that (KafkaController.onControllerFailover).
    """
    if heir is None:
        return

    def is_known() -> bool:
        living = stage.side.up - stage.side.frozen
        told = [stage.ask(broker, "Metadata", topics=[]) for broker in sorted(living)]
        return all(isinstance(tree, dict) and tree["controllerId"] == heir for tree in told)

    stage.wait(f"brokers know that {heir} is the controller", is_known)
    stage.pass_time(_ANSWERED_S)  # it may have been the controller before


class _Player:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._stage = account.stage
        self._producers: dict[str, tuple[int, int]] = {}
        self._sequences: dict[tuple[str, str, int], int] = {}
        self._members = Members(account)
        self._parts = (
            self,
            self._members,
            Transactions(account, self._see_offset),
            Administration(account),
        )

    def carry_out(self, number: int, step: Step[Any]) -> None:
        self._account.begin(number, step)
        part = next(part for part in self._parts if hasattr(part, step.verb))
        getattr(part, step.verb)(*step.values)

    def look_at_the_end(self, number: int) -> None:
        """Look once more without hurry, as further changes may have been under way."""
        self._account.begin(number, "in the end")
        self._account.look(hurry=False)

    def close(self) -> None:
        self._members.close()

    # -- brokers -------------------------------------------------------------------------------

    def _lose(self, broker: int, how: Callable[[int], None]) -> None:
        """Take a broker and its session away."""
        stage, side = self._stage, self._stage.side

        def lose() -> None:
            how(broker)
            side.end_session(broker)

        if stage.observer.controller() == broker:
            living = side.up - side.frozen - {broker}
            self._hand_over(broker, min(living, default=None), lose)
        else:
            lose()
        self._account.look()

    def _hand_over(self, broker: int, heir: int | None, lose: Callable[[], None]) -> None:
        """The controller itself is not held: it goes."""
        side = self._stage.side
        held = [other for other in sorted(side.up - side.frozen) if other not in (heir, broker)]
        for other in held:
            side.freeze(other)
        lose()
        if heir is not None:
            self._stage.wait(
                f"{heir} is the controller", lambda: self._stage.observer.controller() == heir
            )
        for other in held:
            side.thaw(other)
        _let_take_over(self._stage, heir)

    def kill(self, broker: int) -> None:
        if broker in self._stage.side.frozen:
            self._stage.side.kill(broker)
            self._account.look()
        else:
            self._lose(broker, self._stage.side.kill)

    def freeze(self, broker: int) -> None:
        self._lose(broker, self._stage.side.freeze)

    def stop(self, broker: int) -> None:
        side = self._stage.side
        side.stop(broker)
        side.end_session(broker)
        self._account.look()

    def start(self, broker: int, _is_repaired: bool) -> None:
        self._stage.start(broker, look=False)
        self._account.look()
        self._let_delete()

    def thaw(self, broker: int) -> None:
        self._stage.thaw(broker, look=False)
        self._account.look()
        self._let_delete()

    def _let_delete(self) -> None:
        """Wait until living replicas of deleted topics are deleted, which no request shows.

        A replica whose deletion was answered stays deleted when its broker goes, unlike others
        (ReplicaStateMachine has no transition from ReplicaDeletionSuccessful to Ineligible).
        """
        if self._stage.side.children("/admin/delete_topics"):
            self._stage.pass_time(_ANSWERED_S)

    def resign(self) -> None:
        side = self._stage.side
        hand_over(self._stage, min(side.up - side.frozen), lambda: side.delete_znode("/controller"))
        self._account.look()

    # -- topics --------------------------------------------------------------------------------

    def create(self, name: str, assignment: Assignment, configs: tuple[str, ...]) -> None:
        if name not in self._stage.topics:
            self._stage.topics.append(name)
        config = dict(pair.split("=") for pair in configs)
        fields = creation(name, assignment, config)
        self._account.answer(self._stage.ask(None, "CreateTopics", **fields))
        self._account.look()

    def delete(self, name: str) -> None:
        self._account.answer(self._stage.delete(name))
        self._account.look()
        self._let_delete()

    def expand(self, name: str, assignment: Assignment) -> None:
        node = self._stage.observer.assignment(name)
        added = [{"brokerIds": list(replicas)} for replicas in assignment]
        topic = {"name": name, "count": len(node) + len(added), "assignments": added}
        self._account.answer(
            self._stage.ask(
                None, "CreatePartitions", topics=[topic], timeoutMs=_TIMEOUT_MS, validateOnly=False
            )
        )
        self._account.look()

    def move(self, name: str, partition: int, replicas: tuple[int, ...]) -> None:
        self._reassign(name, partition, list(replicas))

    def cancel(self, name: str, partition: int) -> None:
        self._reassign(name, partition, None)

    def _reassign(self, name: str, partition: int, replicas: list[int] | None) -> None:
        moves = [{"partitionIndex": partition, "replicas": replicas}]
        self._account.answer(
            self._stage.ask(
                None,
                "AlterPartitionReassignments",
                timeoutMs=_TIMEOUT_MS,
                topics=[{"name": name, "partitions": moves}],
            )
        )
        self._account.look()

    def moves(self) -> None:
        self._account.observe(
            "are told",
            lambda: self._stage.ask(
                None, "ListPartitionReassignments", timeoutMs=_TIMEOUT_MS, topics=None
            ),
        )

    def elect(self, kind: str, name: str, partition: int) -> None:
        self._account.answer(
            self._stage.ask(
                None,
                "ElectLeaders",
                electionType=_ELECTIONS[kind],
                topicPartitions=[{"topic": name, "partitions": [partition]}],
                timeoutMs=_TIMEOUT_MS,
            )
        )
        self._account.look()

    def config(self, name: str, change: str) -> None:
        """Set a topic's configuration; delete it if the value is empty."""
        key, value = change.split("=")
        entry = {"name": key, "configOperation": 0 if value else 1, "value": value or None}
        resource = {"resourceType": 2, "resourceName": name, "configs": [entry]}
        self._account.answer(
            self._stage.ask(
                None, "IncrementalAlterConfigs", resources=[resource], validateOnly=False
            )
        )
        self._stage.pass_time(_SPREAD_S)
        self._account.look()

    # -- records -------------------------------------------------------------------------------

    def produce(self, name: str, partition: int, acks: int) -> None:
        value = f"{self._account.number + 1}"
        if acks == 0:
            self._produce_unanswered(name, partition, value)
            return
        self._account.answer(
            self._stage.produce(name, value, partition=partition, acks=acks, timeout_ms=_PRODUCE_MS)
        )
        self._see_offset(name, partition)

    def _produce_unanswered(self, name: str, partition: int, value: str) -> None:
        stage = self._stage
        leader = stage.leader(name, partition)
        client: Client | None = None
        if leader in stage.side.up:  # without a living broker the state keeps the last leader
            version = stage.version("Produce")
            data = records.record_set([value], version, stage.side.now_ms())
            entry = {"name": name, "partitionData": [{"index": partition, "records": data}]}
            client = stage.client(leader)
            client.send(
                "Produce",
                version,
                {"acks": 0, "timeoutMs": 3000, "transactionalId": None, "topicData": [entry]},
            )
        self._see_offset(name, partition)
        if client is not None:
            client.close()

    def _see_offset(self, name: str, partition: int) -> None:
        """Wait until all replicas have the records, as the next step may end the leader.

        Also wait for the high watermark, which followers get with their next fetch: while the ISR
        is too small, a new leader does not advance it (Partition.maybeIncrementLeaderHW).
        """
        stage = self._stage
        self._account.observe("offset", lambda: stage.offset(name, partition))
        told = stage.offset(name, partition)
        if isinstance(told, dict) and told["errorCode"] == "NONE":
            stage.side.wait(lambda: self._is_known(name, partition, told["offset"]), READY_S)

    def _is_known(self, name: str, partition: int, offset: int) -> bool:
        stage = self._stage
        state = stage.observer.state(name, partition)
        followers = stage.side.up - stage.side.frozen
        followers &= set(state["isr"] if state else ())
        return all(
            isinstance(told, dict) and told["highWatermark"] == offset
            for told in (
                stage.fetch(
                    name, partition, offset, broker=broker, maxWaitMs=0, replicaId=_DEBUGGER
                )
                for broker in sorted(followers)
            )
        )

    def send(self, producer: str, name: str, partition: int, how: str) -> None:
        own, epoch = self._producer(producer)
        place = (producer, name, partition)
        after = self._sequences.get(place, 0)
        sequence = {"next": after, "again": max(after - 1, 0), "gap": after + 3, "epoch": 0}[how]
        if how == "epoch":
            epoch += 1
            self._producers[producer] = own, epoch
        answer = self._stage.produce(
            name,
            f"{self._account.number + 1}",
            partition=partition,
            producer=(own, epoch, sequence),
            timeout_ms=_PRODUCE_MS,
        )
        if isinstance(answer, list) and answer[0] == "NONE":
            self._sequences[place] = max(after, sequence + 1) if how != "epoch" else 1
        self._account.answer(answer)
        self._see_offset(name, partition)

    def _producer(self, name: str) -> tuple[int, int]:
        known = self._producers.get(name)
        if known is not None:
            return known
        side = self._stage.side
        found: list[dict[str, Any]] = []

        def has_come() -> bool:
            tree = self._stage.ask(
                min(side.up - side.frozen),
                "InitProducerId",
                transactionalId=None,
                transactionTimeoutMs=60_000,
            )
            if isinstance(tree, dict) and not tree["errorCode"]:
                found.append(tree)
            return bool(found)

        self._stage.wait("a producer id", has_come, READY_S)
        if not found:
            raise Closed("no producer id")
        self._producers[name] = found[0]["producerId"], found[0]["producerEpoch"]
        return self._producers[name]

    def read(self, name: str, partition: int) -> None:
        stage, number = self._stage, partition

        def everything() -> dict[str, Any]:
            committed = {}
            if STATE in self._account.internal:
                committed["committed"] = stage.fetch(name, number, maxWaitMs=0, isolationLevel=1)
            return {
                "content": stage.fetch(name, number, maxWaitMs=0),
                **committed,
                "earliest": stage.offset(name, number, timestamp=-2),
                "latest": stage.offset(name, number),
                "epochs": [stage.epoch_end(name, epoch, number) for epoch in range(6)],
            }

        self._account.observe("content", everything)

    def trim(self, name: str, partition: int, offset: int) -> None:
        leader = self._stage.leader(name, partition)
        if leader < 0:
            self._account.answer("no leader")
            return
        asked = [{"partitionIndex": partition, "offset": offset}]
        self._account.answer(
            self._stage.ask(
                leader,
                "DeleteRecords",
                topics=[{"name": name, "partitions": asked}],
                timeoutMs=3000,
            )
        )
