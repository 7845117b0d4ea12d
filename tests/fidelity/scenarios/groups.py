"""Consumer groups: members come and go, offsets are committed, coordinators fail."""

from __future__ import annotations

from typing import Any

from fakekafka.tests.fidelity.stage import groups
from fakekafka.tests.fidelity.stage.declaring import EVERY, SINCE_1_1, SINCE_2_8, Catalogue
from fakekafka.tests.fidelity.stage.groups import Member
from fakekafka.tests.fidelity.stage.stage import Stage

SCENARIOS = Catalogue()
scenario = SCENARIOS.scenario


def describe(stage: Stage, label: str, *names: str, broker: int = 1) -> None:
    tree = stage.ask(broker, "DescribeGroups", groups=list(names))
    if isinstance(tree, dict):
        for group in tree["groups"]:
            for member in group["members"]:
                member.pop("clientHost")
    stage.write(label, stage.normalised(tree))


@scenario(EVERY)
def member_joins_and_leaves(stage: Stage) -> None:
    """A single member joins a group, syncs, sends heartbeats, commits and leaves."""
    groups.have_coordinator(stage, 1)
    stage.create("t", ((1,),))
    describe(stage, "before", "alone")
    member = Member(stage, 1, "alone")
    stage.write("join", member.join())
    describe(stage, "joined", "alone")
    stage.write("heartbeat before sync", member.heartbeat())
    stage.write("sync", member.sync({member.id: "all"}))
    describe(stage, "stable", "alone")
    stage.write("heartbeat", member.heartbeat())
    stage.write("old generation", member.heartbeat(0))
    stage.write("future generation", member.heartbeat(9))
    answer = groups.commit(
        stage, 1, "alone", {("t", 0): 5}, generation=member.generation, member=member.id
    )
    stage.write("commit", stage.normalised(answer))
    stage.write("sync again", member.sync())
    stage.write("leave", member.leave())
    stage.write("heartbeat after leaving", member.heartbeat())
    describe(stage, "empty", "alone")
    offsets = groups.offsets_of(stage, 1, "alone", {"t": [0, 1]})
    stage.write("offsets", stage.normalised(offsets))
    member.close()


@scenario(EVERY)
def two_members_rebalance(stage: Stage) -> None:
    """A second member joins a group and leaves it again, and the first rejoins each time."""
    groups.have_coordinator(stage, 1)
    first = Member(stage, 1, "two")
    second = Member(stage, 1, "two")
    stage.write("first joins", first.join())
    stage.write("first syncs", first.sync({first.id: "all"}))
    second.begin_join()
    stage.pass_time(0.5)
    stage.write("first is told", first.heartbeat())
    describe(stage, "preparing", "two")
    first.begin_join()
    stage.write("first joins again", first.end_join())
    stage.write("second joined", second.end_join())
    second.begin_sync()
    stage.pass_time(0.2)
    describe(stage, "completing", "two")
    stage.write("first syncs again", first.sync({first.id: "a", second.id: "b"}))
    stage.write("second syncs", second.end_sync())
    describe(stage, "stable", "two")
    stage.write("second leaves", second.leave())
    stage.write("first is told again", first.heartbeat())
    stage.write("first joins alone", first.join())
    first.close()
    second.close()


@scenario(EVERY)
def group_errors(stage: Stage) -> None:
    """Unknown members, wrong protocols, invalid names and timeouts are sent to a coordinator."""
    groups.have_coordinator(stage, 1)
    member = Member(stage, 1, "errors")
    member.join()
    member.sync({member.id: "all"})
    stranger = Member(stage, 1, "errors")
    stranger.id, stranger.generation = "stranger", 1
    stage.write("unknown member's heartbeat", stranger.heartbeat())
    stage.write("unknown member's sync", stranger.sync())
    stage.write("unknown member leaves", stranger.leave())
    stage.write("unknown member joins", stranger.join())
    newcomer = Member(stage, 1, "errors")
    stage.write("another kind", newcomer.join(kind="connect"))
    newcomer.id = ""
    stage.write("another protocol", newcomer.join(protocols=["other"]))
    for label, session_ms in (("short session", 1), ("long session", 10_000_000)):
        newcomer.id = ""
        stage.write(label, newcomer.join(session_ms=session_ms))
    nameless = Member(stage, 1, "")
    stage.write("no name", nameless.join())
    elsewhere = Member(stage, 2, "errors")
    stage.write("not the coordinator", elsewhere.join())
    elsewhere.id = member.id
    stage.write("heartbeat elsewhere", elsewhere.heartbeat())
    describe(stage, "described elsewhere", "errors", broker=2)
    for one in (member, stranger, newcomer, nameless, elsewhere):
        one.close()


@scenario(EVERY)
def session_of_a_member_expires(stage: Stage) -> None:
    """A member sends no heartbeats and is removed, which leaves its group empty."""
    groups.have_coordinator(stage, 1)
    member = Member(stage, 1, "silent")
    member.join(session_ms=6000)
    member.sync({member.id: "all"})
    stage.pass_time(4)
    stage.write("in time", member.heartbeat())
    stage.pass_time(8)
    stage.write("too late", member.heartbeat())
    describe(stage, "after", "silent")
    member.close()


@scenario(EVERY)
def offsets_without_a_group(stage: Stage) -> None:
    """A client that is no member of a group commits offsets, rightly and wrongly."""
    groups.have_coordinator(stage, 1)
    stage.create("t", ((1,), (2,)))

    def commit(label: str, group: str, partition: tuple[str, int], **others: Any) -> None:
        broker = others.pop("broker", 1)
        answer = groups.commit(stage, broker, group, {partition: 7}, **others)
        stage.write(label, stage.normalised(answer))

    def fetch(label: str, group: str, asked: dict[str, list[int]] | None) -> None:
        stage.write(label, stage.normalised(groups.offsets_of(stage, 1, group, asked)))

    fetch("nothing", "simple", {"t": [0]})
    commit("good", "simple", ("t", 0), text="note")
    commit("another", "simple", ("t", 1), text=None)
    commit("unknown topic", "simple", ("nope", 0))
    commit("unknown partition", "simple", ("t", 9))
    commit("a generation without a member", "simple", ("t", 0), generation=3)
    commit("a member", "simple", ("t", 0), generation=1, member="stranger")
    commit("long text", "simple", ("t", 0), text="x" * 5000)
    commit("not the coordinator", "simple", ("t", 0), broker=2)
    commit("no group", "", ("t", 0))
    fetch("asked for", "simple", {"t": [0, 1, 9], "nope": [0]})
    if stage.kafka_version != "0.10":
        fetch("all", "simple", None)
        fetch("all of nobody", "nobody", None)
    describe(stage, "described", "simple")


@scenario(EVERY)
def coordinators_are_looked_for(stage: Stage) -> None:
    """FindCoordinator is asked while the coordinator is up, down, and up again."""
    groups.have_coordinator(stage, 2)
    stage.write("group", stage.normalised(groups.coordinator(stage, 1, "a group")))
    stage.write("no name", stage.normalised(groups.coordinator(stage, 1, "")))
    if stage.kafka_version != "0.10":
        stage.write("bad kind", stage.normalised(groups.coordinator(stage, 1, "a", 7)))
    stage.kill(2)
    stage.write("it is dead", stage.normalised(groups.coordinator(stage, 1, "a group")))
    stage.start(2)
    groups.wait_coordinator(stage, 2)
    stage.write("it is back", stage.normalised(groups.coordinator(stage, 3, "a group")))


@scenario(EVERY)
def coordinator_crashes(stage: Stage) -> None:
    """A group's coordinator crashes; the next one has loaded its members and offsets."""
    groups.have_coordinator(stage, 1, 2)
    stage.create("t", ((3,),))
    member = Member(stage, 1, "moved")
    member.join()
    member.sync({member.id: "all"})
    groups.commit(stage, 1, "moved", {("t", 0): 5}, generation=member.generation, member=member.id)
    stage.kill(1, look=False)
    groups.wait_coordinator(stage, 2)
    describe(stage, "described", "moved", broker=2)
    follower = Member(stage, 2, "moved")
    follower.id, follower.generation = member.id, member.generation
    stage.write("heartbeat", follower.heartbeat())
    offsets = groups.offsets_of(stage, 2, "moved", {"t": [0]})
    stage.write("offsets", stage.normalised(offsets))
    stage.write("leaves", follower.leave())
    follower.close()
    stage.start(1, look=False)


@scenario(SINCE_1_1)
def groups_are_deleted(stage: Stage) -> None:
    """DeleteGroups is asked for groups with and without members, and unknown ones (KIP-229)."""
    groups.have_coordinator(stage, 1)
    stage.create("t", ((1,),))
    groups.commit(stage, 1, "empty", {("t", 0): 1})
    member = Member(stage, 1, "busy")
    member.join()
    member.sync({member.id: "all"})

    def delete(label: str, *names: str, broker: int = 1) -> None:
        stage.request(label, broker, "DeleteGroups", groupsNames=list(names))

    delete("some", "empty", "busy", "unknown", "")
    delete("twice", "empty")
    delete("not the coordinator", "busy", broker=2)
    stage.request("listed", 1, "ListGroups")
    member.leave()
    delete("after it left", "busy")
    stage.request("listed in the end", 1, "ListGroups")
    member.close()


@scenario(EVERY)
def groups_are_listed(stage: Stage) -> None:
    """ListGroups is asked at the coordinator of two groups and at another broker."""
    groups.have_coordinator(stage, 1)
    stage.create("t", ((1,),))
    stage.request("none", 1, "ListGroups")
    groups.commit(stage, 1, "simple", {("t", 0): 1})
    member = Member(stage, 1, "members")
    member.join()
    stage.request("two", 1, "ListGroups")
    stage.request("elsewhere", 2, "ListGroups")
    if stage.kafka_version in SINCE_2_8:
        stage.request("empty ones", 1, "ListGroups", statesFilter=["Empty"])
        stage.request("unknown state", 1, "ListGroups", statesFilter=["Nope"])
    member.close()


@scenario(SINCE_2_8)
def offsets_are_deleted(stage: Stage) -> None:
    """OffsetDelete removes the offsets of a group without members (KIP-496)."""
    groups.have_coordinator(stage, 1)
    stage.create("t", ((1,), (2,)))
    groups.commit(stage, 1, "g", {("t", 0): 1})

    def delete(label: str, group: str, topic: str, *partitions: int) -> None:
        asked = [{"name": topic, "partitions": [{"partitionIndex": n} for n in partitions]}]
        stage.request(label, 1, "OffsetDelete", groupId=group, topics=asked)

    delete("good", "g", "t", 0)
    delete("unknown partition", "g", "t", 9)
    delete("unknown topic", "g", "nope", 0)
    delete("unknown group", "nobody", "t", 0)
    offsets = groups.offsets_of(stage, 1, "g", {"t": [0, 1]})
    stage.write("offsets", stage.normalised(offsets))


@scenario(SINCE_2_8)
def static_member(stage: Stage) -> None:
    """A static member rejoins without a rebalance, and its old member id is fenced (KIP-345)."""
    groups.have_coordinator(stage, 1)
    first = Member(stage, 1, "static", "one")
    stage.write("joins", first.join())
    stage.write("syncs", first.sync({first.id: "all"}))
    again = Member(stage, 1, "static", "one")
    stage.write("joins again", again.join())
    stage.write("syncs again", again.sync({again.id: "all"}))
    stage.write("the old one's heartbeat", first.heartbeat())
    stage.write("the new one's heartbeat", again.heartbeat())
    stage.write("the old one syncs", first.sync())
    describe(stage, "described", "static")
    stage.write("the old one leaves", first.leave())
    stage.write("the new one leaves", again.leave())
    first.close()
    again.close()


@scenario(SINCE_1_1)
def topic_with_committed_offsets_is_deleted(stage: Stage) -> None:
    """A topic is deleted, and the offsets that groups committed for it are deleted, too."""
    groups.have_coordinator(stage, 1)
    stage.create("t", ((1,),))
    stage.create("u", ((1,),))
    groups.commit(stage, 1, "g", {("t", 0): 1, ("u", 0): 2})
    stage.delete("t")
    stage.wait("it is gone", lambda: stage.side.znode("/brokers/topics/t") is None)
    stage.pass_time(1)
    stage.write("offsets", stage.normalised(groups.offsets_of(stage, 1, "g", None)))
