"""Runs the older integration tests of confluent-kafka-python; ``ok NAME`` or ``failed NAME: ...``.

Their own main program ends at once: it formats ``version()``, which is text now, as a pair.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

integration_test: Any = importlib.import_module("tests.integration.integration_test")
integration_test.bootstrap_servers = sys.argv[1]
integration_test.topic = "test-topic"
NAMES = (
    "producer",
    "producer_performance",
    "consumer",
    "batch_consumer",
    "consumer_performance",
    "batch_consumer_performance",
    "stats_cb",
    "throttle_cb",
)

for name in NAMES:
    try:
        getattr(integration_test, f"verify_{name}")()
    except Exception as error:
        reason = (str(error) or repr(error)).replace("\n", " ")
        print(f"\nfailed {name}: {reason}", flush=True)
    else:
        print(f"\nok {name}", flush=True)
print("end", flush=True)
