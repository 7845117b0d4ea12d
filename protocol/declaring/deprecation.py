"""The notice of a public name that is about to go
(docs/reference/api.md#what-is-public-and-for-how-long).

The reason names what to use instead, and ends with the release in which the name goes::

    @property
    @deprecated("at_ms is called time_ms now; the old name goes in fakekafka 0.4")
    def at_ms(self) -> int:
        return self.time_ms

A call warns at the line that makes it, and type checkers tell it without a call (PEP 702). They
read the reason as it stands there, so it has to be a literal.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import deprecated as deprecated
else:

    def deprecated(reason: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Make a function tell its caller by a ``DeprecationWarning``."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def warn_first(*args: Any, **kwargs: Any) -> Any:
                warnings.warn(reason, DeprecationWarning, stacklevel=2)
                return function(*args, **kwargs)

            return warn_first

        return decorate
