"""A program at a terminal of its own, which somebody watches and ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence


def _take_terminal() -> None:
    """Make standard input the terminal of this process; it hears of Ctrl-C, whoever started it.

    A shell that runs the tests in the background lets its children ignore the signal.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def run_at_terminal(
    command: Sequence[str],
    sees: bytes,
    then: Callable[[subprocess.Popen[bytes], int], object],
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run a program and call ``then(process, terminal)`` once, when it has shown some text.

    Give the exit status and all that was shown.
    """
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        list(command),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=_take_terminal,
        env=None if environment is None else dict(environment),
    )
    os.close(terminal)
    shown = b""
    has_seen = False
    with contextlib.suppress(OSError):  # the program has closed its terminal
        while part := os.read(screen, 65536):
            shown += part
            if not has_seen and sees in shown:
                has_seen = True
                then(process, screen)
    os.close(screen)
    return process.wait(60), shown.decode(errors="replace")


def press_ctrl_c(_process: subprocess.Popen[bytes], screen: int) -> None:
    """Press Ctrl-C, of which the terminal makes an interrupt of all its programs."""
    os.write(screen, b"\x03")


def kill(process: subprocess.Popen[bytes], _screen: int) -> None:
    """The process ends at once and can write nothing any more."""
    process.kill()
