"""Values as the bodies of requests have them."""

from __future__ import annotations

import json
from typing import Any

from ..testing.parameters.kinds import SHOWN_CHARACTERS, Context


class JsonContext(Context):
    """JSON. Brokers and topics are looked up when the thing is done."""

    has_text_keys = True

    def write(self, value: Any) -> str:
        return json.dumps(_beginning(value), ensure_ascii=False)


JSON = JsonContext()


def _beginning(value: Any) -> Any:
    """Return what may be shown of a value, which may be of any size."""
    if isinstance(value, str):
        return value[: SHOWN_CHARACTERS + 1]
    if isinstance(value, list):
        return [_beginning(item) for item in value[:SHOWN_CHARACTERS]]
    if isinstance(value, dict):
        kept = list(value.items())[:SHOWN_CHARACTERS]
        return {str(key)[: SHOWN_CHARACTERS + 1]: _beginning(item) for key, item in kept}
    return value
