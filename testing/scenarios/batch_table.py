"""What a scenario file says for batches: what things cost, how many seeds, which budgets."""

from __future__ import annotations

import dataclasses

from ...actors.network.costs import PUBLISHED_2018, Costs
from .spec import BatchSpec
from .table import Table

_PROFILES = {"free": Costs(), "published-2018": PUBLISHED_2018}
_BUDGETS = ("events", "virtual_s", "wall_s", "memory_mb")


def read_costs(table: Table) -> Costs:
    """``{profile = "published-2018", disk_append_ms = 0.2}``: the fields of ``Costs``."""
    profile = _PROFILES[table.text("profile", "free", _PROFILES)]
    names = [field.name for field in dataclasses.fields(Costs) if table.has(field.name)]
    costs = dataclasses.replace(profile, **{name: table.number(name, 0.0) for name in names})
    table.finish()
    return costs


def read_batch(table: Table) -> BatchSpec:
    """How many seeds, what to leave out, and when to give up."""
    limits = table.table("budget")
    budget = {name: limits.number(name, 0.0, 1e-6) for name in _BUDGETS if limits.has(name)}
    for name in _BUDGETS:
        limits.has(name)
    limits.finish()
    spec = BatchSpec(
        runs=table.integer("runs", 20, 1), warm_up_ms=table.number("warm_up_ms", 0.0), budget=budget
    )
    table.finish()
    return spec
