"""What judges have in common."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import ClassVar

from ..generator import Draws
from ..world import World


class Judge(ABC):
    """Builds the world of a seed with its load, and says what is wrong with it in the end."""

    name: ClassVar[str]
    draws: Draws
    world: World

    @abstractmethod
    def __init__(self, kafka_version: str, seed: int, trace: bool = False) -> None: ...

    def watching(self) -> contextlib.AbstractContextManager[object]:
        """What has to be seen on the way is noted as long as this is entered."""
        return contextlib.nullcontext()

    @abstractmethod
    def end(self) -> list[str]:
        """Undo every fault, wait, and say in words what is wrong."""

    @abstractmethod
    def figures(self) -> dict[str, int]:
        """How much happened."""
