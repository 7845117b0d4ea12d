"""The hash seed of this process, on which the order of a set of strings depends."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import NoReturn

from ...protocol.errors import UsageError
from .. import arguments

VARIABLE = "PYTHONHASHSEED"
_PINNED = "FAKEKAFKA_PINNED"
"""Environment variable with the hash seed under which a process, or its parent, was restarted."""
_GREATEST = 2**32 - 1
_ADDR_NO_RANDOMIZE = 0x40000
_ASK_PERSONALITY = 0xFFFFFFFF


def of_this_process() -> int | None:
    """Return the hash seed that the environment gives; None if it is random."""
    text = os.environ.get(VARIABLE, "")
    return int(text) if text.isdigit() and not sys.flags.ignore_environment else None


def pinned() -> int | None:
    """Return the hash seed under which ``pin_hash_seed`` restarted this process, or None."""
    text = os.environ.get(_PINNED)
    seed = of_this_process()
    return seed if text is not None and text == str(seed) else None


def in_words() -> str:
    """Describe the hash seed for the header of a trace."""
    seed = of_this_process()
    return "random: sets of strings may have another order" if seed is None else str(seed)


def pin_hash_seed(seed: int = 0) -> None:
    """Make this process run under a hash seed; restart it if it has another one.

    Call this at the start of a script, as everything before it is done twice. The process is
    replaced by one with the same command line, as if it had been started with ``PYTHONHASHSEED``.
    With Python 3.11 on Linux it also asks for fixed addresses, as the hash of None is an address
    there. Raises ``UsageError`` if there is no command to repeat, as in an interactive session.
    """
    if not 0 <= arguments.integer("seed", seed) <= _GREATEST:
        arguments.refuse("seed", seed, f"a hash seed, from 0 to {_GREATEST}")
    if pinned() == seed:
        return
    main = sys.modules.get("__main__")
    if "-c" not in sys.orig_argv and getattr(main, "__file__", None) is None:
        raise UsageError(
            "only a script can be started again; start an interactive session with "
            f"{VARIABLE}={seed} in its environment"
        )
    if sys.flags.ignore_environment:
        raise UsageError(f"Python was started with -E or -I, and ignores {VARIABLE}")
    os.environ.update({VARIABLE: str(seed), _PINNED: str(seed)})
    if sys.version_info < (3, 12):
        _fix_addresses()
    _start_again()


def _fix_addresses() -> None:
    """Ask Linux for the same addresses in each process; it may refuse, as in some containers."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        persona = libc.personality(ctypes.c_ulong(_ASK_PERSONALITY))
        libc.personality(ctypes.c_ulong(persona | _ADDR_NO_RANDOMIZE))


def _start_again() -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    command = [sys.executable, *sys.orig_argv[1:]]
    if sys.platform == "win32":  # where a process cannot be replaced
        sys.exit(subprocess.run(command, check=False).returncode)
    os.execv(sys.executable, command)
