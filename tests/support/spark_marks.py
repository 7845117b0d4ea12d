"""Marks for tests that start Spark."""

from __future__ import annotations

import pytest
from fakekafka.spark_bench.engines.engine import java_problem

ON_SPARK = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # The gateway to the JVM leaves its sockets and pipes to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(java_problem() is not None, reason=f"Spark cannot start: {java_problem()}"),
]
