"""Reading of stories: ``[story]``, ``[[step]]`` and ``[outcome]`` of a scenario file.

A story names its brokers and may group its versions. An expectation may have overlays per group
(``[step.expect.old]``) or per version, so that one file covers the differences between versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...testing.parameters.cluster_kinds import PARTITION
from ...testing.parameters.kinds import NAME, OBJECT, STRING, BadArgument, list_of
from ...testing.parameters.parameter import (
    inside,
    is_missing,
    nearest,
    optional,
    parameters_of,
    read,
    required,
)
from ..context import FileContext
from ..spec import STORY_VERSIONS, ClusterSpec, OutcomeExpect, StepSpec, StorySpec
from .actions import read_action
from .context import STATE, StoryContext, StoryHeader

_HEADER = (
    required("partition", STRING),
    required("brokers", OBJECT),
    required("versions", list_of(STRING, "a list of versions", ["0.10", "3.9"], least=1)),
    optional("groups", OBJECT),
)
_STEP = (
    required("name", NAME),
    optional("do", list_of(OBJECT, "a list of actions", [{"action": "heal"}])),
    required("expect", STATE),
)


def read_header(values: Any) -> StoryHeader:
    """Read ``[story]``: the partition, the brokers' names, the versions and their groups."""
    given = read(_HEADER, values, FileContext(ClusterSpec()))
    versions = tuple(given["versions"])
    for version in versions:
        if version not in STORY_VERSIONS:
            there = nearest("", STORY_VERSIONS)
            raise BadArgument(f"no version {version!r}{there}", "versions")
    groups: dict[str, tuple[str, ...]] = {}
    for name, members in given.get("groups", {}).items():
        groups[name] = tuple(members) if isinstance(members, list) else (members,)
        for version in groups[name]:
            if version not in versions:
                raise BadArgument(f"{version!r} is not among the versions", f"groups.{name}")
    return StoryHeader(given["partition"], given["brokers"], groups, versions)


def read_story(tables: Mapping[str, Any], header: StoryHeader, cluster: ClusterSpec) -> StorySpec:
    """Read the steps and outcome of a story, for the version of the cluster."""
    context = StoryContext(header, cluster)
    with inside("story"):
        topic, number = PARTITION.read_at("partition", header.partition, context)
        for name, broker_id in header.names.items():
            if broker_id not in cluster.broker_ids:
                raise BadArgument(f"no broker {broker_id!r}", f"brokers.{name}")
        if not header.names:
            raise is_missing("{A = 1, B = 2}", "brokers")
    steps = tables.get("step", [])
    if not isinstance(steps, list) or not steps:
        raise BadArgument("is missing; a story is an array of tables ([[step]])", "step")
    found = []
    for place, step in enumerate(steps):
        with inside(f"step[{place}]"):
            found.append(_read_step(step, context))
    with inside("outcome"):
        outcome = _read_outcome(tables.get("outcome", {}), context)
    names = dict(header.names)
    return StorySpec(topic, number, names, header.versions, tuple(found), outcome)


def _read_step(values: Any, context: StoryContext) -> StepSpec:
    given = read(_STEP, values, context)
    actions = []
    for place, action in enumerate(given.get("do", [])):
        with inside(f"do[{place}]"):
            actions.append(read_action(action, context))
    return StepSpec(given["name"], tuple(actions), given["expect"])


def _read_outcome(values: Any, context: StoryContext) -> OutcomeExpect:
    keys: dict[str, Any] = {}
    for group, overlay, applies in context.overlays(values):
        with inside(group):
            found = read(parameters_of(OutcomeExpect), overlay, context)
        keys |= found if applies else {}
    return OutcomeExpect(**keys)
