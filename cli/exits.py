"""The exit statuses of ``fakekafka`` commands, and the ways to end early.

Status 0 means success; 1 that the answer to the question is no (a violation, a difference, a failed
verification); 2 wrong usage or input. For the last, raise ``UsageError``: ``main`` turns it into a
message on standard error and status 2. Statuses above 128 are those that a shell gives to programs
ended by a signal: the reader of the output went away, or the user interrupted.
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
"""Error numbers of a file system that cannot store more output."""


def end_with_error(message: str) -> NoReturn:
    """Print ``error: message`` on standard error and exit with the status of wrong usage."""
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(WRONG_USAGE)


def refuse_overwriting(out: Path, read: Path, what: str) -> None:
    """Raise ``UsageError`` if the output is the file that the command reads."""
    if out.exists() and read.exists() and out.samefile(read):
        raise UsageError(f"{out} is the {what} itself; give -o another name")


@contextmanager
def written_output() -> Iterator[None]:
    """Flush standard output at the end of the block, and exit cleanly if it cannot be written.

    If the reader went away (``| head``), exit with status 141 and print nothing; if the disk is
    full, exit with status 2 and a message.
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
        if isinstance(ended.__context__, BrokenPipeError):  # Rich turns it into status 1
            raise SystemExit(READER_GONE) from None
        raise
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITTEN:
            raise
        _drop_output()
        end_with_error(f"the output cannot be written: {error.strerror}")


def _drop_output() -> None:
    """Discard buffered output, which the interpreter would otherwise write when it exits."""
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())
        os.close(nowhere)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block like an error: everything is closed, then the status is 143."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return

    def end(*_: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not disturb closing
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
