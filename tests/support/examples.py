"""The number of examples for tests with Hypothesis."""

from __future__ import annotations

import os

EXAMPLES_VARIABLE = "FAKEKAFKA_EXAMPLES"
"""Name of the environment variable that multiplies every number of examples; unset means 1."""


def examples(count: int) -> int:
    """Return ``count`` times the environment's factor; raise ``ValueError`` if that is below 1."""
    text = os.environ.get(EXAMPLES_VARIABLE) or "1"
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{EXAMPLES_VARIABLE}={text}: give a whole number of at least 1")
    return count * int(text)
