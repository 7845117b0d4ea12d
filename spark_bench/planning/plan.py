"""The plan of a batch: its runs, their order, and the command that repeats one."""

from __future__ import annotations

import hashlib
import itertools
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...protocol.errors import UsageError
from ...testing.parameters.toml_values import toml_text
from ..measuring.budget import Budget
from .suite import Suite, SuiteSource, find_source, load_suite


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A run as plain data, so that any engine can send it to a worker."""

    run_id: int
    configuration: int
    """Number of the configuration, whose runs differ only in their seeds."""
    seed: int
    parameters: tuple[tuple[str, Any], ...]
    non_defaults: tuple[tuple[str, Any], ...] = ()
    """Parameters that differ from the defaults."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """All runs of a batch. Configurations share the same seeds, so that runs can be paired."""

    source: SuiteSource
    specs: tuple[RunSpec, ...]
    budget: Budget
    samples: int = 0
    """Number of runs of every configuration that keep each measured value."""

    @property
    def suite(self) -> Suite:
        return load_suite(self.source)

    @property
    def batch_id(self) -> str:
        """An id that is equal for batches with the same rows."""
        digest = hashlib.blake2b(digest_size=8)
        digest.update(repr((self.source.name, self.source.text, self.samples)).encode())
        budget = (self.budget.events, self.budget.virtual_s)
        for spec in self.specs:
            digest.update(repr((spec.run_id, spec.seed, spec.parameters)).encode())
        digest.update(repr(budget).encode())
        return digest.hexdigest()

    def keeps_samples(self, spec: RunSpec) -> bool:
        first = self.specs[0].seed
        return spec.seed - first < self.samples


def make_plan(
    suite: str,
    runs: int | None = None,
    first_seed: int = 0,
    *,
    values: Mapping[str, Any] | None = None,
    matrix: Mapping[str, Sequence[Any]] | None = None,
    budget: Mapping[str, Any] | None = None,
    samples: int = 0,
) -> BatchPlan:
    """Plan a batch of a suite, given by its name or file.

    ``values`` are parameters that are the same in every run. ``matrix`` replaces the suite's own;
    an empty one leaves a single configuration. ``runs`` is the number of seeds of each
    configuration, which count up from ``first_seed``.

    Raises ``UsageError`` for a batch that cannot be run.
    """
    source = find_source(suite)
    loaded = load_suite(source)
    runs = loaded.runs if runs is None else runs
    if runs < 1:
        raise UsageError(f"runs must be at least 1, not {runs}")
    if samples < 0:
        raise UsageError(f"samples must be at least 0, not {samples}")
    fixed = dict(values or {})
    configurations = list(_configurations(loaded, fixed, matrix))
    specs: list[RunSpec] = []
    for number, overrides in enumerate(configurations):
        # All seeds share these, as a batch may have a million.
        parameters = tuple((name, _immutable(v)) for name, v in loaded.checked(overrides).items())
        non_defaults = tuple(
            (n, _immutable(v)) for n, v in overrides.items() if _is_not_default(loaded, n, v)
        )
        specs += [
            RunSpec(len(specs) + offset, number, first_seed + offset, parameters, non_defaults)
            for offset in range(runs)
        ]
    return BatchPlan(source, tuple(specs), loaded.budget.changed(budget or {}), samples)


def _is_not_default(suite: Suite, name: str, value: Any) -> bool:
    parameter = suite.parameters.get(name)
    return parameter is None or parameter.default != value


def _immutable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _typed(suite: Suite, name: str, value: Any) -> Any:
    """Return a value as the run gets it: 0 in a matrix equals a default of 0.0."""
    parameter = suite.parameters.get(name)
    return value if parameter is None else parameter.check(value)


def _configurations(
    suite: Suite, fixed: Mapping[str, Any], matrix: Mapping[str, Sequence[Any]] | None
) -> Iterable[dict[str, Any]]:
    """Yield every combination once, in the order of the matrix; given values are not varied."""
    tables = suite.matrix if matrix is None else ((dict(matrix),) if matrix else ())
    if matrix is not None:
        for name, values in matrix.items():
            if name in fixed:
                raise UsageError(f"{name} is both set and in the matrix")
            if not values:
                raise UsageError(f"the matrix has no value for {name}")
    keys: dict[str, None] = {}
    for table in tables or ({},):
        names = [name for name in table if name not in fixed]
        for combination in itertools.product(*(table[name] for name in names)):
            combined = {**fixed, **dict(zip(names, combination, strict=True))}
            all_values = {
                name: parameter.default for name, parameter in suite.parameters.items()
            } | combined
            key = repr(sorted((name, _typed(suite, name, all_values[name])) for name in all_values))
            if key not in keys:
                keys[key] = None
                yield combined


def varied(plan: BatchPlan) -> dict[str, list[Any]]:
    """Return the columns of parameters in which configurations differ, with their values."""
    values: dict[str, dict[str, Any]] = {}
    for spec in plan.specs:
        for name, value in spec.parameters:
            values.setdefault(column_name(name), {})[repr(value)] = value
    return {name: list(distinct.values()) for name, distinct in values.items() if len(distinct) > 1}


def labels(plan: BatchPlan) -> list[str]:
    """Return the names of configurations, made of the parameters that are varied. If these are
    varied from the defaults one at a time, a name has only those that are not the default."""
    values_by_configuration = {
        spec.configuration: {column_name(name): value for name, value in spec.parameters}
        for spec in plan.specs
    }
    columns = varied(plan)
    defaults = {column_name(n): p.default for n, p in plan.suite.parameters.items()}
    is_grid = len(values_by_configuration) == math.prod(map(len, columns.values()))
    has_defaults = all(
        values_by_configuration[0].get(name) == defaults.get(name) for name in columns
    )
    shows_all = is_grid or not has_defaults
    names = []
    for values in values_by_configuration.values():
        shown = [name for name in columns if shows_all or values.get(name) != defaults.get(name)]
        text = ", ".join(f"{name}={values.get(name)}" for name in shown)
        names.append(text or ("the defaults" if len(values_by_configuration) > 1 else ""))
    return names


def parameter_kinds(plan: BatchPlan) -> dict[str, type]:
    """Return the columns of parameters, with the types of their values."""
    kinds = {column_name(name): parameter.kind for name, parameter in plan.suite.parameters.items()}
    if kinds:
        return kinds
    # Any key of a scenario file can be a parameter. Lists become text.
    scalar_types = (int, float, str, bool)
    return {
        column_name(name): type(value) if type(value) in scalar_types else str
        for spec in plan.specs
        for name, value in spec.parameters
    }


def column_name(parameter: str) -> str:
    """Return the column of a parameter; underscores replace the dots of a key."""
    return "".join(character if character.isalnum() else "_" for character in parameter)


def reproduce_command(source: SuiteSource, spec: RunSpec, command: str = "run") -> str:
    """Return the command that repeats a run, or records it if ``command`` is ``trace``."""
    words = ["fakekafka", "bench", command, source.path or source.name, "--seed", str(spec.seed)]
    if command == "run":
        words += ["--runs", "1", "--no-matrix", "--engine", "serial"]
    for name, value in spec.non_defaults:
        text = value if isinstance(value, str) else toml_text(value)
        words += ["--set", f"{name}={text}"]
    return shlex.join(words)
