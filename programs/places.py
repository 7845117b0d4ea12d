"""Places in a program's code: where it runs, and where its tasks wait."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..builds import CODE_ROOT

_STANDARD = os.path.dirname(os.__file__) + os.sep
_CALLS = os.path.join(CODE_ROOT, "programs", "calls.py")
_PACKAGE_FOLDERS = tuple(
    os.path.join(CODE_ROOT, folder) + os.sep for folder in ("programs", "testing")
)
"""Folders of this package whose code calls a program, or is called by it."""
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def _is_installed(path: str) -> bool:
    return any(folder in path for folder in _INSTALLED)


def _is_foreign_code(path: str) -> bool:
    """Return whether a file belongs to Python, or to this package."""
    is_standard = path.startswith((_STANDARD, "<frozen")) and not _is_installed(path)
    return is_standard or path.startswith(_PACKAGE_FOLDERS)


def of_frame(frame: FrameType) -> str:
    """Return the description of a place: file, line and function."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def of_stack(frame: FrameType | None) -> str:
    """Return the place of a stack in the program's own code, or else in that of a library."""
    frames = list(_program_frames(frame))
    own = [frame for frame in frames if is_own_code(frame)]
    others = [frame for frame in frames if not _is_foreign_code(frame.f_code.co_filename)]
    found = own or others or frames[:1]
    return of_frame(found[0]) if found else "an unknown place"


def includes_own_code(frame: FrameType | None) -> bool:
    """Return whether a stack contains the program's own code, not only libraries."""
    return any(map(is_own_code, _program_frames(frame)))


def _program_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of a stack, innermost first, up to the loop that calls the program."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "run" and code.co_filename == _CALLS:
            return
        yield frame
        frame = frame.f_back


def of_task(task: asyncio.Task[Any]) -> str:
    """Return the name of a task and the place in the program's own code where it waits."""
    frames = list(_awaited_frames(task.get_coro()))
    if not frames:
        return task.get_name()
    own = [frame for frame in frames if is_own_code(frame)]
    return f"{task.get_name()} at {of_frame((own or frames[:1])[-1])}"


def is_own_code(frame: FrameType) -> bool:
    """Return whether a frame belongs to the program itself, not to a library."""
    path = frame.f_code.co_filename
    return not _is_foreign_code(path) and not _is_installed(path)


def _awaited_frames(awaited: Any) -> Iterator[FrameType]:
    """Yield the frames of a coroutine and of the coroutines it awaits, the outermost first."""
    while awaited is not None:
        for prefix, inner in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            frame = getattr(awaited, f"{prefix}_frame", None)
            if frame is not None:
                yield frame
                awaited = getattr(awaited, f"{prefix}_{inner}")
                break
        else:
            return
