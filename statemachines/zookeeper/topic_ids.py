"""Topic ids: 128 random bits in URL-safe base64 (KIP-516)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

_RESERVED = (0, 1)
"""The zero id and the id of the metadata topic."""


def random_topic_id(rng: random.Random) -> str:
    """Return a random id of 22 characters: not a reserved one, and without a leading dash, which
    shell commands would take for an option."""
    while True:
        bits = rng.getrandbits(128)
        # Version 4 and variant 2, as in java.util.UUID.randomUUID.
        bits = (bits & ~(0xF << 76)) | (4 << 76)
        bits = (bits & ~(0x3 << 62)) | (2 << 62)
        text = base64.urlsafe_b64encode(bits.to_bytes(16, "big")).decode().rstrip("=")
        if bits not in _RESERVED and not text.startswith("-"):
            return text
