"""Records a run of a suite as a trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...actors.runtime.runtime import VIRTUAL_EPOCH_MS
from ...tracing.header import build_header
from ..measuring.run import Run
from .carry_out import carry_out_in
from .plan import make_plan, reproduce_command


def record(suite: str, seed: int, values: Mapping[str, Any], out: Path) -> list[str]:
    """Carry out one run and write its trace; return the problems in it.

    The run is identical to that of a batch: it has the same row and the same fingerprint.
    """
    plan = make_plan(suite, 1, seed, values=values, matrix={})
    (spec,) = plan.specs
    run = Run(seed, plan.budget, records=True)
    outcome = carry_out_in(run, plan, spec)
    header = build_header(
        mode="sim",
        kafka_version=str(dict(spec.parameters).get("kafka_version", "")),
        seed=seed,
        config={},
        virtual_epoch_ms=VIRTUAL_EPOCH_MS,
        reproduce=reproduce_command(plan.source, spec, "trace"),
    )
    run.save(out, header)
    return [outcome.row["problems"]] if outcome.row["problems"] else []
