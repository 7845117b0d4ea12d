"""Brokers come and go, freeze and lose their sessions; the controller moves."""

from __future__ import annotations

from fakekafka.tests.fidelity.stage import topics
from fakekafka.tests.fidelity.stage.declaring import SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario
_THREE = ((1, 2, 3), (2, 3, 1), (3, 1, 2))


@scenario()
def rolling_crash(stage: Stage) -> None:
    """Each broker in turn crashes and restarts before the next one crashes."""
    topics.create_all(stage)
    for broker in (1, 2, 3):
        topics.write(stage, f"before {broker} crashed")
        stage.kill(broker)
        stage.start(broker)
    topics.read(stage)


@scenario()
def rolling_restart(stage: Stage) -> None:
    """Each broker in turn shuts down cleanly and restarts before the next one stops."""
    topics.create_all(stage)
    for broker in (1, 2, 3):
        topics.write(stage, f"before {broker} stopped")
        stage.stop(broker)
        stage.start(broker)
    topics.read(stage)


@scenario(controller=1)
def controller_that_leads_stops(stage: Stage) -> None:
    """The controller shuts down cleanly: it hands over its leaderships before it resigns."""
    stage.create("c", _THREE)
    stage.look("created")
    stage.stop(1)
    stage.start(1)


@scenario(controller=1)
def controller_that_leads_crashes(stage: Stage) -> None:
    """The controller crashes while it also leads a partition."""
    stage.create("c", _THREE)
    stage.look("created")
    stage.kill(1)
    stage.start(1)


@scenario()
def controller_znode_is_deleted(stage: Stage) -> None:
    """The znode /controller is deleted three times, and a controller elected each time."""
    stage.create("c", _THREE)
    stage.look("created")
    for turn in range(3):
        epoch = stage.observer.controller_epoch()
        stage.side.delete_znode("/controller")
        stage.wait(
            "another controller",
            lambda epoch=epoch: stage.observer.controller_epoch() > epoch,  # type: ignore[misc]
        )
        stage.look(f"turn {turn}")
    stage.write("produce", stage.produce("c", "a"))


@scenario(controller=None)
def everybody_crashes_at_once(stage: Stage) -> None:
    """All brokers crash at once; the first one to restart becomes the controller."""
    stage.create("c", _THREE)
    stage.create("u", _THREE, topics.UNCLEAN)
    stage.write("produce", [stage.produce(name, "a") for name in ("c", "u")])
    stage.look("created")
    for broker in (1, 2, 3):
        stage.side.kill(broker)
    for broker in (1, 2, 3):
        stage.wait_gone(broker)
    stage.look("all are gone")
    for broker in (3, 1, 2):
        stage.start(broker)
    stage.write("content", [stage.fetch(name) for name in ("c", "u")])


@scenario(controller=3)
def leader_freezes(stage: Stage) -> None:
    """A leader freezes until its session expires, and resumes as a follower."""
    stage.create("f", ((1, 2, 3), (1, 2), (1,)))
    stage.write("before", stage.produce("f", "a"))
    stage.freeze(1)
    stage.write("while frozen", stage.produce("f", "b"))
    stage.thaw(1)
    stage.write("after", [stage.produce("f", "c"), stage.fetch("f")])


@scenario(controller=3)
def follower_freezes(stage: Stage) -> None:
    """A follower freezes until its session expires, and resumes."""
    stage.create("f", ((1, 2, 3), (1, 2)))
    stage.write("before", stage.produce("f", "a"))
    stage.freeze(2)
    stage.write("while frozen", stage.produce("f", "b"))
    stage.thaw(2)
    stage.write("after", stage.produce("f", "c"))


@scenario(controller=3)
def controller_freezes(stage: Stage) -> None:
    """The controller freezes until its session expires and another broker takes over."""
    stage.create("f", ((1, 2), (2, 1), (1, 3), (3, 1), (3,)))
    stage.look("created")
    stage.freeze(3)
    stage.thaw(3)
    stage.write("produce", stage.produce("f", "a"))


@scenario(controller=1)
def controller_that_leads_freezes(stage: Stage) -> None:
    """A broker that is both controller and leader freezes until its session expires."""
    stage.create("f", _THREE)
    stage.look("created")
    stage.freeze(1)
    stage.thaw(1)


@scenario()
def two_of_three_freeze(stage: Stage) -> None:
    """Two of three replicas freeze, so that the ISR shrinks to one, and resume one by one."""
    stage.create("f", _THREE, {"min.insync.replicas": "2"})
    stage.freeze(1)
    stage.freeze(2)
    stage.write("under the minimum", stage.produce("f", "a"))
    stage.thaw(2)
    stage.write("with the minimum", stage.produce("f", "b"))
    stage.thaw(1)


@scenario()
def follower_is_slow_but_registered(stage: Stage) -> None:
    """A follower stops, misses a record, restarts and catches up, three times."""
    stage.create("s", ((1, 2),))
    for number in range(3):
        stage.stop(2, look=False)
        stage.write(f"alone {number}", stage.produce("s", f"{number}"))
        stage.start(2)
    stage.write("content", stage.fetch("s"))


@scenario(controller=3)
def crash_of_a_leader_with_unreplicated_records(stage: Stage) -> None:
    """A follower that lacks the last records becomes the leader by an unclean election."""
    stage.create("l", ((1, 2),), topics.UNCLEAN)
    stage.write("both", stage.produce("l", "a"))
    stage.kill(2, look=False)
    stage.write("alone", [stage.produce("l", "b"), stage.produce("l", "c")])
    stage.kill(1)
    stage.start(2)
    stage.write("unclean", [stage.produce("l", "d"), stage.fetch("l")])
    stage.start(1)
    stage.write("epochs", {f"epoch {epoch}": stage.epoch_end("l", epoch) for epoch in range(6)})
    stage.kill(2)
    stage.write("after truncation", [stage.fetch("l"), stage.offset("l")])


@scenario(controller=3)
def offsets_and_epochs_after_failovers(stage: Stage) -> None:
    """Brokers crash, stop and restart between writes; the end of each epoch is then asked for."""
    stage.create("o", ((1, 2, 3),))

    def write(label: str) -> None:
        stage.write(label, stage.produce("o", f"{label} a", f"{label} b"))

    write("first")
    stage.kill(1, look=False)
    write("without 1")
    stage.start(1, look=False)
    write("with 1")
    stage.kill(2, look=False)
    write("without 2")
    stage.start(2, look=False)
    stage.stop(3, look=False)
    write("without 3")
    stage.start(3)
    stage.write(
        "offsets",
        {
            "earliest": stage.offset("o", timestamp=-2),
            "latest": stage.offset("o"),
            **{f"epoch {epoch}": stage.epoch_end("o", epoch) for epoch in range(-1, 9)},
        },
    )
    stage.write("content", stage.fetch("o"))


@scenario()
def creation_with_a_broker_down(stage: Stage) -> None:
    """Topics are created while the broker of a replica is down, which then starts."""
    stage.kill(2)
    stage.create("d", ((1, 2), (2, 1), (3, 1)))
    stage.look("created")
    stage.start(2)


@scenario()
def creation_with_all_replicas_down(stage: Stage) -> None:
    """A topic is created by znode while its replicas are down; the first to start leads it."""
    stage.kill(1, look=False)
    stage.kill(2)
    stage.side.create_znode("/brokers/topics/d", b'{"version":1,"partitions":{"0":[1,2]}}')
    stage.topics.append("d")
    stage.look("created")
    stage.start(2)
    stage.start(1)


@scenario(SINCE_2_8)
def broker_starts_before_its_session_has_expired(stage: Stage) -> None:
    """A crashed broker restarts before its session has expired; its next start succeeds."""
    stage.create("e", _THREE)
    stage.side.kill(1)
    if stage.side.start(1) != "running":  # a simulated broker is started again by itself
        stage.wait_gone(1)
        stage.side.start(1)
    stage.look("started")
    stage.write("produce", stage.produce("e", "a"))
