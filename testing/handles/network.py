"""Handle of the network: cuts, delays, losses, and messages that are held back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...actors.network.latency import Constant, LatencyModel, Lognormal, Uniform
from ...protocol.errors import UsageError
from .. import arguments
from ..parameters.cluster_kinds import GROUPS, LATENCY
from ..parameters.kinds import MEGABYTES_PER_SECOND, PROBABILITY
from .roles import machine_name

if TYPE_CHECKING:
    from ...actors.delivery import Delivery
    from ...actors.network.rules import NetworkRules
    from ..running import RunningCluster

Machine = int | str


def check_link(source: Machine | None = None, target: Machine | None = None) -> None:
    """Raise ``UsageError`` if only one end of a link is given."""
    if (source is None) != (target is None):
        raise UsageError("a link needs both source and target")


def check_groups(groups: Sequence[Sequence[Machine]]) -> None:
    """Raise ``UsageError`` for fewer than two groups, or a machine in two of them."""
    if len(groups) < 2:
        raise UsageError("partition needs two groups or more, such as [1], [2, 3]")
    places: dict[Machine, int] = {}
    for place, group in enumerate(groups):
        for machine in group:
            if places.setdefault(machine, place) != place:
                raise UsageError(
                    f"{machine} is in two groups of the partition {list(groups)}; "
                    "a machine is on one side of a cut"
                )


def latency_model(
    constant_ms: float | None = None,
    uniform_ms: tuple[float, float] | None = None,
    lognormal_ms: tuple[float, float] | None = None,
) -> LatencyModel:
    """Return the one latency model that is given; ``UsageError`` for none or more than one."""
    models = {"constant_ms": constant_ms, "uniform_ms": uniform_ms, "lognormal_ms": lognormal_ms}
    given = LATENCY.read(models)
    if "constant_ms" in given:
        return Constant(given["constant_ms"])
    if "uniform_ms" in given:
        return Uniform(*given["uniform_ms"])
    return Lognormal(*given["lognormal_ms"])


class Hold:
    """A rule that holds messages back, and the messages it holds."""

    __slots__ = ("_network", "_rule", "_running")

    def __init__(self, running: RunningCluster, wants: Callable[[Delivery], bool]) -> None:
        self._running = running
        self._network = running.runtime.network

        def rule(delivery: Delivery) -> bool:  # a new function, as ``wants`` may be given twice
            return wants(delivery)

        rule.__qualname__ = getattr(wants, "__qualname__", repr(wants))
        self._rule = rule

        def hold() -> None:
            self._fault(f"messages of {rule.__qualname__} are held back")
            self._network.hold(rule)

        self._run(hold)

    def __repr__(self) -> str:
        kept = len(self._network.held_by(self._rule))
        return f"<hold of {self._rule.__qualname__}: {kept} messages kept>"

    def _run(self, function: Callable[[], Any]) -> Any:
        self._running.require_going()
        return self._running.in_process(None, function)

    def _fault(self, text: str) -> None:
        self._running.runtime.note("fault", "network", text)

    @property
    def messages(self) -> list[Delivery]:
        """The messages now held back, oldest first."""
        held: list[Delivery] = self._run(lambda: self._network.held_by(self._rule))
        return held

    def release(self, count: int | None = None) -> int:
        """Deliver the oldest ``count`` messages, all by default; return how many there were.

        The hold continues for other messages.
        """
        if count is not None:
            arguments.integer("count", count, 0)

        def release() -> int:
            self._fault(f"messages of {self._rule.__qualname__} are released")
            return self._network.release_held_by(self._rule, count)

        return int(self._run(release))

    def end(self) -> int:
        """Deliver all held messages and end the hold; return how many there were. Idempotent."""

        def end() -> int:
            self._fault(f"messages of {self._rule.__qualname__} are released")
            self._network.stop_holding(self._rule)
            return self._network.release_held_by(self._rule)

        return int(self._run(end))


class NetworkHandle:
    """Faults of the network."""

    __slots__ = ("_network", "_running")

    def __init__(self, running: RunningCluster) -> None:
        self._running = running
        self._network = running.runtime.network

    def __repr__(self) -> str:
        return f"<network: {self._network.describe()}>"

    def _link(
        self, source: Machine | None, target: Machine | None
    ) -> tuple[str, str] | tuple[None, None]:
        """Return the names of a link's ends; None and None stand for all links."""
        check_link(source, target)
        if source is None or target is None:
            return None, None
        return machine_name(self._running, source), machine_name(self._running, target)

    def _run(self, function: Callable[[], Any]) -> Any:
        self._running.require_going()
        return self._running.in_process(None, function)

    def _fault(self, text: str) -> None:
        self._running.runtime.note("fault", "network", text)

    def partition(self, *groups: Sequence[Machine], both_ways: bool = True) -> None:
        """Cut the links between groups of machines.

        ``both_ways=False`` cuts only the direction from earlier to later groups.
        """
        given = GROUPS.check("groups", groups)
        named = [[machine_name(self._running, one) for one in group] for group in given]
        check_groups(named)

        def cut() -> None:
            self._fault(f"partition {named}{'' if both_ways else ' (one way)'}")
            for index, group in enumerate(named):
                for other in named[index + 1 :]:
                    for source in group:
                        for target in other:
                            self._network.cut(source, target)
                            if both_ways:
                                self._network.cut(target, source)

        self._run(cut)

    def isolate(self, machine: Machine) -> None:
        """Cut a machine off from all others."""
        name = machine_name(self._running, machine)
        self.partition([name], [other for other in self._running.machines() if other != name])

    def heal(self) -> None:
        """Mend all cut links, and stop losing messages."""

        def heal() -> None:
            self._fault("heal")
            self._network.heal()

        self._run(heal)

    def restore(self, source: Machine, target: Machine | None = None) -> None:
        """Reset the link from ``source`` to ``target`` to the settings of all links.

        Its own cut, loss, latency and bandwidth end. Without ``target``, every link from and to
        ``source`` is reset.
        """
        machines = self._running.machines()
        name = machine_name(self._running, source)
        if target is None:
            links = [link for other in machines for link in ((name, other), (other, name))]
        else:
            links = [(name, machine_name(self._running, target))]

        def restore() -> None:
            where = f"all links of {name}" if target is None else " to ".join(links[0])
            self._fault(f"{where}: as all others")
            self._network.restore(links)

        self._run(restore)

    def latency(
        self,
        constant_ms: float | None = None,
        *,
        uniform_ms: tuple[float, float] | None = None,
        lognormal_ms: tuple[float, float] | None = None,
        source: Machine | None = None,
        target: Machine | None = None,
    ) -> None:
        """Set the one-way delay of all links, or of the link from ``source`` to ``target``.

        Give one of ``constant_ms``, ``uniform_ms=(low, high)``, ``lognormal_ms=(median, sigma)``.
        """
        model = latency_model(constant_ms, uniform_ms, lognormal_ms)
        description = f"latency {model}"
        self._change(
            source, target, description, lambda *link: self._network.set_latency(model, *link)
        )

    def bandwidth(
        self, mb_per_s: float | None, source: Machine | None = None, target: Machine | None = None
    ) -> None:
        """Limit the bandwidth of all links, or of the link from ``source`` to ``target``.

        ``mb_per_s`` is in megabytes per second; None, the initial value, is no limit. A link sends
        one message at a time, which then takes the link's latency. The size of a message is that of
        its records plus 100 bytes; for a client over TCP, that of its frame.
        """
        rate = 0.0 if mb_per_s is None else MEGABYTES_PER_SECOND.check("mb_per_s", mb_per_s)
        description = "bandwidth " + (
            "without a limit" if mb_per_s is None else f"{mb_per_s:g} MB/s"
        )
        self._change(
            source, target, description, lambda *link: self._network.set_bandwidth(rate, *link)
        )

    def drop(
        self, probability: float, source: Machine | None = None, target: Machine | None = None
    ) -> None:
        """Lose messages with a probability, on all links or on the one given."""
        PROBABILITY.check("probability", probability)
        description = f"messages are lost with probability {probability:g}"
        self._change(
            source, target, description, lambda *link: self._network.set_loss(probability, *link)
        )

    def _change(
        self,
        source: Machine | None,
        target: Machine | None,
        description: str,
        change: Callable[..., object],
    ) -> None:
        """Change the given link, or all links."""
        link = self._link(source, target)

        def act() -> None:
            where = "all links" if source is None else " to ".join(map(str, link))
            self._fault(f"{where}: {description}")
            change(*link)

        self._run(act)

    def hold(self, wants: Callable[[Delivery], bool]) -> Hold:
        """Hold back messages for which ``wants(delivery)`` is true, until they are released.

        The returned ``Hold`` can release them one by one; the network's ``release`` ends every
        hold. If the function raises, the hold ends and the error is reported as an observer's.
        """
        arguments.function("wants", wants, "lambda delivery: delivery.target.machine == 'zk-1'")
        return Hold(self._running, wants)

    @property
    def rules(self) -> NetworkRules:
        """The rules in force now: cuts, losses, delays, and the number of messages held back."""
        rules: NetworkRules = self._run(self._network.rules)
        return rules

    def release(self) -> int:
        """End every hold and deliver its messages in order; return how many there were."""

        def release() -> int:
            self._fault("all messages are released")
            return self._network.release()

        return int(self._run(release))
