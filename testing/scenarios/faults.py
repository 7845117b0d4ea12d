"""The faults of a scenario: when each acts, and on which broker or machine."""

from __future__ import annotations

from .actions import ACTIONS
from .pieces import check_broker, make_condition, read_condition
from .spec import ClusterSpec, FaultSpec, StopSpec
from .table import Table

_TIMES_MAX = 1_000_000


def read_fault(table: Table, cluster: ClusterSpec, stop: StopSpec) -> FaultSpec:
    """One entry of ``faults``."""
    if not table.has("action"):
        raise table.error("action", f"is missing; there are {', '.join(ACTIONS)}")
    action = table.text("action", choices=ACTIONS)
    when = read_condition(table, "when")
    if when is None and not table.has("at_ms"):
        raise table.error("at_ms", "is missing; a fault needs at_ms or when")
    at_ms = table.number("at_ms", 0.0, 0.0, stop.at_ms)
    if table.has("after_ms") and when is None:
        raise table.error("after_ms", "counts from the condition in when; without one use at_ms")
    times = table.integer("times", 1, 1, _TIMES_MAX)
    every_ms = table.number("every_ms", 0.0)
    if (times > 1) != (every_ms > 0):
        raise table.error("every_ms", "belongs to times > 1, and times > 1 needs it")
    about_broker = ACTIONS[action].is_about_broker
    broker = check_broker(table, "broker", cluster) if about_broker else None
    arguments = ACTIONS[action].read(table, cluster)
    expected = table.raw("expect", [])
    texts = expected if isinstance(expected, list) else [expected]
    spec = FaultSpec(
        action=action,
        at_ms=at_ms,
        when=when,
        after_ms=table.number("after_ms", 0.0),
        times=times,
        every_ms=every_ms,
        broker=broker,
        arguments=arguments,
        expect=tuple(make_condition(table, "expect", text) for text in texts),
        expect_within_ms=table.number("expect_within_ms", 0.0),
    )
    table.finish()
    return spec
