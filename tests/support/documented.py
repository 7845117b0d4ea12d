"""A class as the page of the API would show it, for the tests of that page."""

from __future__ import annotations

from typing import Any

_LIMIT = 3


class Base:
    """What is inherited is shown, too."""

    def close(self) -> None:
        """End it."""


class Documented(Base):
    """A class with a member of each kind.

    Only the first paragraph is shown.
    """

    def __init__(self) -> None:
        self.count: int = 0
        """How many ``Documented`` there are | were."""
        self.bare = None
        self._hidden = 0

    @property
    def other(self) -> Documented | None:
        """Another one.

        Or none: ``None``.
        """

    async def write(self, *names: str, limit: int = _LIMIT, **options: Any) -> list[Documented]:
        """Write ``Documented`` and ``Documented``."""
        return []

    def undocumented(self, value) -> None: ...  # type: ignore[no-untyped-def]
