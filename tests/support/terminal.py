"""Running a program at a terminal of its own, and ending it."""

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
    """Make standard input this process's controlling terminal and restore SIGINT.

    A shell that runs the tests in the background has its children ignore the signal.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def run_at_terminal(
    command: Sequence[str],
    sees: bytes,
    then: Callable[[subprocess.Popen[bytes], int], object],
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run a program and call ``then(process, terminal)`` once it has printed some text.

    Return the exit status and all output.
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
    """Type Ctrl-C, which the terminal turns into an interrupt of all its programs."""
    os.write(screen, b"\x03")


def kill(process: subprocess.Popen[bytes], _screen: int) -> None:
    """Kill the process, which can write nothing more."""
    process.kill()
