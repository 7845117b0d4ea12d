"""Exit status of every ``fakekafka`` command, and the one way to end with an error.

The contract: 0 done, 1 the thing asked about does not hold (a violation, a difference, a failed
verification), 2 wrong usage or input. Raise ``UsageError`` for the last; ``main`` turns it into a
message on standard error and status 2.
"""

from __future__ import annotations

import sys
from typing import NoReturn

DONE = 0
DOES_NOT_HOLD = 1
WRONG_USAGE = 2


def end_with_error(message: str, status: int = WRONG_USAGE) -> NoReturn:
    """Print ``error: message`` on standard error and leave with ``status``."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(status)
