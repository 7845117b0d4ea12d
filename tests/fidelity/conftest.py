"""Leaves tests that need brokers of Kafka out of continuous integration, which may skip none."""

from __future__ import annotations

import os

collect_ignore = ["test_files.py"] if os.environ.get("FAKEKAFKA_NO_SKIP") == "1" else []
