"""Topic ids: 128 random bits in URL-safe base64 (KIP-516)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

_RESERVED = (0, 1)
"""The zero id and that of the metadata topic."""


def random_topic_id(rng: random.Random) -> str:
    """22 characters, never a reserved id, never with a leading dash (shells dislike it)."""
    while True:
        bits = rng.getrandbits(128)
        # Version 4, variant 2: as java.util.UUID draws them.
        bits = (bits & ~(0xF << 76)) | (4 << 76)
        bits = (bits & ~(0x3 << 62)) | (2 << 62)
        text = base64.urlsafe_b64encode(bits.to_bytes(16, "big")).decode().rstrip("=")
        if bits not in _RESERVED and not text.startswith("-"):
            return text
