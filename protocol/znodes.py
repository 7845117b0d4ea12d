"""Kafka's znodes: paths from ``znode_paths``, payloads from ``znode_payloads``, in one name."""

from __future__ import annotations

from .znode_paths import *  # noqa: F403
from .znode_payloads import *  # noqa: F403
