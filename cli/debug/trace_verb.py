"""``fakekafka trace tui``: a trace on the whole terminal."""

from __future__ import annotations

import importlib.util

from ...protocol.errors import FakeKafkaError, UsageError
from ..exits import end_with_error
from ..trace_app import File, app
from .command import warn_of_cut


@app.command()
def tui(file: File) -> None:
    """Go through a trace on the whole terminal: lanes, events, state, payload, causes."""
    from ...debugger.debugger import Debugger

    try:
        if importlib.util.find_spec("textual") is None:
            raise UsageError("this view needs textual: pip install 'fakekafka[debug]'")
        from .view import DebuggerApp

        with Debugger.of_trace(file) as debugger:
            warn_of_cut(debugger)
            DebuggerApp(debugger, file.name).run()
    except FakeKafkaError as error:
        end_with_error(str(error))
