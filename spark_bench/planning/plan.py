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
    given: tuple[tuple[str, Any], ...] = ()
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
    found = load_suite(source)
    runs = found.runs if runs is None else runs
    if runs < 1:
        raise UsageError(f"runs must be at least 1, not {runs}")
    if samples < 0:
        raise UsageError(f"samples must be at least 0, not {samples}")
    given = dict(values or {})
    configurations = list(_configurations(found, given, matrix))
    specs: list[RunSpec] = []
    for number, own in enumerate(configurations):
        # All seeds share these, as a batch may have a million.
        parameters = tuple((name, _plain(v)) for name, v in found.checked(own).items())
        given_here = tuple((n, _plain(v)) for n, v in own.items() if _is_given(found, n, v))
        specs += [
            RunSpec(len(specs) + place, number, first_seed + place, parameters, given_here)
            for place in range(runs)
        ]
    return BatchPlan(source, tuple(specs), found.budget.changed(budget or {}), samples)


def _is_given(suite: Suite, name: str, value: Any) -> bool:
    parameter = suite.parameters.get(name)
    return parameter is None or parameter.default != value


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _typed(suite: Suite, name: str, value: Any) -> Any:
    """Return a value as the run gets it: 0 in a matrix equals a default of 0.0."""
    parameter = suite.parameters.get(name)
    return value if parameter is None else parameter.check(value)


def _configurations(
    suite: Suite, given: Mapping[str, Any], matrix: Mapping[str, Sequence[Any]] | None
) -> Iterable[dict[str, Any]]:
    """Yield every combination once, in the order of the matrix; given values are not varied."""
    tables = suite.matrix if matrix is None else ((dict(matrix),) if matrix else ())
    if matrix is not None:
        for name, values in matrix.items():
            if name in given:
                raise UsageError(f"{name} is both set and varied")
            if not values:
                raise UsageError(f"the matrix has no value for {name}")
    seen: dict[str, None] = {}
    for table in tables or ({},):
        names = [name for name in table if name not in given]
        for combination in itertools.product(*(table[name] for name in names)):
            own = {**given, **dict(zip(names, combination, strict=True))}
            whole = {name: parameter.default for name, parameter in suite.parameters.items()} | own
            key = repr(sorted((name, _typed(suite, name, whole[name])) for name in whole))
            if key not in seen:
                seen[key] = None
                yield own


def varied(plan: BatchPlan) -> dict[str, list[Any]]:
    """Return the columns of parameters in which configurations differ, with their values."""
    values: dict[str, dict[str, Any]] = {}
    for spec in plan.specs:
        for name, value in spec.parameters:
            values.setdefault(column_name(name), {})[repr(value)] = value
    return {name: list(found.values()) for name, found in values.items() if len(found) > 1}


def labels(plan: BatchPlan) -> list[str]:
    """Return the names of configurations, made of the parameters that are varied. If these are
    varied from the defaults one at a time, a name has only those that are not the default."""
    own = {
        spec.configuration: {column_name(name): value for name, value in spec.parameters}
        for spec in plan.specs
    }
    columns = varied(plan)
    defaults = {column_name(n): p.default for n, p in plan.suite.parameters.items()}
    is_grid = len(own) == math.prod(map(len, columns.values()))
    has_defaults = all(own[0].get(name) == defaults.get(name) for name in columns)
    is_whole = is_grid or not has_defaults
    found = []
    for values in own.values():
        named = [name for name in columns if is_whole or values.get(name) != defaults.get(name)]
        text = ", ".join(f"{name}={values.get(name)}" for name in named)
        found.append(text or ("the defaults" if len(own) > 1 else ""))
    return found


def parameter_kinds(plan: BatchPlan) -> dict[str, type]:
    """Return the columns of parameters, with the types of their values."""
    kinds = {column_name(name): one.kind for name, one in plan.suite.parameters.items()}
    if kinds:
        return kinds
    # Any key of a scenario file can be a parameter. Lists become text.
    plain = (int, float, str, bool)
    return {
        column_name(name): type(value) if type(value) in plain else str
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
    for name, value in spec.given:
        text = value if isinstance(value, str) else toml_text(value)
        words += ["--set", f"{name}={text}"]
    return shlex.join(words)
