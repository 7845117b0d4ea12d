"""Runs scenarios on a side: brings the cluster to a known state, and returns the steps."""

from __future__ import annotations

from collections.abc import Collection

from fakekafka.tests.fidelity.sides.side import Side
from fakekafka.tests.fidelity.sides.simulated import SimulatedSide
from fakekafka.tests.fidelity.stage.declaring import Scenario
from fakekafka.tests.fidelity.stage.stage import Stage

_MOVES_MAX = 60


def play(scenario: Scenario, side: Side) -> Stage:
    """Run a scenario on a cluster that other scenarios may have used before."""
    stage = Stage(side)
    prepare(stage, scenario.controller)
    scenario.run(stage)
    stage.notice_lost_sessions()
    return stage


def simulate(scenario: Scenario, kafka_version: str) -> Stage:
    """Run a scenario on a simulation of its own."""
    side = SimulatedSide(kafka_version, scenario.shape)
    try:
        stage = play(scenario, side)
        for name, error in side.simulation.failures:
            stage.write(f"failure of {name}", repr(error))
        return stage
    finally:
        side.close()


def prepare(stage: Stage, controller: int | None, keeps: Collection[str] = ()) -> None:
    """Start all brokers, delete all topics but those to keep, and move the controller."""
    side, observer = stage.side, stage.observer
    for broker in sorted(side.frozen):
        side.thaw(broker)
    for broker in side.broker_ids:
        if broker not in side.up:
            stage.wait_gone(broker)
            side.start(broker)
    everybody = list(side.broker_ids)
    stage.wait("all are registered", lambda: observer.registered() == everybody)
    stage.wait("there is a controller", lambda: observer.controller() is not None)
    side.delete_znode("/admin/preferred_replica_election")  # old releases may leave it there
    topics = _topics(stage, keeps)
    if topics:
        stage.delete(*topics)
        stage.wait("topics are deleted", lambda: not _topics(stage, keeps))
        stage.wait("deletions end", lambda: not side.children("/admin/delete_topics"))
    if controller is not None:
        move_controller(stage, controller)
    stage.wait("brokers know each other", lambda: know_each_other(stage))
    side.let_brokers_ask()
    if stage.offers("InitProducerId"):
        for broker in side.broker_ids:
            _spend_producer_id(stage, broker)
    side.disturbed.clear()
    stage.notice_lost_sessions()
    observer.first_controller_epoch = observer.controller_epoch()


def _topics(stage: Stage, keeps: Collection[str]) -> list[str]:
    found = stage.side.children("/brokers/topics") or []
    return [topic for topic in found if topic not in keeps]


def _spend_producer_id(stage: Stage, broker: int) -> None:
    """Allocate a producer id: the first is 0, which responses also use for no producer."""

    def is_taken() -> bool:
        told = stage.ask(broker, "InitProducerId", transactionalId=None, transactionTimeoutMs=1000)
        return isinstance(told, dict) and not told["errorCode"]

    stage.wait(f"{broker} has producer ids", is_taken, 15)


def move_controller(stage: Stage, target: int) -> None:
    """Delete /controller until the broker has won the election."""
    observer = stage.observer
    for _ in range(_MOVES_MAX):
        if observer.controller() == target:
            return
        epoch = observer.controller_epoch()
        stage.side.delete_znode("/controller")
        stage.wait(
            "another controller",
            lambda epoch=epoch: (  # type: ignore[misc]
                observer.controller() is not None and observer.controller_epoch() > epoch
            ),
        )
        stage.pass_time(0.2)
    stage.note(f"the controller could not be moved to {target}")


def know_each_other(stage: Stage) -> bool:
    """Return True if the metadata of all brokers has all brokers and the controller."""
    controller = stage.observer.controller()
    for broker in stage.side.broker_ids:
        tree = stage.ask(broker, "Metadata", topics=[])
        if isinstance(tree, str) or len(tree["brokers"]) != len(stage.side.broker_ids):
            return False
        if tree["controllerId"] != controller:
            return False
    return True
