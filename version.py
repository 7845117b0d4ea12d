"""The version of the package; ``pyproject.toml`` repeats it."""

__version__ = "0.1.0"
