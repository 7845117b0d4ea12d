"""The faults of a scenario: when each acts, and on which broker or machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..testing.handles.roles import BrokerReference
from ..testing.parameters.kinds import BadArgument, number
from ..testing.parameters.parameter import parameters_of, read
from .actions import ACTIONS, action_name
from .context import FileContext
from .spec import FaultSpec, StopSpec


def read_fault(values: Mapping[str, Any], context: FileContext, stop: StopSpec) -> FaultSpec:
    """Read one entry of ``faults``: its own keys, and those of its action beside them."""
    own = parameters_of(FaultSpec)
    names = [parameter.name for parameter in own]
    name = action_name(values, ACTIONS, context)
    given = read(own, {n: v for n, v in values.items() if n in names}, context)
    when, times = given.get("when"), given.get("times", 1)
    if when is None and "at_ms" not in given:
        raise BadArgument("is missing; a fault needs at_ms or when", "at_ms")
    number("milliseconds", most=stop.at_ms).read_at("at_ms", values.get("at_ms", 0.0), context)
    if "after_ms" in given and when is None:
        raise BadArgument("counts from the condition in when; without one use at_ms", "after_ms")
    if (times > 1) != (given.get("every_ms", 0.0) > 0):
        raise BadArgument("belongs to times > 1, and times > 1 needs it", "every_ms")
    action = ACTIONS[name]
    rest = {n: v for n, v in values.items() if n not in names}
    if name == "latency" and isinstance(rest.get("latency"), Mapping):
        rest |= rest.pop("latency")  # written as in the table of the network
    arguments = action.read_from_file(rest, context, names)
    if name == "create_topic" and "assignment" not in arguments:
        arguments.setdefault("replication_factor", min(3, len(context.cluster.broker_ids)))
    if action.is_about_broker:
        given["broker"] = BrokerReference(arguments.pop("broker"))
    return FaultSpec(**given, arguments=arguments)
