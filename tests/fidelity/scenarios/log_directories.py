"""Log directories fail: a leader's, a follower's, all of a broker; brokers start again."""

from __future__ import annotations

from fakekafka.tests.fidelity.sides.side import ClusterShape
from fakekafka.tests.fidelity.stage.declaring import SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario
_TWO_DIRECTORIES = ClusterShape(config=(("log.dirs", "first,second"),))
_FOUND_S = 20.0
"""Time within which a failure is found: a checkpoint is written, and fails, every five seconds."""


def create(stage: Stage) -> None:
    """Create two topics of one partition, which a broker puts in different directories."""
    for name in ("a", "b"):
        stage.create(name, ((1, 2, 3),))
    stage.write("before", [stage.produce(name, "one") for name in ("a", "b")])
    stage.pass_time(6)  # checkpoints are written


def read(stage: Stage, label: str) -> None:
    stage.write(label, {name: stage.fetch(name) for name in ("a", "b")})


@scenario(SINCE_2_8, shape=_TWO_DIRECTORIES)
def directory_of_a_leader_fails(stage: Stage) -> None:
    """A leader's log directory fails; its broker keeps running and restarts without it."""
    create(stage)
    stage.side.fail_directory(1, "a-0")
    stage.wait("another one leads", lambda: stage.leader("a") != 1, _FOUND_S)
    stage.look("failed")
    stage.write("produce", [stage.produce(name, "two") for name in ("a", "b")])
    stage.stop(1)
    stage.start(1)
    stage.stop(1)
    stage.side.repair_directories(1)
    stage.start(1)
    read(stage, "content")


@scenario(SINCE_2_8, shape=_TWO_DIRECTORIES)
def directory_of_a_follower_fails(stage: Stage) -> None:
    """A follower's log directory fails, so that it leaves the ISR, and is repaired."""
    create(stage)
    stage.side.fail_directory(2, "a-0")
    stage.wait("it is out of sync", lambda: _is_out(stage, 2), _FOUND_S)
    stage.look("failed")
    stage.write("produce", [stage.produce(name, "two") for name in ("a", "b")])
    stage.stop(2)
    stage.side.repair_directories(2)
    stage.start(2)
    read(stage, "content")


@scenario(SINCE_2_8, shape=_TWO_DIRECTORIES)
def all_directories_of_a_broker_fail(stage: Stage) -> None:
    """All log directories of a broker fail, which ends it; they are repaired and it restarts."""
    create(stage)
    for name in ("a-0", "b-0"):
        stage.side.fail_directory(1, name)
    stage.wait_gone(1)
    stage.side.up.discard(1)
    stage.look("all failed")
    stage.write("produce", [stage.produce(name, "two") for name in ("a", "b")])
    stage.side.repair_directories(1)
    stage.start(1)
    read(stage, "content")


def _is_out(stage: Stage, broker: int) -> bool:
    state = stage.observer.state("a", 0)
    return state is not None and broker not in state["isr"]
