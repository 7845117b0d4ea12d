"""A program that copies from topic to topic while brokers die: the copy is the original."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from .machine import Served, SuiteError
from .suite import Outcome, Outcomes, Result

KILLS = int(os.environ.get("FAKEKAFKA_EXACTLY_ONCE_KILLS", "20"))
PARTITIONS = 2
_HEALED_S = 120.0
_LATE_S = 3.0
"""What comes twice may come a moment after all are there."""
_TARGETS = (
    "leader:__transaction_state-0",
    "coordinator:copiers",
    *(f"leader:{topic}-{number}" for topic in ("in", "out") for number in range(PARTITIONS)),
)
_QUICK = {"retry.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "log_level": 0}


class Control:
    """The control API of a served cluster."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def ask(self, method: str, path: str, **body: Any) -> Any:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self._url + path, data=data, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def broker(self, name: str) -> int | None:
        """Return the id of a live broker by its role, if there is one."""
        try:
            found = self.ask("GET", f"/brokers/{name}")
        except urllib.error.HTTPError as error:
            error.close()
            return None
        return int(found["id"]) if found["state"] == "running" else None

    def start(self, broker: int) -> None:
        """Its session may end while it starts, on a machine that has more to do."""
        while True:
            try:
                self.ask("POST", f"/brokers/{broker}/start")
                return
            except urllib.error.HTTPError as error:
                error.close()


def _read_all(servers: str, topic: str, count: int) -> list[list[int]]:
    """Return the committed numbers of each partition, and what comes a moment later."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "checker",
            "isolation.level": "read_committed",
            **_QUICK,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    values: list[list[int]] = [[] for _ in range(PARTITIONS)]
    deadline_s = time.monotonic() + _HEALED_S
    late_s: float | None = None
    while time.monotonic() < (deadline_s if late_s is None else late_s):
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                values[message.partition() or 0].append(int(message.value() or b""))
        if late_s is None and sum(map(len, values)) >= count:
            late_s = time.monotonic() + _LATE_S
    consumer.close()
    return values


class Source:
    """Numbers, written in turn to the partitions of topic ``in``."""

    def __init__(self, servers: str, chance: random.Random) -> None:
        self.sent = 0
        self._chance = chance
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 1,
                **_QUICK,
            }
        )

    def write_for(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            for _ in range(self._chance.randint(0, 5)):
                self._producer.produce("in", b"%d" % self.sent, partition=self.sent % PARTITIONS)
                self.sent += 1
            self._producer.poll(0.02)

    def end(self) -> None:
        left = self._producer.flush(_HEALED_S)
        if left:
            raise SuiteError(f"{left} records are not answered")


def _kill(control: Control, source: Source, chance: random.Random) -> None:
    """Kill brokers, one after the other, while records are produced."""
    source.write_for(0.2)
    for _ in range(KILLS):
        source.write_for(chance.choice((0.05, 0.2, 0.5)))
        victim = control.broker(chance.choice(_TARGETS)) or chance.randint(1, 4)
        control.ask("POST", f"/brokers/{victim}/kill")
        source.write_for(chance.choice((0.05, 0.3, 0.6)))
        control.start(victim)


def copied(cluster: Served, command: Sequence[str | Path], folder: Path) -> Outcomes:
    """Judge a program that copies topic ``in`` to ``out`` until it is ended."""
    if cluster.control_url is None:
        raise SuiteError("brokers are killed by the control API: serve it with --control-port")
    control = Control(cluster.control_url)
    chance = random.Random(int(os.environ.get("FAKEKAFKA_EXACTLY_ONCE_SEED", "7")))
    source = Source(cluster.bootstrap, chance)
    said = folder / "copy.log"
    arguments = [str(part) for part in (*command, cluster.bootstrap)]
    with said.open("w") as written:
        process = subprocess.Popen(
            arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=written, stderr=written
        )
        try:
            _kill(control, source, chance)
            source.end()
            originals = _read_all(cluster.bootstrap, "in", source.sent)
            copies = _read_all(cluster.bootstrap, "out", source.sent)
            has_ended = process.poll() is not None
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()
    told = said.read_text(errors="replace").splitlines()
    print(
        f"  {KILLS} kills, {source.sent} records, {sum('committed' in line for line in told)} "
        f"transactions, {sum(line.startswith('again') for line in told)} new instances"
    )
    reasons = {
        "the original is whole": sorted(chain(*originals)) != list(range(source.sent)),
        "each record is copied once, in its order": copies != originals,
        "the program goes on": has_ended,
    }
    counts = f"{sum(map(len, originals))} and {sum(map(len, copies))} of {source.sent}; {told[-3:]}"
    return {
        name: Outcome(Result.FAILED, counts) if is_wrong else Outcome(Result.PASSED)
        for name, is_wrong in reasons.items()
    }
