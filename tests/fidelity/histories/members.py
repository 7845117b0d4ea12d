"""Steps of consumer groups: members join, sync, leave and time out; offsets are committed.

No outcome depends on how long a step takes. Sessions of members are either longer than any history,
or so short that their expiration and its effects are over at the end of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fakekafka.tests.fidelity.histories import internal
from fakekafka.tests.fidelity.histories.account import Account
from fakekafka.tests.fidelity.histories.verbs import HASTY_GROUPS, STATIC_GROUPS
from fakekafka.tests.fidelity.histories.world import GROUPS
from fakekafka.tests.fidelity.protocol.client import Closed
from fakekafka.tests.fidelity.stage import groups
from fakekafka.tests.fidelity.stage.groups import NOT_YET, Member

_LONG_MS = 300_000
_SHORT_MS = 700
_SUBSCRIPTION = b"\0\0\0\0\0\2\0\1a\0\1b\xff\xff\xff\xff"
"""The metadata of a consumer that subscribes to topics a and b (ConsumerProtocol, version 0)."""
_OTHER_PROTOCOLS = {"kind": "connect", "protocols": ["range"]}, {"protocols": ["other"]}
_JOINED = ("errorCode", "generationId", "protocolName", "skipAssignment")
_ASSIGNED = ("errorCode", "assignment")
_TOPICS = ("a", "b", "c", "d")


class Guest:
    """A member of a group, with the response that it waits for."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.waits_for = ""
        """``join`` or ``sync``; empty if the member waits for no response."""
        self.mates: list[str] = []
        """Ids of the members of the last generation that this member led."""

    @property
    def leads(self) -> bool:
        return bool(self.member.id) and self.member.id == self.member.leader


class Members:
    """Carries out the steps of groups."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._stage = account.stage
        self._guests: dict[tuple[str, str], Guest] = {}
        self._strangers: list[Guest] = []
        """Silent members, whose connections stay open."""
        self._heard: dict[str, Any] = {}

    def close(self) -> None:
        for guest in (*self._guests.values(), *self._strangers):
            guest.member.close()

    def coordinator(self, replicas: tuple[int, ...]) -> None:
        self._account.internal.append(groups.OFFSETS)
        internal.provide(self._stage, groups.OFFSETS, replicas)
        groups.wait_coordinator(self._stage, replicas[0], self._account.own("nobody"))
        self._account.look()

    # -- members -------------------------------------------------------------------------------

    def enter(self, group: str, name: str, is_anew: bool) -> None:
        guest = self._guests.get((group, name))
        if guest is not None and guest.waits_for == "join" and not guest.member.id:
            return  # the coordinator has not given the member an id to rejoin with
        broker = self._coordinator()
        if broker < 0:
            self._account.answer("no leader")
            return
        rebalance_ms = _SHORT_MS if group in HASTY_GROUPS else _LONG_MS

        def join() -> None:
            nonlocal guest
            if guest is None:
                guest = Guest(self._new_member(broker, group, name))
                self._guests[group, name] = guest
            else:
                guest.member.move_to(broker)
            if is_anew:
                guest.member.id = ""
            guest.member.begin_join(
                session_ms=_LONG_MS, rebalance_ms=rebalance_ms, metadata=_SUBSCRIPTION
            )
            guest.waits_for = "join"

        self._begin(name, join)
        self._listen(group)

    def doze(self, group: str) -> None:
        """Join with a member that sends nothing more."""
        broker = self._coordinator()
        if broker < 0:
            self._account.answer("no leader")
            return

        def join() -> None:
            name = f"dozer {self._account.number + 1}"
            guest = Guest(self._new_member(broker, group, name))
            self._strangers.append(guest)
            rebalance_ms = _SHORT_MS if group in HASTY_GROUPS else _LONG_MS
            guest.member.begin_join(
                session_ms=_SHORT_MS, rebalance_ms=rebalance_ms, metadata=_SUBSCRIPTION
            )
            guest.waits_for = "join"

        self._begin("dozer", join)
        self._listen(group)

    def knock(self, group: str) -> None:
        """Ask for a member id, and do not join with it."""
        self._join_once(group, {}, _SHORT_MS)

    def misfit(self, group: str, other: int) -> None:
        """Join with another protocol than consumers use, and leave at once."""
        self._join_once(group, _OTHER_PROTOCOLS[other % len(_OTHER_PROTOCOLS)], _LONG_MS)

    def _join_once(self, group: str, others: Mapping[str, Any], session_ms: int) -> None:
        broker = self._coordinator()
        if broker < 0:
            self._account.answer("no leader")
            return
        member = Member(self._stage, broker, self._account.own(group))
        spoken = {"kind": "consumer", "protocols": ["range"], **others}
        told: dict[str, Any] | str = "closed"
        try:
            told = member.knock(
                spoken["protocols"], spoken["kind"], (session_ms, session_ms), _SUBSCRIPTION
            )
        except Closed:
            pass
        finally:
            member.close()
        shown = self._account.plain(told)
        self._account.answer(shown if isinstance(told, str) else shown["errorCode"])
        if not isinstance(told, str) and session_ms == _LONG_MS and told["memberId"]:
            self._leave(broker, group, told["memberId"], None)
        self._listen(group)

    def sync(self, group: str, who: str) -> None:
        """Sync members; the leader sends the assignment if it is among them."""
        broker = self._coordinator()
        if broker < 0:
            self._account.answer("no leader")
            return
        for (own, name), guest in sorted(self._guests.items()):
            is_chosen = {"all": True, "leader": guest.leads, "followers": not guest.leads}[who]
            if own != group or not is_chosen or guest.waits_for or guest.member.generation < 0:
                continue

            def ask(guest: Guest = guest) -> None:
                guest.member.move_to(broker)
                given = {mate: self._name_of(group, mate) for mate in guest.mates}
                guest.member.begin_sync(given if guest.leads else {})
                guest.waits_for = "sync"

            self._begin(name, ask)
        self._listen(group)

    def beat(self, group: str, name: str) -> None:
        """Send a member's heartbeat."""
        member_id, generation, instance = self._identity(group, name)
        told = self._ask(
            "Heartbeat",
            groupId=self._account.own(group),
            generationId=generation,
            memberId=member_id,
            groupInstanceId=instance,
        )
        self._account.answer(told)

    def quit(self, group: str, name: str) -> None:
        member_id, _, instance = self._identity(group, name)
        broker = self._coordinator()
        told = self._leave(broker, group, member_id, instance) if broker >= 0 else "no leader"
        shown = self._account.plain(told)
        if isinstance(shown, dict):
            shown = [shown["errorCode"], *(one["errorCode"] for one in shown.get("members", ()))]
        self._account.answer(shown)
        guest = self._guests.get((group, name))
        if guest is not None and not guest.waits_for:
            guest.member.id, guest.member.generation = "", -1
        self._listen(group)

    def _leave(self, broker: int, group: str, member_id: str, instance: str | None) -> Any:
        return self._stage.ask(
            broker,
            "LeaveGroup",
            groupId=self._account.own(group),
            memberId=member_id,
            members=[{"memberId": member_id, "groupInstanceId": instance}],
        )

    def _identity(self, group: str, name: str) -> tuple[str, int, str | None]:
        guest = self._guests.get((group, name))
        if guest is None:
            return f"stranger {name}", 1, None
        return guest.member.id, guest.member.generation, guest.member.instance

    def _new_member(self, broker: int, group: str, name: str) -> Member:
        is_static = group in STATIC_GROUPS and self._stage.version("JoinGroup") >= 5
        instance = self._account.own(name) if is_static else None
        return Member(self._stage, broker, self._account.own(group), instance)

    def _begin(self, name: str, request: Callable[[], None]) -> None:
        self._heard = {}
        try:
            request()
        except Closed:
            self._heard[name] = "closed"

    # -- what members hear ---------------------------------------------------------------------

    def _listen(self, group: str) -> None:
        self._account.observe("group", lambda: self._seen(group))
        self._heard = {}

    def _seen(self, group: str) -> dict[str, Any]:
        for (own, name), guest in sorted(self._guests.items()):
            if own == group and guest.waits_for and guest.member.has_answer():
                self._hear(group, name, guest)
        for guest in self._strangers:
            if guest.waits_for and guest.member.has_answer():
                self._hear(group, "dozer", guest)
        self._name_the_leader(group)
        waiting = {name: g.waits_for for (own, name), g in self._guests.items() if own == group}
        return {
            "heard": dict(self._heard),
            "waits": {name: waiting[name] for name in sorted(waiting) if waiting[name]},
            "described": self._described(group),
        }

    def _hear(self, group: str, name: str, guest: Guest) -> None:
        was, guest.waits_for = guest.waits_for, ""
        try:
            if was == "sync":
                told = guest.member.end_sync()
                self._heard[name] = [told[key] for key in _ASSIGNED]
                return
            tree = guest.member.take_join()
        except Closed:
            self._heard[name] = "closed"
            return
        guest.mates = [mate["memberId"] for mate in tree["members"]]
        shown = self._stage.normalised(tree)
        self._heard[name] = [shown.get(key) for key in _JOINED]

    def _name_the_leader(self, group: str) -> None:
        """Give the leader, which is random among equal members, the first of their names.

        GroupMetadata takes the leader from a hash table of ids that end with random numbers.
        """
        if group in STATIC_GROUPS:
            return
        for name in list(self._heard):
            leader = self._guests.get((group, name))
            if leader is None or not leader.leads or not leader.mates:
                continue
            mates = [self._name_of(group, mate) for mate in leader.mates]
            first = min((mate for mate in mates if (group, mate) in self._guests), default=name)
            other = self._guests[group, first]
            if first != name and other.waits_for != "join":
                self._guests[group, first], self._guests[group, name] = leader, other
                heard = {first: self._heard.pop(name), name: self._heard.pop(first, None)}
                self._heard |= {key: told for key, told in heard.items() if told is not None}

    def _name_of(self, group: str, member_id: str) -> str:
        for (own, name), guest in self._guests.items():
            if own == group and guest.member.id == member_id:
                return name
        return "a stranger"

    def _described(self, group: str) -> Any:
        tree = self._ask_once("DescribeGroups", groups=[self._account.own(group)])
        if not isinstance(tree, dict):
            return tree
        (told,) = tree["groups"]
        members = [
            [
                self._name_of(group, member["memberId"]),
                member.get("groupInstanceId"),
                member["memberMetadata"].decode("latin-1"),
                member["memberAssignment"].decode("latin-1"),
            ]
            for member in told["members"]
        ]
        shown = {key: told[key] for key in ("errorCode", "groupState", "protocolData")}
        return {**shown, "members who": sorted(members, key=str)}

    # -- offsets and groups --------------------------------------------------------------------

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Commit an offset outside the group, as the tool that resets offsets does."""
        self._commit(group, topic, partition, offset, -1, "", None)

    def commit_as(self, group: str, name: str, topic: str, partition: int, offset: int) -> None:
        member_id, generation, instance = self._identity(group, name)
        self._commit(group, topic, partition, offset, generation, member_id, instance)

    def _commit(
        self,
        group: str,
        topic: str,
        partition: int,
        offset: int,
        generation: int,
        member_id: str,
        instance: str | None,
    ) -> None:
        own, place = self._account.own(group), {(topic, partition): offset}

        def ask() -> Any:
            broker = self._coordinator()
            if broker < 0:
                return "no leader"
            return groups.commit(
                self._stage,
                broker,
                own,
                place,
                generation=generation,
                member=member_id,
                instance=instance,
            )

        self._account.answer(self._account.ask_again(ask, NOT_YET))

    def offsets(self, group: str) -> None:
        asked = [{"name": name, "partitionIndexes": [0, 1, 2]} for name in _TOPICS]
        own = self._account.own(group)
        for is_stable in (False, True) if self._stage.version("OffsetFetch") >= 7 else (False,):
            told = self._ask("OffsetFetch", groupId=own, topics=asked, requireStable=is_stable)
            self._account.answer(told)

    def forget(self, group: str) -> None:
        """Delete the group."""
        self._account.answer(self._ask("DeleteGroups", groupsNames=[self._account.own(group)]))
        self._listen(group)

    def forget_offset(self, group: str, topic: str, partition: int) -> None:
        asked = [{"name": topic, "partitions": [{"partitionIndex": partition}]}]
        told = self._ask("OffsetDelete", groupId=self._account.own(group), topics=asked)
        self._account.answer(told)

    def groups(self) -> None:
        """List and describe all groups."""

        def everything() -> dict[str, Any]:
            tree = self._ask_once("ListGroups")
            listed: Any = tree
            if isinstance(tree, dict):
                listed = {
                    group["groupId"]: [group["protocolType"], group.get("groupState")]
                    for group in tree["groups"]
                    if self._account.is_own(group["groupId"])
                }
            return {"listed": listed, **{name: self._described(name) for name in GROUPS}}

        self._account.observe("groups", everything)

    # -- requests ------------------------------------------------------------------------------

    def _coordinator(self) -> int:
        return self._account.coordinator(groups.OFFSETS)

    def _ask_once(self, api: str, **fields: Any) -> Any:
        broker = self._coordinator()
        return self._stage.ask(broker, api, **fields) if broker >= 0 else "no leader"

    def _ask(self, api: str, **fields: Any) -> Any:
        """Ask the coordinator, and repeat the request while it is loading."""
        return self._account.ask_again(lambda: self._ask_once(api, **fields), NOT_YET)
