"""Exit status of every ``fakekafka`` command, and the ways to end early.

The contract: 0 done, 1 the thing asked about does not hold (a violation, a difference, a failed
verification), 2 wrong usage or input. Raise ``UsageError`` for the last; ``main`` turns it into a
message on standard error and status 2. Above 128 are the statuses a shell gives to programs that a
signal ended: the reader of the output went away, or the user asked for the end.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from ..protocol.errors import UsageError

DOES_NOT_HOLD = 1
WRONG_USAGE = 2
INTERRUPTED = 130
READER_GONE = 141
TERMINATED = 143
_UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The errors of a file system that takes no more output."""


def end_with_error(message: str) -> NoReturn:
    """Print ``error: message`` on standard error and leave with the status of wrong usage."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(WRONG_USAGE)


def refuse_overwriting(out: Path, read: Path, what: str) -> None:
    """``UsageError`` when the output is what the command reads."""
    if out.exists() and read.exists() and out.samefile(read):
        raise UsageError(f"{out} is the {what} itself; give -o another name")


@contextmanager
def written_output() -> Iterator[None]:
    """Standard output is written when this ends; if it cannot be, the command ends in order.

    A reader that went away (``| head``) has seen enough: status 141, and nothing is printed. A full
    disk is named: status 2.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        raise SystemExit(READER_GONE) from None
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # Rich makes status 1 of it
            raise SystemExit(READER_GONE) from None
        raise
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITTEN:
            raise
        _drop_output()
        end_with_error(f"the output cannot be written: {error.strerror}")


def _drop_output() -> None:
    """Discard what is still buffered: the interpreter would try to write it at its end."""
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())
        os.close(nowhere)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends what runs in here as an error would: everything is closed, then status 143."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return

    def end(*_: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not disturb the closing
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
