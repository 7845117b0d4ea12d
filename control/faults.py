"""The active faults in words, each with the requests that end it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..actors.network.rules import NetworkRules
    from ..testing.handles.injection import Injection
    from .operation import RequestedFault, ServedCluster

_CUTS_SHOWN_MAX = 20
"""Maximum number of cut links with an entry of their own."""


class Ending(NamedTuple):
    """A request to this API that ends a fault."""

    title: str
    """Title of a button, such as ``Heal``."""
    method: str
    path: str
    body: Mapping[str, Any] = {}


class Fault(NamedTuple):
    """A fault that was requested and is still active."""

    text: str
    endings: tuple[Ending, ...] = ()
    detail: str = ""
    """Current state of the fault, such as the number of held messages."""


def active_faults(served: ServedCluster) -> Iterator[Fault]:
    """Yield all active faults of brokers, links, messages and responses."""
    running = served.cluster.running
    for broker_id, process in running.processes.items():
        at = f"/brokers/{broker_id}"
        if process.is_alive and process.process.paused:
            yield Fault(
                f"broker {broker_id} is paused", (Ending("Resume", "POST", f"{at}/resume"),)
            )
        disk = process.spec.disk
        for number, path in enumerate(disk.directories):
            if path in disk.offline_dirs:
                repair = Ending("Repair", "POST", f"{at}/repair_log_dir", {"directory": number})
                yield Fault(f"log directory {path} of broker {broker_id} is offline", (repair,))
    rules = served.cluster.network.rules
    yield from _cuts(rules, running.machines())
    yield from _losses(rules)
    yield from _delays(rules)
    yield from _limits(rules)
    for number, fault in served.holds.items():
        yield _hold(number, fault.request, len(fault.handle.messages))
    for number, injection in served.injections.items():
        if injection.handle.remaining != 0:
            yield _injection(number, injection)


def isolated(rules: NetworkRules, machines: list[str]) -> list[str]:
    """Return the machines whose links with all other machines are cut, in both directions."""
    cuts = frozenset(rules.cuts)
    if len(cuts) < len(machines):
        return []
    return [
        name
        for name in machines
        if len(machines) > 1
        and all(
            (name, other) in cuts and (other, name) in cuts for other in machines if other != name
        )
    ]


def _restore(source: str, target: str) -> tuple[Ending, ...]:
    body = {"source": source, "target": target}
    return (Ending("Heal", "POST", "/network/restore", body),)


def _cuts(rules: NetworkRules, machines: list[str]) -> Iterator[Fault]:
    cut_off = isolated(rules, machines)
    for name in cut_off:
        yield Fault(
            f"{name} is isolated", (Ending("Heal", "POST", "/network/restore", {"source": name}),)
        )
    others = [cut for cut in rules.cuts if not {*cut} & {*cut_off}]
    for source, target in others[:_CUTS_SHOWN_MAX]:
        yield Fault(f"nothing gets from {source} to {target}", _restore(source, target))
    if len(others) > _CUTS_SHOWN_MAX:
        heal = Ending("Heal all", "POST", "/network/heal")
        yield Fault(f"{len(others) - _CUTS_SHOWN_MAX} more links are cut", (heal,))


def _losses(rules: NetworkRules) -> Iterator[Fault]:
    if rules.loss:
        end = Ending("Lose none", "POST", "/network/drop", {"probability": 0})
        yield Fault(f"{rules.loss:.4g} of all messages are lost", (end,))
    for (source, target), loss in rules.link_losses.items():
        if loss != rules.loss:
            text = f"{loss:.4g} of the messages from {source} to {target} are lost"
            yield Fault(text, _restore(source, target))


def _delays(rules: NetworkRules) -> Iterator[Fault]:
    if rules.latency != "0 ms":
        end = Ending("No delay", "POST", "/network/latency", {"constant_ms": 0})
        yield Fault(f"every message takes {rules.latency}", (end,))
    for (source, target), latency in rules.link_latencies.items():
        if latency != rules.latency:
            text = f"messages from {source} to {target} take {latency}"
            yield Fault(text, _restore(source, target))


def _limits(rules: NetworkRules) -> Iterator[Fault]:
    if rules.bandwidth_mb_per_s is not None:
        end = Ending("No limit", "POST", "/network/bandwidth", {"mb_per_s": None})
        yield Fault(f"every link sends {rules.bandwidth_mb_per_s:g} MB/s", (end,))
    for (source, target), rate in rules.link_bandwidths.items():
        if rate != rules.bandwidth_mb_per_s:
            amount = "without a limit" if rate is None else f"{rate:g} MB/s"
            text = f"the link from {source} to {target} sends {amount}"
            yield Fault(text, _restore(source, target))


def _hold(number: int, request: Mapping[str, Any], held: int) -> Fault:
    which = ", ".join(request.get("messages") or ()) or "messages"
    source = f" from {request['source']}" if request.get("source") is not None else ""
    target = f" to {request['target']}" if request.get("target") is not None else ""
    at = f"/network/holds/{number}"
    return Fault(
        f"hold {number}: {which}{source}{target} held back",
        (Ending("Release", "POST", f"{at}/release"), Ending("End", "DELETE", at)),
        f"{held} now",
    )


def _injection(number: int, fault: RequestedFault[Injection]) -> Fault:
    request, remaining = fault.request, fault.handle.remaining
    effect = request.get("error") or request.get("errors") or request.get("answer")
    parts = [] if effect is None else [effect if isinstance(effect, str) else json.dumps(effect)]
    if request.get("disconnect"):
        parts.append("disconnect")
    if request.get("delay_ms"):
        parts.append(f"{request['delay_ms']} ms late")
    names = ("topic", "partition", "broker", "client_id", "nth")
    parts += [f"{name} {request[name]}" for name in names if request.get(name) is not None]
    return Fault(
        f"injection {number} into {request['api']}: {', '.join(parts)}",
        (Ending("Cancel", "DELETE", f"/injections/{number}"),),
        f"{fault.handle.applied} applied, "
        + ("no limit" if remaining is None else f"{remaining} to come"),
    )
