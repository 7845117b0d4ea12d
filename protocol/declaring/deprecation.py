"""The decorator that marks a public name as deprecated
(docs/reference/api.md#what-is-public-and-for-how-long).

The reason names the replacement, and ends with the release that removes the deprecated name::

    @property
    @deprecated("at_ms is called time_ms now; the old name goes in fakekafka 0.4")
    def at_ms(self) -> int:
        return self.time_ms

A call emits a warning at the line of the caller, and type checkers report each use (PEP 702). They
read the reason from the source, so it must be a literal.
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
        """Make a function issue a ``DeprecationWarning`` when called."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def warn_first(*args: Any, **kwargs: Any) -> Any:
                warnings.warn(reason, DeprecationWarning, stacklevel=2)
                return function(*args, **kwargs)

            return warn_first

        return decorate
