"""Runs the command ``fakekafka`` for ``python -m fakekafka``."""

from .cli.main import main

if __name__ == "__main__":
    main()
