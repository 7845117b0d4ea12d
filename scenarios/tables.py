"""Tables of a scenario file: ``workload``, ``groups`` and ``transformers``, and ``faults``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..testing.handles.roles import BrokerReference
from ..testing.parameters.cluster_kinds import TOPIC
from ..testing.parameters.kinds import BadArgument, number
from ..testing.parameters.parameter import is_missing, parameters_of, read
from .actions import ACTIONS, action_name
from .context import FileContext
from .spec import FaultSpec, GroupSpec, StopSpec, TransformerSpec, WorkloadSpec


def read_workload(values: Mapping[str, Any], index: int, context: FileContext) -> WorkloadSpec:
    """Read one entry of ``workload``."""
    given = read(parameters_of(WorkloadSpec), values, context)
    topics = list(context.topics)
    topic = given.setdefault("topic", topics[0] if len(topics) == 1 else "")
    TOPIC.read_at("topic", topic, context)
    partitions = context.topics[topic].partitions
    model = given.get("model", "open")
    if model == "open" and "in_flight" in given:
        raise BadArgument("belongs to model = 'closed'; open loops have rate_per_s", "in_flight")
    if model == "closed" and "rate_per_s" in given:
        raise BadArgument("belongs to model = 'open'; closed loops have in_flight", "rate_per_s")
    for chosen in given.get("partitions", ()):
        if chosen >= partitions:
            last = partitions - 1
            raise BadArgument(f"{topic} has partitions 0 to {last}, not {chosen}", "partitions")
    start_ms, stop_ms = given.get("start_ms", 0.0), given.get("stop_ms")
    if stop_ms is not None and stop_ms < start_ms:
        raise BadArgument(f"must be at least {start_ms:g}, not {stop_ms:g}", "stop_ms")
    acks = given.get("acks", -1)
    given.setdefault("idempotent", acks == -1)
    given.setdefault("name", f"workload-{index + 1}")
    if given["idempotent"] and acks != -1:
        raise BadArgument("needs acks = 'all'", "idempotent")
    if model == "closed" and acks == 0 and not given.get("linger_ms"):
        raise BadArgument("must not be 0 in a closed loop: nothing is waited for", "acks")
    return WorkloadSpec(**given)


def read_group(values: Mapping[str, Any], index: int, context: FileContext) -> GroupSpec:
    """Read one entry of ``groups``."""
    given = read(parameters_of(GroupSpec), values, context)
    if not given.get("topics") and len(context.topics) == 1:
        given["topics"] = tuple(context.topics)
    if not given.get("topics"):
        raise is_missing("the names of the topics that the members subscribe to", "topics")
    given.setdefault("group_id", f"group-{index + 1}")
    return GroupSpec(**given)


def read_transformer(
    values: Mapping[str, Any], index: int, context: FileContext
) -> TransformerSpec:
    """Read one entry of ``transformers``."""
    given = read(parameters_of(TransformerSpec), values, context)
    if given["input"] == given["output"]:
        raise BadArgument("must be another topic than the input", "output")
    name = given.setdefault("name", f"transformer-{index + 1}")
    given.setdefault("transactional_id", name)
    given.setdefault("consumer_group", name)
    return TransformerSpec(**given)


def read_fault(values: Mapping[str, Any], context: FileContext, stop: StopSpec) -> FaultSpec:
    """Read one entry of ``faults``, which has keys of its own and those of its action."""
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
        rest |= rest.pop("latency")  # the form of the table network
    arguments = action.read_from_file(rest, context, names)
    if name == "create_topic" and "assignment" not in arguments:
        arguments.setdefault("replication_factor", min(3, len(context.cluster.broker_ids)))
    if action.is_about_broker:
        given["broker"] = BrokerReference(arguments.pop("broker"))
    return FaultSpec(**given, arguments=arguments)


def reject_duplicates(name: str, key: str, values: list[str]) -> None:
    """Raise ``BadArgument`` if two entries of a table have the same key."""
    duplicates = [value for value in values if values.count(value) > 1]
    if duplicates:
        raise BadArgument(f"{key} {duplicates[0]!r} is used twice", name)
