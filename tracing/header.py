"""The header of a trace: all that is needed to run it again, and nothing from the wall clock."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import Any

from .. import builds
from ..version import __version__
from .format import FORMAT


def build_header(
    *,
    mode: str,
    kafka_version: str,
    seed: int | None = None,
    config: Mapping[str, Any] | None = None,
    scenario: str = "",
    scenario_name: str = "",
    parameters: Mapping[str, Any] | None = None,
    virtual_epoch_ms: int | None = None,
    reproduce: str = "",
    hash_seed: str = "",
) -> dict[str, Any]:
    """Return the header with which every trace begins.

    ``mode`` is ``sim``, ``live`` or ``threaded``; ``scenario`` the text of the scenario file and
    ``parameters`` the values that override it; ``virtual_epoch_ms`` the date at which the run began
    by its own clock, since the Unix epoch; ``reproduce`` a command or expression that repeats the
    run; ``hash_seed`` Python's, given for a run with programs, which may depend on it.
    """
    # The pure build is not named, so that its traces keep the bytes of earlier releases.
    build = {"build": "compiled"} if builds.is_compiled else {}
    hashing = {"hash_seed": hash_seed} if hash_seed else {}
    return {
        "format": FORMAT,
        "fakekafka": __version__,
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "kafka_version": kafka_version,
        "mode": mode,
        "seed": seed,
        "config": {name: str(value) for name, value in sorted((config or {}).items())},
        "scenario": scenario,
        "scenario_name": scenario_name,
        "parameters": dict(parameters or {}),
        "virtual_epoch_ms": virtual_epoch_ms,
        "reproduce": reproduce,
        **build,
        **hashing,
    }
