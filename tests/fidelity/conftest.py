"""Continuous integration, where nothing may be skipped, leaves out what needs brokers of Kafka."""

from __future__ import annotations

import os

collect_ignore = ["test_files.py"] if os.environ.get("FAKEKAFKA_NO_SKIP") == "1" else []
