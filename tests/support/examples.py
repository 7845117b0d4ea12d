"""The number of examples that a test with Hypothesis tries."""

from __future__ import annotations

import os

EXAMPLES_VARIABLE = "FAKEKAFKA_EXAMPLES"
"""Names the environment variable that multiplies every number of examples; 1 where it is unset."""


def examples(count: int) -> int:
    """So many examples, times what the environment asks for; ``ValueError`` if that is below 1."""
    text = os.environ.get(EXAMPLES_VARIABLE) or "1"
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{EXAMPLES_VARIABLE}={text}: give a whole number of at least 1")
    return count * int(text)
