"""JSON lines: each event in full, as ``trace show --json`` prints it."""

from __future__ import annotations

import json
from typing import BinaryIO

from ..trace import StoredTrace


def write(trace: StoredTrace, stream: BinaryIO) -> None:
    for event in trace.events():
        stream.write(json.dumps(event.as_dict(), ensure_ascii=False).encode() + b"\n")
