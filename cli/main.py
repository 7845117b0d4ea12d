"""The ``fakekafka`` command: answers ``--version`` at once, and loads everything else on demand.

Importing this module must stay cheap, as the console script does so before it prints anything.
Typer, Rich and the sub-commands are therefore imported inside functions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..builds import told_version
from ..protocol.errors import UsageError
from .exits import end_with_error, written_output

HELP = "An Apache Kafka cluster of the ZooKeeper era inside one Python process."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Always raises ``SystemExit``; see ``exits`` for the status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"] or given == ["-V"]:
        with written_output():
            print(told_version())
        raise SystemExit(0)
    from .group import build_root

    try:
        result = build_root(HELP)(args=given, prog_name="fakekafka")
    except UsageError as error:
        end_with_error(str(error))
    raise SystemExit(result if isinstance(result, int) else 0)


if __name__ == "__main__":
    main()
