"""Topics that many scenarios use: every order of replicas, with and without unclean election."""

from __future__ import annotations

from fakekafka.tests.fidelity.stage.stage import Stage

ONE = ((1,), (2,), (3,))
TWO = ((1, 2), (2, 3), (3, 1))
THREE = ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1))
UNCLEAN = {"unclean.leader.election.enable": "true"}
WRITTEN = ("two", "three", "three-min2", "two-unclean")


SHAPES = {
    "one": (ONE, {}),
    "two": (TWO, {}),
    "three": (THREE, {}),
    "one-unclean": (ONE[:1], UNCLEAN),
    "two-unclean": (TWO, UNCLEAN),
    "three-unclean": (THREE, UNCLEAN),
    "three-min2": (THREE[:1], {"min.insync.replicas": "2"}),
}


def create_all(stage: Stage) -> None:
    """Create topics of one, two and three replicas in every order of leaders."""
    for name, (assignment, config) in SHAPES.items():
        stage.begin_creation(name, assignment, config)
    stage.wait_ready({name: len(assignment) for name, (assignment, _) in SHAPES.items()})
    stage.look("created")


def write(stage: Stage, label: str) -> None:
    """Write a record with each kind of acks to the first partition of some topics."""
    answers = {
        f"{topic} acks {acks}": stage.produce(topic, f"{label} {acks}", acks=acks, timeout_ms=2000)
        for topic in WRITTEN
        for acks in (-1, 1)
    }
    stage.write(f"produce {label}", answers)
    stage.pass_time(0.7)  # replicas have all records before the next fault


def read(stage: Stage, epochs: int = 8) -> None:
    """Record the contents of the first partitions, their offsets and the ends of their epochs."""
    for topic in WRITTEN:
        found = {
            "content": stage.fetch(topic),
            "earliest": stage.offset(topic, timestamp=-2),
            "latest": stage.offset(topic),
        }
        for epoch in range(epochs):
            found[f"epoch {epoch}"] = stage.epoch_end(topic, epoch)
        stage.write(f"read {topic}", found)
