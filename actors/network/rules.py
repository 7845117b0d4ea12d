"""The rules in force in a network, as a value."""

from __future__ import annotations

from typing import NamedTuple


class NetworkRules(NamedTuple):
    """Cuts, losses, delays and held messages of a network; a link is (source, target)."""

    cuts: tuple[tuple[str, str], ...]
    """The links that are cut."""
    loss: float
    """Probability of a loss on every link without one of its own."""
    link_losses: dict[tuple[str, str], float]
    """Probability of a loss on each link that has one of its own."""
    latency: str
    """The delay of every link without one of its own, in words such as ``5 ms``."""
    link_latencies: dict[tuple[str, str], str]
    """The delay of each link that has one of its own."""
    bandwidth_mb_per_s: float | None
    """Megabytes per second of every link without a bandwidth of its own; None for no limit."""
    link_bandwidths: dict[tuple[str, str], float | None]
    """The bandwidth of each link that has one of its own."""
    held_count: int
    """Number of messages that are held back."""
