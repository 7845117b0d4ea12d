"""The rules that are in force in a network, as a value."""

from __future__ import annotations

from typing import NamedTuple


class NetworkRules(NamedTuple):
    """Which links are cut, lossy or slow, and what is kept back; links are (source, target)."""

    cuts: tuple[tuple[str, str], ...]
    """The links that are cut."""
    loss: float
    """Probability of a loss on every link that has none of its own."""
    link_losses: dict[tuple[str, str], float]
    """Probability of a loss on each link that has one of its own."""
    latency: str
    """The delay of all links in words, such as ``5 ms``."""
    link_latencies: dict[tuple[str, str], str]
    """The delay of each link that has one of its own."""
    bandwidth_mb_per_s: float | None
    """Megabytes that every link sends in a second; None is without a limit."""
    link_bandwidths: dict[tuple[str, str], float | None]
    """The bandwidth of each link that has one of its own."""
    held_count: int
    """Messages that are kept back now."""
