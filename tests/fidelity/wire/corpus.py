"""Sends all requests to a broker, and returns the answers by API, request and version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fakekafka.protocol.api_versions import API_NAMES
from fakekafka.tests.fidelity.protocol.client import Client, Closed
from fakekafka.tests.fidelity.protocol.encoding import Malformed, encode
from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.fidelity.stage.groups import OFFSETS, wait_coordinator
from fakekafka.tests.fidelity.stage.normalisation import Names, lines, normalised
from fakekafka.tests.fidelity.stage.spoken import broker_ranges
from fakekafka.tests.fidelity.stage.stage import Stage
from fakekafka.tests.fidelity.wire.mutations import mutations
from fakekafka.tests.fidelity.wire.requests import LEFT_OUT, PARTITIONS, TOPIC, Surroundings, good
from fakekafka.wire.kafka.messages.table import message

SHAPE = ClusterShape(
    brokers=1, racks=(), config=(("auto.create.topics.enable", "false"), ("log.dirs", "logs"))
)
_PATIENCE_S = 2.0
_OF_MEMBERS = ("JoinGroup", "ListGroups", "OffsetDelete")
_SESSIONS_END_S = 11.0
"""Time in seconds after which the members of earlier requests have expired from their groups."""
_OF_THE_MACHINE = ("logDir",)


def asked_apis(kafka_version: str) -> dict[int, tuple[int, int]]:
    """Return the range of versions in which each API is asked, by key."""
    found = {}
    for key, (low, high) in broker_ranges(kafka_version).items():
        if key in LEFT_OUT or key not in API_NAMES:
            continue
        known = message(key, "request").versions
        found[key] = (max(low, known[0]), min(high, known[1]))
    return found


def asked_names(kafka_version: str) -> list[str]:
    """Return the names of the APIs that are asked."""
    return [API_NAMES[key] for key in asked_apis(kafka_version)]


def record(stage: Stage) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """Return by API each request with its version, and the lines of the answer."""
    topic_id = prepare(stage)
    corpus = _Corpus(stage, topic_id)
    return {
        API_NAMES[key]: list(corpus.of(key, low, high))
        for key, (low, high) in asked_apis(stage.kafka_version).items()
    }


def prepare(stage: Stage) -> str:
    """Create a topic with some records, and the coordinators; return the topic's id."""
    stage.create(TOPIC, [[1]] * PARTITIONS)
    for partition in range(PARTITIONS):
        stage.produce(TOPIC, "first", "second", partition=partition)
    for internal in (OFFSETS, "__transaction_state"):
        if internal == OFFSETS or stage.offers("InitProducerId"):
            stage.create(internal, ((1,),), {"cleanup.policy": "compact"})
    wait_coordinator(stage, 1)
    tree = stage.ask(1, "Metadata", topics=[{"name": TOPIC}])
    assert isinstance(tree, dict)
    return str(tree["topics"][0].get("topicId", "0" * 32))


class _Corpus:
    def __init__(self, stage: Stage, topic_id: str) -> None:
        self._stage = stage
        self._topic_id = topic_id
        self._client: Client | None = None
        self._number = 0

    def of(self, key: int, low: int, high: int) -> Iterator[tuple[str, dict[str, str]]]:
        for version in range(low, high + 1):
            if API_NAMES[key] in _OF_MEMBERS:
                self._stage.pass_time(_SESSIONS_END_S)
            for name, body in self._bodies(key, version):
                yield f"{name} v{version}", self._answer(key, version, body)

    def _bodies(self, key: int, version: int) -> Iterator[tuple[str, bytes]]:
        self._number += 1
        about = Surroundings(version, self._number, self._stage.side.now_ms(), self._topic_id)
        tree = good(API_NAMES[key], about)
        whole = encode(key, version, tree)
        yield "good", whole
        for name, changed in mutations(message(key, "request"), version, tree):
            self._number += 1
            if changed.get("groupId") == f"join-{about.number}":
                changed["groupId"] = f"join-{self._number}"  # alone in it, a member need not wait
            try:
                yield name, encode(key, version, changed)
            except (AttributeError, TypeError):
                continue  # the request cannot be encoded
        if whole:
            yield "cut off", whole[:-1]
            yield "nothing", b""
        yield "too long", whole + b"\0"

    def _answer(self, key: int, version: int, body: bytes) -> dict[str, str]:
        """A fresh connection after each that was closed."""
        try:
            if self._client is None:
                self._client = self._stage.client(1)
            self._client.send_body(key, version, body)
            tree: Any = self._client.receive(_PATIENCE_S)
        except Closed as closed:
            if self._client is not None:
                self._client.close()
            self._client = None
            return {"is": "no answer" if "time" in str(closed) else "closed"}
        except Malformed as error:
            self._client = None
            return {"is": f"malformed: {error}"}
        return lines(_without_machine(normalised(Names(), tree)))


def _without_machine(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {
            name: "a path" if name in _OF_THE_MACHINE and value else _without_machine(value)
            for name, value in tree.items()
        }
    if isinstance(tree, list):
        return [_without_machine(element) for element in tree]
    return tree
