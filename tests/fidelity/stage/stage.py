"""``Stage``: carries out the actions of a scenario, and records the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakekafka.protocol.versions import behaviour
from fakekafka.tests.fidelity.protocol import records
from fakekafka.tests.fidelity.protocol.client import Client, Closed
from fakekafka.tests.fidelity.sides.side import Side
from fakekafka.tests.fidelity.stage.normalisation import Names, lines, normalised
from fakekafka.tests.fidelity.stage.observation import Observer
from fakekafka.tests.fidelity.stage.spoken import NotOffered, version_of

Assignment = Sequence[Sequence[int]]
_ELECTION_S = 3.0
_CATCHING_UP_S = 6.0
"""Time in seconds in which a follower joins the ISR, if it does."""
_NOTIFYING_S = 16.0
"""Time in seconds in which leaders find a dead follower and report the ISR: 7.5 s each."""
_TIMEOUT_MS = 10_000


class Broken(Exception):
    """The run of a scenario cannot be judged, because a step failed."""


class Stage:
    """A run of a scenario on one side."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.kafka_version = side.kafka_version
        self.observer = Observer(side)
        self.topics: list[str] = []
        """Topics that ``look`` records."""
        self.steps: list[tuple[str, dict[str, str]]] = []
        self.notes: list[str] = []
        self._names = Names()
        self._registered_in: dict[int, int] = {}
        self._leaders_change_the_isr = not behaviour(self.kafka_version).alter_isr

    # -- what is written down ------------------------------------------------------------------

    def look(self, label: str, topics: Sequence[str] | None = None) -> dict[str, str]:
        """Wait until the cluster has settled, and record its state."""
        shown = self.topics if topics is None else topics
        seen: dict[str, str] = self.side.settle(lambda: self.observer.look(shown))
        if seen != self.side.expected and self.observer.replicas_catch_up(shown):
            self.side.wait(lambda: not self.observer.replicas_catch_up(shown), _CATCHING_UP_S)
            seen = self.side.settle(lambda: self.observer.look(shown))
        if self._leaders_change_the_isr and self.observer.isrs_are_late(shown):
            self.side.wait(lambda: not self.observer.isrs_are_late(shown), _NOTIFYING_S)
            seen = self.side.settle(lambda: self.observer.look(shown))
        self.notice_lost_sessions()
        self.steps.append((f"look: {label}", seen))
        return seen

    def write(self, label: str, value: Any) -> None:
        """Record a response, or another value that a scenario found."""
        self.steps.append((label, lines(value)))

    def normalised(self, tree: Any) -> Any:
        return normalised(self._names, tree)

    def note(self, text: str) -> None:
        """Add a reason why this run cannot be compared."""
        self.notes.append(text)

    def notice_lost_sessions(self) -> None:
        """Note brokers that lost their sessions without being stopped, started or frozen."""
        for broker in self.observer.registered():
            found = self.side.znode(f"/brokers/ids/{broker}")
            if found is None:
                continue
            known = self._registered_in.get(broker)
            if known not in (None, found.created) and broker not in self.side.disturbed:
                self.note(f"broker {broker} lost its session by itself: the machine was busy")
            self._registered_in[broker] = found.created
        self.side.disturbed.clear()

    # -- requests ------------------------------------------------------------------------------

    def ask(
        self, broker: int | None, api: str, version: int | None = None, **fields: Any
    ) -> dict[str, Any] | str:
        """Return the response's tree, or a text if there is none. ``broker`` None: controller."""
        chosen = self.observer.controller() if broker is None else broker
        if chosen is None:
            return "no controller"
        try:
            spoken = version_of(self.kafka_version, api) if version is None else version
            client = self.side.connect(chosen)
        except NotOffered:
            return "not offered"
        except Closed:
            return "refused"
        try:
            return client.ask(api, spoken, fields)
        except Closed:
            return "closed"
        finally:
            client.close()

    def request(
        self, label: str, broker: int | None, api: str, version: int | None = None, **fields: Any
    ) -> dict[str, Any] | str:
        """Send a request, record the response and return it."""
        tree = self.ask(broker, api, version, **fields)
        self.write(label, self.normalised(tree))
        return tree

    def client(self, broker: int) -> Client:
        """Return a connection that the scenario keeps open."""
        return self.side.connect(broker)

    def version(self, api: str) -> int:
        return version_of(self.kafka_version, api)

    def offers(self, api: str) -> bool:
        try:
            self.version(api)
        except NotOffered:
            return False
        return True

    # -- brokers -------------------------------------------------------------------------------

    def kill(self, broker: int, look: bool = True) -> None:
        """Kill a broker's process, and wait until its session has ended."""
        self._end(broker, self.side.kill, "killed", look)

    def stop(self, broker: int, look: bool = True) -> None:
        """Shut a broker down cleanly."""
        self._end(broker, self.side.stop, "stopped", look)

    def start(self, broker: int, look: bool = True) -> None:
        outcome = self.side.start(broker)
        if outcome != "running":
            self.note(f"broker {broker} {outcome} instead of starting")
        else:
            self.wait(f"{broker} is registered", lambda: broker in self.observer.registered())
        if look:
            self.look(f"started {broker}")

    def freeze(self, broker: int, look: bool = True) -> None:
        """Freeze a broker until its session has expired."""
        self._end(broker, self.side.freeze, "froze", look)

    def _end(self, broker: int, how: Callable[[int], object], told: str, look: bool) -> None:
        how(broker)
        self.wait_gone(broker)
        if look:
            self.look(f"{told} {broker}")

    def thaw(self, broker: int, look: bool = True) -> None:
        self.side.thaw(broker)
        self.wait(f"{broker} is back", lambda: broker in self.observer.registered())
        if look:
            self.look(f"thawed {broker}")

    def wait_gone(self, broker: int) -> None:
        """Wait until ZooKeeper, and normally the controller, knows that the broker is gone."""
        observer = self.observer
        self.wait(f"{broker} is gone", lambda: broker not in observer.registered())
        if observer.registered():
            # A new controller of old releases keeps the state of partitions that none can lead.
            self.side.wait(lambda: not observer.leads(broker, self.topics), _ELECTION_S)

    def wait(self, what: str, condition: Callable[[], object], timeout_s: float = 30) -> None:
        if not self.side.wait(condition, timeout_s):
            self.note(f"did not come: {what}")

    def pass_time(self, seconds: float) -> None:
        self.side.pass_time(seconds)

    # -- topics --------------------------------------------------------------------------------

    def create(
        self, name: str, assignment: Assignment, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, include it in looks, and wait until all brokers know its leaders."""
        self.begin_creation(name, assignment, config)
        self.wait_ready({name: len(assignment)})

    def begin_creation(
        self, name: str, assignment: Assignment, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic without waiting for its leaders."""
        self.topics.append(name)
        if len({len(replicas) for replicas in assignment}) > 1:
            self._create_uneven(name, assignment, config or {})
        else:
            tree = self.ask(None, "CreateTopics", **creation(name, assignment, config))
            if isinstance(tree, str) or tree["topics"][0]["errorCode"]:
                raise Broken(f"{name} could not be created: {tree}")

    def wait_ready(self, shapes: Mapping[str, int]) -> None:
        """Wait until all brokers know the leaders of the topics' partitions, and the leaders serve.

        ``shapes`` has the number of partitions by topic.
        """

        def is_ready() -> bool:
            return self.observer.everybody_knows(shapes) and all(
                self._leads(name, number)
                for name, partitions in shapes.items()
                for number in range(partitions)
            )

        self.wait(f"{', '.join(shapes)} can be used", is_ready, 15)

    def _leads(self, topic: str, partition: int) -> bool:
        leader = self.leader(topic, partition)
        if leader < 0:
            return True
        partitions = [{"partitionIndex": partition, "timestamp": -1, "maxNumOffsets": 1}]
        tree = self.ask(
            leader, "ListOffsets", **replica(topics=[{"name": topic, "partitions": partitions}])
        )
        return isinstance(tree, dict) and not tree["topics"][0]["partitions"][0]["errorCode"]

    def _create_uneven(self, name: str, assignment: Assignment, config: Mapping[str, str]) -> None:
        """Create a topic by znode, as its partitions have different numbers of replicas."""
        self.set_config_znode("topics", name, config)
        node: dict[str, Any] = {
            "version": 1,
            "partitions": {str(number): list(r) for number, r in enumerate(assignment)},
        }
        self.side.create_znode(f"/brokers/topics/{name}", as_json(node))

    def set_config_znode(self, kind: str, name: str, config: Mapping[str, str]) -> None:
        """Write a configuration as Kafka's ZooKeeper tools do, and notify brokers."""
        data = as_json({"version": 1, "config": dict(config)})
        path = f"/config/{kind}/{name}"
        if not self.side.set_znode(path, data):
            self.side.create_znode(path, data)
        change = as_json({"version": 2, "entity_path": f"{kind}/{name}"})
        self.side.create_znode("/config/changes/config_change_", change, sequential=True)

    def delete(self, *names: str) -> dict[str, Any] | str:
        return self.ask(None, "DeleteTopics", topicNames=list(names), timeoutMs=_TIMEOUT_MS)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader's id; -1 if there is none."""
        state = self.observer.state(topic, partition)
        return -1 if state is None else int(state["leader"])

    # -- records -------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        *values: str,
        partition: int = 0,
        acks: int = -1,
        broker: int | None = None,
        timeout_ms: int = 3000,
        producer: records.Producer = records.NO_PRODUCER,
        transactional_id: str | None = None,
        key: str | None = None,
        raw: bytes | None = None,
    ) -> Any:
        """Produce a batch, to the leader by default; return the error and the base offset."""
        target = self.leader(topic, partition) if broker is None else broker
        if target < 0:
            return "no leader"
        version = self.version("Produce")
        data = raw or records.record_set(
            values,
            version,
            self.side.now_ms(),
            producer=producer,
            is_transactional=transactional_id is not None,
            key=key,
        )
        fields: dict[str, Any] = {
            "acks": acks,
            "timeoutMs": timeout_ms,
            "topicData": [
                {"name": topic, "partitionData": [{"index": partition, "records": data}]}
            ],
        }
        if version >= 3:
            fields["transactionalId"] = transactional_id
        tree = self.normalised(self.ask(target, "Produce", **fields))
        if isinstance(tree, str):
            return tree
        return [
            tree["responses"][0]["partitionResponses"][0][k] for k in ("errorCode", "baseOffset")
        ]

    def fetch(self, topic: str, partition: int = 0, offset: int = 0, **others: Any) -> Any:
        """Return the records that a consumer fetches, from the leader by default."""
        asked = {"partition": partition, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
        asked |= others.pop("of_partition", {})
        limits = {"maxWaitMs": 100, "minBytes": 1, "maxBytes": 1 << 20}
        broker = others.pop("broker", None)
        return self._ask_about("Fetch", topic, partition, broker, asked, **limits | others)

    def offset(self, topic: str, partition: int = 0, timestamp: int = -1, **others: Any) -> Any:
        """Return the answer of ListOffsets about one partition."""
        broker = others.pop("broker", None)
        asked = {"partitionIndex": partition, "timestamp": timestamp, **others}
        return self._ask_about("ListOffsets", topic, partition, broker, asked)

    def epoch_end(
        self, topic: str, epoch: int, partition: int = 0, *, current: int = -1, **others: Any
    ) -> Any:
        """Return the answer of OffsetForLeaderEpoch about one partition."""
        if not self.offers("OffsetForLeaderEpoch"):
            return "not offered"
        asked = {"partition": partition, "leaderEpoch": epoch, "currentLeaderEpoch": current}
        broker = others.pop("broker", None)
        return self._ask_about("OffsetForLeaderEpoch", topic, partition, broker, asked)

    def _ask_about(
        self, api: str, topic: str, partition: int, broker: int | None, asked: Any, **fields: Any
    ) -> Any:
        """Return the answer about one partition, from its leader by default."""
        target = self.leader(topic, partition) if broker is None else broker
        if target < 0:
            return "no leader"
        key = "name" if api == "ListOffsets" else "topic"
        fields["topics"] = [{key: topic, "partitions": [asked]}]
        if api != "OffsetForLeaderEpoch" or self.version(api) >= 3:
            fields = replica(**fields)
        tree = self.normalised(self.ask(target, api, **fields))
        if isinstance(tree, str):
            return tree
        topics = tree["responses" if api == "Fetch" else "topics"]
        return topics[0]["partitions"][0] if topics else tree


def creation(
    name: str,
    assignment: Assignment | None = None,
    config: Mapping[str, str] | None = None,
    *,
    partitions: int = -1,
    replicas: int = -1,
    timeout_ms: int = _TIMEOUT_MS,
) -> dict[str, Any]:
    """Return the fields of a CreateTopics request for one topic."""
    assigned = [
        {"partitionIndex": number, "brokerIds": list(brokers)}
        for number, brokers in enumerate(assignment or ())
    ]
    configs = [{"name": key, "value": value} for key, value in (config or {}).items()]
    topic = {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": replicas,
        "assignments": assigned,
        "configs": configs,
    }
    return {"topics": [topic], "timeoutMs": timeout_ms}


def replica(**fields: Any) -> dict[str, Any]:
    """Return the fields of a request with the replica id of a client."""
    return {"replicaId": -1, **fields}


def as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
