"""Estimates the costs of runs from those in an earlier batch.

The logarithm of the time is modelled as a sum: a term for the logarithm of each number, and one for
each other value. So twice as many partitions multiply the time by a factor that does not depend on
other parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

_RIDGE = 1e-3
"""Weight of the ridge penalty, which keeps terms small that the batch does not determine, such as
those of two values that only change together."""


class PastCosts:
    """A regression on the parameters of runs."""

    def __init__(self, runs: Iterable[tuple[Mapping[str, Any], float]]) -> None:
        """``runs`` are pairs of parameters and seconds."""
        known = [
            (_features(values), math.log(max(duration_s, 1e-6))) for values, duration_s in runs
        ]
        self._names = list(dict.fromkeys(name for features, _ in known for name in features))
        count = len(self._names) + 1
        self._mean = sum(log_s for _, log_s in known) / max(1, len(known))
        self._middle = {
            name: sum(features.get(name, 0.0) for features, _ in known) / len(known)
            for name in self._names
        }
        # The normal equations; as the features are centred, there is no constant term.
        matrix = [[0.0] * count for _ in self._names]
        for features, log_s in known:
            row = self._centred(features)
            for place, value in enumerate(row):
                for column, another in enumerate(row):
                    matrix[place][column] += value * another
                matrix[place][-1] += value * (log_s - self._mean)
        for place in range(len(self._names)):
            matrix[place][place] += _RIDGE * max(1, len(known))
        self._weights = _solved(matrix)

    def estimate_s(self, values: Mapping[str, Any]) -> float:
        """Return about how many seconds a run with these parameters takes."""
        row = self._centred(_features(values))
        parts = (weight * value for weight, value in zip(self._weights, row, strict=True))
        return math.exp(self._mean + sum(parts))

    def _centred(self, features: Mapping[str, float]) -> list[float]:
        return [features.get(name, 0.0) - self._middle[name] for name in self._names]


def _features(values: Mapping[str, Any]) -> dict[str, float]:
    """Return numbers as logarithms, and each other value as a feature of 1."""
    features: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            features[name] = math.log1p(max(value, 0))
        else:
            features[f"{name}={value}"] = 1.0
    return features


def _solved(matrix: list[list[float]]) -> list[float]:
    """Solve linear equations, whose last column is the right-hand side, by Gaussian elimination."""
    count = len(matrix)
    for place in range(count):
        pivot = max(range(place, count), key=lambda row: abs(matrix[row][place]))
        matrix[place], matrix[pivot] = matrix[pivot], matrix[place]
        for row in range(place + 1, count):
            factor = matrix[row][place] / matrix[place][place]
            for column in range(place, count + 1):
                matrix[row][column] -= factor * matrix[place][column]
    solution = [0.0] * count
    for place in reversed(range(count)):
        rest = sum(matrix[place][column] * solution[column] for column in range(place + 1, count))
        solution[place] = (matrix[place][-1] - rest) / matrix[place][place]
    return solution
