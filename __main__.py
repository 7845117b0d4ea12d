"""``python -m fakekafka`` is the command ``fakekafka``."""

from .cli.main import main

if __name__ == "__main__":
    main()
